"""Hold what an attack guessed of each test row: for the owner of the rows alone, in no record, table or page.

The attacker's scores of each value become probabilities that are calibrated on dev: a scale, and an offset for each
value (Platt 1999, for several values). The scores of an attack need not be log-probabilities, and an offset that
favours one value is undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.interfaces import Corpus, Integers, Secret
from leakboard.metrics.intervals import Array
from leakboard.metrics.measures import authors

PRIOR = 1.0
"""PRIOR |parameters|^2 / 2 is added to the summed log-loss on dev: a small dev gives no probabilities near 1."""


@dataclass(frozen=True)
class SecretScores:
    """Scores of every value of one secret."""

    secret: Secret
    scores: NDArray[Any]
    """float (n, values), for each test row."""
    truth: Integers
    """int64 (n,)."""
    dev_scores: NDArray[Any]
    """float (m, values), for each dev row; m is 0 if the attack gave none."""
    dev_truth: Integers
    """int64 (m,)."""

    @property
    def has_dev(self) -> bool:
        """Whether the scores can be calibrated."""
        return len(self.dev_truth) > 0

    def probabilities(self) -> Array:
        """Return the probability of each value for each test row, float64 (n, values), calibrated on dev."""
        known, test = (self._centred(scores) for scores in (self.dev_scores, self.scores))
        right = np.eye(known.shape[1])[self.dev_truth]

        def loss(parameters: Array) -> tuple[float, Array]:
            """Return the penalised log-loss of a scale and of offsets, and its gradient."""
            logs = _log_softmax(parameters, known)
            excess = np.exp(logs) - right
            gradient = np.array([(excess * known).sum(), *excess.sum(0)])
            return PRIOR * parameters @ parameters / 2 - (right * logs).sum(), gradient + PRIOR * parameters

        start, bounds = np.zeros(1 + known.shape[1]), [(0.0, None), *[(None, None)] * known.shape[1]]
        best = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        return np.exp(_log_softmax(best.x, test))

    def _centred(self, scores: NDArray[Any]) -> Array:
        """Return scores around the mean of each row, in units of their spread on dev, float64."""
        around, of_dev = (
            part - part.mean(1, keepdims=True)
            for part in (scores.astype(np.float64), self.dev_scores.astype(np.float64))
        )
        return around / (float(of_dev.std()) or 1.0)


def _log_softmax(parameters: Array, scores: Array) -> Array:
    """Return log-probabilities from scores, with their scale and the offsets of values, float64 (n, values)."""
    logits = parameters[0] * scores + parameters[1:]
    return np.asarray(logits - scipy.special.logsumexp(logits, axis=1, keepdims=True))


@dataclass(frozen=True)
class RowGuesses:
    """The guesses of an attack on the test rows of a corpus."""

    rows: Integers
    """int64 (n,), number of each test row in its source, from 0."""
    ids: Sequence[str] | None = None
    """Id of each row; None: rows have none."""
    units: Integers | None = None
    """int64 (n,), the author or the document of each row; None: each row is independent."""
    secrets: Mapping[str, SecretScores] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        secrets: Sequence[Secret],
        scores: Mapping[str, NDArray[Any]],
        known: Corpus,
        on_dev: Mapping[str, NDArray[Any]],
    ) -> RowGuesses:
        """Return the guesses of an attack.

        Args:
            corpus: has the test split.
            secrets: the attacked secrets.
            scores: of each secret's values, float (n, values), in the order of the test split.
            known: has the dev split.
            on_dev: scores of its texts, float (m, values); empty if the attack gave none.
        """
        texts = corpus.texts("test")
        assert texts.rows is not None, "the texts of a corpus have rows"
        kept = {}
        for secret in secrets:
            if secret.name in on_dev:
                dev = np.asarray(on_dev[secret.name]), known.column("dev", secret.name)
            else:
                dev = np.empty((0, len(secret.values))), np.empty(0, np.int64)
            kept[secret.name] = SecretScores(
                secret, np.asarray(scores[secret.name]), corpus.column("test", secret.name), *dev
            )
        return cls(texts.rows, texts.ids, authors(corpus, "test"), kept)

    def names(self) -> list[str]:
        """Return the id of each row, or its number as text."""
        return list(map(str, self.rows if self.ids is None else self.ids))
