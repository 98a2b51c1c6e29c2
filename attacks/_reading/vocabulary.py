"""What attacks that read texts from vectors share: the attacker's own texts, as codes of a vocabulary."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from leakboard.attacks._portfolio.inputs import Scaling, standardised
from leakboard.interfaces import Floats
from leakboard.threats.texts import TextsView


@dataclass(frozen=True)
class Vocabulary:
    """The most frequent units (words or characters) of the attacker's texts, coded from 0 by falling frequency."""

    units: list[str]
    shares: list[float]
    """Of the attacker's texts that hold the unit."""

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], size: int) -> "Vocabulary":
        """Count units; a unit of a single text is not worth learning, unless there are no others."""
        holding = Counter(unit for text in texts for unit in set(text))
        repeated = {unit: count for unit, count in holding.items() if count > 1} or holding
        units = sorted(repeated, key=lambda unit: (-repeated[unit], unit))[:size]
        return cls(units, [repeated[unit] / len(texts) for unit in units])

    @property
    def codes(self) -> dict[str, int]:
        """Place of every unit."""
        return {unit: code for code, unit in enumerate(self.units)}


def standardised_vectors(view: TextsView) -> tuple[Scaling, Floats, Floats]:
    """Return how inputs are standardised, and so the vectors of the attacker's train and dev texts, float32 (n, d)."""
    scaling = standardised(view.train.vectors)
    return scaling, scaling(view.train.vectors), scaling(view.dev.vectors)
