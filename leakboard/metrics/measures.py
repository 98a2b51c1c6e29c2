"""Compute scores as ratios of sums over texts, with bootstrap intervals.

Each score is sum(numerator) / sum(denominator) over texts, so one bootstrap over texts serves all scores:

| score | numerator of a text | denominator of a text |
|---|---|---|
| accuracy | share of right guesses | 1 |
| micro F1 | 2 TP | 2 TP + FP + FN |
| recall | 1 for a hit, else 0 | 1 |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Integers

RESAMPLES = 2_000
CONFIDENCE = 0.95

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a cell, with its interval and the number of texts (or words)."""

    name: str
    value: float | None
    variable: str = ""
    """The secret, target or test that it is about, or a setting such as ``fpr=0.1``; empty: none, or all secrets."""
    group: str = ""
    """The value of the secret that the texts have; empty: all texts."""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    status: str = ""
    """Why there is no value or no interval, or why not to rely on it; empty when all is well."""


def overlap(one: Metric, two: Metric) -> bool | None:
    """Return whether the intervals of two metrics overlap; None if one has no interval."""
    if one.low is None or one.high is None or two.low is None or two.high is None:
        return None
    return one.low <= two.high and two.low <= one.high


@dataclass(frozen=True)
class Ratio:
    """A score as one numerator and one denominator for each text, float64 (n,)."""

    numerator: Array
    denominator: Array
    units: Integers | None = None
    """int64 (n,): the independent unit of each entry (a text's author, a word's text); None: the entry itself."""

    @property
    def value(self) -> float:
        """The score; 0 if every denominator is 0 (F1 with nothing to find and nothing guessed)."""
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
    """Return the interval of a `Ratio`, cached: every attack is compared with the same constant guess."""
    parts = (np.frombuffer(part) for part in (numerator, denominator))
    return bootstrap(Ratio._ratio, *parts, units=None if units is None else np.frombuffer(units, np.int64))


def authors(corpus: Corpus, split: str) -> Integers | None:
    """Return the author of each text, else its document, int64 (n,), as unit of the bootstrap; else None."""
    part = corpus.splits[split]
    column = next((name for name in ("user", "document") if name in part.features), None)
    return np.unique(np.array(part[column], object), return_inverse=True)[1] if column else None


def accuracy(guessed: Integers, truth: Integers, units: Integers | None = None) -> Ratio:
    """Return the share of right guesses; two-dimensional arrays (n, secrets) are averaged over secrets.

    Raises:
        RequestError: the guesses have another shape than the truth.
    """
    if np.shape(guessed) != np.shape(truth):
        raise RequestError(f"guesses of shape {np.shape(guessed)} are not allowed; allowed: {np.shape(truth)}")
    right = np.asarray(guessed == truth, dtype=np.float64)
    right = right.mean(1) if right.ndim == 2 else right
    return Ratio(right, np.ones(len(right)), units)


def micro_f1(guessed: Integers, truth: Integers, units: Integers | None = None) -> Ratio:
    """Return micro F1 of "present" over (text, entity) pairs, from arrays (n, entities) of 0 and 1.

    F1 = 2 TP / (2 TP + FP + FN), as in the released code of Coavoux et al. (2018); 0 when nothing is guessed.
    """
    guessed, truth = guessed.reshape(len(guessed), -1), truth.reshape(len(truth), -1)
    return Ratio(2.0 * (guessed * truth).sum(1), (guessed + truth).sum(1).astype(np.float64), units)


def best_offset(margins: NDArray[np.floating], present: Integers) -> float:
    """Return the offset to add to the margins, so that "above 0 is present" has the largest `micro_f1`.

    A probability of one half is not the threshold with the largest F1, so all thresholds are tried. Sort the margins
    downwards, and call the first i pairs present. With T_i true positives among them, F1 = 2 T_i / (i + positives). No
    threshold lies between equal margins. If no pair is present, every threshold is equally bad, and the offset is 0.

    Args:
        margins: (pairs,), the score of present minus the score of absent, for texts whose secrets are known.
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


def remaining_privacy(attack: Ratio, constant: Ratio, variable: str = "") -> Metric:
    """Return 1 - the higher score of attack and best constant guess, with an interval over the same resamples.

    The variable is a secret, or empty for all secrets together.
    """

    def statistic(a: Array, b: Array, c: Array, d: Array, axis: int = -1) -> Any:
        return 1 - np.maximum(Ratio._ratio(a, b, axis), Ratio._ratio(c, d, axis))

    parts = (attack.numerator, attack.denominator, constant.numerator, constant.denominator)
    low, high = bootstrap(statistic, *parts, units=attack.units)
    value = 1 - max(attack.value, constant.value)
    return Metric("empirical_privacy", value, variable, low=low, high=high, n=len(attack.numerator))


def bootstrap(statistic: Callable[..., Any], *samples: Array, units: Integers | None = None) -> tuple[float, float]:
    """Return a 95 % percentile interval of a statistic of sums over texts; the samples are resampled together.

    Texts of one unit are drawn together, since the texts of one author are not independent. If all texts agree, all
    resamples agree, and the interval would have no width. Wilson's interval with n = number of units then replaces it.
    Fewer than two units give (nan, nan).
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
