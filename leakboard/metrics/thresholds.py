"""The threshold of "present" that micro F1 asks for, which is not a probability of one half."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Integers


def best_offset(margins: NDArray[np.floating], present: Integers) -> float:
    """Return what to add to the margins so that calling those above 0 present has the largest micro F1.

    All thresholds are tried: with margins sorted downwards, calling the first i pairs present has true positives T_i
    and F1 = 2 T_i / (i + positives). No threshold lies between equal margins. Without a positive all are as bad: 0.

    Args:
        margins: (pairs,), the score of present minus that of absent, of texts whose secrets are known.
        present: int64 (pairs,), 0 or 1.
    """
    if not present.any():
        return 0.0
    order = np.argsort(-margins, kind="stable")
    f1 = 2 * np.cumsum(present[order]) / (np.arange(1, len(present) + 1) + present.sum())
    margins = margins[order]
    f1[:-1][margins[:-1] == margins[1:]] = -1.0
    best = int(f1.argmax())
    below = margins[best + 1] if best + 1 < len(margins) else margins[best] - 1
    return -float(margins[best] + below) / 2
