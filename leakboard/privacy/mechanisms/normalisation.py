"""Scale every vector to [0, 1] by its minimum and maximum (DPNR, Lyu, He and Li 2020, algorithm 1, step 2).

Afterwards two vectors of d coordinates differ by at most d in L1, sqrt(d) in L2, and 1 in each coordinate. A vector of
zeros and ones and its complement attain these bounds. The smallest coordinate is exactly 0. So if all coordinates get
the same noise, the smallest published number is this noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Vectors = TypeVar("Vectors", NDArray[np.floating], "torch.Tensor")


def min_max(vectors: Vectors) -> Vectors:
    """Scale every row to a smallest coordinate of 0 and a largest of 1.

    Args:
        vectors: float (n, d), an array or a tensor. Gradients pass through a tensor.

    Raises:
        ValueError: the range of a row (maximum less minimum) is 0, infinite or NaN.
    """
    if isinstance(vectors, np.ndarray):
        low, high = vectors.min(-1, keepdims=True), vectors.max(-1, keepdims=True)
    else:
        low, high = vectors.amin(-1, keepdim=True), vectors.amax(-1, keepdim=True)
    spread = high - low
    valid = (spread > 0) & (spread < float("inf"))
    if not bool(valid.all()):
        row = int((~valid).reshape(-1).nonzero()[0][0])
        shown = f"vector {row} has the range {float(spread.reshape(-1)[row]):g}"
        raise ValueError(f"min-max normalisation: {shown}; allowed: above 0 and finite")
    return (vectors - low) / spread
