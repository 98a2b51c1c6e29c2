"""Keep forests small."""

import pytest

from leakboard.attacks._portfolio import neighbours_and_trees


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    """Grow 20 trees in a forest: with 100, forests are more than half of the time of an ensemble on few texts."""
    monkeypatch.setattr(neighbours_and_trees, "TREES", 20)
