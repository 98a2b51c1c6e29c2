"""Fitting a victim: the stage that all of its publications share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.data.auxiliary import divide
from leakboard.interfaces import AuxiliaryRegime, Corpus, FittedVictim, Victim
from leakboard.randomness import derived_seed, seed_libraries, stream


@dataclass(frozen=True)
class Names:
    """What the random streams of a cell are named after."""

    seed: int
    dataset: str
    victim: str
    attack: str = ""
    label: str = ""
    """The cell with all options: names the referee's own draws, so that no two cells share them."""

    def stream(self, purpose: str) -> np.random.Generator:
        """Return the generator for a purpose."""
        return stream(self.seed, self.dataset, self.victim, self.attack, purpose)

    def seed_for(self, purpose: str) -> int:
        """Return a seed for a purpose."""
        return derived_seed(self.seed, self.dataset, self.victim, self.attack, purpose)


def victim_and_attacker_corpus(
    corpus: Corpus, regime: AuxiliaryRegime | None, seed: int
) -> tuple[Corpus, Corpus | None]:
    """Return the victim's corpus and the attacker's texts, None where those come from another dataset."""
    if regime is None:
        return corpus, None
    return divide(corpus, regime, stream(seed, corpus.name, "auxiliary"))


def fit(victim: Victim, corpus: Corpus, names: Names) -> FittedVictim:
    """Train a victim on train and dev."""
    seed = names.seed_for("fit")
    seed_libraries(seed)
    return victim.fit(corpus.only("train", "dev"), seed)
