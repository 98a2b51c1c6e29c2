"""Every column of the published tables has one sentence, and no sentence is about a column that does not exist."""

import pytest

from leakboard.board.best_known import BEST_KNOWN
from leakboard.board.columns import COLUMNS, COMMON, meaning
from leakboard.board.projections import PROJECTIONS
from leakboard.board.reference import COMPARISON
from leakboard.board.tables import CELLS, COST, FAIRNESS, LEADERBOARD, SENTENCE, SKIPPED

FILES = {
    "leaderboard.csv": LEADERBOARD,
    "best_known.csv": BEST_KNOWN,
    "skipped.csv": SKIPPED,
    "cells.csv": CELLS,
    "fairness.csv": FAIRNESS,
    "costs.csv": COST,
    "sentences.csv": SENTENCE,
    "comparison.csv": COMPARISON,
    "projections.csv": PROJECTIONS,
}


@pytest.mark.parametrize("file", FILES)
def test_every_column_has_a_sentence_and_every_sentence_a_column(file):
    names = FILES[file].split(", ")
    assert all(meaning(file, name).endswith(".") for name in names)
    assert set(COLUMNS[file]) <= set(names)


def test_what_files_share_stands_in_several():
    written = [name for names in FILES.values() for name in names.split(", ")]
    assert set(COLUMNS) == set(FILES)
    assert set(COMMON) <= set(written)


def test_an_unknown_column_has_no_meaning():
    with pytest.raises(KeyError):
        meaning("skipped.csv", "attack_score")
