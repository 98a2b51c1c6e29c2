"""Score over the test texts that are in no other split: no attacker can look these texts up.

Texts are compared letter by letter. A victim may still give a new text the vector of a known one.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Corpus
from leakboard.metrics.measures import Metric, Ratio, remaining_privacy


def without_copy(corpus: Corpus) -> NDArray[np.bool_] | None:
    """Return which test texts are in no other split of the corpus, bool (n,); None if none or all are."""
    if not corpus.has_texts:
        return None
    known = {*corpus.texts("train"), *corpus.texts("dev")}
    new = np.array([text not in known for text in corpus.texts("test")])
    return new if new.any() and not new.all() else None


def on_new_texts(attack: Ratio, constant: Ratio, new: NDArray[np.bool_] | None, variable: str = "") -> list[Metric]:
    """Return score and privacy over these test texts; empty if ``new`` is None."""
    if new is None:
        return []
    attack, constant = attack.within(new), constant.within(new)
    privacy = remaining_privacy(attack, constant)
    return [
        attack.metric("attack_score_new", variable),
        dataclasses.replace(privacy, name="empirical_privacy_new", variable=variable),
    ]
