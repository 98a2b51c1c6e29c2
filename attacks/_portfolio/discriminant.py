"""Train discriminant analysis: on the vectors themselves, and on the functions of a Gaussian kernel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import logsumexp

from leakboard.attacks._portfolio.members import Scorer, Scores, Task, Trained, log_loss
from leakboard.attacks._portfolio.vector_inputs import blocks
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


def fit_discriminant(task: Task) -> Trained:
    """Train discriminant analysis with a penalty on the directions: the best linear classifier for few texts."""
    return _fit(lambda vectors: task.inputs(vectors).astype(np.float64), task)


def fit_kernel(task: Task) -> Trained:
    """Train discriminant analysis on a Gaussian kernel's functions at known texts (Williams and Seeger 2001).

    The kernel is exp(-2 |x - y|^2 / m), where m is the median squared distance between the landmarks.
    """
    kernel, basis, _ = gaussian_functions(task.inputs(task.train.vectors), task.seed)
    return _fit(lambda vectors: kernel(task.inputs(vectors)), task, basis)


def gaussian_functions(known: Floats, seed: int) -> tuple[Features, Array, float]:
    """Return kernels at landmarks, a matrix, and the rate of the kernel.

    The kernels times the matrix, float64 (landmarks, f), are functions with inner products of about
    exp(-rate |x - y|^2).

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

    def kernel(vectors: Floats) -> Array:
        return np.asarray(np.exp(-rate * _squared_distances(vectors - centre, landmarks)))

    return kernel, basis, float(rate)


def _fit(features: Features, task: Task, basis: Array | None = None) -> Trained:
    """Train penalised discriminant analysis; for each secret choose the penalty of least log-loss on dev."""
    analysis = _Analysis.of(features, task.train, task.secrets, basis)
    on_dev = np.concatenate([analysis.project(task.dev.vectors[block]) for block in blocks(len(task.dev.vectors))])

    def loss(secret: Secret, penalty: int) -> float:
        scores = analysis.discriminants[secret.name][penalty](on_dev)
        return log_loss(np.maximum(scores, MIN_LOG_PROBABILITY), task.dev.values[secret.name])

    best = {s.name: min(range(len(PENALTIES)), key=lambda penalty: loss(s, penalty)) for s in task.secrets}
    return Trained(
        analysis.scorer(best),
        lambda texts: Trained(_Analysis.of(features, texts, task.secrets, basis).scorer(best)),
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
    apart. Two passes over blocks of texts serve all secrets and penalties: one for the moments of the features, one for
    the moments of the outputs.

    Theorem (leaving one out; Allen 1974). Let y be the centred indicator of a text and x its centred features. Let f be
    the output of least squares with a penalty and a free mean, and H = x' (X'X + penalty)^-1 x + 1/n the text's
    leverage. Without the text, its output differs from the mean of the other texts' indicators by
    (f - H y) / (1 - H) + y / (n - 1). A copy of the text among the known texts counts as another text, and stays.
    """

    project: Features
    """Maps vectors to features along the principal axes of the known texts."""
    discriminants: Mapping[str, Sequence[_Discriminant]]
    """For each secret, a discriminant for each of `PENALTIES`."""

    @classmethod
    def of(
        cls, features: Features, texts: KnownTexts, secrets: Sequence[Secret], basis: Array | None = None
    ) -> "_Analysis":
        """Analyse the features of known texts, or the features times a matrix: moments need the product only once."""
        rows = list(blocks(len(texts.vectors)))
        indicators = {secret.name: _Indicators.of(texts.values[secret.name]) for secret in secrets}
        centre, products, with_indicators = _moments(features, texts.vectors, rows, indicators)
        if basis is not None:
            products = basis.T @ products @ basis
            with_indicators = {name: basis.T @ product for name, product in with_indicators.items()}
        squares, axes = linalg.eigh(products)
        squares = np.maximum(squares, 0)
        shrunken = 1 / (squares[:, None] + PENALTIES * max(squares.mean(), TINY))
        weights = {
            name: [shrunken[:, [penalty]] * (axes.T @ product) for penalty in range(len(PENALTIES))]
            for name, product in with_indicators.items()
        }
        outputs = {name: [_Outputs(known) for _ in PENALTIES] for name, known in indicators.items()}

        directions = axes if basis is None else basis @ axes

        def project(vectors: Floats) -> Array:
            return (features(vectors) - centre) @ directions

        for block in rows:
            projected = project(texts.vectors[block])
            leverages = np.minimum(projected**2 @ shrunken + 1 / len(texts.vectors), MAX_LEVERAGE)
            for name, penalised in outputs.items():
                known = indicators[name].block(block)
                for penalty, of_penalty in enumerate(penalised):
                    of_penalty.add(projected @ weights[name][penalty], leverages[:, [penalty]], known)

        return cls(
            project,
            {
                secret.name: [
                    of_penalty.discriminant(weights[secret.name][penalty], len(secret.values))
                    for penalty, of_penalty in enumerate(outputs[secret.name])
                ]
                for secret in secrets
            },
        )

    def scorer(self, penalties: Mapping[str, int]) -> Scorer:
        """Return a function that scores vectors with one penalty for each secret."""
        project = self.project
        chosen = {name: self.discriminants[name][penalty] for name, penalty in penalties.items()}

        def scorer(vectors: Floats) -> Scores:
            projected = project(vectors)
            return {name: function(projected).astype(np.float32) for name, function in chosen.items()}

        return scorer


@dataclass(frozen=True)
class _Indicators:
    """The values of a secret that known texts have."""

    seen: Integers
    codes: Integers
    """int64 (n,): the position of each text's value among those seen."""
    counts: Array
    """float64 (values seen,): the number of texts with each value."""

    @classmethod
    def of(cls, values: Integers) -> "_Indicators":
        seen, codes = np.unique(values, return_inverse=True)
        return cls(seen, codes, np.bincount(codes).astype(np.float64))

    def block(self, rows: slice) -> Array:
        """Return the indicators of some texts, float64 (texts, values seen)."""
        return np.asarray(self.codes[rows, None] == np.arange(len(self.seen)), np.float64)


