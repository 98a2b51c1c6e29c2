"""Train the linear classifiers of the portfolio: logistic regression and support vector machines."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize
from sklearn.linear_model import LogisticRegression

from leakboard.attacks._portfolio.members import Scores, Task, Trained
from leakboard.attacks._portfolio.vector_inputs import standardised
from leakboard.interfaces import Floats
from leakboard.threats.secrets import KnownTexts

Array = NDArray[np.float64]

MIN_LOG_PROBABILITY = -30.0
"""Least log-probability of a value in logistic regression; also that of a value that no known text has."""
ITERATIONS = 200
"""Largest number of iterations of logistic regression."""
COST = 1.0
"""Cost of a text on the wrong side of its margin, times the square of its distance: scikit-learn's default."""
STEPS = 50
"""Largest number of Newton steps for a support vector machine; then training ends."""
MAX_VALUES = 100
"""Largest number of values of a secret for which machines are trained: each value needs its own machine."""


def fit_logistic(task: Task) -> Trained:
    """Train a logistic regression for each secret, and remark if one did not converge."""
    return _logistic(task, task.train)._replace(retrain=partial(_logistic, task))


def _logistic(task: Task, texts: KnownTexts) -> Trained:
    models: dict[str, LogisticRegression] = {}
    known = task.inputs(texts.vectors)
    for secret in task.secrets:
        if len(np.unique(texts.values[secret.name])) > 1:
            model = LogisticRegression(max_iter=ITERATIONS)
            models[secret.name] = model.fit(known, texts.values[secret.name])

    def scorer(vectors: Floats) -> Scores:
        result, vectors = {}, task.inputs(vectors)
        for secret in task.secrets:
            scores = np.full((len(vectors), len(secret.values)), MIN_LOG_PROBABILITY, np.float32)
            if secret.name in models:
                with np.errstate(divide="ignore"):  # the logarithm of 0 is clipped
                    logs = models[secret.name].predict_log_proba(vectors)
                scores[:, models[secret.name].classes_] = logs.clip(MIN_LOG_PROBABILITY)
            else:
                scores[:, texts.values[secret.name][0]] = 0.0
            result[secret.name] = scores
        return result

    stopped = any(model.n_iter_.max() >= ITERATIONS for model in models.values())
    return Trained(scorer, remark=f" (stopped at {ITERATIONS} iterations)" if stopped else "")


def fit_svm(task: Task) -> Trained:
    """Train a support vector machine for each value against the others, on standardised inputs.

    The scores are the decision functions <w, x>. All scores of a secret with more than `MAX_VALUES` values are 0.
    """
    return _svm(task, task.train)._replace(retrain=partial(_svm, task))


def _svm(task: Task, texts: KnownTexts) -> Trained:
    scaled = task.inputs(texts.vectors)
    scaling = standardised(scaled)
    known = _with_constant(scaling(scaled))
    products = known.T @ known
    weights: dict[str, Array] = {}
    remarks: list[str] = []
    for secret in task.secrets:
        codes, values = texts.values[secret.name], len(secret.values)
        weights[secret.name] = columns = np.zeros((known.shape[1], values))
        if values > MAX_VALUES:
            remarks.append(f"{secret.name} has over {MAX_VALUES} values")
            continue
        first = 1 if values == 2 else 0  # with two values, one machine is the other with the opposite sign
        for value in range(first, values):
            columns[:, value], is_minimum = svm_weights(known, np.where(codes == value, 1.0, -1.0), products)
            if not is_minimum:
                remarks.append(f"stopped at {STEPS} steps")
        if first:
            columns[:, 0] = -columns[:, 1]

    def scorer(vectors: Floats) -> Scores:
        inputs = _with_constant(scaling(task.inputs(vectors)))
        return {name: (inputs @ columns).astype(np.float32) for name, columns in weights.items()}

    return Trained(scorer, remark=f" ({', '.join(dict.fromkeys(remarks))})" if remarks else "")


def _with_constant(vectors: Floats) -> Array:
    """Return vectors (n, d) with a last coordinate of 1, float64 (n, d + 1)."""
    return np.hstack([vectors, np.ones((len(vectors), 1))], dtype=np.float64)


def svm_weights(known: Array, signs: Array, products: Array | None = None) -> tuple[Array, bool]:
    """Return the weights w, float64 (d,), that minimise |w|^2 / 2 + `COST` sum max(0, 1 - sign <w, x>)^2.

    Newton's method with an exact line search up to the full step (Keerthi and DeCoste 2005, algorithm L2-SVM-MFN;
    finite Newton methods: Mangasarian 2002).

    Theorem: in exact arithmetic the steps end at the minimum after finitely many. The objective is strongly convex. A
    text changes its side of the margin on a hyperplane; between these hyperplanes the objective is quadratic. So near
    the minimum a full step ends at the minimum, and the step after it is 0. Until then each line search makes the
    objective fall.

    Each step needs the products of the texts inside the margin. Only the texts that changed their side since the last
    step are added or subtracted.

    Args:
        known: float64 (n, d), with a constant coordinate for the intercept.
        signs: float64 (n,): 1 or -1.
        products: known' known, which machines of several values share.

    Returns:
        The weights, and whether they are the minimum; False if `STEPS` were too few.
    """
    weights, outputs = np.zeros(known.shape[1]), np.zeros(len(known))
    counted = np.ones(len(known), np.bool_)
    curvature = known.T @ known if products is None else products.copy()
    curvature[np.diag_indices_from(curvature)] += 1 / (2 * COST)
    for _ in range(STEPS):
        inside = signs * outputs < 1
        for sign, moved in ((1.0, known[inside & ~counted]), (-1.0, known[counted & ~inside])):
            curvature += sign * (moved.T @ moved)
        counted = inside
        step = linalg.solve(curvature, known.T @ np.where(inside, signs, 0.0), assume_a="pos") - weights
        changes = known @ step
        away = np.array([weights @ step, step @ step])
        slope = partial(_slope, away, signs * outputs, signs * changes)
        if slope(0.0) >= 0:  # rounding errors: this is the minimum
            return weights, True
        length = 1.0 if slope(1.0) <= 0 else optimize.brentq(slope, 0, 1)
        weights, outputs = weights + length * step, outputs + length * changes
        if length == 1 and np.array_equal(inside, signs * outputs < 1):
            return weights, True
    return weights, False


def _slope(away: Array, margins: Array, changes: Array, length: float) -> float:
    """Return the objective's derivative along a step, at a share of its length; it grows with the share.

    Args:
        away: <w, step> and |step|^2.
        margins: float64 (n,): sign <w, x> before the step.
        changes: float64 (n,): changes of the margins by the whole step.
        length: the share.
    """
    short = np.maximum(0, 1 - margins - length * changes)
    return float(away[0] + length * away[1] - 2 * COST * (short @ changes))
