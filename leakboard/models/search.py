"""Find nearest neighbours by cosine similarity: exactly, or approximately (FAISS) with measured recall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.interfaces import Floats, Integers

QUERIES_AT_ONCE = 256
"""Queries that `nearest_groups` multiplies with the whole index at once; more take more memory."""


@dataclass(frozen=True)
class Neighbours:
    """The k nearest rows of an index to each query, best first."""

    rows: Integers
    """int64 (n, k)."""
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
    import faiss

    lists = min(int(4 * np.sqrt(len(index))), len(index))
    quantiser = faiss.IndexFlatIP(index.shape[1])
    inverted = faiss.IndexIVFFlat(quantiser, index.shape[1], lists, faiss.METRIC_INNER_PRODUCT)
    inverted.train(index[:: max(1, len(index) // (64 * lists))])
    inverted.add(index)
    inverted.nprobe = max(1, lists // 16)
    similarity, rows = inverted.search(queries, k)
    checked = np.linspace(0, len(queries) - 1, min(sample, len(queries))).astype(int)
    truth = _exact(queries[checked], index, k).rows
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(rows[checked], truth, strict=True)])
    return Neighbours(rows, similarity, float(recall))


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
