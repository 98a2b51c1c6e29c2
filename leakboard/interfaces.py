"""The contract of datasets, victims and attacks. Read this file first, then the threats in `leakboard.threats`.

A *dataset* loads a `Corpus`: texts with a task label and secrets. A *victim* is fitted on it and publishes vectors. An
*attack* sees the view that its threat allows, never a test text or a test secret, and guesses. LeakBoard scores.

A plugin is one class decorated with ``dataset``, ``victim`` or ``attack`` of `leakboard.suite.options`; its fields
are its options. The learner and the learned are two types: ``fit`` returns something frozen.
"""

from __future__ import annotations

import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_type_hints

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leakboard.claims import PrivacyClaim, ReleaseMechanism
from leakboard.errors import RequestError
from leakboard.store import load_fields, save_fields

if TYPE_CHECKING:
    from datasets import DatasetDict

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Strings = NDArray[np.str_]

Publication = Literal["documents", "words", "releases"]
"""What a victim publishes: one vector a text, one vector a word, or private releases of any vector that it is given."""
AuxiliaryRegime = Literal["within", "overlap", "disjoint"]
"""How the attacker's own texts overlap with the victim's, where both come from one corpus."""
SecretKind = Literal["attribute", "entity"]
POSTERIOR = "posterior:"
"""Prefix of the columns with the exact probability of each value of a secret given the text, where it is known."""


@dataclass(frozen=True)
class Secret:
    """A private variable of a text: an attribute (gender), or an entity, whose values are absent and present."""

    name: str
    values: tuple[str, ...]
    kind: SecretKind


class Texts(list[str]):
    """Texts in order, with the number of the source row and the id of each (``None`` where there is none)."""

    def __init__(self, texts: Sequence[str], rows: Integers | None = None, ids: Sequence[str] | None = None):
        super().__init__(texts)
        self.rows, self.ids = rows, ids


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts with a task label and secrets, in splits that no text crosses unless ``checks`` says so.

    ``splits`` maps train, dev and test, or those that a stage may see, to columns ``row`` (int64, place in the source),
    ``text``, ``label`` (ClassLabel), ``id`` and ``user`` (each optional), one ClassLabel column a secret, one float64
    column a numeric target, and where it is known ``posterior:<secret>``: the probability of each value given the text.
    """

    name: str
    secrets: tuple[Secret, ...]
    splits: DatasetDict
    checks: Mapping[str, float] = field(default_factory=dict)
    """Counts and shares found when the corpus was loaded: copies across splits, conflicting labels, dropped rows."""
    numeric_targets: tuple[str, ...] = ()
    """Columns that a regression may predict, as scores of personality; of a user, the same in all of its rows."""
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def texts(self, split: str) -> Texts:
        """Return the texts of a split with their source rows and ids; empty texts where the corpus has none."""
        part = self.splits[split]
        texts, ids = (part[name][:] if name in part.column_names else None for name in ("text", "id"))
        return Texts(texts or [""] * len(part), np.asarray(part["row"][:], dtype=np.int64), ids)

    def column(self, split: str, name: str) -> Integers:
        """Return a ClassLabel column of a split as int64 (n,)."""
        if (key := f"{split}: {name}") not in self._kept:
            self._kept[key] = np.asarray(self.splits[split][name][:], dtype=np.int64)
        return self._kept[key].copy()  # type: ignore[no-any-return]

    def values(self, name: str) -> tuple[str, ...]:
        """Return the class names of a ClassLabel column (empty when the corpus has no such column)."""
        train = self.splits["train"]
        return tuple(train.features[name].names) if name in train.column_names else ()

    @property
    def has_texts(self) -> bool:
        """Whether the texts are known, and not their vectors alone."""
        return all("text" in part.column_names for part in self.splits.values())

    @property
    def has_labels(self) -> bool:
        """Whether the texts carry a task label."""
        return "label" in self.splits["train"].column_names

    @property
    def has_users(self) -> bool:
        """Whether the corpus says who wrote each text."""
        return "user" in self.splits["train"].column_names

    def only(self, *names: str) -> Corpus:
        """Return the corpus with just these splits, and without the posteriors, which only scoring may see."""
        if names not in self._kept:
            parts = type(self.splits)({name: self.splits[name] for name in names})
            hidden = {c for part in parts.values() for c in part.column_names if c.startswith(POSTERIOR)}
            self._kept[names] = parts.remove_columns(sorted(hidden))
        return dataclasses.replace(
            self, splits=type(self.splits)({n: copy.copy(p) for n, p in self._kept[names].items()})
        )

    def with_rows(self, split: str, rows: Sequence[int]) -> Corpus:
        """Return the corpus with just these rows of a split."""
        parts = type(self.splits)({**self.splits, split: self.splits[split].select(rows)})
        return dataclasses.replace(self, splits=parts)


@dataclass(frozen=True)
class PublishedWords:
    """Word vectors as published: a static table with one row a word, or contextual vectors, one row an occurrence."""

    words: list[str]
    vectors: Floats
    """float32 (V, d)."""
    text_index: Integers | None = None
    """int64 (V,), which of the given texts each row comes from, in reading order; None for a static table."""


@dataclass(frozen=True)
class Coverage:
    """Shares of texts, in [0, 1], that a victim cuts, or of which it knows no word; None where that cannot be."""

    cut: float | None = None
    unknown: float | None = None


class Plugin(ABC):  # noqa: B024 (its members have defaults)
    """What datasets, victims and attacks have in common."""

    @classmethod
    def availability(cls) -> str:
        """Return one line for ``list``: ``ready``, or what is missing and how to get it."""
        return "ready"

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a small instance for the conformance suite; files that it reads are written into ``folder``."""
        return cls()

    def fingerprint(self) -> str:
        """Identify the bytes that it reads (a checksum, a version) or raise RequestError; empty where it reads none."""
        return ""


