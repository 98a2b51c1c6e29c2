"""Discriminant analysis of the portfolio: straight lines, and those of a Gaussian kernel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from leakboard.attacks._portfolio.members import Scorer, Scores, Trained, log_loss
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.threats.secrets import KnownTexts

if TYPE_CHECKING:
    from leakboard.attacks._portfolio.portfolio import PortfolioAttack

Features = Callable[[Floats], NDArray[np.float64]]

PENALTIES = 10.0 ** np.arange(-4, 5)
"""On the weights of least squares, as multiples of their inputs' mean variance."""
MOST_LEVERAGE = 1 - 1e-9
"""Of a known text on its own fit: it is left out by a division by what is left."""
RIDGE = 0.01
"""Added to the covariance of what least squares say, as a share of its mean variance."""
TINY = 1e-12
LOWEST = -30.0
"""Least log-probability of a value where penalties are compared, and most of a value that no known text has."""
LANDMARKS = 1_000
"""Known texts that span the kernel's functions: at most half of all, since with as many functions as texts least
squares are at their worst."""
BLOCK = 4_096
"""Texts whose distances to the landmarks are held at once."""


def fit_discriminant(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return discriminant analysis with a penalty on the directions, the best line of few texts."""
    return _discriminant(lambda vectors: vectors.astype(np.float64), train, dev, secrets)


def fit_kernel(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return discriminant analysis of a Gaussian kernel's functions at known texts (Williams and Seeger 2001).

    The kernel's width is half the median squared distance of the texts.
    """
    functions, _ = gaussian_functions(train.vectors, seed)
    return _discriminant(functions, train, dev, secrets)


def gaussian_functions(known: Floats, seed: int) -> tuple[Features, float]:
    """Return functions whose inner products are about exp(-rate |x - y|^2), and the rate.

    Args:
        known: float32 (n, d): some of them are landmarks, among which the inner products are exact.
        seed: chooses them.
    """
    from scipy import linalg

    rng = np.random.default_rng(seed)
    centre = known.mean(0, dtype=np.float64)  # far from 0 differences of squares would be rounded
    landmarks = known[rng.choice(len(known), min(LANDMARKS, -(-len(known) // 2)), replace=False)] - centre
    distances = _squared_distances(landmarks, landmarks)
    apart = distances > 1e-12 * (landmarks**2).sum(1).max()
    rate = 2 / (np.median(distances[apart]) if apart.any() else 1.0)
    weights, axes = linalg.eigh(np.exp(-rate * distances))
    kept = weights > 1e-6 * weights[-1]
    basis = axes[:, kept] / np.sqrt(weights[kept])

    def functions(vectors: Floats) -> NDArray[np.float64]:
        parts = np.array_split(vectors - centre, 1 + len(vectors) // BLOCK)
        return np.concatenate([np.exp(-rate * _squared_distances(part, landmarks)) @ basis for part in parts])

    return functions, float(rate)


def _discriminant(features: Features, train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...]) -> Trained:
    """Return penalised discriminant analysis, for each secret with the penalty of least log-loss on dev."""
    analysis = _Analysis.of(features, train)
    on_dev = analysis.projected(dev.vectors)

    def loss(secret: Secret, penalty: int) -> float:
        scores = analysis.discriminant(secret, penalty)(on_dev)
        return log_loss(np.maximum(scores, LOWEST), dev.values[secret.name])

    best = {s.name: min(range(len(PENALTIES)), key=lambda penalty: loss(s, penalty)) for s in secrets}
    return Trained(
        analysis.scorer(secrets, best), lambda texts: Trained(_Analysis.of(features, texts).scorer(secrets, best))
    )


@dataclass(frozen=True)
class _Lines:
    """What maps projected vectors, float64 (n, d), to log-probabilities of a secret's values, float64 (n, values)."""

    directions: NDArray[np.float64]
    """float64 (d, values seen)."""
    constants: NDArray[np.float64]
    seen: Integers
    """The values that known texts have."""
    values: int
    """All values of the secret: of those that no known text has none is likelier than e**`LOWEST`."""

    def __call__(self, projected: NDArray[np.float64]) -> NDArray[np.float64]:
        logits = projected @ self.directions + self.constants
        logs = logits - logsumexp(logits, axis=1, keepdims=True)
        full = np.tile(np.minimum(logs.min(1, keepdims=True), LOWEST), self.values)
        full[:, self.seen] = logs
        return full


@dataclass(frozen=True)
class _Analysis:
    """Penalised discriminant analysis (Hastie, Buja and Tibshirani 1995).

    Least squares of every value's indicator, with a penalty on the weights, give each text as many numbers as there
    are values; what they say is read off Gaussians, one for each value, that share a covariance. The numbers of a
    known text are those of least squares without it, or few texts would seem to lie far apart. One eigendecomposition
    serves all secrets and penalties.

    Theorem (leaving one out; Allen 1974). Let f be what least squares with a penalty and a free mean fit to the centred
    indicator y of a text, and H = x' (X'X + penalty)^-1 x + 1/n its leverage, x its centred features. Without the text,
    its distance from the mean of the others' indicators is (f - H y) / (1 - H) + y / (n - 1). A copy of the text among
    the known ones is a text of its own, and stays.
    """

    projected: Features
    """Features along their principal axes."""
    shrunken: NDArray[np.float64]
    """float64 (d, penalties): the inverse of the sum of squares along an axis with a penalty of `PENALTIES` added."""
    known: NDArray[np.float64]
    """float64 (n, d): the known texts along the axes."""
    leverages: NDArray[np.float64]
    """float64 (n, penalties): how much a known text's own value counts in what is fitted to it."""
    values: Mapping[str, Integers]

    @classmethod
    def of(cls, features: Features, texts: KnownTexts) -> "_Analysis":
        from scipy import linalg

        known = features(texts.vectors)
        centre = known.mean(0)
        known -= centre
        variances, axes = linalg.eigh(known.T @ known)
        variances = np.maximum(variances, 0)
        shrunken = 1 / (variances[:, None] + PENALTIES * max(variances.mean(), TINY))
        known = known @ axes
        leverages = np.minimum(known**2 @ shrunken + 1 / len(known), MOST_LEVERAGE)

        def projected(vectors: Floats) -> NDArray[np.float64]:
            return (features(vectors) - centre) @ axes

        return cls(projected, shrunken, known, leverages, texts.values)

    def scorer(self, secrets: tuple[Secret, ...], penalties: Mapping[str, int]) -> Scorer:
        """Return what scores vectors, with one of the penalties for each secret, without the known texts."""
        projected = self.projected
        lines_of = {secret.name: self.discriminant(secret, penalties[secret.name]) for secret in secrets}

        def scores(vectors: Floats) -> Scores:
            along = projected(vectors)
            return {name: lines(along).astype(np.float32) for name, lines in lines_of.items()}

        return scores

    def discriminant(self, secret: Secret, penalty: int) -> _Lines:
        """Return the lines between a secret's values, with one of the penalties."""
        seen, codes = np.unique(self.values[secret.name], return_inverse=True)
        is_value = np.eye(len(seen))[codes]
        texts, counts = len(codes), is_value.sum(0)
        centred = is_value - counts / texts
        weights = self.shrunken[:, [penalty]] * (self.known.T @ centred)
        leverage = self.leverages[:, [penalty]]
        without = (self.known @ weights - leverage * centred) / (1 - leverage) + centred / max(1, texts - 1)
        means = is_value.T @ without / counts[:, None]
        around = without - means[codes]
        covariance = around.T @ around / max(1, texts - len(seen))
        spread = np.trace(covariance) or np.trace(without.T @ without) / texts  # 0: every text has a value of its own
        covariance += max(RIDGE * spread / len(seen), TINY) * np.eye(len(seen))
        directions = np.linalg.solve(covariance, means.T)
        constants = np.log(counts / texts) - (means * directions.T).sum(1) / 2
        return _Lines(weights @ directions, constants, seen, len(secret.values))


def _squared_distances(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
    return np.maximum(squares, 0.0)
