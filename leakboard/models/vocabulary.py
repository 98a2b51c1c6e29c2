"""Count the units of texts, words or characters, and keep the most frequent ones."""

from collections import Counter
from collections.abc import Sequence
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
