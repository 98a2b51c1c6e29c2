"""What the attacker collected: how its texts overlap with those that the victim was trained on.

The three regimes of the word2vec study (Zouhri and Abecidan 2021) are ``overlap`` (two independent halves of one
corpus), ``disjoint`` (two halves without a common text) and another dataset altogether; ``within`` leaves the victim
all of train and gives the attacker a random half of it.
"""

from __future__ import annotations

import numpy as np

from leakboard.interfaces import AuxiliaryRegime, Corpus

VICTIMS_SHARE: dict[str, float] = {"within": 1.0, "overlap": 0.5, "disjoint": 0.5}
"""Share of the distinct texts of train that the victim has."""


def divide(corpus: Corpus, regime: AuxiliaryRegime, rng: np.random.Generator) -> tuple[Corpus, Corpus]:
    """Return the victim's corpus and the attacker's; dev and test are the same in both.

    Texts are drawn by distinct text, so that copies stay together.
    """
    distinct = _distinct(corpus, "train")
    half = len(distinct) // 2
    first, second = rng.permutation(distinct), rng.permutation(distinct)
    if regime == "within":
        return corpus, _keep(corpus, "train", first[:half])
    if regime == "overlap":
        return _keep(corpus, "train", first[:half]), _keep(corpus, "train", second[:half])
    return _keep(corpus, "train", first[:half]), _keep(corpus, "train", first[half:])


def thinned(corpus: Corpus, split: str, share: float, rng: np.random.Generator) -> Corpus:
    """Return a corpus with a share of the distinct texts of a split, drawn as `divide` draws the victim's."""
    distinct = _distinct(corpus, split)
    return _keep(corpus, split, rng.permutation(distinct)[: int(share * len(distinct))])


def _distinct(corpus: Corpus, split: str) -> np.ndarray:
    return np.array(sorted(set(corpus.texts(split))), dtype=object)


def _keep(corpus: Corpus, split: str, wanted: np.ndarray) -> Corpus:
    chosen = set(wanted)
    return corpus.with_rows(split, [row for row, text in enumerate(corpus.texts(split)) if text in chosen])
