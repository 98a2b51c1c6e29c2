"""Share the tables that are written from records."""

import pandas as pd
import pytest

from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.board import tables
from leakboard.threats.secrets import SecretsThreat
from leakboard.threats.texts import TextsThreat

REVISION = "__leakboard_revision__"
PUBLISHED_REVISIONS = (
    (AttributeInference, REVISION, 1),
    (BagOfWords, REVISION, 1),
    (EntityPresence, REVISION, 1),
    (SecretsThreat, "revision", 1),
    (TextsThreat, "revision", 1),
)
"""What has a later revision now than when the boards were computed, and the published revision."""


@pytest.fixture
def as_published(monkeypatch):
    """Give plugins and threats the revisions of the published boards; computing the boards anew empties the list."""
    for owner, attribute, revision in PUBLISHED_REVISIONS:
        assert getattr(owner, attribute) > revision
        monkeypatch.setattr(owner, attribute, revision)


@pytest.fixture
def rows(tmp_path):
    """Return a function that writes the tables of records and returns the rows of one table as text."""

    def read(records, name="leaderboard"):
        tables.write_tables(tmp_path / "run", records, {})
        return pd.read_csv(tmp_path / "run" / f"{name}.csv", dtype=str, keep_default_na=False).to_dict("records")

    return read


@pytest.fixture
def submitted(copied, output_of):
    """Return the bench and a submission of its run to the board in its folder ``tiny``."""
    folder = copied.folder / "tiny" / "submissions" / "mine"
    output_of(*copied.arguments("publish", "--submit", folder))
    return copied, folder


@pytest.fixture
def verify(output_of):
    """Return a function that verifies a submission with the submission's plugins and returns the output."""

    def call(folder, *more, status=0):
        plugins = [text for path in sorted((folder / "plugins").iterdir()) for text in ("--plugin", path)]
        return output_of("verify", folder, *plugins, *more, status=status)

    return call
