"""Linear support vector machines of the portfolio, one for each value of a secret against the others."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._portfolio.inputs import standardised
from leakboard.attacks._portfolio.members import Scores, Trained
from leakboard.interfaces import Floats, Secret
from leakboard.threats.secrets import KnownTexts

if TYPE_CHECKING:
    from leakboard.attacks._portfolio.portfolio import PortfolioAttack

Array = NDArray[np.float64]

COST = 1.0
"""What a text on the wrong side of its margin costs, times the square of how far: scikit-learn's default."""
STEPS = 50
"""Newton steps after which a machine is given up as it is."""
MOST_VALUES = 100
"""A secret with more values has no machines: there is one for each, and each looks at all texts."""


def fit_svm(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return for each value the decision function <w, x> of a machine on standardised inputs, as scores.

    All scores of a secret that has more than `MOST_VALUES` values are 0.
    """
    return _machines(train, secrets)._replace(again=lambda texts: _machines(texts, secrets))


def _machines(texts: KnownTexts, secrets: tuple[Secret, ...]) -> Trained:
    inputs = standardised(texts.vectors)
    known = _with_constant(inputs(texts.vectors))
    weights: dict[str, Array] = {}
    remarks: list[str] = []
    for secret in secrets:
        codes, values = texts.values[secret.name], len(secret.values)
        weights[secret.name] = columns = np.zeros((known.shape[1], values))
        if values > MOST_VALUES:
            remarks.append(f"{secret.name} has over {MOST_VALUES} values")
            continue
        first = 1 if values == 2 else 0  # of two values each has the other's machine, with the other sign
        for value in range(first, values):
            columns[:, value], is_least = svm_weights(known, np.where(codes == value, 1.0, -1.0))
            if not is_least:
                remarks.append(f"stopped at {STEPS} steps")
        if first:
            columns[:, 0] = -columns[:, 1]

    def scores(vectors: Floats) -> Scores:
        given = _with_constant(inputs(vectors))
        return {name: (given @ columns).astype(np.float32) for name, columns in weights.items()}

    return Trained(scores, remark=f" ({', '.join(dict.fromkeys(remarks))})" if remarks else "")


def _with_constant(vectors: Floats) -> Array:
    """Return vectors (n, d) with a constant coordinate after the others, float64 (n, d + 1)."""
    return np.hstack([vectors, np.ones((len(vectors), 1))], dtype=np.float64)


def svm_weights(known: Array, signs: Array) -> tuple[Array, bool]:
    """Return the weights w, float64 (d,), of least |w|^2 / 2 + `COST` sum max(0, 1 - sign <w, x>)^2.

    Newton's method with line search, exact up to the full step (Keerthi and DeCoste 2005, algorithm L2-SVM-MFN; finite
    Newton methods are Mangasarian's, 2002). Theorem: in exact arithmetic the steps end at the minimum after finitely
    many. The objective is strongly convex and, between the hyperplanes on which a text changes its side of the margin,
    quadratic. So near the minimum a full step lands on it, and then leaves all texts on their sides; line search makes
    the objective fall until there.

    Args:
        known: float64 (n, d), among them a constant coordinate for the intercept.
        signs: float64 (n,): 1 or -1.

    Returns:
        The weights, and whether they are the minimum: not where `STEPS` were not enough.
    """
    from scipy import linalg, optimize

    weights, reached = np.zeros(known.shape[1]), np.zeros(len(known))
    for _ in range(STEPS):
        inside = signs * reached < 1
        counting = known[inside]
        curvature = counting.T @ counting
        curvature[np.diag_indices_from(curvature)] += 1 / (2 * COST)
        step = linalg.solve(curvature, counting.T @ signs[inside], assume_a="pos") - weights
        moved = known @ step
        away = np.array([weights @ step, step @ step])
        slope = partial(_slope, away, signs * reached, signs * moved)
        if slope(0.0) >= 0:  # by rounding: it is the minimum
            return weights, True
        length = 1.0 if slope(1.0) <= 0 else optimize.brentq(slope, 0, 1)
        weights, reached = weights + length * step, reached + length * moved
        if length == 1 and np.array_equal(inside, signs * reached < 1):
            return weights, True
    return weights, False


def _slope(away: Array, margins: Array, changes: Array, length: float) -> float:
    """Return the objective's derivative along a step, at a share of its length: it grows with the share.

    Args:
        away: <w, step> and |step|^2.
        margins: float64 (n,): sign <w, x> before the step.
        changes: float64 (n,): by how much the whole step changes them.
        length: the share.
    """
    short = np.maximum(0, 1 - margins - length * changes)
    return float(away[0] + length * away[1] - 2 * COST * (short @ changes))
