"""What the attacker collected: how its texts overlap with those that the victim was trained on.

The three situations of the word2vec study (Zouhri and Abecidan 2021) are ``overlap`` (two independent halves of one
corpus), ``disjoint`` (two halves without a common text) and another dataset altogether; ``within`` leaves the victim
all of train and gives the attacker a random half of it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from leakboard.interfaces import Corpus

Situation = Literal["within", "overlap", "disjoint"]
SITUATIONS: tuple[Situation, ...] = ("within", "overlap", "disjoint")


def divide(corpus: Corpus, situation: Situation, rng: np.random.Generator) -> tuple[Corpus, Corpus]:
    """Return the victim's corpus and the attacker's; dev and test are the same in both.

    Texts are drawn by distinct text, so that copies stay together.
    """
    texts = np.array(corpus.texts("train"), dtype=object)
    distinct = np.array(sorted(set(texts)), dtype=object)
    half = len(distinct) // 2
    first, second = rng.permutation(distinct), rng.permutation(distinct)
    if situation == "within":
        return corpus, _keep(corpus, texts, first[:half])
    if situation == "overlap":
        return _keep(corpus, texts, first[:half]), _keep(corpus, texts, second[:half])
    return _keep(corpus, texts, first[:half]), _keep(corpus, texts, first[half:])


def _keep(corpus: Corpus, texts: np.ndarray, wanted: np.ndarray) -> Corpus:
    chosen = set(wanted)
    return corpus.with_train([row for row, text in enumerate(texts) if text in chosen])
