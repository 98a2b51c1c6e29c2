"""Share the tables that are written from records."""

import pandas as pd
import pytest

from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.board import tables

PUBLISHED_REVISIONS = ((AttributeInference, 1), (EntityPresence, 1))
"""Plugins with a later revision now than when the boards were computed, and the published revision."""


@pytest.fixture
def as_published(monkeypatch):
    """Give plugins the revisions of the published boards; computing the boards anew empties the list."""
    for plugin, revision in PUBLISHED_REVISIONS:
        assert plugin.__leakboard_revision__ > revision
        monkeypatch.setattr(plugin, "__leakboard_revision__", revision)


@pytest.fixture
def rows(tmp_path):
    """Return a function that writes the tables of records and returns the rows of one table as text."""

    def read(records, name="leaderboard"):
        tables.write_tables(tmp_path / "run", records, {})
        return pd.read_csv(tmp_path / "run" / f"{name}.csv", dtype=str, keep_default_na=False).to_dict("records")

    return read
