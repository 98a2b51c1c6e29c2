"""Neighbours kept: all after a rotation, as many as chance gives in unrelated vectors, and half if half are."""

import numpy as np
import pytest

from leakboard.metrics.intervals import wilson
from leakboard.metrics.kept_neighbours import MAX_QUERIES, NEIGHBOURS
from leakboard.metrics.kept_neighbours import neighbours_kept as drawn

TRAIN, TEST, WIDTH = 400, 200, 16


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=(n, WIDTH)).astype(np.float32) for name, n in (("train", TRAIN), ("test", TEST))}


def neighbours_kept(before, after, units=None, seed=3):
    return drawn(before, after, np.random.default_rng(seed), units)


def changed(vectors, change):
    return {name: change(array).astype(np.float32) for name, array in vectors.items()}


def test_a_rotation_and_a_scale_keep_all(vectors):
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(WIDTH, WIDTH)))
    kept = neighbours_kept(vectors, changed(vectors, lambda array: 3 * array @ rotation))
    assert kept.share == kept.high == 1
    assert kept.low > 0.98


def test_unrelated_vectors_keep_what_chance_gives(vectors):
    rng = np.random.default_rng(2)
    kept = neighbours_kept(vectors, changed(vectors, lambda array: rng.normal(size=array.shape)))
    assert kept.low < NEIGHBOURS / TRAIN < kept.high
    assert kept.high - kept.low < 0.03


def test_queries_that_keep_nothing_count(vectors):
    """Half of the vectors of test are turned around: their nearest vectors become the farthest."""
    signs = np.where(np.arange(TEST) < TEST // 2, 1, -1)[:, None].astype(np.float32)
    turned = {**vectors, "test": vectors["test"] * signs}
    assert neighbours_kept(vectors, turned).share == pytest.approx(0.5, abs=0.01)


def test_few_rows_of_train_and_many_of_test(vectors):
    """The interval of a share of 1 shows how many vectors searched."""
    many = {"train": vectors["train"][:3], "test": np.repeat(vectors["test"], 6, axis=0)}
    assert len(many["test"]) > MAX_QUERIES
    kept = neighbours_kept(many, many)
    assert kept.share == 1
    assert kept.low == pytest.approx(wilson(1.0, MAX_QUERIES, 1.959964)[0], abs=1e-9)


def by_user(vectors, users):
    """Return 2,000 vectors of test sorted by user, the same with half of the users turned around, and the users."""
    many = {**vectors, "test": np.random.default_rng(4).normal(size=(2_000, WIDTH)).astype(np.float32)}
    of_row = np.arange(2_000) // (2_000 // users)
    signs = np.where(of_row < users // 2, 1, -1)[:, None].astype(np.float32)
    return many, {**many, "test": many["test"] * signs}, of_row


def test_queries_are_drawn_from_all_of_test(vectors):
    """The first 1,000 rows keep all, the last 1,000 nothing: five standard errors of a draw are 0.06."""
    before, after, _ = by_user(vectors, 20)
    kept = neighbours_kept(before, after)
    assert kept.share == pytest.approx(0.5, abs=0.06)
    assert kept == neighbours_kept(before, after)
    assert kept != neighbours_kept(before, after, seed=5)


def test_the_interval_is_over_users(vectors):
    """All rows of a user agree, so the interval of 20 users is at least five times as wide as that of 1,000 rows."""
    before, after, users = by_user(vectors, 20)
    rows, units = neighbours_kept(before, after), neighbours_kept(before, after, users)
    assert units.share == rows.share
    assert units.high - units.low > 5 * (rows.high - rows.low)
