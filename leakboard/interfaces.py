"""The contract of datasets, victims and attacks. Read this file first, then the threats in `leakboard.threats`.

A *dataset* loads a `Corpus`: texts with a task label and secrets. A *victim* is fitted on it and publishes vectors. An
*attack* sees the view that its threat allows, never a test text or a test secret, and guesses. LeakBoard scores.

A plugin is one class decorated with ``dataset``, ``victim`` or ``attack`` of `leakboard.suite.options`; its fields
are its options. The learner and the learned are two types: ``fit`` returns something frozen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_type_hints

from numpy.random import Generator

from leakboard.claims import PrivacyClaim
from leakboard.corpus import (  # noqa: F401 (a part of the contract)
    POSTERIOR,
    Corpus,
    Floats,
    Integers,
    Secret,
    SecretKind,
    Strings,
    Texts,
)
from leakboard.errors import RequestError
from leakboard.mechanism import ReleaseMechanism
from leakboard.store import load_fields, save_fields

Publication = Literal["documents", "words", "releases"]
"""What a victim publishes: one vector a text, one vector a word, or private releases of any vector that it is given."""
AuxiliaryRegime = Literal["within", "overlap", "disjoint"]
"""How the attacker's own texts overlap with the victim's, where both come from one corpus."""


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

    threads: ClassVar[int | None] = None
    """Threads of a victim's fit and publication, or of an attack: a part of their identity; None: the suite's."""
    uses_gpu: ClassVar[bool | None] = None
    """Whether those stages place tensors on `leakboard.execution.devices.device()`, and wait for a free GPU.

    None means no; for an attack it means what its victim says, since the attack may ask it to encode or train.
    """

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
