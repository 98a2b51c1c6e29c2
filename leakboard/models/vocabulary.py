"""Count the units of texts, words or characters, and keep the most frequent ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Vocabulary:
    """The most frequent units (words or characters) of some texts, by falling frequency."""

    units: list[str]
    shares: list[float]
    """For each unit, the share of the texts with this unit."""

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], size: int) -> "Vocabulary":
        """Count the texts with each unit; units of only one text are left out, unless there are no others."""
        counts = Counter(unit for text in texts for unit in set(text))
        repeated = {unit: count for unit, count in counts.items() if count > 1} or counts
        units = sorted(repeated, key=lambda unit: (-repeated[unit], unit))[:size]
        return cls(units, [repeated[unit] / len(texts) for unit in units])

    def codes(self, texts: Iterable[Iterable[str]]) -> list[list[int]]:
        """Return the codes, from 0, of the units of each text that are in the vocabulary, in their order."""
        codes = {unit: code for code, unit in enumerate(self.units)}
        return [[codes[unit] for unit in text if unit in codes] for text in texts]
