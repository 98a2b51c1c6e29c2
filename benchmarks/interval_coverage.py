"""Simulate how often intervals hold the true value, and how often chance is called a finding.

- **False claims**: 1 to 30 attacks guess at random, and the strongest on test is reported. At most 5 % of the reports
  may claim a gain. The power is the share of claims for one attack that knows something.
- **Coverage**: 95 % intervals of accuracy with authors of heavy-tailed sizes, of F1 of rare entities, of areas, and of
  empirical privacy where the attack and the constant guess are equally good. At least 93 % must hold the true value.
- **Gaps between groups**: at most 5 % of samples may show a gap if there is none. At least 95 % must show a true gap of
  .2 between groups of 300 texts.

A hundred runs of each case take 80 seconds on one core.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from _timing import verdict
from scipy import stats

from leakboard.metrics.areas import Area, Ranking
from leakboard.metrics.fairness import widest_gaps
from leakboard.metrics.intervals import ratio_interval
from leakboard.metrics.measures import Ratio, accuracy, micro_f1, remaining_privacy
from leakboard.threats.sentence_parts import LARGEST_P_VALUE

ATTACKS = (1, 3, 8, 30)
SHIFT = 0.5
"""Shift of the scores of the attack that knows something, in standard deviations: its area is .64."""

GROUPS = (
    ((300, 20, 20, 20), (0.8,) * 4, 1),
    ((300, 40, 40, 40), (0.5,) * 4, 1),
    ((300, 40, 40, 40), (0.8,) * 4, 1),
    ((300, 40, 40, 40), (0.95,) * 4, 1),
    ((60,) * 10, (0.8,) * 10, 1),
    ((300, 150, 150, 150), (0.8,) * 4, 5),
    ((150,) * 10, (0.8,) * 10, 5),
    ((300, 300), (0.5, 0.7), 1),
    ((300, 300, 40, 40), (0.5, 0.7, 0.6, 0.6), 1),
)
"""Sizes and accuracies of groups, and the number of texts of an author."""

Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray | None]]
Interval = tuple[float, float]


def texts(n: int, prevalence: float, texts_of_user: int) -> Draw:
    """Return a function that draws a secret of texts, bool (n,), and their authors; 0 texts of a user: no authors."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
        if not texts_of_user:
            return rng.random(n) < prevalence, None
        users = max(2, n // texts_of_user)
        authors = np.sort(rng.choice(users, n, p=rng.dirichlet(np.ones(users))))
        return (rng.random(users) < prevalence)[authors], authors

    return draw


def claims(draw: Draw, runs: int, rng: np.random.Generator) -> dict[int, float]:
    """Return the share of claims by the number of random attacks; of 0 attacks: with an attack that knows something."""
    found, scored = dict.fromkeys((0, *ATTACKS), 0), 0
    for _ in range(runs):
        secret, authors = draw(rng)
        units = np.arange(len(secret)) if authors is None else authors
        if min(len(np.unique(units[part])) for part in (secret, ~secret)) < 2:
            continue  # not scored
        scored += 1
        of_author = np.zeros(len(secret)) if authors is None else rng.normal(size=authors.max() + 1)[authors]
        noise = rng.normal(size=(max(ATTACKS) + 1, len(secret))) + of_author
        noise[0] += SHIFT * secret
        p_values = [Area.of([Ranking(scores, secret)], authors).p_value for scores in noise]
        found[0] += p_values[0] <= LARGEST_P_VALUE
        for attacks in ATTACKS:
            found[attacks] += attacks * min(p_values[1 : attacks + 1]) <= LARGEST_P_VALUE
    return {attacks: count / max(1, scored) for attacks, count in found.items()}


def coverage(intervals: Iterator[Interval], truth: float) -> float:
    """Return the share of intervals that hold the truth, of those that exist; print how many are missing."""
    every = list(intervals)
    known = [(low, high) for low, high in every if not math.isnan(low)]
    if missing := len(every) - len(known):
        print(f"  {missing} of {len(every)} runs have no interval")
    return float(np.mean([low - 1e-12 <= truth <= high + 1e-12 for low, high in known]))


def by_authors(rng: np.random.Generator, similarity: float, truth: float = 0.8) -> Interval:
    """Return an interval of the accuracy on texts of 60 authors with heavy-tailed sizes, whose skills differ."""
    sizes = np.minimum(1 + (3 * rng.pareto(1.5, 60)).astype(int), 500)
    authors = np.repeat(np.arange(60), sizes)
    spread = 1 / similarity - 1
    right = rng.random(len(authors)) < rng.beta(truth * spread, (1 - truth) * spread, 60)[authors]
    return ratio_interval(right.astype(float), np.ones(len(authors)), authors)


def of_f1(rng: np.random.Generator, n: int, prevalence: float, found: float = 0.7, false: float = 0.02) -> Interval:
    """Return an interval of the F1 of an attack on a rare entity."""
    truth = rng.random(n) < prevalence
    guess = rng.random(n) < np.where(truth, found, false)
    return micro_f1(guess.astype(np.int64), truth.astype(np.int64)).interval()


def of_privacy(rng: np.random.Generator, n: int, majority: float) -> Interval:
    """Return an interval of empirical privacy, if the attack is as good as the constant guess."""
    truth = (rng.random(n) < majority).astype(np.int64)
    right = rng.random(n) < majority
    constant = np.full(n, int(truth.mean() >= 0.5))
    metric = remaining_privacy(Ratio(right.astype(float), np.ones(n)), accuracy(constant, truth))
    assert metric.low is not None
    assert metric.high is not None
    return metric.low, metric.high


def of_area(rng: np.random.Generator, n: int, prevalence: float, shift: float) -> Interval:
    """Return an interval of an area under the ROC curve."""
    inside = rng.random(n) < prevalence
    if not 1 < inside.sum() < n - 1:
        return math.nan, math.nan
    return Area.of([Ranking(rng.normal(size=n) + shift * inside, inside)]).interval()


def shown_gaps(
    sizes: Sequence[int], accuracies: Sequence[float], texts_of_author: int, runs: int, rng: np.random.Generator
) -> float:
    """Return the share of samples in which the widest gap of accuracy between groups is shown.

    Authors have ``texts_of_author`` texts of one group; their skills have a beta distribution with similarity .3. With
    one text each, texts have no authors.
    """
    groups = np.repeat(np.arange(len(sizes)), sizes)
    authors = np.arange(len(groups)) // texts_of_author if texts_of_author > 1 else None
    skills, spread = np.repeat(accuracies, sizes), 1 / 0.3 - 1
    shown = 0
    for _ in range(runs):
        mean = skills[::texts_of_author]
        skill = skills if authors is None else rng.beta(mean * spread, (1 - mean) * spread)[authors]
        right = (rng.random(len(groups)) < skill).astype(np.int64)
        gap, _ = widest_gaps({"group": groups}, right, np.ones(len(groups), dtype=np.int64), authors)
        shown += gap.low is not None and gap.low > 0
    return shown / runs


def main(runs: int = 2000, seed: int = 0) -> None:
    """Run each case ``runs`` times."""
    worst = 0.0
    print("claims of random attacks (1, 3, 8, 30), and power against an area of .64")
    for n in (60, 300, 3000):
        for prevalence in (0.5, 0.1):
            for texts_of_user in (0, 5, 15):
                shares = claims(texts(n, prevalence, texts_of_user), runs, np.random.default_rng(seed))
                worst = max(worst, *(shares[attacks] for attacks in ATTACKS))
                shown = " ".join(f"{shares[attacks]:.3f}" for attacks in (*ATTACKS, 0))
                print(f"  {n} texts, {prevalence:.0%} with the value, {texts_of_user} of a user: {shown}", flush=True)
    cases: dict[str, tuple[Callable[[np.random.Generator], Interval], float]] = {}
    for similarity in (0.01, 0.1, 0.5):
        cases[f"accuracy, 60 authors, similarity {similarity}"] = lambda rng, s=similarity: by_authors(rng, s), 0.8
    for n, prevalence in ((60, 0.05), (60, 0.02), (300, 0.05), (3000, 0.02)):
        f1 = 2 * prevalence * 0.7 / (prevalence * 1.7 + (1 - prevalence) * 0.02)
        cases[f"F1, {n} texts, {prevalence:.0%} positive"] = lambda rng, n=n, p=prevalence: of_f1(rng, n, p), f1
    for n, majority in ((60, 0.5), (300, 0.5), (300, 0.7), (3000, 0.5)):
        case = f"empirical privacy at the constant, {n} texts, majority {majority:.0%}"
        cases[case] = lambda rng, n=n, m=majority: of_privacy(rng, n, m), 1 - majority
    for n, prevalence, shift in ((60, 0.5, 1.0), (300, 0.1, 1.0), (300, 0.1, 3.0), (3000, 0.03, 2.0)):
        area = float(stats.norm.cdf(shift / math.sqrt(2)))
        case = f"area {area:.3f}, {n} texts, {prevalence:.0%} with the value"
        cases[case] = lambda rng, n=n, p=prevalence, s=shift: of_area(rng, n, p, s), area
    least = 1.0
    print("coverage of 95 % intervals")
    for name, (interval, truth) in cases.items():
        rng = np.random.default_rng(seed)
        share = coverage((interval(rng) for _ in range(runs)), truth)
        least = min(least, share)
        print(f"  {name}: {share:.3f}", flush=True)
    print("gaps between groups that are shown: sizes, accuracies, texts of an author")
    by_truth: dict[bool, list[float]] = {False: [], True: []}
    for sizes, accuracies, texts_of_author in GROUPS:
        share = shown_gaps(sizes, accuracies, texts_of_author, runs, np.random.default_rng(seed))
        by_truth[min(accuracies) < max(accuracies)].append(share)
        print(f"  {sizes}, {accuracies}, {texts_of_author}: {share:.3f}", flush=True)
    verdict("interval_coverage_false_gaps", max(by_truth[False]), 0.05, at_most=True)
    verdict("interval_coverage_gap_power", min(by_truth[True]), 0.95)
    verdict("interval_coverage_false_claims", worst, 0.05, at_most=True)
    verdict("interval_coverage_least", least, 0.93)
