"""Linear support vector machines of the portfolio, one for each value of a secret against the others."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._inputs import standardised
from leakboard.attacks._members import Scores, Trained
from leakboard.interfaces import Floats, Secret
from leakboard.threats.secrets import KnownTexts

if TYPE_CHECKING:
    from leakboard.attacks._portfolio import PortfolioAttack

Array = NDArray[np.float64]

COST = 1.0
"""Of a text on the wrong side of its margin, by the square of how far; scikit-learn's default."""
STEPS = 50
"""Most Newton steps of one machine; ten are usual."""
MOST_VALUES = 100
"""Of a secret: machines for more values would take longer than all other families."""


def fit_svm(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return the distances to the margins of standardised inputs; 0 for each value of a secret with too many."""
    return _machines(train, secrets)._replace(again=lambda texts: _machines(texts, secrets))


def _machines(texts: KnownTexts, secrets: tuple[Secret, ...]) -> Trained:
    inputs = standardised(texts.vectors)
    known = _with_constant(inputs(texts.vectors))
    lines = {s.name: np.zeros((known.shape[1], len(s.values))) for s in secrets}
    for secret in secrets:
        values = len(secret.values)
        for value in range(values if values <= MOST_VALUES else 0):
            if value == 1 and values == 2:
                lines[secret.name][:, 1] = -lines[secret.name][:, 0]
            else:
                signs = np.where(texts.values[secret.name] == value, 1.0, -1.0)
                lines[secret.name][:, value] = margin(known, signs)

    def scores(vectors: Floats) -> Scores:
        given = _with_constant(inputs(vectors))
        return {name: (given @ weights).astype(np.float32) for name, weights in lines.items()}

    return Trained(scores)


def _with_constant(vectors: Floats) -> Array:
    return np.hstack([vectors, np.ones((len(vectors), 1))], dtype=np.float64)


def margin(known: Array, signs: Array) -> Array:
    """Return the weights w, float64 (d,), of least |w|^2 / 2 + `COST` sum max(0, 1 - sign <w, x>)^2.

    Newton's method with exact line search. Theorem (Mangasarian 2002, "A finite Newton method for classification";
    Keerthi and DeCoste 2005): the objective is strongly convex and, between the hyperplanes on which a text changes
    its side of the margin, quadratic. So the steps end at its minimum after finitely many, which is reached when a full
    step leaves all texts on their sides.

    Args:
        known: float64 (n, d), among them a constant coordinate for the intercept.
        signs: float64 (n,): 1 or -1.
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
            break
        length = 1.0 if slope(1.0) <= 0 else optimize.brentq(slope, 0, 1)
        weights, reached = weights + length * step, reached + length * moved
        if length == 1 and np.array_equal(inside, signs * reached < 1):
            break
    return weights


def _slope(away: Array, margins: Array, changes: Array, length: float) -> float:
    """Return the objective's derivative along a step, at a share of its length: it grows with the share."""
    short = np.maximum(0, 1 - margins - length * changes)
    return float(away[0] + length * away[1] - 2 * COST * (short @ changes))
