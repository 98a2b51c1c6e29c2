"""Describe what a suite asks for: plugins with options, datasets with the attacker's texts, and cells of these."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakboard.suite import options
from leakboard.suite.files import relative_to
from leakboard.suite.registry import Registry


@dataclass(frozen=True)
class Choice:
    """A plugin with its options, as an entry of a suite asks for it."""

    kind: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """As written, without defaults."""
    label: str = ""
    problem: str = ""
    """Why the plugin cannot be loaded; its cells fail with this reason."""
    seeds: tuple[int, ...] = ()
    """Seeds of this victim alone; empty: those of the suite."""
    attacks: tuple[Choice, ...] = ()
    """Attacks on this victim alone; empty: those of the suite."""
    folder: Path = field(default=Path(), compare=False)
    """Folder of relative file names in the options."""
    title: str = ""
    """Name that the entry gives; empty where it gives none."""
    grid: tuple[str, ...] = ()
    """Options that the entry's grid varies."""
    plugin: Any = field(default=None, compare=False, repr=False)
    """The instance that was built when the suite was read; another process builds it anew."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "plugin": None}

    @property
    def changed(self) -> dict[str, str]:
        """The options that differ from their defaults or are always named, as a label has them."""
        if self.plugin is None:
            return {key: json.dumps(value, default=str) for key, value in self.options.items()}
        return options.written(self.plugin)

    @property
    def varied(self) -> dict[str, str]:
        """The options that the entry's grid varies, defaults included."""
        return options.written(self.plugin, self.grid) if self.plugin is not None else {}

    def build(self, registry: Registry) -> Any:
        """Construct the plugin.

        Raises:
            RequestError: its options are wrong.
            BrokenPlugin: it cannot be loaded.
        """
        if self.plugin is not None:
            return self.plugin
        with relative_to(self.folder):
            return options.build(registry.load(self.kind, self.name), self.options, f"{self.kind[:-1]} {self.name}")


@dataclass(frozen=True)
class Source:
    """A dataset, and the attacker's texts: an auxiliary regime, or another dataset (then ``regime`` is None)."""

    corpus: Choice
    regime: str | None = "within"
    other: Choice | None = None
    victims: tuple[str, ...] = ()
    """Names of the victims that are fitted on it; empty: all."""
    attacks: tuple[Choice, ...] = ()
    """Attacks on this dataset alone; empty: those of its victims or of the suite."""

    @property
    def label(self) -> str:
        """The dataset with its options, and the attacker's texts where they are not the default."""
        if not self._auxiliary:
            return self.corpus.label
        head, bracket, rest = self.corpus.label.partition("(")
        return f"{head}(auxiliary={self._auxiliary}{', ' + rest if bracket else ')'}"

    @property
    def _auxiliary(self) -> str:
        """The attacker's texts; empty where they are the default."""
        return "" if self.regime == "within" else self.regime or (self.other.label if self.other else "")

    @property
    def name(self) -> str:
        """The dataset's plugin."""
        return self.corpus.name

    @property
    def title(self) -> str:
        """Name that the entry gives; empty where it gives none."""
        return self.corpus.title

    @property
    def changed(self) -> dict[str, str]:
        """The options that a label has, with the attacker's texts."""
        return ({"auxiliary": self._auxiliary} if self._auxiliary else {}) | self.corpus.changed

    @property
    def varied(self) -> dict[str, str]:
        """Nothing: datasets have no grid."""
        return {}


@dataclass(frozen=True)
class Conditions:
    """Settings that hold for all cells of a suite."""

    threads: int = 1
    text_classifier: bool = True
    gold: Choice | None = None
    """The victim that decides which neighbours of words are right."""
    queries: tuple[str, ...] = ()
    """Words whose neighbours are compared; empty: those of Vu, Tran and Jiang (2019)."""


@dataclass(frozen=True)
class Cell:
    """One question: this attack on this victim on this dataset with this seed."""

    source: Source
    victim: Choice
    attack: Choice
    seed: int

    @property
    def label(self) -> str:
        """The cell as people read it."""
        return f"{self.source.label} / {self.victim.label} / {self.attack.label} / seed {self.seed}"
