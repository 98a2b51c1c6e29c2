"""Select by empirical privacy: of the epochs with enough privacy on dev, keep the most accurate one.

Coavoux et al. (2018) select by accuracy alone, and name selection by privacy as future work.
"""

from dataclasses import dataclass, field

import numpy as np
import torch

from leakboard.interfaces import Corpus, Integers
from leakboard.logs import log_progress
from leakboard.metrics.baselines import best_constant
from leakboard.metrics.measures import micro_f1
from leakboard.models.classifier import LinearClassifier
from leakboard.models.recipe import Encode

BATCH = 256
"""Texts encoded at once."""


@dataclass
class EmpiricalPrivacyCriterion:
    """A criterion of a `Defence`: maps the dev error rate of an epoch to a number; the lowest number is kept."""

    least: float
    """Privacy on dev that an epoch needs, in (0, 1)."""
    corpus: Corpus
    encode: Encode
    history: list[float] = field(default_factory=list)
    """Privacy on dev after every epoch so far."""

    def __call__(self, error: float) -> float:
        """Return the error rate if the epoch has enough privacy; otherwise 1 + the missing privacy, a larger number."""
        self.history.append(privacy := dev_privacy(self.corpus, self.encode))
        log_progress(f"dev accuracy {1 - error:.4f}, dev privacy {privacy:.4f} (at least {self.least})")
        return error if privacy >= self.least else 1 + self.least - privacy


def dev_privacy(corpus: Corpus, encode: Encode) -> float:
    """Return empirical privacy on dev from linear attackers that are trained on the vectors of train.

    It is 1 - the better score of the attackers and of the best constant guess on train, as LeakBoard scores attacks.
    The score is the mean accuracy over attributes or the micro F1 over entities, whichever is higher.
    """
    vectors = {
        split: np.concatenate(
            [encode(rows.tolist(), split).cpu().numpy() for rows in torch.arange(len(corpus.texts(split))).split(BATCH)]
        )
        for split in ("train", "dev")
    }
    scores = []
    for kind in ("attribute", "entity"):
        if names := [secret.name for secret in corpus.secrets if secret.kind == kind]:
            train, truth = (np.stack([corpus.column(split, name) for name in names], axis=1) for split in vectors)
            attackers = [LinearClassifier.fit(vectors["train"], column) for column in train.T]
            guessed = np.stack([attacker.predict(vectors["dev"]) for attacker in attackers], axis=1)
            constant = np.broadcast_to(best_constant(train, kind), truth.shape)
            scores += [_score(guess, truth, kind) for guess in (guessed, constant)]
    return 1.0 - max(scores)


def _score(guessed: Integers, truth: Integers, kind: str) -> float:
    return micro_f1(guessed, truth).value if kind == "entity" else float(np.mean(guessed == truth))
