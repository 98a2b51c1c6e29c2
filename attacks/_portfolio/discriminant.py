"""Train discriminant analysis: on the vectors themselves, and on the functions of a Gaussian kernel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import logsumexp

from leakboard.attacks._portfolio.members import Scorer, Scores, Task, Trained, log_loss
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.threats.secrets import KnownTexts

Array = NDArray[np.float64]
Features = Callable[[Floats], Array]
"""Maps vectors, float32 (n, d), to features, float64 (n, f)."""

PENALTIES = 10.0 ** np.arange(-4, 5)
"""Penalties to try on the weights of least squares, as multiples of the features' mean sum of squares along an axis."""
MAX_LEVERAGE = 1 - 1e-9
"""Largest leverage of a known text; leaving the text out divides by 1 - leverage."""
RIDGE = 0.01
"""Added to the covariance of the least-squares outputs, as a share of its mean variance."""
TINY = 1e-12
MIN_LOG_PROBABILITY = -30.0
"""Least log-probability when penalties are compared; also the upper bound for a value that no known text has."""
LANDMARKS = 1_000
"""Largest number of known texts that span the kernel's functions. At most half of all texts are used: least squares
work worst with as many functions as texts."""
BLOCK = 4_096
"""Number of texts that are compared with the landmarks at once."""


def fit_discriminant(task: Task) -> Trained:
    """Train discriminant analysis with a penalty on the directions: the best linear classifier for few texts."""
    return _fit(lambda vectors: vectors.astype(np.float64), task)


def fit_kernel(task: Task) -> Trained:
    """Train discriminant analysis on a Gaussian kernel's functions at known texts (Williams and Seeger 2001).

    The kernel is exp(-2 |x - y|^2 / m), where m is the median squared distance between the landmarks.
    """
    functions, _ = gaussian_functions(task.train.vectors, task.seed)
    return _fit(functions, task)


