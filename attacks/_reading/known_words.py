"""Turn the texts that the attacker knows into codes of a vocabulary, and their vectors into standardised inputs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from leakboard.attacks._portfolio.vector_inputs import Scaling, standardised
from leakboard.interfaces import Floats
from leakboard.threats.texts import TextsView


@dataclass(frozen=True)
class Vocabulary:
    """The most frequent units (words or characters) of the attacker's texts, by falling frequency."""

    units: list[str]
    shares: list[float]
    """For each unit, the share of the attacker's texts with this unit."""

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], size: int) -> "Vocabulary":
        """Count the texts with each unit; units of only one text are left out, unless there are no others."""
        counts = Counter(unit for text in texts for unit in set(text))
        repeated = {unit: count for unit, count in counts.items() if count > 1} or counts
        units = sorted(repeated, key=lambda unit: (-repeated[unit], unit))[:size]
        return cls(units, [repeated[unit] / len(texts) for unit in units])


def standardised_vectors(view: TextsView) -> tuple[Scaling, Floats, Floats]:
    """Return the scaling, and the scaled vectors of the attacker's train and dev texts, float32 (n, d) each."""
    scaling = standardised(view.train.vectors)
    return scaling, scaling(view.train.vectors), scaling(view.dev.vectors)
