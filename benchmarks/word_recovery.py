"""Word recovery, 50,000 words x 300 dimensions: LeakBoard's search against a loop of gensim's `similar_by_vector`.

    python benchmarks/word_recovery.py [--words 50000] [--loop-queries 4000] [--threads 2]

Both give the five nearest words of every published vector. The loop is timed on a sample of the queries, since all of
them take minutes, and compared in queries a second. A bare float32 matrix product of the same size stands beside them,
block by block into the same memory: into new memory each time it takes up to half as long again.
The top five must be identical, except where two candidates' similarities differ by less than float32 can tell (1e-6).
"""

import argparse

import faiss
import numpy as np
import torch
from _sides import alternate, verdict
from threadpoolctl import threadpool_limits

from leakboard.models.search import nearest, normalised

DIMENSIONS = 300


def spaces(words: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the attacker's vectors and the published ones: the same words, seen through noise."""
    rng = np.random.default_rng(0)
    attacker = rng.standard_normal((words, DIMENSIONS)).astype(np.float32)
    return attacker, attacker + rng.standard_normal(attacker.shape, dtype=np.float32)


def product(queries: torch.Tensor, index: torch.Tensor, out: torch.Tensor) -> None:
    for block in queries.split(len(out)):
        torch.mm(block, index, out=out[: len(block)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--loop-queries", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    faiss.omp_set_num_threads(arguments.threads)
    threadpool_limits(arguments.threads)  # of NumPy, for gensim
    from gensim.models import KeyedVectors

    attacker, published = spaces(arguments.words)
    table = KeyedVectors(DIMENSIONS)
    table.add_vectors([str(i) for i in range(len(attacker))], attacker)
    table.fill_norms()
    rows: dict[str, np.ndarray] = {}

    def loop() -> None:
        sample = published[: arguments.loop_queries]
        rows["loop"] = np.array([[int(w) for w, _ in table.similar_by_vector(v, topn=5)] for v in sample])

    def ours() -> None:
        rows["ours"] = nearest(published, attacker, 5).rows

    left, right = torch.from_numpy(normalised(published)), torch.from_numpy(normalised(attacker)).T.contiguous()
    out = torch.empty(2048, len(attacker))
    sides = {"ours": ours, "bare float32 product": lambda: product(left, right, out), "gensim loop, sample": loop}
    times = alternate(arguments.rounds, **sides)
    times["gensim loop"] = times["gensim loop, sample"] * arguments.words / arguments.loop_queries
    for name in ("gensim loop", "bare float32 product", "ours"):
        print(f"{name}: {times[name]:.1f} s for {arguments.words} queries")
    differing = differences(rows, published, attacker)
    print(f"top 5 of {arguments.loop_queries} queries: {differing} rows differ beyond ties of 1e-6")
    verdict("word_recovery_to_product", times["ours"] / times["bare float32 product"], 1.1, at_most=True)
    verdict("word_recovery" if not differing else "word_recovery DIFFERS", times["gensim loop"] / times["ours"], 12.0)


def differences(rows: dict[str, np.ndarray], published: np.ndarray, attacker: np.ndarray) -> int:
    """Return the number of rows whose candidates' exact similarities differ by 1e-6 or more somewhere."""
    queries, index = published[: len(rows["loop"])].astype(np.float64), attacker.astype(np.float64)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    index /= np.linalg.norm(index, axis=1, keepdims=True)
    similarity = {n: np.einsum("nd,nkd->nk", queries, index[rows[n][: len(queries)]]) for n in ("loop", "ours")}
    return int((np.abs(similarity["loop"] - similarity["ours"]) > 1e-6).any(1).sum())


if __name__ == "__main__":
    main()