def gaussian_functions(known: Floats, seed: int) -> tuple[Features, float]:
    """Return functions with inner products of about exp(-rate |x - y|^2), and the rate.

    Args:
        known: float32 (n, d): some of the rows become landmarks; between landmarks the inner products are exact.
        seed: chooses the landmarks.
    """
    rng = np.random.default_rng(seed)
    centre = known.mean(0, dtype=np.float64)  # far from 0 differences of squares would be rounded
    landmarks = known[rng.choice(len(known), min(LANDMARKS, -(-len(known) // 2)), replace=False)] - centre
    distances = _squared_distances(landmarks, landmarks)
    apart = distances > 1e-12 * (landmarks**2).sum(1).max()
    rate = 2 / (np.median(distances[apart]) if apart.any() else 1.0)
    weights, axes = linalg.eigh(np.exp(-rate * distances))
    kept = weights > 1e-6 * weights[-1]
    basis = axes[:, kept] / np.sqrt(weights[kept])

    def functions(vectors: Floats) -> Array:
        parts = np.array_split(vectors - centre, 1 + len(vectors) // BLOCK)
        return np.concatenate([np.exp(-rate * _squared_distances(part, landmarks)) @ basis for part in parts])

    return functions, float(rate)


def _fit(features: Features, task: Task) -> Trained:
    """Train penalised discriminant analysis; for each secret choose the penalty of least log-loss on dev."""
    analysis = _Analysis.of(features, task.train)
    on_dev = analysis.project(task.dev.vectors)

    def loss(secret: Secret, penalty: int) -> float:
        scores = analysis.discriminant(secret, penalty)(on_dev)
        return log_loss(np.maximum(scores, MIN_LOG_PROBABILITY), task.dev.values[secret.name])

    best = {s.name: min(range(len(PENALTIES)), key=lambda penalty: loss(s, penalty)) for s in task.secrets}
    return Trained(
        analysis.scorer(task.secrets, best),
        lambda texts: Trained(_Analysis.of(features, texts).scorer(task.secrets, best)),
    )


@dataclass(frozen=True)
class _Discriminant:
    """Linear functions that map projected vectors, float64 (n, f), to log-probabilities of a secret's values."""

    directions: Array
    """float64 (f, values seen)."""
    constants: Array
    """float64 (values seen,)."""
    seen: Integers
    """The values that known texts have."""
    values: int
    """Number of all values of the secret. Values that no known text has get at most e**`MIN_LOG_PROBABILITY`."""

    def __call__(self, projected: Array) -> Array:
        logits = projected @ self.directions + self.constants
        logs = logits - logsumexp(logits, axis=1, keepdims=True)
        full = np.tile(np.minimum(logs.min(1, keepdims=True), MIN_LOG_PROBABILITY), self.values)
        full[:, self.seen] = logs
        return full


@dataclass(frozen=True)
class _Analysis:
    """Penalised discriminant analysis (Hastie, Buja and Tibshirani 1995) of known texts.

    1. Least squares with a penalty on the weights predict the indicator of every value: one output for each.
    2. Gaussians with a common covariance, one for each value, turn the outputs into probabilities.

    The outputs of a known text are those of least squares without that text. Otherwise few texts would seem to be far
    apart. One eigendecomposition serves all secrets and penalties.

    Theorem (leaving one out; Allen 1974). Let y be the centred indicator of a text and x its centred features. Let f be
    the output of least squares with a penalty and a free mean, and H = x' (X'X + penalty)^-1 x + 1/n the text's
    leverage. Without the text, its output differs from the mean of the other texts' indicators by
    (f - H y) / (1 - H) + y / (n - 1). A copy of the text among the known texts counts as another text, and stays.
    """

    project: Features
    """Maps vectors to features along the principal axes of the known texts."""
    shrunken: Array
    """float64 (f, penalties): 1 / (sum of squares along an axis + a penalty of `PENALTIES`)."""
    known: Array
    """float64 (n, f): the known texts along the axes."""
    leverages: Array
    """float64 (n, penalties): the weight of a known text's own indicator in its output."""
    values: Mapping[str, Integers]

    @classmethod
    def of(cls, features: Features, texts: KnownTexts) -> "_Analysis":
        known = features(texts.vectors)
        centre = known.mean(0)
        known -= centre
        squares, axes = linalg.eigh(known.T @ known)
        squares = np.maximum(squares, 0)
        shrunken = 1 / (squares[:, None] + PENALTIES * max(squares.mean(), TINY))
        known = known @ axes
        leverages = np.minimum(known**2 @ shrunken + 1 / len(known), MAX_LEVERAGE)

        def project(vectors: Floats) -> Array:
            return (features(vectors) - centre) @ axes

        return cls(project, shrunken, known, leverages, texts.values)

    def scorer(self, secrets: tuple[Secret, ...], penalties: Mapping[str, int]) -> Scorer:
        """Return a function that scores vectors with one penalty for each secret; it does not hold the known texts."""
        project = self.project
        discriminants = {secret.name: self.discriminant(secret, penalties[secret.name]) for secret in secrets}

        def scorer(vectors: Floats) -> Scores:
            projected = project(vectors)
            return {name: function(projected).astype(np.float32) for name, function in discriminants.items()}

        return scorer

    def discriminant(self, secret: Secret, penalty: int) -> _Discriminant:
        """Return the discriminant of a secret's values, with one of the penalties."""
        seen, codes = np.unique(self.values[secret.name], return_inverse=True)
        indicators = np.eye(len(seen))[codes]
        texts, counts = len(codes), indicators.sum(0)
        centred = indicators - counts / texts
        weights = self.shrunken[:, [penalty]] * (self.known.T @ centred)
        leverage = self.leverages[:, [penalty]]
        outputs = (self.known @ weights - leverage * centred) / (1 - leverage) + centred / max(1, texts - 1)
        means = indicators.T @ outputs / counts[:, None]
        around = outputs - means[codes]
        covariance = around.T @ around / max(1, texts - len(seen))
        spread = np.trace(covariance) or np.trace(outputs.T @ outputs) / texts  # 0 if each text has its own value
        covariance += max(RIDGE * spread / len(seen), TINY) * np.eye(len(seen))
        directions = np.linalg.solve(covariance, means.T)
        constants = np.log(counts / texts) - (means * directions.T).sum(1) / 2
        return _Discriminant(weights @ directions, constants, seen, len(secret.values))


def _squared_distances(first: Array, second: Array) -> Array:
    squares = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
    return np.maximum(squares, 0.0)
