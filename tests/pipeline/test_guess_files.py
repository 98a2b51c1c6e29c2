"""Guesses of test rows: kept beside a cell for its owner alone, whole or not at all."""

import stat

import numpy as np
import pytest

from leakboard.interfaces import Secret
from leakboard.metrics.row_guesses import RowGuesses, SecretScores
from leakboard.pipeline.guess_files import read_guesses, write_guesses
from leakboard.pipeline.records import GUESSES, Record, is_finished, write_record
from leakboard.store import write_file

KEY = "a" * 64


@pytest.fixture
def guesses():
    rng = np.random.default_rng(0)
    secret = Secret("größe", ("klein", "groß"), "attribute")
    scores = SecretScores(secret, rng.normal(size=(3, 2)), np.array([0, 1, 1]), rng.normal(size=(2, 2)), np.eye(2)[0])
    return RowGuesses(np.array([5, 1, 2]), ["x", "y", "ü"], np.array([0, 0, 1]), {secret.name: scores})


def test_what_was_written_is_read(guesses, tmp_path):
    write_guesses(tmp_path, KEY, guesses)
    read = read_guesses(tmp_path, KEY)
    assert (read.rows.tolist(), read.ids, read.units.tolist()) == ([5, 1, 2], ["x", "y", "ü"], [0, 0, 1])
    given, known = (part.secrets["größe"] for part in (guesses, read))
    assert known.secret == given.secret
    for name in ("scores", "truth", "dev_scores", "dev_truth"):
        assert np.array_equal(getattr(known, name), getattr(given, name))


def test_an_attack_that_guesses_nothing_about_rows_has_an_empty_file(tmp_path):
    write_guesses(tmp_path, KEY, None)
    assert read_guesses(tmp_path, KEY).secrets == {}


def test_only_the_owner_can_read_it(guesses, tmp_path):
    write_guesses(tmp_path, KEY, guesses)
    write_file(tmp_path / "public", "")
    assert stat.S_IMODE((tmp_path / GUESSES).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "public").stat().st_mode) & 0o044


@pytest.mark.parametrize("kind", ["missing", "another identity", "damaged", "cut"])
def test_others_are_none(kind, guesses, tmp_path):
    path = tmp_path / GUESSES
    if kind != "missing":
        write_guesses(tmp_path, "b" * 64 if kind == "another identity" else KEY, guesses)
    if kind in ("damaged", "cut"):
        content = path.read_bytes()
        path.write_bytes(b"no zip" if kind == "damaged" else content[: len(content) // 2])
    assert read_guesses(tmp_path, KEY) is None


def test_a_cell_without_its_guesses_is_not_finished_where_they_are_asked_for(guesses, tmp_path):
    write_record(tmp_path, Record("d", "v", "a", 0, "ok", key=KEY))
    assert [is_finished(tmp_path, KEY, 0.0, asked) for asked in (False, True)] == [True, False]
    write_guesses(tmp_path, KEY, guesses)
    assert is_finished(tmp_path, KEY, 0.0, True)
    (tmp_path / GUESSES).write_bytes(b"")
    assert not is_finished(tmp_path, KEY, 0.0, True)


def test_a_skipped_cell_needs_none(tmp_path):
    write_record(tmp_path, Record("d", "v", "a", 0, "skipped", key=KEY))
    assert is_finished(tmp_path, KEY, 0.0, True)
