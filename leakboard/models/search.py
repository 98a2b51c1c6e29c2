"""Find nearest neighbours by cosine similarity: exactly, or approximately (FAISS) with measured recall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.interfaces import Floats, Integers

QUERIES_AT_ONCE = 256
"""Queries that `nearest_groups` multiplies with the whole index at once; more take more memory."""
BLOCK = 4_096
"""Queries that an approximate search multiplies with a cluster at once."""
PROBED = 16
"""An approximate search looks into one of so many clusters."""
NOTHING = -2.0
"""Similarity of a neighbour that an approximate search did not find; its row is -1."""


@dataclass(frozen=True)
class Neighbours:
    """The k nearest rows of an index to each query, best first."""

    rows: Integers
    """int64 (n, k); -1 at the end if an approximate search found fewer than k."""
    similarity: Floats
    """Cosines, float32 (n, k)."""
    recall: float = 1.0
    """Share of the true neighbours in the answer: 1 for exact search, else measured on a sample of the queries."""


def normalised(vectors: Floats) -> Floats:
    """Scale rows to length 1, float32; rows of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def nearest(queries: Floats, index: Floats, k: int, exact_limit: int = 2_000_000) -> Neighbours:
    """Return the ``k`` rows of ``index`` with the highest cosine similarity to each query.

    Args:
        queries: float32 (n, d).
        index: float32 (m, d).
        k: neighbours a query; at most m are returned.
        exact_limit: an index with more rows than this is searched approximately.
    """
    queries, index = normalised(queries), normalised(index)
    k = min(k, len(index))
    if not len(queries):
        return Neighbours(np.empty((0, k), np.int64), np.empty((0, k), np.float32))
    return _exact(queries, index, k) if len(index) <= exact_limit else _approximate(queries, index, k)


def _exact(queries: Floats, index: Floats, k: int) -> Neighbours:
    import faiss

    flat = faiss.IndexFlatIP(index.shape[1])
    flat.add(index)
    similarity, rows = flat.search(queries, k)
    return Neighbours(rows, similarity)


def _approximate(queries: Floats, index: Floats, k: int, sample: int = 1_000) -> Neighbours:
    """Search the clusters nearest to each query alone, and measure the recall on a sample of the queries.

    All queries of a cluster are multiplied with its rows at once. FAISS scans an inverted file query by query, which
    takes ten times as long for each pair.
    """
    import faiss
    import torch

    lists = max(1, int(np.sqrt(len(index))))
    clusters = faiss.Kmeans(
        index.shape[1], lists, niter=10, spherical=True, min_points_per_centroid=1, max_points_per_centroid=64
    )
    clusters.train(index)
    centres = np.asarray(clusters.centroids, np.float32)
    order, starts = _grouped(_exact(index, centres, 1).rows.ravel(), lists)
    probes = _exact(queries, centres, -(-lists // PROBED)).rows
    entries, ends = _grouped(probes.ravel(), lists)
    similarity, rows = np.full((len(queries), k), NOTHING, np.float32), np.full((len(queries), k), -1)
    for i in range(lists):
        inside, asked = order[starts[i] : starts[i + 1]], entries[ends[i] : ends[i + 1]] // probes.shape[1]
        columns = np.ascontiguousarray(index[inside].T)
        for start in range(0, len(asked) if len(inside) else 0, BLOCK):
            here = asked[start : start + BLOCK]
            found, place = torch.topk(torch.from_numpy(queries[here] @ columns), min(k, len(inside)))
            candidates = np.concatenate([rows[here], inside[place.numpy()]], axis=1)
            best, place = torch.topk(torch.from_numpy(np.concatenate([similarity[here], found.numpy()], axis=1)), k)
            similarity[here], rows[here] = best.numpy(), np.take_along_axis(candidates, place.numpy(), axis=1)
    checked = np.linspace(0, len(queries) - 1, min(sample, len(queries))).astype(int)
    truth = _exact(queries[checked], index, k).rows
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(rows[checked], truth, strict=True)])
    return Neighbours(rows, similarity, float(recall))


def _grouped(groups: Integers, count: int) -> tuple[Integers, Integers]:
    """Return the indices sorted by group, int64 (n,), and where each group begins, int64 (count + 1,)."""
    order = np.argsort(groups, kind="stable")
    return order, np.searchsorted(groups[order], np.arange(count + 1))


def nearest_groups(queries: Floats, index: Floats, groups: Integers, k: int) -> Neighbours:
    """Return the ``k`` groups with the highest cosine similarity of their nearest member to each query; exact.

    Args:
        queries: float32 (n, d).
        index: float32 (m, d).
        groups: the group of each index row, int64 (m,): every number from 0 to the largest.
        k: groups a query; at most all are returned, as ``rows``.
    """
    import torch

    queries, index = normalised(queries), normalised(index)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    k = min(k, len(starts))
    rows, similarity = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    columns = np.ascontiguousarray(index[order].T)  # NumPy's product with these is faster than torch's
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        part = slice(start, start + QUERIES_AT_ONCE)
        of_groups = np.maximum.reduceat(queries[part] @ columns, starts, axis=1)
        best, group = torch.topk(torch.from_numpy(of_groups), k)
        rows[part], similarity[part] = group.numpy(), best.numpy()
    return Neighbours(rows, similarity)
