"""Cosine neighbours: exact, or approximate with measured recall."""

import numpy as np
import pytest

from leakboard.models.search import nearest, nearest_groups, normalised

TIE = 1e-6
"""Similarities closer than this may come in either order in float32."""


def gaussian(rng, n, d):
    return rng.normal(size=(n, d)).astype(np.float32)


def shifted(rng, n, d):
    """All vectors point into one narrow cone."""
    return (rng.normal(size=(n, d)) + 3).astype(np.float32)


def clustered(rng, n, d):
    """Each cluster has hundreds of near-duplicates."""
    centres = rng.normal(size=(4, d))
    return (centres[rng.integers(0, 4, n)] + 1e-3 * rng.normal(size=(n, d))).astype(np.float32)


def cosines(queries, index):
    """Return the cosines of all pairs, float64."""
    a, b = (x.astype(np.float64) for x in (queries, index))
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (a, b))
    return a @ b.T


def assert_exact(found, truth, k):
    """Compare with the k largest of the true similarities; only ties may be swapped."""
    best = -np.sort(-truth, axis=1)[:, :k]
    assert found.rows.shape == found.similarity.shape == best.shape
    assert found.rows.dtype == np.int64
    assert found.similarity.dtype == np.float32
    assert all(len(set(row)) == len(row) for row in found.rows.tolist())
    assert np.abs(np.take_along_axis(truth, found.rows, axis=1) - best).max() < TIE
    assert np.abs(found.similarity - best).max() < TIE
    assert found.recall == 1


@pytest.mark.parametrize("make", [gaussian, clustered])
@pytest.mark.parametrize(("n", "m", "groups", "k"), [(300, 500, 60, 5), (7, 40, 40, 10), (5, 30, 3, 10)])
def test_groups_against_brute_force(make, n, m, groups, k):
    rng = np.random.default_rng(m)
    index, queries = make(rng, m, 20), gaussian(rng, n, 20)
    owners = rng.permutation(np.concatenate([np.arange(groups), rng.integers(0, groups, m - groups)]))
    truth = np.stack([cosines(queries, index[owners == group]).max(1) for group in range(groups)], axis=1)
    found = nearest_groups(queries, index, owners, k)
    assert found.rows.shape == (n, min(k, groups))
    assert_exact(found, truth, k)


@pytest.mark.parametrize("make", [gaussian, shifted, clustered])
@pytest.mark.parametrize(("n", "m", "d", "k"), [(50, 1000, 100, 10), (2100, 300, 17, 1), (30, 700, 384, 16)])
def test_exact_against_brute_force(make, n, m, d, k):
    rng = np.random.default_rng(n + m)
    index = make(rng, m, d)
    queries = (index[rng.integers(0, m, n)] + 0.01 * rng.normal(size=(n, d))).astype(np.float32)
    assert_exact(nearest(queries, index, k), cosines(queries, index), k)


def test_a_search_in_fewer_bits_is_caught():
    index = gaussian(np.random.default_rng(0), 500, 32)
    rough = normalised(index).astype(np.float16).astype(np.float32)
    with pytest.raises(AssertionError):
        assert_exact(nearest(rough[:40], rough, 5), cosines(index[:40], index), 5)


def test_approximate_search_measures_its_recall():
    rng = np.random.default_rng(0)
    index, queries, k = gaussian(rng, 3000, 16), gaussian(rng, 500, 16), 5
    found = nearest(queries, index, k, exact_limit=2999)
    truth = np.argsort(-cosines(queries, index), axis=1)[:, :k]
    counted = np.mean([len(set(a) & set(b)) / k for a, b in zip(found.rows.tolist(), truth.tolist(), strict=True)])
    assert found.recall == pytest.approx(counted, abs=1e-9)
    assert 0.1 < found.recall < 1
    assert nearest(queries, index, k, exact_limit=3000).recall == 1


def test_approximate_search_finds_near_copies_among_clusters_and_returns_their_cosines():
    rng = np.random.default_rng(1)
    index = (gaussian(rng, 50, 32)[rng.integers(50, size=4000)] + 0.3 * gaussian(rng, 4000, 32)).astype(np.float32)
    own = rng.integers(4000, size=300)
    queries = (index[own] + 0.02 * gaussian(rng, 300, 32)).astype(np.float32)
    found = nearest(queries, index, 5, exact_limit=0)
    assert (found.rows[:, 0] == own).mean() > 0.98
    assert found.recall > 0.8
    expected = np.take_along_axis(cosines(queries, index), found.rows, axis=1)
    assert np.allclose(found.similarity, expected, atol=1e-5)
    assert (np.diff(found.similarity) <= 0).all()
    again = nearest(queries, index, 5, exact_limit=0)
    assert np.array_equal(found.rows, again.rows)


@pytest.mark.parametrize("m", [1, 5, 20])
def test_approximate_search_of_a_tiny_index(m):
    x = gaussian(np.random.default_rng(0), m, 4)
    found = nearest(x, x, 3, exact_limit=0)
    assert found.rows.shape == (m, min(3, m))
    assert 0 <= found.recall <= 1


@pytest.mark.parametrize("m", [10, 300])
def test_zero_vectors_survive(m):
    index = gaussian(np.random.default_rng(0), m, 8)
    index[3] = 0
    queries = np.concatenate([np.zeros((1, 8), np.float32), index[:5]])
    found = nearest(queries, index, 4)
    assert np.isfinite(found.similarity).all()
    assert (found.similarity[0] == 0).all()
    assert_exact(found, cosines(queries, index), 4)


def test_more_neighbours_than_rows_and_no_queries():
    x = gaussian(np.random.default_rng(0), 3, 8)
    assert_exact(nearest(x, x, 10), cosines(x, x), 3)
    assert nearest(x[:0], x, 10).rows.shape == (0, 3)


def test_inputs_stay_unchanged_and_lengths_do_not_matter():
    x = gaussian(np.random.default_rng(0), 300, 8)
    before = x.copy()
    rows = nearest(x, x, 3).rows
    assert np.array_equal(x, before)
    assert np.array_equal(nearest(x * 1e4, x * 1e-4, 3).rows, rows)
