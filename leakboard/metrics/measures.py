"""Scores as ratios of sums over texts, with bootstrap intervals.

Every headline score here is sum(numerator) / sum(denominator) over texts: accuracy has the text's share of right
guesses over 1, micro F1 has 2 TP over 2 TP + FP + FN, recall has hit over 1. So one bootstrap over texts serves all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.interfaces import Corpus, Integers

RESAMPLES = 2_000
CONFIDENCE = 0.95

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a cell: what it measures, of which secret and group, over how many texts (or words)."""

    name: str
    value: float | None
    variable: str = ""
    group: str = ""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    status: str = ""
    """Why there is no value or no interval, or why not to rely on it; empty when all is well."""


@dataclass(frozen=True)
class Ratio:
    """A score as numerators and denominators, one of each a text: float64 (n,)."""

    numerator: Array
    denominator: Array
    units: Integers | None = None
    """int64 (n,): what was drawn independently (a text's author, a word's text); None where each entry was."""

    @property
    def value(self) -> float:
        """The score; 0 where every denominator is 0 (F1 with nothing to find and nothing said)."""
        return _ratio(self.numerator.sum(), self.denominator.sum())

    def interval(self) -> tuple[float, float]:
        """Return the 95 % bootstrap interval over independent units (percentile, fixed seed)."""
        parts = (np.asarray(part, np.float64).tobytes() for part in (self.numerator, self.denominator))
        return _interval(*parts, None if self.units is None else np.asarray(self.units, np.int64).tobytes())

    @staticmethod
    def _ratio(numerator: Array, denominator: Array, axis: int = -1) -> Any:
        return _ratio(numerator.sum(axis), denominator.sum(axis))

    def within(self, chosen: NDArray[np.bool_]) -> Ratio:
        """Return the score over chosen entries only."""
        units = None if self.units is None else self.units[chosen]
        return Ratio(self.numerator[chosen], self.denominator[chosen], units)

    def metric(self, name: str, variable: str = "", group: str = "") -> Metric:
        """Return the score with its interval."""
        low, high = self.interval()
        return Metric(name, self.value, variable, group, low, high, len(self.numerator))


@lru_cache(maxsize=16)
def _interval(numerator: bytes, denominator: bytes, units: bytes | None) -> tuple[float, float]:
    """Return the interval of a `Ratio`; a constant's is the same for every attack, an attack's is asked for twice."""
    parts = (np.frombuffer(part) for part in (numerator, denominator))
    return bootstrap(Ratio._ratio, *parts, units=None if units is None else np.frombuffer(units, np.int64))


def authors(corpus: Corpus, split: str) -> Integers | None:
    """Return who wrote each text, int64 (n,), or None where texts have no author: the units of the bootstrap."""
    part = corpus.splits[split]
    return np.unique(part["user"], return_inverse=True)[1] if "user" in part.features else None


def accuracy(guessed: Integers, truth: Integers, units: Integers | None = None) -> Ratio:
    """Return the share of right guesses; two-dimensional arrays (n, secrets) are averaged over secrets."""
    right = np.asarray(guessed == truth, dtype=np.float64)
    right = right.mean(1) if right.ndim == 2 else right
    return Ratio(right, np.ones(len(right)), units)


def micro_f1(guessed: Integers, truth: Integers, units: Integers | None = None) -> Ratio:
    """Return micro F1 of "present" over (text, entity) pairs; arrays (n, entities) of 0 and 1.

    F1 = 2 TP / (2 TP + FP + FN), as in the released code of Coavoux et al. (2018); 0 when nothing is guessed.
    """
    guessed, truth = guessed.reshape(len(guessed), -1), truth.reshape(len(truth), -1)
    return Ratio(2.0 * (guessed * truth).sum(1), (guessed + truth).sum(1).astype(np.float64), units)


def best_offset(margins: NDArray[np.floating], present: Integers) -> float:
    """Return what to add to the margins so that calling those above 0 present has the largest `micro_f1`.

    The threshold of largest F1 is not a probability of one half. All are tried: with margins sorted downwards, calling
    the first i pairs present has true positives T_i and F1 = 2 T_i / (i + positives). No threshold lies between equal
    margins. Without a positive all are as bad: 0.

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


def remaining_privacy(attack: Ratio, constant: Ratio) -> Metric:
    """Return 1 - the better of attack and best constant guess, with an interval over the same resampled texts."""

    def statistic(a: Array, b: Array, c: Array, d: Array, axis: int = -1) -> Any:
        return 1 - np.maximum(Ratio._ratio(a, b, axis), Ratio._ratio(c, d, axis))

    parts = (attack.numerator, attack.denominator, constant.numerator, constant.denominator)
    low, high = bootstrap(statistic, *parts, units=attack.units)
    value = 1 - max(attack.value, constant.value)
    return Metric("empirical_privacy", value, low=low, high=high, n=len(attack.numerator))


def bootstrap(statistic: Callable[..., Any], *samples: Array, units: Integers | None = None) -> tuple[float, float]:
    """Return a 95 % percentile interval of a statistic of sums over texts, the samples resampled together.

    Texts of one unit are drawn together: their samples are added up first, as one author's texts are not independent.
    Where all texts agree the resamples do too and the interval would have no width: then it is widened to Wilson's
    for as many texts, which is never empty of doubt. Fewer than two texts give (nan, nan).
    """
    if units is not None:
        codes = np.unique(units, return_inverse=True)[1]
        samples = tuple(np.bincount(codes, weights=sample).astype(np.float64) for sample in samples)
    n = len(samples[0])
    if n < 2:
        return float("nan"), float("nan")
    result = scipy.stats.bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        batch=max(1, 2_000_000 // n),
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=CONFIDENCE,
        rng=np.random.default_rng(0),
    ).confidence_interval
    if result.low == result.high and 0 <= result.low <= 1:
        wilson = scipy.stats.binomtest(round(result.low * n), n).proportion_ci(CONFIDENCE, method="wilson")
        return float(wilson.low), float(wilson.high)
    return float(result.low), float(result.high)


def _ratio(numerator: Any, denominator: Any) -> Any:
    zeros = np.zeros_like(np.asarray(numerator, float))
    return np.divide(numerator, denominator, out=zeros, where=denominator != 0)[()]
