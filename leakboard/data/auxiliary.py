"""Draw the attacker's own texts from the victim's corpus, in one of three regimes.

| regime | victim | attacker |
|---|---|---|
| ``within`` | all of train | a random half |
| ``overlap`` | a random half | another random half, drawn independently |
| ``disjoint`` | a random half | the other half |

The word2vec study (Zouhri and Abecidan 2021) has ``overlap``, ``disjoint`` and a third setting: another dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leakboard.interfaces import AuxiliaryRegime, Corpus

VICTIMS_SHARE: dict[str, float] = {"within": 1.0, "overlap": 0.5, "disjoint": 0.5}
"""Share of the distinct texts of train that the victim gets."""


def divide(corpus: Corpus, regime: AuxiliaryRegime, rng: np.random.Generator) -> tuple[Corpus, Corpus]:
    """Return the victim's corpus and the attacker's; dev and test are the same in both.

    Distinct texts are drawn, so that copies stay together. Without texts, rows are drawn.
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
    """Return a corpus with a random share of the distinct texts of a split, drawn as in `divide`."""
    distinct = _distinct(corpus, split)
    return _keep(corpus, split, rng.permutation(distinct)[: int(share * len(distinct))])


def _distinct(corpus: Corpus, split: str) -> np.ndarray:
    return np.array(sorted(set(_units(corpus, split))), dtype=object)


def _units(corpus: Corpus, split: str) -> Sequence[Any]:
    """Return what is drawn: the text of each row, or its number if the corpus has no texts."""
    texts = corpus.texts(split)
    return texts if corpus.has_texts or texts.rows is None else texts.rows.tolist()


def _keep(corpus: Corpus, split: str, wanted: np.ndarray) -> Corpus:
    chosen = set(wanted)
    return corpus.with_rows(split, [row for row, unit in enumerate(_units(corpus, split)) if unit in chosen])
