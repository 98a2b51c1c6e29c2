"""Cosine nearest neighbours: exact with a proof a row, or approximate with measured recall (FAISS).

Where the processor multiplies bfloat16, a shortlist is drawn from bfloat16 products and re-ranked in float32. For unit
vectors a and b, rounding both to bfloat16 (relative error at most u = 2**-8 a coordinate) moves their product by at
most (2u + u**2) * sum|a_i b_i| <= 2u + u**2 (Cauchy-Schwarz), rounding the result, below 1, to bfloat16 by at most u/2
more; float32 accumulation adds less than 2**-12. So a candidate outside the shortlist, whose rough similarity is at
most the shortlist's least, has a true similarity of at most that plus `ERROR_BOUND`. Rows whose k-th best does not
exceed this are searched again by FAISS in float32: the answer is exact for every row.
"""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np
import torch

from leakboard.interfaces import Floats, Integers
from leakboard.models.transformer import has_bfloat16

ERROR_BOUND = 5 * 2.0**-9 + 2.0**-16 + 2.0**-12
SHORTLIST = 32
"""Candidates a row that are re-ranked exactly."""
BLOCK = 2048
"""Queries multiplied at once."""
GROUP = 16
"""Columns whose largest product stands for them in the first look."""
GROUP_BLOCK = 256
"""The same in `nearest_groups`, where every product is kept until its group's largest is known."""


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
    if len(index) > 4 * SHORTLIST and k <= SHORTLIST // 2 and has_bfloat16(torch.device("cpu")):
        return _shortlisted(queries, index, k)
    return _flat(queries, index, k)


def nearest_groups(queries: Floats, index: Floats, groups: Integers, k: int) -> Neighbours:
    """Return the ``k`` groups of ``index`` rows whose nearest member has the highest cosine similarity; exact.

    Args:
        queries: float32 (n, d).
        index: float32 (m, d).
        groups: int64 (m,), the group of each row: every number from 0 to the largest.
        k: groups a query; at most all are returned, as ``rows``.
    """
    queries, index = normalised(queries), normalised(index)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    k = min(k, len(starts))
    rows, similarity = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    columns = torch.from_numpy(index[order]).T
    for start in range(0, len(queries), GROUP_BLOCK):
        products = (torch.from_numpy(queries[start : start + GROUP_BLOCK]) @ columns).numpy()
        best, place = torch.topk(torch.from_numpy(np.maximum.reduceat(products, starts, axis=1)), k)
        part = slice(start, start + len(products))
        rows[part], similarity[part] = place.numpy(), best.numpy()
    return Neighbours(rows, similarity)


def _flat(queries: Floats, index: Floats, k: int) -> Neighbours:
    flat = faiss.IndexFlatIP(index.shape[1])
    flat.add(index)
    similarity, rows = flat.search(queries, k)
    return Neighbours(rows, similarity)


def _shortlisted(queries: Floats, index: Floats, k: int) -> Neighbours:
    rows = np.empty((len(queries), k), np.int64)
    similarity = np.empty((len(queries), k), np.float32)
    unproved = []
    full, rough_index = torch.from_numpy(index), torch.from_numpy(index).bfloat16().T.contiguous()
    for start in range(0, len(queries), BLOCK):
        block = torch.from_numpy(queries[start : start + BLOCK])
        rough, shortlist = _largest(block.bfloat16() @ rough_index, SHORTLIST)
        exact = torch.bmm(full[shortlist], block.unsqueeze(2)).squeeze(2)
        best, place = torch.topk(exact, k)
        part = slice(start, start + len(block))
        rows[part], similarity[part] = shortlist.gather(1, place).numpy(), best.numpy()
        proved = best[:, -1] > rough.float().min(1).values + ERROR_BOUND
        unproved.append(start + torch.nonzero(~proved).squeeze(1).numpy())
    again = np.concatenate(unproved)
    if len(again):
        exact_part = _flat(queries[again], index, k)
        rows[again], similarity[again] = exact_part.rows, exact_part.similarity
    return Neighbours(rows, similarity)


def _largest(values: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k largest values of each row and their columns, in any order; twice as fast as `torch.topk` alone.

    Columns are taken in groups of `GROUP`, far apart. The k groups of largest maxima hold k values no smaller than any
    value elsewhere, so the k largest are among them and the columns that are left over.
    """
    rows, columns = values.shape
    groups = columns // GROUP
    grouped = values[:, : groups * GROUP].unflatten(1, (GROUP, groups))
    chosen = grouped.amax(1).topk(min(k, groups), sorted=False).indices
    members = chosen.unsqueeze(1) + groups * torch.arange(GROUP).view(1, GROUP, 1)
    rest = torch.arange(groups * GROUP, columns).expand(rows, -1)
    candidates = torch.cat([members.flatten(1), rest], dim=1)
    largest, place = values.gather(1, candidates).topk(k, sorted=False)
    return largest, candidates.gather(1, place)


def _approximate(queries: Floats, index: Floats, k: int, sample: int = 1_000) -> Neighbours:
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
