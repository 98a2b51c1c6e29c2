"""Neighbours kept: all after a rotation, as many as chance gives in unrelated vectors, and half if half are."""

import numpy as np
import pytest

from leakboard.metrics.kept_neighbours import MAX_QUERIES, NEIGHBOURS, neighbours_kept

TRAIN, TEST, WIDTH = 400, 200, 16


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=(n, WIDTH)).astype(np.float32) for name, n in (("train", TRAIN), ("test", TEST))}


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
    many = {"train": vectors["train"][:3], "test": np.repeat(vectors["test"], 6, axis=0)}
    assert len(many["test"]) > MAX_QUERIES
    assert neighbours_kept(many, many).share == 1
