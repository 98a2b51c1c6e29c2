"""Fitting a victim: the stage that all of its publications share."""

from __future__ import annotations

from functools import lru_cache

from leakboard.data.auxiliary import divide
from leakboard.interfaces import AuxiliaryRegime, Corpus, FittedVictim, Victim
from leakboard.randomness import Streams, seed_libraries, stream


@lru_cache(maxsize=4)
def victim_and_attacker_corpus(
    corpus: Corpus, regime: AuxiliaryRegime | None, seed: int
) -> tuple[Corpus, Corpus | None]:
    """Return the victim's corpus and the attacker's texts, None where those come from another dataset.

    A process keeps the last few: every cell on them asks again.
    """
    if regime is None:
        return corpus, None
    return divide(corpus, regime, stream(seed, corpus.name, "auxiliary"))


def fit(victim: Victim, corpus: Corpus, streams: Streams) -> FittedVictim:
    """Train a victim on train and dev."""
    seed = streams.seed_for("fit")
    seed_libraries(seed)
    return victim.fit(corpus.only("train", "dev"), seed)
