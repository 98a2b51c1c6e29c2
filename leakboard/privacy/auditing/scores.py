"""Map a release to scores that tell two inputs apart: simple statistics, known density ratios, and learned ratios.

The best score is the ratio of the two densities (Neyman and Pearson 1933). A badly learned score proves less, but never
makes a bound wrong.

Scores are rounded to `DIGITS` digits of their spread. With all bits, rounding errors of floating point might refute the
claim of a correct mechanism (Mironov 2012).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.events import Array, Pair, Score
from leakboard.privacy.auditing.points import NEAR, point_scores

DIGITS = 9
"""Number of digits to which scores are rounded."""
CERTAIN = 1e6
"""Value in place of an infinite log ratio."""
INTERVALS = 1024
"""Number of intervals of a table of log density ratios, all of equal width. Each has the log ratio at its centre."""
MAX_BINS = 64
"""Largest number of bins from which a table is learned."""
VALUES_PER_BIN = 100
"""Number of values of each input for one bin. Each coordinate of a release is one value."""
LEAST_VARIANCE = 1e-10
"""Smallest variance of a direction in the discriminant without shrinkage, as a share of the largest.

It is large compared with rounding errors of single precision, which audits do not judge.
"""
NORMS = {"L1": 1, "L2": 2, "largest": np.inf}
"""Norms of the distances from an input, by name."""
MOST_DECIMALS = 6
"""Largest counted number of decimals."""
DECIMAL_TOLERANCE = 1e-7
"""Rounding error of a decimal fraction in single precision, as a share of the number."""
MIN_RELEASES_FOR_TREES = 2_000
"""Trees are trained only if there are this many releases of each input."""


def scores_of(
    mechanism: Mechanism,
    pair: Pair,
    first_releases: Array,
    second_releases: Array,
    digits: int | None = DIGITS,
    *,
    learned: bool = True,
) -> tuple[dict[str, Score], dict[str, Score]]:
    """Return scores that may tell the inputs of a pair apart, and scores whose single values may do so, by name.

    Args:
        mechanism: to audit; it may know its log density ratio.
        pair: the two inputs.
        first_releases: releases of the first input to learn from, float (n, d).
        second_releases: releases of the second input, float (m, d).
        digits: digits to which scores are rounded; None: no rounding.
        learned: whether to learn density ratios, which takes most of the time.
    """
    scores: dict[str, Score] = {
        "sum": lambda outputs: outputs.sum(1),
        "mean above the minimum": lambda outputs: outputs.mean(1) - outputs.min(1),
        "smallest coordinate": lambda outputs: outputs.min(1),
        "largest coordinate": lambda outputs: outputs.max(1),
        "decimals": _decimals,
        "learned classifier": fisher(first_releases, second_releases),
    }
    if first_releases.shape[1] > 1:
        scores["direction with little noise"] = quiet_direction(first_releases, second_releases)
    first_input, second_input = mechanism.vector_of(pair.first), mechanism.vector_of(pair.second)
    direction, inputs = None, list[Array]()
    if first_input is not None and second_input is not None:
        direction, inputs = second_input - first_input, [first_input, second_input]
        scores |= _distances(first_input, "first") | _distances(second_input, "second")
        scores["projection on the difference"] = lambda outputs: outputs @ direction
        if mechanism.log_ratio(first_releases[:1], first_input, second_input) is not None:
            scores["likelihood ratio"] = _finite_log_ratio(mechanism, first_input, second_input)
    if learned:
        size = min(len(first_releases), len(second_releases))
        scores |= learned_scores(first_releases[:size], second_releases[:size], direction, inputs)
    points = point_scores(first_input, second_input, first_releases, second_releases)
    if digits is None:
        return scores, points
    both = np.concatenate([first_releases, second_releases])

    def rounded(scores: dict[str, Score]) -> dict[str, Score]:
        return {name: _rounded(score, rounding_step(score(both), digits)) for name, score in scores.items()}

    return rounded(scores), rounded(points)


def rounding_step(scores: Array, digits: int) -> float:
    """Return the step for rounding: the spread of the scores, rounded up to a power of two, times 10**-digits."""
    spread = float(np.std(scores)) or 1.0
    return float(2.0 ** np.ceil(np.log2(spread)) * 10.0**-digits)


def round_to(scores: Array, step: float) -> Array:
    """Round scores to whole steps."""
    result: Array = np.rint(scores / step) * step
    return result


def _rounded(score: Score, step: float) -> Score:
    return lambda outputs: round_to(score(outputs), step)


def _finite_log_ratio(mechanism: Mechanism, first_input: Array, second_input: Array) -> Score:
    def score(outputs: Array) -> Array:
        ratio = mechanism.log_ratio(outputs, first_input, second_input)
        assert ratio is not None, "it was known for the first output"
        return np.nan_to_num(ratio, nan=0.0, posinf=CERTAIN, neginf=-CERTAIN)

    return score


def _decimals(outputs: Array) -> Array:
    """Return how many decimals the coordinates need at most, int (n,).

    They show rounding that depends on the input, and digits that are added after rounding.
    """
    needed = np.zeros(len(outputs), np.int64)
    for place in range(MOST_DECIMALS):
        steps = np.abs(outputs * np.float64(10**place))
        needed += (np.abs(steps - np.rint(steps)) > DECIMAL_TOLERANCE * steps).any(1)
    return needed


def _distances(values: Array, which: str) -> dict[str, Score]:
    """Return the distances from an input, by name. They show noise whose size says too much.

    A logarithm of the smallest distance shows noise that is rarely almost 0.
    """

    def smallest(outputs: Array) -> Array:
        logarithm: Array = np.log(np.maximum(np.abs(outputs - values).min(1), NEAR))
        return logarithm

    norms = list(NORMS.items())[: len(values)]  # in one dimension all norms are equal
    return {
        **{f"{name} distance from the {which} input": _distance(values, norm) for name, norm in norms},
        f"logarithm of the smallest distance from the {which} input": smallest,
    }


def _distance(values: Array, norm: float) -> Score:
    return lambda outputs: np.linalg.norm(outputs - values, norm, axis=1)


def fisher(first_releases: Array, second_releases: Array) -> Score:
    """Train the discriminant of Fisher (1936). Higher scores mean the second input.

    The covariance is shrunken (Ledoit and Wolf 2004). If no coordinate varies, the score is the sum of the coordinates.
    """
    from scipy import linalg
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    labels = np.repeat([0, 1], [len(first_releases), len(second_releases)])
    outputs = np.concatenate([first_releases, second_releases])
    spread = outputs.std(0)
    varying = spread > 1e-12 * np.abs(outputs).max(initial=1e-300)
    if not varying.any():
        return lambda outputs: outputs.sum(1)
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    try:
        weights = model.fit(outputs[:, varying], labels).coef_[0]
    except np.linalg.LinAlgError:  # the SVD of an almost singular covariance may not converge; QR always ends
        weights = linalg.lstsq(model.covariance_, model.means_[1] - model.means_[0], lapack_driver="gelsy")[0]
    return lambda outputs: outputs[:, varying] @ weights


def quiet_direction(first_releases: Array, second_releases: Array) -> Score:
    """Train the discriminant of Fisher (1936) without shrinkage. Higher scores mean the second input.

    Shrinkage adds noise to each direction. So `fisher` misses a direction without noise.
    """
    sides = first_releases, second_releases
    size = max(float(np.abs(side).max()) for side in sides) or 1.0  # keeps squares in range
    covariance = np.mean([np.atleast_2d(np.cov(side / size, rowvar=False)) for side in sides], axis=0)
    variances, directions = np.linalg.eigh(covariance)
    means = (second_releases.mean(0) - first_releases.mean(0)) / size
    least = LEAST_VARIANCE * max(float(variances.max()), LEAST_VARIANCE)
    weights = directions @ (means @ directions / np.maximum(variances, least))
    return lambda outputs: outputs / size @ weights


def learned_scores(
    first_releases: Array, second_releases: Array, direction: Array | None, inputs: Sequence[Array] = ()
) -> dict[str, Score]:
    """Learn scores, by name. Higher scores mean the first input.

    Args:
        first_releases: releases of the first input, float (n, d).
        second_releases: releases of the second input, float (n, d).
        direction: second input minus first, float (d,); None if unknown.
        inputs: the two inputs, float (d,) each; empty if unknown.
    """
    if direction is None or len(direction) != first_releases.shape[1] or not direction.any():
        direction = second_releases.mean(0) - first_releases.mean(0)
    if not direction.any():
        direction = np.ones(first_releases.shape[1])
    half, tables = len(first_releases) // 2, {}
    for_tables = first_releases[:half], second_releases[:half]
    for_trees = first_releases[half:], second_releases[half:]
    for monotone in (False, True):
        suffix = ", monotone" if monotone else ""
        tables[f"density ratios of the coordinates{suffix}"] = _table_each(*for_tables, monotone)
        if first_releases.shape[1] > 1:
            shared = _shared_table(*for_tables, direction, monotone)
            tables[f"density ratio of all coordinates{suffix}"] = shared
    if len(first_releases) < MIN_RELEASES_FOR_TREES:
        return tables
    return {**tables, "boosted trees": _trees(*for_trees, direction, list(tables.values()), inputs)}


def _table_each(first_releases: Array, second_releases: Array, monotone: bool) -> Score:
    """Learn a table of log density ratios for each coordinate; the score is the sum over coordinates."""
    learned = [_table(*sides, monotone) for sides in zip(first_releases.T, second_releases.T, strict=True)]
    low, steps, tables = (np.stack(part) for part in zip(*learned, strict=True))
    offsets = np.arange(first_releases.shape[1]) * INTERVALS
    return lambda outputs: tables.ravel().take(_intervals(outputs, low, steps) + offsets).sum(1)


def _shared_table(first_releases: Array, second_releases: Array, direction: Array, monotone: bool) -> Score:
    """Learn one table of log density ratios for all coordinates; the score is the sum over coordinates."""
    differing = np.flatnonzero(direction)
    signs = np.sign(direction[differing])  # makes all coordinates differ in the same direction

    def turned(outputs: Array) -> Array:
        turned: Array = outputs[:, differing] * signs
        return turned

    centre = np.median(turned(np.concatenate([first_releases, second_releases])), axis=0)
    first_values, second_values = (
        (turned(releases) - centre).ravel() for releases in (first_releases, second_releases)
    )
    low, step, table = _table(first_values, second_values, monotone)
    return lambda outputs: table.take(_intervals(turned(outputs), low + centre, step)).sum(1)


def _intervals(outputs: Array, low: Array, steps: Array) -> Array:
    return np.clip((outputs - low) / steps, 0, INTERVALS - 1).astype(np.intp)


def _table(first_values: Array, second_values: Array, monotone: bool) -> tuple[Array, Array, Array]:
    """Learn a table: start of the first interval, width of each, and log density ratios, float64 (`INTERVALS`,)."""
    from sklearn.isotonic import isotonic_regression

    both = np.sort(np.concatenate([first_values, second_values]))
    bins = int(np.clip(len(first_values) // VALUES_PER_BIN, 2, MAX_BINS))
    edges = np.unique(both[np.linspace(0, len(both) - 1, bins + 1).astype(int)][1:-1])
    bin_of = [np.searchsorted(edges, side, "right") for side in (first_values, second_values)]
    counts = np.array([np.bincount(numbers, minlength=len(edges) + 1) for numbers in bin_of])
    sums = np.bincount(np.concatenate(bin_of), np.concatenate([first_values, second_values]), len(edges) + 1)
    filled = counts.sum(0) > 0  # drops the first bin if the first edge is the minimum
    middles = sums[filled] / counts.sum(0)[filled]
    counts = counts[:, filled] + 1
    total = counts.sum(0)
    share = counts[0] / total
    if monotone:  # as for log-concave noise
        rising = bool(first_values.mean() > second_values.mean())
        share = isotonic_regression(share, sample_weight=total, increasing=rising)
    inner = np.quantile(both, [1e-4, 1 - 1e-4]) if len(both) > 1e4 else both[[0, -1]]
    step = float(inner[1] - inner[0]) / INTERVALS or 1.0
    centres = inner[0] + step * (np.arange(INTERVALS) + 0.5)
    log_ratios = np.interp(centres, middles, np.log(share) - np.log1p(-share))
    return np.asarray(inner[0], np.float64), np.asarray(step), log_ratios


def _trees(
    first_releases: Array, second_releases: Array, direction: Array, scores: list[Score], inputs: Sequence[Array]
) -> Score:
    """Train boosted trees on scores and summaries. Trees see joint effects that a sum over coordinates misses."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import ThreadpoolController

    # beside a busy process, threads would mostly wait for each other
    threads = ThreadpoolController()
    centre = np.median(np.concatenate([first_releases, second_releases]), axis=0)
    raw = slice(0, first_releases.shape[1] if first_releases.shape[1] <= 8 else 0)

    def summaries(outputs: Array) -> Array:
        columns = [score(outputs) for score in scores]
        columns.append(outputs @ direction)
        for point in (centre, *inputs):
            away = np.abs(outputs - point)
            columns += [away.sum(1), np.linalg.norm(away, axis=1), away.max(1), away.min(1)]
        return np.column_stack([*columns, outputs[:, raw]])

    model = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=8, learning_rate=0.15, min_samples_leaf=100, early_stopping=False, random_state=0
    )
    labels = np.repeat([1, 0], [len(first_releases), len(second_releases)])
    with threads.limit(limits=1):
        model.fit(summaries(np.concatenate([first_releases, second_releases])), labels)

    def score(outputs: Array) -> Array:
        with threads.limit(limits=1):
            return model.decision_function(summaries(outputs))

    return score
