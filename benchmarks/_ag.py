"""Encode AG with MiniLM, for benchmarks of vector stores. AG comes from ``LEAKBOARD_DATA``."""

from pathlib import Path

import numpy as np

from leakboard.datasets.ag import Ag
from leakboard.interfaces import Texts
from leakboard.models.search import nearest
from leakboard.victims.sentence_encoder import SentenceEncoder


def ag_vectors(count: int) -> np.ndarray:
    """Return the vectors of different texts of train, in random order, float32 (count, 384)."""
    texts = Texts(list(dict.fromkeys(Ag().load().texts("train"))))
    chosen = Texts([texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:count]])
    return SentenceEncoder().load(Path()).publish_documents(chosen, np.random.default_rng(0))


def ten_nearest(queries: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Return the ten nearest rows of a store for each query, int64 (q, 10)."""
    return nearest(queries, stored, 10).rows


def share_kept(now: np.ndarray, before: np.ndarray) -> float:
    """Return the share of the rows found ``before``, int (q, k), that are found ``now``, int (q, k)."""
    return float(np.mean([np.isin(new, old).mean() for new, old in zip(now, before, strict=True)]))