def _moments(
    features: Features, vectors: Floats, rows: Sequence[slice], indicators: Mapping[str, _Indicators]
) -> tuple[Array, Array, dict[str, Array]]:
    """Return the features' mean (f,), their centred products (f, f), and products with the indicators of each secret.

    Sums of squares are taken around the mean of the first block: far from 0, differences of squares would be rounded.
    """
    near = features(vectors[rows[0]]).mean(0)
    total, products = np.zeros(len(near)), np.zeros((len(near), len(near)))
    with_indicators = {name: np.zeros((len(near), len(known.seen))) for name, known in indicators.items()}
    for block in rows:
        moved = features(vectors[block]) - near
        total += moved.sum(0)
        products += moved.T @ moved
        for name, known in indicators.items():
            with_indicators[name] += moved.T @ known.block(block)
    mean = total / len(vectors)
    products -= np.outer(total, mean)
    for name, known in indicators.items():
        with_indicators[name] -= np.outer(mean, known.counts)
    return near + mean, products, with_indicators


class _Outputs:
    """The moments of the least-squares outputs of one secret and penalty, each output without its own text."""

    def __init__(self, known: _Indicators):
        self.known = known
        self.sums = np.zeros((len(known.seen), len(known.seen)))
        """Sums of the outputs over the texts of each value."""
        self.products = np.zeros_like(self.sums)

    def add(self, fitted: Array, leverages: Array, indicators: Array) -> None:
        """Count some texts: their outputs with their own indicators, (texts, values seen), and leverages (texts, 1)."""
        texts = len(self.known.codes)
        centred = indicators - self.known.counts / texts
        outputs = (fitted - leverages * centred) / (1 - leverages) + centred / max(1, texts - 1)
        self.sums += indicators.T @ outputs
        self.products += outputs.T @ outputs

    def discriminant(self, weights: Array, values: int) -> _Discriminant:
        """Return the discriminant, given the least-squares weights (f, values seen) and the number of all values."""
        counts, seen = self.known.counts, self.known.seen
        texts, means = len(self.known.codes), self.sums / self.known.counts[:, None]
        if texts > len(seen):
            covariance = (self.products - (means.T * counts) @ means) / (texts - len(seen))
            covariance += _floor(np.trace(covariance), len(seen))
        else:  # each text has its own value
            covariance = _floor(np.trace(self.products) / texts, len(seen))
        directions = np.linalg.solve(covariance, means.T)
        constants = np.log(counts / texts) - (means * directions.T).sum(1) / 2
        return _Discriminant(weights @ directions, constants, seen, values)


def _floor(spread: float, values: int) -> Array:
    """Return a multiple of the unit matrix that keeps a covariance of a total variance away from singular ones."""
    return max(RIDGE * spread / values, TINY) * np.eye(values)


def _squared_distances(first: Array, second: Array) -> Array:
    squares = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
    return np.maximum(squares, 0.0)
