"""Find which known vectors a mean is made of, by basis pursuit (Chen, Donoho and Saunders 1998).

Of a mean v of the vectors of n units, such as words, the linear program

    minimise sum_t c_t x_t  subject to  sum_t x_t a_t = v,  sum_t x_t = 1,  x >= 0

finds the share x_t of each unit t, if the costs c_t are low for likely units. It is solved by HiGHS up to a few times:
units with a large share become cheaper (Candes, Wakin and Boyd 2008). A solution is certified if its shares are whole
numbers of n units, and the mean of these units is v up to rounding. Coordinates are whitened by the shares of units in
known texts. Then the units of a text look like noise to each other, and their likelihoods choose the program's columns.
"""

from dataclasses import dataclass

import numpy as np

from leakboard.errors import NotApplicable
from leakboard.interfaces import Floats

RIDGE = 1e-3
"""Added to the covariance before it is inverted (share of the mean variance)."""
ROUNDING = 5e-7
"""Error of a coordinate of a published mean in float32 (share of the largest coordinate)."""
EXACT = 1e-5
"""Largest error of a certified mean (share of the mean's length)."""
LEAST_SHARE = 1e-5
"""Smaller shares of a solution are zeros."""
OFFSET = 0.15
"""Added to the expected number of a unit before costs are divided by it (units)."""
PRESENT = 0.4
"""Expected number from which a unit of a solution that is not certified counts as present (units)."""


@dataclass(frozen=True)
class Decoded:
    """The units of a mean."""

    counts: dict[int, int]
    """How often each row of the table is in the mean; of a solution that is not certified once each."""
    certified: bool


@dataclass(frozen=True)
class Limits:
    """What a decoder may spend on a mean."""

    atoms: int
    """Number of columns of a linear program."""
    rounds: int
    """Most linear programs."""
    iterations: int
    """Most iterations of the simplex method in a linear program."""
    longest: int
    """Most units of a certified mean."""


@dataclass(frozen=True)
class MeanDecoder:
    """Decodes means of the rows of a table."""

    table: Floats
    """float64 (units, d)."""
    centre: Floats
    """float64 (d,)."""
    whitening: Floats
    """float64 (d, d)."""
    whitened: Floats
    """The whitened table, float64 (d, units)."""
    length: float
    """Mean number of units of a text."""
    limits: Limits

    @classmethod
    def of(cls, table: Floats, counts: Floats, length: float, limits: Limits) -> "MeanDecoder":
        """Whiten a table.

        Args:
            table: float (units, d).
            counts: how often each unit is in known texts, float (units,), positive.
            length: mean number of units of a text.
            limits: on the work.

        Raises:
            NotApplicable: all rows are equal.
        """
        rows: Floats = table.astype(np.float64)
        shares = counts / counts.sum()
        centre = shares @ rows
        centred = rows - centre
        covariance = (centred.T * shares) @ centred
        if not covariance.any():
            raise NotApplicable("all words have the same vector")
        covariance += RIDGE * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        values, axes = np.linalg.eigh(covariance)
        whitening = (axes / np.sqrt(values)).T
        return cls(rows, centre, whitening, whitening @ centred.T, length, limits)

    def __call__(self, mean: Floats, costs: Floats) -> Decoded:
        """Decode a mean, float64 (d,).

        Of multiples of the same counts, which have the same mean, the smallest ones are returned. A mean of zeros
        is decoded as an empty text.

        Args:
            mean: of some rows of the table.
            costs: of each unit, float64 (units,), positive; for instance -ln P(the unit is in the text).
        """
        if not mean.any():
            return Decoded({}, certified=True)
        target = self.whitening @ (mean - self.centre)
        columns = self._likely(target, costs)
        slack = ROUNDING * np.abs(mean).max() * np.linalg.norm(self.whitening, axis=1)
        present, prices = columns[:0], costs[columns]
        for _ in range(self.limits.rounds):
            shares = self._shares(columns, target, prices, slack)
            if shares is None:
                break
            if counts := self._certified(columns, shares, mean):
                return Decoded(counts, certified=True)
            expected = shares * self.length
            present, prices = columns[expected > PRESENT], costs[columns] / (expected + OFFSET)
        return Decoded({int(unit): 1 for unit in present}, certified=False)

    def _likely(self, target: Floats, costs: Floats) -> np.ndarray:
        """Return the rows whose presence makes the target likeliest, costs included, ascending int64 (atoms,).

        Whitened, the mean of the other units has the covariance 1 / length.
        """
        gains = target @ self.whitened - (self.whitened**2).sum(0) / (2 * self.length) - costs
        return np.sort(np.argsort(-gains, kind="stable")[: self.limits.atoms])

    def _shares(self, columns: np.ndarray, target: Floats, prices: Floats, slack: Floats) -> Floats | None:
        """Return the cheapest shares of columns, float64 (columns,); None if there are none, or not in time."""
        from scipy.optimize import linprog

        size, width = len(target), len(columns)
        equations = np.zeros((size + 1, width + size))
        equations[:size, :width], equations[:size, width:] = self.whitened[:, columns], np.eye(size)
        equations[size, :width] = 1
        result = linprog(
            np.concatenate([prices, np.zeros(size)]),
            A_eq=equations,
            b_eq=np.append(target, 1),
            bounds=[(0, None)] * width + [(-error, error) for error in slack],
            method="highs-ds",
            options={"maxiter": self.limits.iterations},
        )
        return result.x[:width] if result.status == 0 else None

    def _certified(self, columns: np.ndarray, shares: Floats, mean: Floats) -> dict[int, int]:
        """Return how often each row is in the mean; empty if no whole numbers explain it."""
        chosen = np.flatnonzero(shares > LEAST_SHARE)
        rows = self.table[columns[chosen]]
        for total in range(1, self.limits.longest + 1):
            counts = np.round(shares[chosen] * total)
            if counts.sum() == total and np.linalg.norm(counts @ rows / total - mean) < EXACT * np.linalg.norm(mean):
                pairs = zip(columns[chosen].tolist(), counts.astype(int).tolist(), strict=True)
                return {unit: count for unit, count in pairs if count}
        return {}
