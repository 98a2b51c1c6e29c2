"""Cosine nearest neighbours: exact, or approximate with measured recall (FAISS)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.interfaces import Floats, Integers

BLOCK = 256
"""Queries multiplied at once in `nearest_groups`, where every product is kept until its group's largest is known."""


@dataclass(frozen=True)
class Neighbours:
    """The k nearest rows of an index to each query, best first."""

    rows: Integers
    """int64 (n, k)."""
    similarity: Floats
    """float32 (n, k): cosines."""
    recall: float = 1.0
    """Share of the true neighbours found: 1 for exact search, else measured on a sample of the queries."""


def normalised(vectors: Floats) -> Floats:
    """Return rows of length 1, float32; rows of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def nearest(queries: Floats, index: Floats, k: int, exact_limit: int = 2_000_000) -> Neighbours:
    """Return the ``k`` rows of ``index`` of highest cosine similarity to each query.

    Args:
        queries: float32 (n, d).
        index: float32 (m, d).
        k: neighbours a query; at most m are returned.
        exact_limit: more index rows than this are searched approximately.
    """
    queries, index = normalised(queries), normalised(index)
    k = min(k, len(index))
    if not len(queries):
        return Neighbours(np.empty((0, k), np.int64), np.empty((0, k), np.float32))
    if len(index) > exact_limit:
        return _approximate(queries, index, k)
    return _flat(queries, index, k)


def nearest_groups(queries: Floats, index: Floats, groups: Integers, k: int) -> Neighbours:
    """Return the ``k`` groups of ``index`` rows whose nearest member has the highest cosine similarity; exact.

    Args:
        queries: float32 (n, d).
        index: float32 (m, d).
        groups: int64 (m,), the group of each row: every number from 0 to the largest.
        k: groups a query; at most all are returned, as ``rows``.
    """
    import torch

    queries, index = normalised(queries), normalised(index)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    k = min(k, len(starts))
    rows, similarity = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    columns = torch.from_numpy(index[order]).T
    for start in range(0, len(queries), BLOCK):
        products = (torch.from_numpy(queries[start : start + BLOCK]) @ columns).numpy()
        best, group = torch.topk(torch.from_numpy(np.maximum.reduceat(products, starts, axis=1)), k)
        part = slice(start, start + len(products))
        rows[part], similarity[part] = group.numpy(), best.numpy()
    return Neighbours(rows, similarity)


def _flat(queries: Floats, index: Floats, k: int) -> Neighbours:
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
    truth = _flat(queries[checked], index, k).rows
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(rows[checked], truth, strict=True)])
    return Neighbours(rows, similarity, float(recall))
