"""Compare links of stored vectors, 100,000 x 1,000,000 candidates of 384 dimensions, with a bare float32 product.

Both are synthetic: candidates around centres, and stored vectors near one candidate each. Encoding does not count. Up
to 1e10 pairs the search is exact. Above, it looks into one of 16 clusters, and measures its recall on a thousand
vectors. The product is timed on a part of the stored vectors, block by block into the same memory, and scaled to all.

A small run: ``--rows 4000 --candidates 50000``. The full size takes about 12 GB of memory.
"""

import faiss
import numpy as np
import torch
from _timing import seconds, verdict
from threadpoolctl import threadpool_limits

from leakboard.attacks._alignment.known_encoder import EXACT_PAIRS, search
from leakboard.metrics.link_scores import DEPTH
from leakboard.models.search import normalised

CENTRES = 5_000
SPREAD, NOISE = 1.0, 0.5
"""Standard deviations about a centre, and of a stored vector about its candidate, in that of the centres."""
BLOCK = 1_000
"""Stored vectors that the product multiplies at once."""
GOAL_SECONDS = 15 * 60


def vectors(rows: int, candidates: int, dimensions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return stored vectors, candidates, and the right candidate of each stored vector."""
    rng = np.random.default_rng(0)
    scale = np.linspace(2, 0.5, dimensions, dtype=np.float32)  # few directions hold most of the variance
    known = rng.standard_normal((CENTRES, dimensions), dtype=np.float32)[rng.integers(CENTRES, size=candidates)]
    for part in np.array_split(known, max(1, candidates // 100_000)):  # in place: a copy is 1.5 GB
        part += SPREAD * rng.standard_normal(part.shape, dtype=np.float32)
        part *= scale
    truth = rng.permutation(candidates)[:rows]
    stored = known[truth] + NOISE * scale * rng.standard_normal((rows, dimensions), dtype=np.float32)
    return normalised(stored), normalised(known), truth


def product(stored: np.ndarray, known: np.ndarray) -> float:
    """Return the seconds of the product of all stored vectors and candidates, from those of a part."""
    part, columns = torch.from_numpy(stored[: 2 * BLOCK]), torch.from_numpy(known).T
    out = torch.empty(BLOCK, len(known))
    taken = seconds(lambda: [torch.mm(block, columns, out=out[: len(block)]) for block in part.split(BLOCK)])
    return taken * len(stored) / len(part)


def main(rows: int = 100_000, candidates: int = 1_000_000, dimensions: int = 384, threads: int = 2) -> None:
    """Time the product before and after the search."""
    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    threadpool_limits(threads)
    stored, known, truth = vectors(rows, candidates, dimensions)
    products = [product(stored, known)]
    found = []
    ours = seconds(lambda: found.append(search(stored, known, stored, DEPTH)))
    products.append(product(stored, known))
    first = float((found[0].rows[:, 0] == truth).mean())
    kind = "exact" if rows * candidates <= EXACT_PAIRS else f"approximate, recall {found[0].recall:.3f}"
    print(f"{rows:,} stored vectors, {candidates:,} candidates: {ours:.1f} s ({kind}); first is right: {first:.4f}")
    print(f"bare float32 product, scaled up: {products[0]:.1f} s before, {products[1]:.1f} s after")
    verdict("linking_to_product", ours / np.mean(products), 1.1, at_most=True)
    if (rows, candidates) == (100_000, 1_000_000):
        verdict("linking_seconds", ours, GOAL_SECONDS, at_most=True)
