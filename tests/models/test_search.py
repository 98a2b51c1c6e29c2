"""Cosine neighbours: exact whatever the path, and approximate with a recall that is true."""

import numpy as np
import pytest
import torch

from leakboard.models import search
from leakboard.models.search import ERROR_BOUND, nearest, nearest_groups, normalised

TIE = 1e-6
"""Similarities closer than this may come in either order in float32."""


def gaussian(rng, n, d):
    return rng.normal(size=(n, d)).astype(np.float32)


def shifted(rng, n, d):
    """All vectors point into one narrow cone."""
    return (rng.normal(size=(n, d)) + 3).astype(np.float32)


def clustered(rng, n, d):
    """Hundreds of near-duplicates a cluster: closer to each other than bfloat16 can tell."""
    centres = rng.normal(size=(4, d))
    return (centres[rng.integers(0, 4, n)] + 1e-3 * rng.normal(size=(n, d))).astype(np.float32)


def assert_exact(found, queries, index, k):
    """Compare with float64 brute force; places may be swapped only between ties."""
    a, b = (x.astype(np.float64) for x in (queries, index))
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (a, b))
    truth = a @ b.T
    best = -np.sort(-truth, axis=1)[:, :k]
    assert found.rows.shape == found.similarity.shape == best.shape
    assert found.rows.dtype == np.int64
    assert found.similarity.dtype == np.float32
    assert all(len(set(row)) == k for row in found.rows.tolist())
    assert np.abs(np.take_along_axis(truth, found.rows, axis=1) - best).max() < TIE
    assert np.abs(found.similarity - best).max() < TIE
    assert found.recall == 1


@pytest.mark.parametrize(("n", "m", "k"), [(40, 1000, 32), (3, 129, 32), (9, 16 * 40, 7), (5, 47, 31)])
@pytest.mark.parametrize("ties", [False, True])
def test_the_largest_of_each_row(n, m, k, ties):
    values = torch.randn(n, m, generator=torch.Generator().manual_seed(m))
    values = (values * 2).round() if ties else values
    largest, columns = search._largest(values, k)
    assert torch.equal(largest.sort().values, values.topk(k).values.sort().values)
    assert torch.equal(values.gather(1, columns), largest)
    assert all(len(set(row)) == k for row in columns.tolist())


@pytest.mark.parametrize("make", [gaussian, clustered])
@pytest.mark.parametrize(("n", "m", "groups", "k"), [(300, 500, 60, 5), (7, 40, 40, 10), (5, 30, 3, 10)])
def test_groups_against_brute_force(make, n, m, groups, k):
    rng = np.random.default_rng(m)
    index, queries = make(rng, m, 20), gaussian(rng, n, 20)
    owners = rng.permutation(np.concatenate([np.arange(groups), rng.integers(0, groups, m - groups)]))
    found = nearest_groups(queries, index, owners, k)
    a, b = (x.astype(np.float64) / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, index))
    truth = np.stack([(a @ b[owners == group].T).max(1) for group in range(groups)], axis=1)
    best = -np.sort(-truth, axis=1)[:, :k]
    assert found.rows.shape == best.shape == (n, min(k, groups))
    assert all(len(set(row)) == len(row) for row in found.rows.tolist())
    assert np.abs(np.take_along_axis(truth, found.rows, axis=1) - best).max() < TIE
    assert np.abs(found.similarity - best).max() < TIE


@pytest.fixture
def asked(monkeypatch):
    """Count the rows that FAISS is asked for."""
    counts, flat = [], search._flat
    monkeypatch.setattr(search, "_flat", lambda q, i, k: (counts.append(len(q)), flat(q, i, k))[1])
    return counts


@pytest.mark.parametrize("bfloat16", [True, False], ids=["shortlist", "flat"])
@pytest.mark.parametrize("make", [gaussian, shifted, clustered])
@pytest.mark.parametrize(("n", "m", "d", "k"), [(50, 1000, 100, 10), (2100, 300, 17, 1), (30, 700, 384, 16)])
def test_exact_against_brute_force(monkeypatch, make, bfloat16, n, m, d, k):
    monkeypatch.setattr(search, "has_bfloat16", lambda device: bfloat16)
    rng = np.random.default_rng(n + m)
    index = make(rng, m, d)
    queries = (index[rng.integers(0, m, n)] + 0.01 * rng.normal(size=(n, d))).astype(np.float32)
    assert_exact(nearest(queries, index, k), queries, index, k)


def test_faiss_is_asked_where_the_bound_proves_nothing_and_only_there(monkeypatch, asked):
    monkeypatch.setattr(search, "has_bfloat16", lambda device: True)
    rng = np.random.default_rng(0)
    index = clustered(rng, 500, 32)
    assert_exact(nearest(index[:40], index, 5), index[:40], index, 5)
    assert asked == [40]
    asked.clear()
    index = gaussian(rng, 500, 300)
    assert_exact(nearest(index[:40], index, 1), index[:40], index, 1)
    assert asked == []


def test_without_the_proof_near_duplicates_are_missed(monkeypatch):
    monkeypatch.setattr(search, "has_bfloat16", lambda device: True)
    monkeypatch.setattr(search, "ERROR_BOUND", -1.0)
    index = clustered(np.random.default_rng(0), 500, 32)
    with pytest.raises(AssertionError):
        assert_exact(nearest(index[:40], index, 5), index[:40], index, 5)


