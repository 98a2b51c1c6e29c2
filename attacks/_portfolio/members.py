"""Define the task of the portfolio's classifiers, and a trained classifier."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._portfolio.portfolio_options import PortfolioAttack
from leakboard.attacks._portfolio.vector_inputs import RAW, AnyInputs, blocks
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.threats.secrets import KnownTexts

Family = Literal[
    "mlp",
    "logistic",
    "discriminant",
    "neighbours",
    "svm",
    "kernel",
    "trees",
    "posterior",
    "mlp under fresh noise",
    "mlp with made texts",
]
Scores = dict[str, Floats]
"""For each secret float32 (n, values): log-probabilities, up to a scale and a shift of each row."""
Release = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]
"""Adds fresh noise to inputs, float (n, d), at each call."""
Scorer = Callable[[Floats], Scores]


def shifted(scores: Mapping[str, Floats], offset: float) -> Scores:
    """Add an offset to the score of each secret's last value; the last value of an entity is "present"."""
    return {
        name: values + np.array([0.0] * (values.shape[1] - 1) + [offset], np.float32) for name, values in scores.items()
    }


@dataclass(frozen=True)
class Task:
    """The task of a classifier: learn secrets from the texts that the attacker knows.

    Classifiers scale the vectors themselves: those that read vectors block by block need no scaled copy of all.
    """

    train: KnownTexts
    dev: KnownTexts
    secrets: tuple[Secret, ...]
    options: PortfolioAttack
    seed: int
    release: Release | None = None
    """Adds fresh noise to the inputs of the victim's mechanism, float (n, d); None: unknown."""
    inputs: AnyInputs = RAW
    made_texts: KnownTexts | None = None
    """Texts that the attacker made (`made_texts`)."""
    dev_publications: Floats | None = None
    """All publications of each dev text, float32 (n, m, d); None: there is one."""


class Trained(NamedTuple):
    """A classifier that has learned from known texts."""

    scorer: Scorer
    """Scores published vectors, which it scales itself."""
    retrain: "Callable[[KnownTexts], Trained] | None" = None
    """Trains on other texts, with the choices that were made on dev. None after retraining, and for networks, since dev
    ends their training."""
    remark: str = ""
    """A warning that becomes part of the member's name, for example that a classifier did not converge."""

    def __call__(self, vectors: Floats) -> Scores:
        """Score published vectors, float32 (n, d), or all publications of each text, (n, m, d), block by block."""
        parts = [self.scorer(vectors[rows]) for rows in blocks(len(vectors))]
        return {name: np.concatenate([scores[name] for scores in parts]) for name in parts[0]}


@dataclass(frozen=True)
class Member:
    """A trained classifier of the portfolio, with the scaling of its inputs."""

    name: str
    family: Family
    inputs: AnyInputs
    trained: Trained
    texts: int
    """Number of texts that it learned from, without those of dev."""
    on_dev: Scores
    """Scores of the dev texts, computed before the classifier learned from these texts."""

    @property
    def key(self) -> tuple[Family, str]:
        """Family and inputs; ``name`` may have a remark, too."""
        return self.family, self.inputs.name

    def __call__(self, vectors: Floats, publications: Floats | None = None) -> Scores:
        """Score published vectors; Bayes' rule scores all publications of each text, if there are several."""
        return self.trained(vectors if publications is None or self.family != "posterior" else publications)


def log_loss(scores: NDArray[Any], truth: Integers) -> float:
    """Return the mean of -ln P(true value) of log-probabilities, float (n, values), given the truth, int64 (n,)."""
    return -float(np.mean(scores[np.arange(len(truth)), truth]))
