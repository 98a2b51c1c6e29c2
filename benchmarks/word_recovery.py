"""Compare the nearest-neighbour search, 50,000 words x 300 dimensions, with a loop of gensim's `similar_by_vector`.

Both sides give the five nearest words of every published vector. The loop is timed on a sample of the queries, since
all of them take minutes. A bare float32 matrix product of the same size is timed too. It writes block by block into the
same memory; into new memory each time it takes up to half as long again. The five words must be identical, except where
the similarities of two candidates differ by less than 1e-6, the resolution of float32.
"""

import faiss
import numpy as np
import torch
from _timing import alternate, verdict
from threadpoolctl import threadpool_limits

from leakboard.models.search import nearest, normalised

DIMENSIONS = 300


def spaces(words: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the attacker's vectors, and the published ones: the same words with noise."""
    rng = np.random.default_rng(0)
    attacker = rng.standard_normal((words, DIMENSIONS)).astype(np.float32)
    return attacker, attacker + rng.standard_normal(attacker.shape, dtype=np.float32)


def product(queries: torch.Tensor, index: torch.Tensor, out: torch.Tensor) -> None:
    """Multiply block by block into the same memory."""
    for block in queries.split(len(out)):
        torch.mm(block, index, out=out[: len(block)])


def differences(rows: dict[str, np.ndarray], published: np.ndarray, attacker: np.ndarray) -> int:
    """Return the number of queries for which exact similarities of the two sides' words differ by 1e-6 or more."""
    queries, index = published[: len(rows["loop"])].astype(np.float64), attacker.astype(np.float64)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    index /= np.linalg.norm(index, axis=1, keepdims=True)
    similarity = {n: np.einsum("nd,nkd->nk", queries, index[rows[n][: len(queries)]]) for n in ("loop", "ours")}
    return int((np.abs(similarity["loop"] - similarity["ours"]) > 1e-6).any(1).sum())


def main(words: int = 50_000, loop_queries: int = 4_000, rounds: int = 3, threads: int = 2) -> None:
    """Time the search, the bare product, and the loop on ``loop_queries`` of the words."""
    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    threadpool_limits(threads)  # the threads of NumPy, which gensim uses
    from gensim.models import KeyedVectors

    attacker, published = spaces(words)
    table = KeyedVectors(DIMENSIONS)
    table.add_vectors([str(i) for i in range(words)], attacker)
    table.fill_norms()
    rows: dict[str, np.ndarray] = {}

    def loop() -> None:
        sample = published[:loop_queries]
        rows["loop"] = np.array([[int(w) for w, _ in table.similar_by_vector(v, topn=5)] for v in sample])

    def ours() -> None:
        rows["ours"] = nearest(published, attacker, 5).rows

    left, right = torch.from_numpy(normalised(published)), torch.from_numpy(normalised(attacker)).T.contiguous()
    out = torch.empty(2048, words)
    sides = {"ours": ours, "bare float32 product": lambda: product(left, right, out), "gensim loop, sample": loop}
    times = alternate(rounds, **sides)
    times["gensim loop"] = times["gensim loop, sample"] * words / loop_queries
    for name in ("gensim loop", "bare float32 product", "ours"):
        print(f"{name}: {times[name]:.1f} s for {words} queries")
    differing = differences(rows, published, attacker)
    print(f"top 5 of {loop_queries} queries: {differing} rows differ beyond ties of 1e-6")
    verdict("word_recovery_to_product", times["ours"] / times["bare float32 product"], 1.1, at_most=True)
    verdict("word_recovery" if not differing else "word_recovery DIFFERS", times["gensim loop"] / times["ours"], 12.0)
