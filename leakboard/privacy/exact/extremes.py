"""Find the two inputs and the output whose probabilities differ most, from the extremes of each column.

For an output y, the largest ratio of P(y | x) and P(y | x') over all pairs of inputs is that of the column's largest
and smallest entries. So V^2 entries are read, and no loop runs over V^3 combinations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Integers
from leakboard.privacy.channels.words import Numbers


@dataclass(frozen=True)
class Witness:
    """Two inputs and an output: P(output | likelier) / P(output | other) can be computed again by hand."""

    likelier: int
    """Index of the input under which the output is more likely."""
    other: int
    output: int
    log_likelier: float
    """ln P(output | likelier)."""
    log_other: float
    """ln P(output | other); -inf: impossible."""

    @property
    def log_ratio(self) -> float:
        """The difference in nats; infinite if the output proves that the input is not ``other``."""
        return self.log_likelier - self.log_other


class ColumnExtremes:
    """The largest and the smallest entry of each column, with their rows."""

    def __init__(self, size: int):
        self.largest, self.smallest = np.full(size, -np.inf), np.full(size, np.inf)
        self.largest_row, self.smallest_row = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.impossible_row = np.full(size, -1)
        """A row in which the output is impossible; -1: there is none."""

    def add(self, rows: Integers, logs: Numbers) -> None:
        """Read some rows."""
        columns = np.arange(logs.shape[1])
        at = logs.argmax(0)
        is_larger = logs[at, columns] > self.largest
        self.largest[is_larger] = logs[at, columns][is_larger]
        self.largest_row[is_larger] = rows[at[is_larger]]
        at = logs.argmin(0)
        is_impossible = np.isneginf(logs[at, columns])
        self.impossible_row[is_impossible] = rows[at[is_impossible]]
        if is_impossible.any():
            possible = np.where(np.isneginf(logs), np.inf, logs)
            at, logs = possible.argmin(0), possible
        is_smaller = logs[at, columns] < self.smallest
        self.smallest[is_smaller] = logs[at, columns][is_smaller]
        self.smallest_row[is_smaller] = rows[at[is_smaller]]

    def worst(self) -> Witness:
        """Return the pair with the largest ratio of any output; it may be infinite."""
        is_provable = self.is_provable
        if not is_provable.any():
            return self.worst_finite()
        return self.witness(int(np.where(is_provable, self.largest, -np.inf).argmax()))

    def worst_finite(self) -> Witness:
        """Return the pair with the largest finite ratio of any output."""
        with np.errstate(invalid="ignore"):
            gaps = np.nan_to_num(self.largest - self.smallest, nan=-np.inf, neginf=-np.inf)
        output = int(gaps.argmax())
        rows = int(self.largest_row[output]), int(self.smallest_row[output])
        return Witness(*rows, output, float(self.largest[output]), float(self.smallest[output]))

    def witness(self, output: int) -> Witness:
        """Return the pair with the largest ratio of an output; it may be infinite."""
        least = -math.inf if self.is_provable[output] else float(self.smallest[output])
        rows = int(self.largest_row[output]), int(self.smallest_rows[output])
        return Witness(*rows, output, float(self.largest[output]), least)

    @property
    def is_provable(self) -> NDArray[np.bool_]:
        """Whether an output is possible for some input and impossible for another, bool (V,)."""
        return (self.impossible_row >= 0) & np.isfinite(self.largest)

    @property
    def smallest_rows(self) -> Integers:
        """A row with the smallest entry of each column, which may be -inf, int64 (V,)."""
        return np.where(self.is_provable, self.impossible_row, self.smallest_row)

    @property
    def gaps(self) -> Numbers:
        """Largest log-ratio of each output, float64 (V,); 0 of an output that is impossible for every input."""
        is_possible = np.isfinite(self.largest)
        gaps = np.where(is_possible, self.largest, 0) - np.where(is_possible, self.smallest, 0)
        return np.where(self.is_provable, np.inf, gaps)