class Dataset(Plugin):
    """Supplies a corpus."""

    @abstractmethod
    def load(self) -> Corpus:
        """Build the corpus, the same each time; a RequestError names file and rows of missing or malformed data."""


class FittedVictim:
    """A trained encoder, ready to publish: a frozen dataclass, saved as it is where its fields are arrays or plain.

    A victim whose fields are other than arrays, numbers, text, lists or None has ``save`` and `Victim.load` of its own.
    """

    @property
    def claim(self) -> PrivacyClaim | None:
        """The author's privacy claim, or None where none is made."""
        return None

    @property
    def mechanism(self) -> ReleaseMechanism | None:
        """The last step of a victim that publishes ``releases``; None where it adds no noise."""
        return None

    def inputs(self, texts: Texts) -> Floats | None:
        """Return what the mechanism is given for these texts, float (n, d); None where that is random."""
        return None

    def publish_documents(self, texts: Texts, rng: Generator) -> Floats:
        """Return float32 (n, d): exactly what an eavesdropper sees, noise included."""
        raise RequestError(f"{type(self).__name__} publishes no documents")

    def publish_words(self, texts: Texts, rng: Generator) -> PublishedWords:
        """Return the published words: the whole table, or for contextual encoders the words of ``texts``."""
        raise RequestError(f"{type(self).__name__} publishes no words")

    def predict(self, vectors: Floats) -> Integers | None:
        """Return its own task labels of published vectors, int64 (n,); None: the engine trains a classifier."""
        return None

    def coverage(self, texts: Texts) -> Coverage:
        """Return which shares of the texts are treated otherwise than a reader would expect."""
        return Coverage()

    def save(self, folder: Path) -> None:
        """Write everything needed to publish again into an empty folder: safetensors, NumPy or JSON, no pickle."""
        save_fields(self, folder)


class Victim(Plugin):
    """A recipe for an encoder; its fields are the options."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents",)
    encodes_texts: ClassVar[bool] = True
    """Whether its vectors are made of texts; otherwise they come from outside, one a row of the dataset."""
    trainable: ClassVar[bool] = True
    """Whether there is a recipe that attackers may train on texts of their own."""
    streams_of: ClassVar[str] = ""
    """The victim whose random streams it draws from, as a variant does to be compared; empty: its own."""

    @classmethod
    def example_corpus(cls) -> Corpus | None:
        """Return what the example is fitted on; None: any texts, with words, users, labels and secrets."""
        return None

    @abstractmethod
    def fit(self, corpus: Corpus, seed: int) -> FittedVictim:
        """Train on the train split and select on the dev split; the corpus holds no test split."""

    def load(self, folder: Path) -> FittedVictim:
        """Return what `FittedVictim.save` wrote; the type is the one that ``fit`` is annotated to return."""
        return load_fields(get_type_hints(type(self).fit)["return"], folder)

    def why_not_applicable(self, corpus: Corpus) -> str:
        """Return why the victim cannot be trained on a corpus (it names no users); empty where it can."""
        return ""

    def training_config(self) -> Victim:
        """Return the recipe without the options that act at publication alone: victims that share it share one fit."""
        return self

    def non_private(self) -> Victim:
        """Return the recipe without what protects its training data: an attacker's own texts need no protection."""
        return self


class Attack(Plugin):
    """A recipe for an attacker; its fields are the options. Each threat has a base class of its own for its attacks."""

    threat: ClassVar[Any]
    """The `leakboard.threats.threat.Threat`: what the attacker sees, what it answers, how the answer is scored."""

    @abstractmethod
    def fit(self, view: Any, seed: int) -> Any:
        """Learn from the threat's view, and return what answers; the threat says what that is."""
