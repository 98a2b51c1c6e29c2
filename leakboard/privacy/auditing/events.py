"""Which event tells two neighbouring inputs apart best: a statistic of a release, on one side of a threshold.

Scores are rounded to `DIGITS` digits of their spread, so that the audit measures the mechanism and not its floating
point: with all of their bits, the likelihood ratios of a textbook Laplace release of 0 and of 1 fall into different
patterns of rounding errors, and it too is caught (Mironov 2012). ``digits=None`` looks at them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.thresholds import Threshold

Array = NDArray[Any]
Score = Callable[[Array], Array]
"""Maps outputs (n, d) to one number each, float64 (n,)."""

FEWEST = 50
"""Releases of either input that an event of a pair is chosen on, at least."""
DIGITS = 9
"""Digits of a score that count."""
CERTAIN = 1e6
"""Stands for the infinite log-ratio of an output that one of the inputs cannot give."""


@dataclass(frozen=True)
class Pair:
    """Two inputs that the claim says are neighbours: vectors, float (d,), or a text each, object (1,)."""

    name: str
    first: Array
    second: Array

    def swapped(self) -> Pair:
        """Return the pair the other way round."""
        return Pair(f"{self.name}, swapped", self.second, self.first)


@dataclass(frozen=True)
class Event:
    """A pair with a statistic and a threshold."""

    pair: Pair
    statistic: str
    score: Score
    threshold: Threshold

    def holds(self, outputs: Array) -> Array:
        """Return whether the event holds for releases (n, d), bool (n,)."""
        return self.threshold.holds(self.score(outputs))

    @property
    def description(self) -> str:
        """The event in words."""
        return f"{self.statistic} {'>=' if self.threshold.above else '<'} {self.threshold.value:.6g}"


def corners(dimensions: int, dtype: Any = np.float64) -> list[Pair]:
    """Return pairs of corners of the unit cube: all apart, alternating, and one coordinate apart."""
    zeros, ones = np.zeros(dimensions, dtype), np.ones(dimensions, dtype)
    pairs = [Pair("zeros and ones", zeros, ones)]
    if dimensions > 1:
        single = np.eye(dimensions, dtype=dtype)[0]
        pairs += [_alternating(dimensions, dtype), Pair("one coordinate", zeros, single)]
    return pairs


def normalised_corners(dimensions: int, dtype: Any = np.float64) -> list[Pair]:
    """Return pairs of corners that min-max normalisation can give: each vector holds a 0 and a 1."""
    pairs = [_alternating(dimensions, dtype)]
    if dimensions > 2:
        first, second = np.zeros((2, dimensions), dtype)
        first[0] = second[:2] = 1
        pairs.append(Pair("one coordinate", first, second))
    return pairs


def _alternating(dimensions: int, dtype: Any) -> Pair:
    alternating = (np.arange(dimensions) % 2).astype(dtype)
    return Pair("alternating", alternating, 1 - alternating)


def statistics_of(mechanism: Mechanism, pair: Pair, first: Array, second: Array) -> dict[str, Score]:
    """Return the statistics that may tell the pair apart; a learned one is fitted on releases of its own."""
    statistics: dict[str, Score] = {
        "sum": lambda outputs: outputs.sum(1),
        "mean above the minimum": lambda outputs: outputs.mean(1) - outputs.min(1),
        "smallest coordinate": lambda outputs: outputs.min(1),
        "largest coordinate": lambda outputs: outputs.max(1),
        "learned classifier": fisher(first, second),
    }
    one, other = mechanism.vector_of(pair.first), mechanism.vector_of(pair.second)
    if one is None or other is None:
        return statistics
    direction = other - one
    statistics["projection on the difference"] = lambda outputs: outputs @ direction

    def log_ratio(outputs: Array) -> Array:
        ratio = mechanism.log_ratio(outputs, one, other)
        assert ratio is not None, "it was known for the first output"
        return np.nan_to_num(ratio, nan=0.0, posinf=CERTAIN, neginf=-CERTAIN)

    if mechanism.log_ratio(first[:1], one, other) is not None:
        statistics["likelihood ratio"] = log_ratio
    return statistics


def fisher(first: Array, second: Array) -> Score:
    """Return the discriminant of Fisher (1936) with a shrunken covariance (Ledoit and Wolf 2004)."""
    from scipy import linalg
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    labels = np.repeat([0, 1], [len(first), len(second)])
    outputs = np.concatenate([first, second])
    spread = outputs.std(0)
    varying = spread > 1e-12 * np.abs(outputs).max(initial=1e-300)
    if not varying.any():
        return lambda outputs: outputs.sum(1)
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    try:
        weights = model.fit(outputs[:, varying], labels).coef_[0]
    except np.linalg.LinAlgError:  # singular values of almost singular covariances may not converge; QR always ends
        weights = linalg.lstsq(model.covariance_, model.means_[1] - model.means_[0], lapack_driver="gelsy")[0]
    return lambda outputs: outputs[:, varying] @ weights


def rounded(score: Score, outputs: Array, digits: int) -> Score:
    """Return a score in whole steps of 10**-digits of its spread over these outputs."""
    step = step_of(score(outputs), digits)
    return lambda outputs: in_steps(score(outputs), step)


def step_of(scores: Array, digits: int) -> float:
    """Return 10**-digits of the spread of scores, rounded up to a power of two: small integers are whole steps."""
    spread = float(np.std(scores)) or 1.0
    return float(2.0 ** np.ceil(np.log2(spread)) * 10.0**-digits)


def in_steps(scores: Array, step: float) -> Array:
    """Return scores rounded to whole steps."""
    result: Array = np.rint(scores / step) * step
    return result
