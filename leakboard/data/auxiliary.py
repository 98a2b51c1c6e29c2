"""What the attacker collected: how its texts overlap with those that the victim was trained on.

The three regimes of the word2vec study (Zouhri and Abecidan 2021) are ``overlap`` (two independent halves of one
corpus), ``disjoint`` (two halves without a common text) and another dataset altogether; ``within`` leaves the victim
all of train and gives the attacker a random half of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leakboard.interfaces import AuxiliaryRegime, Corpus

VICTIMS_SHARE: dict[str, float] = {"within": 1.0, "overlap": 0.5, "disjoint": 0.5}
"""Share of the distinct texts of train that the victim has."""


def divide(corpus: Corpus, regime: AuxiliaryRegime, rng: np.random.Generator) -> tuple[Corpus, Corpus]:
    """Return the victim's corpus and the attacker's; dev and test are the same in both.

    Texts are drawn by distinct text, so that copies stay together; by row where the corpus has no texts.
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
    return np.array(sorted(set(_units(corpus, split))), dtype=object)


def _units(corpus: Corpus, split: str) -> Sequence[Any]:
    """Return what is drawn as one: the text of each row, or the row where the corpus has no texts."""
    texts = corpus.texts(split)
    return texts if corpus.has_texts or texts.rows is None else texts.rows.tolist()


def _keep(corpus: Corpus, split: str, wanted: np.ndarray) -> Corpus:
    chosen = set(wanted)
    return corpus.with_rows(split, [row for row, unit in enumerate(_units(corpus, split)) if unit in chosen])