def test_small_indices_and_many_neighbours_go_to_faiss(monkeypatch, asked):
    monkeypatch.setattr(search, "has_bfloat16", lambda device: True)
    x = gaussian(np.random.default_rng(0), 200, 8)
    for m, k in ((4 * search.SHORTLIST, 3), (200, search.SHORTLIST // 2 + 1)):
        asked.clear()
        assert_exact(nearest(x, x[:m], k), x, x[:m], k)
        assert asked == [200]


class TestErrorBound:
    """|rough - exact| <= ERROR_BOUND for unit vectors, and the bound is not idle."""

    @staticmethod
    def rough_errors(a, b):
        rough = (torch.from_numpy(a).bfloat16() @ torch.from_numpy(b).bfloat16().T).float().numpy()
        return np.abs(rough - a.astype(np.float64) @ b.astype(np.float64).T)

    @pytest.mark.parametrize("d", [2, 17, 100, 768])
    @pytest.mark.parametrize("kind", ["random", "constant sign", "cancelling"])
    def test_holds_and_is_not_fifty_times_too_large(self, kind, d):
        rng = np.random.default_rng(d)
        a, b = (rng.normal(size=(400, d)) for _ in range(2))
        if kind == "constant sign":
            a, b = np.abs(a) + 3, np.abs(b) + 3
        if kind == "cancelling":
            half = d // 2
            a[:, half : 2 * half] = a[:, :half] * (1 + 0.01 * rng.normal(size=(400, half)))
            b[:, half : 2 * half] = -b[:, :half] * (1 + 0.01 * rng.normal(size=(400, half)))
        errors = self.rough_errors(normalised(a.astype(np.float32)), normalised(b.astype(np.float32)))
        assert errors.max() <= ERROR_BOUND
        assert errors.max() > ERROR_BOUND / 50

    def test_the_worst_case_comes_close(self):
        """All coordinates just below the middle of two bfloat16 numbers, so that every rounding goes down."""
        x = np.full((1, 64), 0.125 * (1 + 2.0**-8 - 2.0**-18))
        x[0, -1] = np.sqrt(1 - (x[0, :-1] ** 2).sum())
        x = x.astype(np.float32)
        assert abs(np.linalg.norm(x) - 1) < 1e-6
        error = self.rough_errors(x, x).max()
        assert 0.6 * ERROR_BOUND < error <= ERROR_BOUND
        # u is 2**-8, half the spacing of bfloat16: with 2**-9 in its place this example breaks the bound.
        assert torch.finfo(torch.bfloat16).eps / 2 == 2.0**-8
        assert error > 3 * 2.0**-9 + 2.0**-18 + 2.0**-12

    def test_the_search_survives_the_worst_case(self, monkeypatch):
        """The true neighbour is rounded down while forty others, less similar, are not."""
        monkeypatch.setattr(search, "has_bfloat16", lambda device: True)
        query = np.zeros((1, 128), np.float32)
        query[0, :63] = 0.125 * (1 + 2.0**-8 - 2.0**-18)
        query[0, 63] = np.sqrt(1 - (query[0, :63].astype(np.float64) ** 2).sum())
        others = np.zeros((200, 128), np.float32)
        others[:, :64] = 0.125
        others[np.arange(200), 64 + np.arange(200) % 64] = np.linspace(0.01, 0.5, 200)
        index = np.concatenate([others, query])
        assert_exact(nearest(query, index, 1), query, index, 1)
        assert nearest(query, index, 1).rows.tolist() == [[200]]


def test_approximate_search_tells_its_recall():
    rng = np.random.default_rng(0)
    index, queries, k = gaussian(rng, 3000, 16), gaussian(rng, 500, 16), 5
    found = nearest(queries, index, k, exact_limit=2999)
    truth = np.argsort(-normalised(queries).astype(np.float64) @ normalised(index).T, axis=1)[:, :k]
    counted = np.mean([len(set(a) & set(b)) / k for a, b in zip(found.rows.tolist(), truth.tolist(), strict=True)])
    assert found.recall == pytest.approx(counted, abs=1e-9)
    assert 0.1 < found.recall < 1
    assert nearest(queries, index, k, exact_limit=3000).recall == 1


@pytest.mark.parametrize("m", [1, 5, 20])
def test_approximate_search_of_a_tiny_index(m):
    x = gaussian(np.random.default_rng(0), m, 4)
    found = nearest(x, x, 3, exact_limit=0)
    assert found.rows.shape == (m, min(3, m))
    assert 0 <= found.recall <= 1


@pytest.mark.parametrize("m", [10, 300])
def test_zero_vectors_survive(monkeypatch, m):
    monkeypatch.setattr(search, "has_bfloat16", lambda device: True)
    index = gaussian(np.random.default_rng(0), m, 8)
    index[3] = 0
    queries = np.concatenate([np.zeros((1, 8), np.float32), index[:5]])
    found = nearest(queries, index, 4)
    assert np.isfinite(found.similarity).all()
    assert (found.similarity[0] == 0).all()
    assert_exact(found, queries, index, 4)


def test_more_neighbours_than_rows():
    x = gaussian(np.random.default_rng(0), 3, 8)
    found = nearest(x, x, 10)
    assert found.rows.shape == (3, 3)
    assert_exact(found, x, x, 3)


def test_no_queries():
    x = gaussian(np.random.default_rng(0), 300, 8)
    assert nearest(x[:0], x, 5).rows.shape == (0, 5)


def test_inputs_stay_and_lengths_do_not_matter():
    x = gaussian(np.random.default_rng(0), 300, 8)
    before = x.copy()
    rows = nearest(x, x, 3).rows
    assert np.array_equal(x, before)
    assert np.array_equal(nearest(x * 1e4, x * 1e-4, 3).rows, rows)
