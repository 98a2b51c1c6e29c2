"""Mark cases of a test as slow."""

import pytest


def with_slow(cases, *slow):
    """Return the cases of a test. Those in ``slow`` run only in ``make test-all``."""
    assert {*slow} <= {*cases}
    return [pytest.param(case, marks=pytest.mark.slow) if case in slow else case for case in cases]
