"""Compute scores as ratios of sums over texts, with intervals.

Each score is sum(numerator) / sum(denominator) over texts, so one interval serves all scores:

| score | numerator of a text | denominator of a text |
|---|---|---|
| accuracy | share of right guesses | 1 |
| micro F1 | 2 TP | 2 TP + FP + FN |
| recall | 1 for a hit, else 0 | 1 |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Integers
from leakboard.metrics.intervals import AGREE, CONFIDENCE, Array, Design, jackknife_variance, ratio_interval, unit_codes


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
    is_dice: bool = False
    """Whether it is 2 shared / (guessed + true), as F1 is."""

    @property
    def value(self) -> float:
        """The score; 0 if every denominator is 0 (F1 with nothing to find and nothing guessed)."""
        total = self.denominator.sum()
        return float(self.numerator.sum() / total) if total else 0.0

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval of the score over independent units (`ratio_interval`).

        F1 = 2 J / (1 + J) grows with J = shared / (guessed or true), which is a share. So the ends of the interval of J
        give those of F1 (Lam, Gopal and Qian 2023, the indirect Wilson interval). Its width depends on the number of
        words or positives, not on the number of texts.
        """
        parts = (np.asarray(part, np.float64).tobytes() for part in (self.numerator, self.denominator))
        units = None if self.units is None else np.asarray(self.units, np.int64).tobytes()
        return _interval(*parts, units, self.is_dice, confidence)

    def within(self, chosen: NDArray[np.bool_]) -> Ratio:
        """Return the score over chosen entries only."""
        units = None if self.units is None else self.units[chosen]
        return Ratio(self.numerator[chosen], self.denominator[chosen], units, self.is_dice)

    def metric(self, name: str, variable: str = "", group: str = "") -> Metric:
        """Return the score with its interval."""
        low, high = self.interval()
        return Metric(name, self.value, variable, group, low, high, len(self.numerator))


@lru_cache(maxsize=16)
def _interval(
    numerator: bytes, denominator: bytes, units: bytes | None, is_dice: bool, confidence: float
) -> tuple[float, float]:
    """Return the interval of a `Ratio`, cached: every attack is compared with the same constant guess."""
    top, bottom = np.frombuffer(numerator), np.frombuffer(denominator)
    codes = None if units is None else np.frombuffer(units, np.int64)
    if not is_dice:
        return ratio_interval(top, bottom, codes, confidence)
    low, high = ratio_interval(top / 2, bottom - top / 2, codes, confidence)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def authors(corpus: Corpus, split: str) -> Integers | None:
    """Return the author of each text, else its document, int64 (n,), as unit of intervals; else None."""
    part = corpus.splits[split]
    column = next((name for name in ("user", "document") if name in part.column_names), None)
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
    return Ratio(2.0 * (guessed * truth).sum(1), (guessed + truth).sum(1).astype(np.float64), units, True)


def best_offset(margins: NDArray[np.floating], present: Integers, missed: int = 0) -> float:
    """Return the offset to add to the margins, so that "above 0 is present" has the largest `micro_f1`.

    A probability of one half is not the threshold with the largest F1, so all thresholds are tried. Sort the margins
    downwards, and call the first i pairs present. With T_i true positives among them, F1 = 2 T_i / (i + positives). No
    threshold lies between equal margins. If no pair is present, every threshold is equally bad, and the offset is 0.

    Args:
        margins: (pairs,), the score of present minus the score of absent, for texts whose secrets are known.
        present: int64 (pairs,), 0 or 1.
        missed: number of present pairs that have no margin, and are never called present.
    """
    if not present.any():
        return 0.0
    order = np.argsort(-margins, kind="stable")
    f1 = 2 * np.cumsum(present[order]) / (np.arange(1, len(present) + 1) + present.sum() + missed)
    margins = margins[order]
    f1[:-1][margins[:-1] == margins[1:]] = -1.0
    best = int(f1.argmax())
    below = margins[best + 1] if best + 1 < len(margins) else margins[best] - 1
    return -float(margins[best] + below) / 2


def remaining_privacy(attack: Ratio, constant: Ratio, variable: str = "") -> Metric:
    """Return 1 - the higher score of attack and best constant guess.

    The ends are those of the two scores' intervals: 1 - the larger lower end, and 1 - the larger upper end.

    - The better guess's true score is above the larger upper end only if it is above its own: in 2.5 % of samples.
    - It is below the larger lower end only if one of two intervals begins too high. These begin too high in 1.25 % of
      samples each, so in 2.5 % at most.

    Both shares are for intervals that cover exactly and for a constant guess that is given. The best one is chosen on
    test: `python benchmarks interval_coverage` measures what this costs.

    The variable is a secret, or empty for all secrets together.
    """
    sides = (attack, constant)
    low = max(ratio.interval((1 + CONFIDENCE) / 2)[0] for ratio in sides)
    high = max(ratio.interval()[1] for ratio in sides)
    value = max(ratio.value for ratio in sides)
    return Metric("empirical_privacy", 1 - value, variable, "", 1 - high, 1 - low, len(attack.numerator))


def advantage(attack: Ratio, constant: Ratio, variable: str = "") -> list[Metric]:
    """Return what an attack gains of what a constant guess leaves to gain, (a - c) / (1 - c), and its p-value.

    Both guess about the same texts, so the jackknife leaves a text out of both. The p-value is one-sided: the
    probability of such a gain if the attack is no better than the constant guess.

    The variable is a secret, or empty for all secrets together.
    """
    n, left = len(attack.numerator), 1 - constant.value
    if left <= AGREE:
        status = "the best constant guess is always right: there is nothing to gain"
        return [Metric(name, None, variable, n=n, status=status) for name in ("attack_advantage", "attack_advantage_p")]
    codes = unit_codes(attack.units, n)
    rows, units = (_differences(attack, constant, c) for c in (np.arange(n), codes))
    gained = attack.value - constant.value
    variances = jackknife_variance(rows[0]), jackknife_variance(units[0])
    design = Design.of(variances[0], variances[1], np.ones((1, n)), codes)
    error = math.sqrt(variances[0] * design.effect)
    value = gained / left
    if variances[0] > AGREE:
        spread = design.quantile(CONFIDENCE) * math.sqrt(jackknife_variance(rows[1]) * design.effect)
        low, high, p_value = value - spread, float(np.minimum(1.0, value + spread)), design.tail(gained / error)
    else:  # all texts agree
        low, high = ((end - constant.value) / left for end in attack.interval())
        p_value = 0.5 ** (codes.max() + 1) if gained > 0 else 1.0
    return [
        Metric("attack_advantage", value, variable, "", low, high, n),
        Metric("attack_advantage_p", p_value, variable, n=n),
    ]


def _differences(attack: Ratio, constant: Ratio, codes: Integers) -> tuple[Array, Array]:
    """Return a - c, and (a - c) / (1 - c), without each unit, float64 (units,)."""
    scores = []
    for ratio in (attack, constant):
        tops, bottoms = (part.sum() - np.bincount(codes, part) for part in (ratio.numerator, ratio.denominator))
        scores.append(np.divide(tops, bottoms, out=np.full(len(tops), ratio.value), where=bottoms > 0))
    difference = scores[0] - scores[1]
    return difference, np.divide(difference, 1 - scores[1], out=np.zeros(len(difference)), where=scores[1] < 1)
