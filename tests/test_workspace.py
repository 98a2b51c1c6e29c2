"""Rows of texts are computed once for all work that shares them."""

import numpy as np
import pytest

from leakboard.workspace import Sharing, also_shared, digest_of_texts, shared_rows, sharing, without_shared_rows

TRAIN, TEST = ("a", "bb", "ccc"), ("dddd", "eeeee")


@pytest.fixture
def made():
    """Return the lists of texts that were computed."""
    return []


@pytest.fixture
def lengths(made):
    """Return the function that computes a row, the length, for each text."""

    def make(texts):
        made.append(list(texts))
        return np.array([[len(text)] for text in texts], np.float32)

    return lambda *texts: shared_rows("lengths", {}, texts, make)[:, 0].tolist()


@pytest.fixture
def store():
    """Return the way in which a run with two splits shares arrays."""
    kept = {}

    def keep(kind, identity, make):
        key = (kind, *identity.values())
        if key not in kept:
            kept[key] = make()
        return kept[key]

    return Sharing(keep, lambda: {digest_of_texts(texts): texts for texts in (TRAIN, TEST)})


def test_outside_a_run_all_rows_are_computed(lengths, made):
    assert [lengths("bb", "a"), lengths("bb", "a")] == [[2, 1], [2, 1]]
    assert made == [["bb", "a"], ["bb", "a"]]


def test_rows_of_a_split_are_computed_once_and_together(lengths, made, store):
    with sharing(store):
        assert lengths("ccc", "a") == [3, 1]
        assert lengths("dddd", "bb", "a") == [4, 2, 1]
    assert made == [list(TRAIN), list(TEST)]


def test_rows_of_other_texts_are_not_kept(lengths, made, store):
    with sharing(store):
        assert [lengths("ffffff", "a"), lengths("ffffff")] == [[6, 1], [6]]
    assert made == [list(TRAIN), ["ffffff"], ["ffffff"]]


def test_texts_that_other_work_needs_are_kept(lengths, made, store):
    for _ in range(2):
        with sharing(store), also_shared(["ffffff", "a"]):
            assert lengths("ffffff", "a") == [6, 1]
    assert made == [list(TRAIN), ["ffffff", "a"]]


def test_without_a_run_more_texts_are_not_shared(lengths, made):
    with also_shared(["a"]):
        lengths("a")
        lengths("a")
    assert len(made) == 2


def test_work_without_shared_rows_computes_its_own_rows(lengths, made, store):
    with sharing(store), without_shared_rows():
        assert [lengths("a"), lengths("a")] == [[1], [1]]
    assert made == [["a"], ["a"]]


def test_no_texts_have_no_rows(lengths, store):
    with sharing(store):
        assert shared_rows("lengths", {}, [], lambda texts: np.zeros((len(texts), 1), np.float32)).shape == (0, 1)
