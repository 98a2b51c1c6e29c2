"""A whole run attacks the user's own vectors, even without texts or with vectors in the wrong order."""

import re

import numpy as np
import pandas as pd
import pytest

ROWS = 240


@pytest.fixture
def rows():
    """Return rows whose vectors show the label and the secret."""
    rng = np.random.default_rng(0)
    label, secret = rng.integers(0, 2, ROWS), rng.integers(0, 2, ROWS)
    words = [f"{['bad', 'good'][label[i]]} {['ale', 'tea'][secret[i]]} {i % 7} cups" for i in range(ROWS)]
    vectors = np.stack([label, secret, *rng.standard_normal((3, ROWS))], axis=1) + 0.1 * rng.standard_normal((ROWS, 5))
    return pd.DataFrame({"key": np.arange(ROWS), "text": words, "label": label, "drink": secret}), vectors


@pytest.fixture
def run(bench, command_line):
    """Return a function that runs attacks on own vectors, and returns the leaderboard and the printed text."""

    def run(frame, vectors, victims=(), attacks=("ridge",), limit=(), expected=0, **options):
        frame.to_csv(bench.folder / "a.csv", index=False)
        np.save(bench.folder / "v.npy", vectors)
        table = {"path": str(bench.folder / "a.csv"), "label": "label", "secrets": ["drink"], "duplicates": "keep"}
        table |= {"split": "part"} if "part" in frame else {}
        own = {"precomputed": {"vectors": str(bench.folder / "v.npy")}}
        bench.suite(datasets=[{"table": table | options}], victims=[own, *victims], attacks=list(attacks))
        status, out, err = command_line(*bench.arguments("run", *limit))
        assert status == expected, out + err
        return bench.leaderboard().reset_index(), " ".join((out + err).split())

    return run


@pytest.mark.slow
def test_vectors_in_random_order_are_reported_with_their_score(run, rows):
    frame, vectors = rows
    frame["part"] = np.resize(["train", "train", "dev", "test"], ROWS)
    board, out = run(frame, vectors)
    assert board["status"].tolist() == ["ok"]
    assert "do the rows match?" not in out
    board, out = run(frame, np.random.default_rng(1).permutation(vectors))
    assert board["status"].str.startswith("do the rows match?").all()
    assert "the vectors and the rows of the table do not belong together" in out


@pytest.mark.slow
def test_a_limit_is_not_kept_by_vectors_that_seem_not_to_belong_to_their_rows(run, rows):
    frame, vectors = rows
    limit = ("--at-most", "attack_score=1")
    run(frame, vectors, limit=limit)
    shuffled = np.random.default_rng(1).permutation(vectors)
    _, out = run(frame, shuffled, limit=limit, expected=3)
    assert re.search(r"table\S* / precomputed: do the rows match\?", out)
    run(frame, shuffled)  # without a limit it is a warning


def test_without_texts_only_plugins_that_read_texts_are_skipped(run, rows, bench):
    frame, vectors = rows
    word2vec = {"word2vec": {"vector_size": 4, "min_count": 1}}
    attacks = ["ridge", "bag_of_words", "nearest_neighbour"]
    board, out = run(frame.drop(columns="text"), vectors, ["hashed", word2vec], attacks, text=None)
    (scores,) = board.to_dict("records")
    assert (scores["victim"], scores["attack"], scores["status"]) == ("precomputed", "ridge", "ok")
    reasons = set(pd.read_csv(bench.run / "skipped.csv")["reason"])
    assert "the corpus has no texts" in reasons
    assert all(reason == "the corpus has no texts" or " publishes none" in reason for reason in reasons)
    assert float(scores["attack_score"]) > 0.8
    assert float(scores["task_accuracy"]) > 0.8
    assert (scores["privacy_text_classifier"], scores["test_copies"]) == ("", "")
    assert "verbatim" not in out


@pytest.mark.parametrize("regime", ["overlap", "disjoint"])
def test_rows_without_texts_are_divided_between_victim_and_attacker(run, rows, regime):
    frame, vectors = rows
    board, _ = run(frame.drop(columns="text"), vectors, text=None, auxiliary=regime)
    assert board["status"].tolist() == ["ok"]


def test_vectors_that_cannot_be_read_end_the_run_with_one_line(bench, command_line, rows):
    frame, vectors = rows
    frame.to_csv(bench.folder / "a.csv", index=False)
    vectors[8, 1] = np.nan
    np.save(bench.folder / "v.npy", vectors)
    table = {"table": {"path": str(bench.folder / "a.csv"), "secrets": ["drink"]}}
    bench.suite(datasets=[table], victims=[{"precomputed": {"vectors": str(bench.folder / "v.npy")}}, "hashed"])
    status, _, err = command_line(*bench.arguments("run"))
    assert (status, err.count("\n")) == (2, 1)
    message = "v.npy: 1 of 240 vectors hold NaN, infinity or numbers beyond float32; the first is row 9"
    assert f"{bench.folder / 'tiny.yaml'}: victims: precomputed: {bench.folder}/{message}" in err
