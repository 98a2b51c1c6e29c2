"""The members of the portfolio: classifiers of a family, trained on vectors that are scaled in one way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._portfolio.inputs import Rotated, Scaling
from leakboard.interfaces import Floats, Integers
from leakboard.threats.secrets import KnownTexts

Family = Literal["mlp", "logistic", "discriminant", "neighbours", "svm", "kernel", "trees"]
Scores = dict[str, Floats]
"""For each secret float32 (n, values): log-probabilities, or what is like them up to a scale."""
Scorer = Callable[[Floats], Scores]


class Trained(NamedTuple):
    """What a family makes of known texts."""

    scores: Scorer
    again: "Callable[[KnownTexts], Trained] | None" = None
    """Trains on other texts with the choices that dev made; None for a family that dev stops, and for what it gave."""
    remark: str = ""
    """What a reader must know, as that a classifier did not converge; it is part of the member's name."""


@dataclass(frozen=True)
class Member:
    """A trained classifier of the portfolio."""

    name: str
    inputs: Scaling | Rotated
    """How vectors are scaled for it."""
    trained: Trained
    on_dev: Scores
    """What it gives the dev texts, before it learned from them."""

    def __call__(self, vectors: Floats) -> Scores:
        return self.trained.scores(self.inputs(vectors))


def log_loss(scores: NDArray[Any], truth: Integers) -> float:
    """Return the mean of -ln P(true value) of log-probabilities, float (n, values), given the truth, int64 (n,)."""
    return -float(np.mean(scores[np.arange(len(truth)), truth]))
