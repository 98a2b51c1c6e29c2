"""Mix Bayes' rule and an ensemble, text by text.

A corpus may have a text twice. The published vector of such a text is likeliest around a known one, whose secrets it
shares: Bayes' rule (`posterior`) with the exponent t = 1 is right. For other texts it is too sure, and classifiers are
better. A sum of log-probabilities with the same weights for all texts suits neither. So probabilities are mixed:

    P(y | z) = w(z) P_Bayes(y | z) + (1 - w(z)) P_ensemble(y | z),

where w is a logistic function of three measures of z: how much less likely z is around the nearest known text than
around the best point, how many known texts are about as likely, and how much likelier the nearest is than the next
ones. Its coefficients have the least log-loss on dev (a mixture of two experts with a gate, Jacobs et al. 1991). Bayes'
rule is no member of this ensemble.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._portfolio.ensemble import Ensemble
from leakboard.attacks._portfolio.members import Scores, Task
from leakboard.attacks._portfolio.posterior import Law, posterior_of, published_law
from leakboard.attacks._portfolio.vector_inputs import blocks
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.threats.secrets import KnownTexts

Array = NDArray[np.float64]
NEXT = 16
"""Number of nearest known texts to which the nearest one is compared."""
PRIOR_STRENGTH = 1.0
"""PRIOR_STRENGTH |coefficients|^2 / 2 is added to the summed log-loss."""


@dataclass(frozen=True)
class Gate:
    """Tells how much Bayes' rule counts for a text."""

    mean: Array
    """Of the measures on dev, float64 (3,)."""
    spread: Array
    """Their standard deviations, float64 (3,)."""
    coefficients: Array
    """Of the standardised measures and of a constant, float64 (4,)."""

    def __call__(self, measures: Array) -> Array:
        """Return the weight of Bayes' rule, float64 (n,), from measures, float64 (n, 3)."""
        from scipy.special import expit

        return np.asarray(expit(self._columns(measures) @ self.coefficients))

    @classmethod
    def of(cls, measures: Array, gains: Array) -> "Gate":
        """Return the gate of least log-loss.

        Args:
            measures: float64 (n, 3).
            gains: P_Bayes / P_ensemble - 1 of the true value of each secret, float64 (n, secrets).
        """
        from scipy import optimize
        from scipy.special import expit

        spread = measures.std(0)
        gate = cls(measures.mean(0), np.where(spread > 0, spread, 1.0), np.zeros(4))
        columns = gate._columns(measures)

        def objective(coefficients: Array) -> tuple[float, Array]:
            weights = expit(columns @ coefficients)
            mixed = 1 + weights[:, None] * gains
            slopes = (gains / mixed).sum(1) * weights * (1 - weights)
            loss = -np.log(mixed).sum() + PRIOR_STRENGTH * (coefficients @ coefficients) / 2
            return float(loss), PRIOR_STRENGTH * coefficients - slopes @ columns

        return replace(gate, coefficients=optimize.minimize(objective, np.zeros(4), jac=True, method="L-BFGS-B").x)

    def _columns(self, measures: Array) -> Array:
        return np.column_stack([(measures - self.mean) / self.spread, np.ones(len(measures))])


@dataclass(frozen=True)
class Mixture:
    """An ensemble, and Bayes' rule for texts that are near known ones."""

    ensemble: Ensemble
    law: Law
    known: KnownTexts
    """The known texts with their inputs."""
    secrets: tuple[Secret, ...]
    gate: Gate
    on_dev: Scores
    """Log-probabilities of the dev texts, scored before they were known texts."""
    name: str

    def __call__(self, vectors: Floats, publications: Floats | None = None) -> Scores:
        """Score published vectors, float32 (n, d), and all publications of each text, (n, m, d); None: there is one."""
        by_ensemble = self.ensemble(vectors, publications)
        measures, by_rule = _read(self.law, vectors if publications is None else publications, self.known, self.secrets)
        return _mixed(self.gate(measures), by_rule, by_ensemble)


def fit_mixture(ensemble: Ensemble, task: Task) -> Mixture:
    """Choose on dev for which texts Bayes' rule counts more.

    Raises:
        ValueError: the inputs of the known texts are unknown, or no independent noise is added to them.
    """
    law, published = published_law(task)
    measures, by_rule = _read(law, published, task.train, task.secrets)
    gate = Gate.of(measures, _gains(by_rule, ensemble.on_dev, task.dev.values))
    weights = gate(measures)
    on_dev = _mixed(weights, by_rule, ensemble.on_dev)
    name = f"mixture of Bayes' rule ({weights.mean():.2f}) and {ensemble.name}"
    known = KnownTexts.joined([task.train, task.dev])
    return Mixture(ensemble, law, known, task.secrets, gate, on_dev, name)


def _read(law: Law, vectors: Floats, known: KnownTexts, secrets: tuple[Secret, ...]) -> tuple[Array, Scores]:
    """Return the measures of texts, float64 (n, 3), and their log-posteriors with the exponent 1."""
    assert known.inputs is not None
    measures, scores = np.empty((len(vectors), 3)), []
    for rows in blocks(len(vectors)):
        surprise = law.surprise(vectors[rows], known.inputs)
        nearest = np.partition(surprise, min(NEXT, surprise.shape[1]) - 1, axis=1)[:, :NEXT]
        least = nearest.min(1)
        excess = least - law.least_surprise(vectors[rows])
        about_as_likely = np.exp(least[:, None] - surprise).sum(1)
        lead = nearest.mean(1) - least
        measures[rows] = np.column_stack([excess, np.log(about_as_likely), lead])
        scores.append(posterior_of(surprise, 1.0, known, secrets))
    return measures, {secret.name: np.concatenate([part[secret.name] for part in scores]) for secret in secrets}


def _gains(by_rule: Scores, by_ensemble: Scores, truth: Mapping[str, Integers]) -> Array:
    rows = np.arange(len(next(iter(truth.values()))))
    ratios = [by_rule[name][rows, codes] - by_ensemble[name][rows, codes] for name, codes in truth.items()]
    return np.expm1(np.stack(ratios, axis=1, dtype=np.float64))


def _mixed(weights: Array, by_rule: Scores, by_ensemble: Scores) -> Scores:
    """Return the log-probabilities of the mixture, float32 (n, values) for each secret."""
    with np.errstate(divide="ignore"):
        first, second = np.log(weights)[:, None], np.log1p(-weights)[:, None]
    return {
        name: np.logaddexp(first + by_rule[name], second + scores).astype(np.float32)
        for name, scores in by_ensemble.items()
    }
