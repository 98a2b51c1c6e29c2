"""What a suite asks for: a plugin with its options, a dataset with the attacker's texts, and cells made of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leakboard.suite import options
from leakboard.suite.registry import Registry


@dataclass(frozen=True)
class Choice:
    """A plugin with its options, as an entry of a suite asks for it."""

    kind: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """As written; defaults are not spelled out."""
    label: str = ""
    problem: str = ""
    """Why the plugin cannot be loaded; the cells that ask for it fail with it."""
    seeds: tuple[int, ...] = ()
    """Of a victim: the seeds it is run with, where its entry gives other ones than the suite's."""
    attacks: tuple[Choice, ...] = ()
    """Of a victim: the attacks on it, where its entry gives other ones than the suite's."""
    plugin: Any = field(default=None, compare=False, repr=False)
    """As it was built when the suite was read; another process builds it anew."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "plugin": None}

    def build(self, registry: Registry) -> Any:
        """Construct the plugin.

        Raises:
            RequestError: its options are wrong.
            BrokenPlugin: it cannot be loaded.
        """
        if self.plugin is not None:
            return self.plugin
        return options.build(registry.load(self.kind, self.name), self.options, f"{self.kind[:-1]} {self.name}")


@dataclass(frozen=True)
class Source:
    """A dataset and what the attacker collected: an auxiliary regime, or another dataset (then ``regime`` is None)."""

    corpus: Choice
    regime: str | None = "within"
    other: Choice | None = None

    @property
    def label(self) -> str:
        """The dataset's name in the CSVs, with its auxiliary corpus where that is not the default."""
        if self.regime == "within":
            return self.corpus.label
        value = self.regime or (self.other.label if self.other else "")
        head, bracket, rest = self.corpus.label.partition("(")
        return f"{head}(auxiliary={value}{', ' + rest if bracket else ')'}"


@dataclass(frozen=True)
class Conditions:
    """What holds for all cells of a suite."""

    threads: int = 2
    text_classifier: bool = True
    gold: Choice | None = None
    """The victim whose neighbours of words count as right."""
    queries: tuple[str, ...] = ()
    """Words whose neighbours are compared; empty: those of Vu, Tran and Jiang (2019)."""


@dataclass(frozen=True)
class Cell:
    """One question: this attack against this victim on this dataset with this seed."""

    source: Source
    victim: Choice
    attack: Choice
    seed: int

    @property
    def label(self) -> str:
        """The cell as people read it."""
        return f"{self.source.label} / {self.victim.label} / {self.attack.label} / seed {self.seed}"
