"""Guess by Bayes' rule from the law of a victim's noise.

The attacker knows the vectors v_i of its own texts before the noise, and that a published vector is z = v + noise with
independent noise in each coordinate. If the texts of the others are like its own, the posterior of a secret is

    P(y | z) ~ sum of p(z - v_i) over own texts i with the value y,

with p the density of the noise; the densities of several publications of a text are multiplied. Few texts are exactly
like another, so the exponent is tempered: p**t, with t chosen on dev (t = 1 is Bayes' rule for the own texts, t = 0 is
the prior).

The law is taken from the residuals z_i - v_i of the own texts: Laplace or Gaussian, whichever is likelier, with the
scale of most likelihood; all coordinates have one scale.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._portfolio.members import Scores, Task, Trained, log_loss
from leakboard.interfaces import Floats, Secret
from leakboard.threats.secrets import KnownTexts

TEMPERS = 2.0 ** np.arange(0, -13, -1)
"""Exponents of the density that dev chooses from."""
MAX_DEV = 2_000
"""Largest number of dev texts that choose the exponent."""
NEAREST = 256
"""Number of own texts, the nearest to a text's mean publication, whose Laplace densities are multiplied exactly."""
SMOOTHING = 1e-6
"""Probability that each value has at least."""
SHIFTED = 16.0
"""Residuals are no noise around the inputs if their means are, in squared standard errors, larger on average."""
SHARED = 1e-3
"""All coordinates share the noise if only this part of its variance is within vectors."""


@dataclass(frozen=True)
class Law:
    """Independent noise of each coordinate."""

    family: Literal["laplace", "gaussian"]
    scale: float
    """Laplace: mean absolute value; Gaussian: standard deviation."""

    @classmethod
    def of(cls, residuals: NDArray[np.float64]) -> "Law":
        """Return the likelier law of residuals, float64 (n, d).

        Raises:
            ValueError: a coordinate has no noise, the residuals are not around 0, or all coordinates share the noise.
        """
        deviation = residuals.std(0)
        if not deviation.all():
            raise ValueError("there is no noise in a coordinate")
        if np.mean((residuals.mean(0) / deviation) ** 2) * len(residuals) > SHIFTED:
            raise ValueError("published vectors are not the inputs with noise added")
        if residuals.shape[1] > 1 and residuals.var(1).mean() < SHARED * residuals.var():
            raise ValueError("all coordinates share the noise")
        absolute, square = float(np.abs(residuals).mean()), float(np.sqrt((residuals**2).mean()))
        # mean log-likelihoods with the best scales: -log(2 b) - 1 and -log(s sqrt(2 pi)) - 1/2
        if -np.log(2 * absolute) - 1 > -np.log(square * np.sqrt(2 * np.pi)) - 0.5:
            return cls("laplace", absolute)
        return cls("gaussian", square)

    def surprise(self, vectors: Floats, inputs: Floats) -> NDArray[np.float64]:
        """Return -ln of the density of each vector around each input, up to a constant, float64 (n, own texts).

        Args:
            vectors: published vectors, float32 (n, d), or several publications of each text, (n, m, d).
            inputs: of own texts, float32 (own texts, d).

        Of several publications it is the sum. For Gaussian noise this is m times the surprise of the mean, up to a
        constant of the text. For Laplace noise it is computed for the `NEAREST` inputs; for the others, m times the
        surprise of the mean is shifted so that the nearest inputs have the right sum.
        """
        from scipy.spatial.distance import cdist

        metric, factor = ("cityblock", self.scale) if self.family == "laplace" else ("sqeuclidean", 2 * self.scale**2)
        if vectors.ndim == 2:
            return np.asarray(cdist(vectors, inputs, metric)) / factor
        result = vectors.shape[1] / factor * np.asarray(cdist(vectors.mean(1), inputs, metric))
        if self.family == "gaussian":
            return result
        nearest = np.argpartition(result, min(NEAREST, len(inputs)) - 1, axis=1)[:, :NEAREST]
        for text, rows in enumerate(nearest):
            exact = cdist(vectors[text], inputs[rows], metric).sum(0) / factor
            result[text] += (exact - result[text, rows]).mean()
            result[text, rows] = exact
        return result

    def least_surprise(self, vectors: Floats) -> NDArray[np.float64]:
        """Return the surprise of each vector, or of several publications, around the best of all inputs, float64 (n,).

        It has the constant of `surprise`. The best input is the median for Laplace noise, the mean for Gaussian noise.
        """
        if vectors.ndim == 2 or self.family == "gaussian":
            return np.zeros(len(vectors))
        return np.asarray(np.abs(vectors - np.median(vectors, axis=1, keepdims=True)).sum((1, 2))) / self.scale


def published_law(task: Task) -> tuple[Law, Floats]:
    """Return the law of the noise, and the publications of dev, float32 (n, d), or (n, m, d) if there are several.

    Raises:
        ValueError: the inputs of the known texts are unknown, or no independent noise is added to them.
    """
    if task.train.inputs is None or task.dev.inputs is None:
        raise ValueError("the vectors before the noise are unknown")
    if task.dev_publications is None:
        return Law.of(task.train.vectors.astype(np.float64) - task.train.inputs), task.dev.vectors
    residuals = (task.dev_publications[:MAX_DEV] - task.dev.inputs[:MAX_DEV, None]).astype(np.float64)
    return Law.of(np.concatenate(residuals)), task.dev_publications


def fit_posterior(task: Task) -> Trained:
    """Learn the law of the noise, and choose the exponent on dev.

    Raises:
        ValueError: the inputs of the known texts are unknown, or no independent noise is added to them.
    """
    law, dev = published_law(task)
    assert task.train.inputs is not None
    surprise = law.surprise(dev[:MAX_DEV], task.train.inputs)

    def loss(temper: float) -> float:
        scores = posterior_of(surprise, temper, task.train, task.secrets)
        return sum(log_loss(scores[s.name], task.dev.values[s.name][:MAX_DEV]) for s in task.secrets)

    return _trained(law, min(TEMPERS, key=loss), task.train, task.secrets)


def _trained(law: Law, temper: float, known: KnownTexts, secrets: tuple[Secret, ...]) -> Trained:
    def scorer(vectors: Floats) -> Scores:
        assert known.inputs is not None
        return posterior_of(law.surprise(vectors, known.inputs), temper, known, secrets)

    return Trained(scorer, lambda texts: _trained(law, temper, texts, secrets))


def posterior_of(
    surprise: NDArray[np.float64], temper: float, known: KnownTexts, secrets: tuple[Secret, ...]
) -> Scores:
    """Return the log-posterior of each value of each secret, float32 (n, values)."""
    weights = np.exp(-temper * (surprise - surprise.min(1, keepdims=True)))
    scores = {}
    for secret in secrets:
        indicator = known.values[secret.name][:, None] == np.arange(len(secret.values))
        mass = weights @ indicator
        scores[secret.name] = np.log(mass / mass.sum(1, keepdims=True) + SMOOTHING).astype(np.float32)
    return scores
