"""Share the tables that are written from records."""

from pathlib import Path

import pandas as pd
import pytest
from published_files import own_plugins

from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.attacks.dp_audit import DpAudit
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.attacks.nearest_neighbour import NearestNeighbour
from leakboard.board import tables
from leakboard.suite import revisions
from leakboard.threats.canaries import CanariesThreat
from leakboard.threats.membership import MembershipThreat
from leakboard.threats.secrets import SecretsThreat
from leakboard.threats.texts import TextsThreat
from leakboard.threats.words import WordsThreat

REVISION = "__leakboard_revision__"
PUBLISHED_REVISIONS = (
    (AttributeInference, REVISION, 1),
    (BagOfWords, REVISION, 1),
    (DpAudit, REVISION, 1),
    (EntityPresence, REVISION, 1),
    (MembershipThreat, "revision", 1),
    (NearestNeighbour, REVISION, 1),
    (SecretsThreat, "revision", 1),
    (TextsThreat, "revision", 1),
    (WordsThreat, "revision", 1),
    (CanariesThreat, "revision", 2),
    (revisions, "PUBLISH", 1),
    (revisions, "UTILITY", 1),
)
"""What has a later revision now than when the other boards were computed, and the published revision."""


@pytest.fixture
def as_published(monkeypatch):
    """Give plugins and threats the revisions of the boards that were not computed again."""
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


MINE = Path("tiny", "submissions", "mine")
"""Where the submission to the board ``tiny`` is."""


@pytest.fixture(scope="session")
def submitted_once(finished, call_once, tmp_path_factory):
    bench = finished.copy(tmp_path_factory.mktemp("submitted"))
    call_once(*bench.arguments("publish", "--submit", bench.folder / MINE))
    return bench


@pytest.fixture(scope="session")
def published_once(submitted_once, call_once, tmp_path_factory):
    bench = submitted_once.copy(tmp_path_factory.mktemp("published"))
    call_once(*bench.arguments("publish"))
    return bench


@pytest.fixture(scope="session")
def verified_once(submitted_once, call_once, tmp_path_factory):
    bench = submitted_once.copy(tmp_path_factory.mktemp("verified"))
    call_once("verify", bench.folder / MINE, *own_plugins(bench.folder / MINE), "--cells", 8)
    return bench


@pytest.fixture
def submitted(submitted_once, tmp_path):
    """Return the bench and a submission of its run to the board in its folder ``tiny``."""
    bench = submitted_once.copy(tmp_path)
    return bench, bench.folder / MINE


@pytest.fixture
def submitted_to_board(published_once, tmp_path):
    """Return the same, where the board has published the run, too."""
    bench = published_once.copy(tmp_path)
    return bench, bench.folder / MINE


@pytest.fixture
def verified(verified_once, tmp_path):
    """Return a submission whose cells are all verified."""
    return verified_once.copy(tmp_path).folder / MINE


@pytest.fixture
def verify(output_of):
    """Return a function that verifies a submission with the submission's plugins and returns the output."""

    def call(folder, *more, status=0):
        return output_of("verify", folder, *own_plugins(folder), *more, status=status)

    return call
