"""The ``precomputed`` victim: rows joined by id, whatever the order, or by position, and told which."""

import json

import numpy as np
import pandas as pd
import pytest

from leakboard.datasets.table import Table
from leakboard.errors import RequestError
from leakboard.suite.options import named
from leakboard.victims.precomputed import Precomputed

RNG = np.random.default_rng(0)
KEYS = [f"key {i}" for i in range(40)]


@pytest.fixture
def lines(monkeypatch):
    """Return the lines that a victim tells."""
    told = []
    monkeypatch.setattr("leakboard.victims.precomputed.log_progress", told.append)
    monkeypatch.setattr("leakboard.victims.precomputed.log_warning", lambda text: told.append(f"warning: {text}"))
    return told


@pytest.fixture
def corpora(tmp_path):
    """Return forty rows, with and without their ids."""
    rows = pd.DataFrame({"key": KEYS, "text": [f"text {i}" for i in range(40)], "label": ["a", "b"] * 20})
    rows.to_csv(tmp_path / "a.csv", index=False)
    with_ids = Table(path=str(tmp_path / "a.csv"), label="label", id="key").load()
    return with_ids, Table(path=str(tmp_path / "a.csv"), label="label").load()


def vectors(rows):
    """Return vectors that tell the row of the table."""
    return np.stack([np.asarray(rows, np.float32), -np.asarray(rows, np.float32)], axis=1)


def write(path, rows, keys):
    np.savez(path, id=np.array(keys), vectors=vectors(rows))
    return str(path)


def published(path, corpus, **options):
    victim = Precomputed(vectors=path, **options)
    victim.fit(corpus.only("train", "dev"), 0)
    return victim.load(None).publish_documents(corpus.texts("test"), RNG)[:, 0]


def test_rows_are_joined_by_id_whatever_the_order(tmp_path, corpora, lines):
    order = np.random.default_rng(1).permutation(40)
    path = write(tmp_path / "v.npz", [*order, 99, 98], [*(KEYS[i] for i in order), "other", "more"])
    assert published(path, corpora[0]).tolist() == corpora[0].texts("test").rows.tolist()
    assert lines == [f"{path}: 42 vectors are joined by id with the dataset's 40 rows"]


def test_without_ids_on_both_sides_the_position_counts_and_is_told(tmp_path, corpora, lines):
    order = np.random.default_rng(1).permutation(40)
    np.save(tmp_path / "v.npy", vectors(range(40)))
    for corpus in corpora:
        assert published(str(tmp_path / "v.npy"), corpus).tolist() == corpus.texts("test").rows.tolist()
    assert lines == [f"warning: {tmp_path / 'v.npy'} has no ids; joined by position"]
    lines.clear()
    path = write(tmp_path / "v.npz", order, [KEYS[i] for i in order])
    assert published(path, corpora[1]).tolist() == [order[row] for row in corpora[1].texts("test").rows]
    assert lines == [f"warning: {path}: joined by position and not by id, since the dataset names no column of ids"]


def test_a_missing_id_is_told_with_file_and_row(tmp_path, corpora):
    row = int(corpora[0].texts("train").rows[0])
    path = write(tmp_path / "v.npz", range(40), [key if key != KEYS[row] else f"{key}!" for key in KEYS])
    message = rf"v.npz: no vector has the id 'key {row}' of row {row + 1} of the dataset; did you mean .*; 1 of 32 rows"
    with pytest.raises(RequestError, match=message):
        published(path, corpora[0])


def test_ids_that_do_not_identify_are_refused_where_they_join(tmp_path, corpora, lines):
    path = write(tmp_path / "v.npz", range(40), [*KEYS[:30], KEYS[3], *KEYS[31:]])
    with pytest.raises(RequestError, match=r"v.npz: rows 4 and 31 have the same id, 'key 3'"):
        published(path, corpora[0])
    published(path, corpora[1])
    (tmp_path / "v.jsonl").write_text("\n".join(json.dumps({"id": k, "v": [1, 2]}) for k in [KEYS[0], None]))
    with pytest.raises(RequestError, match=r"v.jsonl: row 2: id is missing"):
        published(str(tmp_path / "v.jsonl"), corpora[0])


def test_whole_numbers_are_ids_in_every_format(tmp_path, lines):
    rows = [
        {"id": 1000 - i, "vector": [i, -i], "payload": {"text": f"text {i}", "sex": "fm"[i % 2]}} for i in range(40)
    ]
    (tmp_path / "dump.jsonl").write_text("\n".join(map(json.dumps, rows)))
    names = {"text": "payload.text", "secrets": ("payload.sex",), "id": "id"}
    corpus = Table(path=str(tmp_path / "dump.jsonl"), **names).load()
    (tmp_path / "back.jsonl").write_text("\n".join(map(json.dumps, rows[::-1])))
    np.savez(tmp_path / "back.npz", id=1000.0 - np.arange(40)[::-1], v=vectors(range(40))[::-1])
    for name in ("dump.jsonl", "back.jsonl", "back.npz"):
        assert published(str(tmp_path / name), corpus).tolist() == corpus.texts("test").rows.tolist()


def test_dimensions_that_never_vary_are_told(tmp_path, corpora, lines):
    table = np.random.default_rng(0).standard_normal((40, 5))
    table[:, [1, 3]] = 0.5
    np.save(tmp_path / "v.npy", table)
    published(str(tmp_path / "v.npy"), corpora[1])
    message = "2 of 5 dimensions are the same in all rows; the first is 2"
    assert lines == [f"warning: {tmp_path / 'v.npy'}: {message}"]
    np.save(tmp_path / "v.npy", np.ones((40, 5)))
    with pytest.raises(RequestError, match=r"v.npy: all 40 vectors are the same"):
        published(str(tmp_path / "v.npy"), corpora[1])


def test_new_options_leave_old_identities_as_they_were():
    assert named(Precomputed(vectors="v.npy", column="c")) == {"vectors": "v.npy", "column": "c"}
    assert named(Table(path="a.csv", label="y", secrets=("s",))) == {
        "path": "a.csv",
        "label": "y",
        "secrets": ["s"],
    }
