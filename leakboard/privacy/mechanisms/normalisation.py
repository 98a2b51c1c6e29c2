"""Min-max normalisation of every vector to [0, 1] (DPNR, Lyu, He and Li 2020, algorithm 1, step 2).

Afterwards two vectors of d coordinates are at most d apart in L1 and sqrt(d) in L2, and each coordinate at most 1: the
bounds are attained by a vector of zeros and ones and its complement. The smallest coordinate is exactly 0, which is why
noise that all coordinates share can be taken off again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Vectors = TypeVar("Vectors", NDArray[np.floating], "torch.Tensor")


def min_max(vectors: Vectors) -> Vectors:
    """Return every row scaled to smallest coordinate 0 and largest 1.

    Args:
        vectors: float (n, d), an array or a tensor (through which gradients flow).

    Raises:
        ValueError: a row is constant, or holds NaN or infinity: it cannot be scaled.
    """
    if isinstance(vectors, np.ndarray):
        low, high = vectors.min(-1, keepdims=True), vectors.max(-1, keepdims=True)
    else:
        low, high = vectors.amin(-1, keepdim=True), vectors.amax(-1, keepdim=True)
    spread = high - low
    good = (spread > 0) & (spread < float("inf"))
    if not bool(good.all()):
        row = int((~good).reshape(-1).nonzero()[0][0])
        what = "constant" if bool(spread.reshape(-1)[row] == 0) else "not finite"
        raise ValueError(f"min-max normalisation: vector {row} is {what}; every vector needs two different numbers")
    return (vectors - low) / spread
