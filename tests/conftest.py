"""Fixtures that several test files share."""

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def real_data():
    """Return the folder of the published files, or skip."""
    folder = Path(os.environ.get("LEAKBOARD_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is missing (set LEAKBOARD_DATA)")
    return folder
