"""Define what a dataset, a victim and an attack must do. Read this file first, then the threats in `leakboard.threats`.

LeakBoard calls a plugin's methods in this order:

1. ``Dataset.load`` returns a `Corpus`: texts with a task label and secrets, in the splits train, dev and test.
2. ``Victim.fit`` trains on train and dev, and returns a `FittedVictim`. It publishes vectors of texts or of words, or
   texts whose words it replaced.
3. ``Attack.fit`` learns from the view of its threat. A view has no secret to be guessed. Its only test texts are
   candidates, for membership, presence and linking.
4. The fitted attack guesses, for instance the secrets of the test texts. LeakBoard scores the guesses.

A plugin is one class, decorated with ``dataset``, ``victim`` or ``attack`` of `leakboard.suite.options`. The fields of
the class are its options. ``fit`` returns the learned state as another, frozen object, and does not change its inputs.
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

Publication = Literal["documents", "words", "texts", "rewritten_texts", "releases"]
"""Kinds of publications: a vector of each text, or of each word; texts whose words were replaced one by one, or that
were rewritten as a whole. ``releases``: the noise mechanism itself, which audits apply to any vector."""
AuxiliaryRegime = Literal["within", "overlap", "disjoint"]
"""How the attacker's own texts overlap with the victim's, if both come from one corpus."""


@dataclass(frozen=True)
class PublishedWords:
    """Published word vectors: one row for each word, or for each occurrence of a word in context."""

    words: list[str]
    vectors: Floats
    """float32 (V, d)."""
    text_index: Integers | None = None
    """Index of the text of each row, int64 (V,), in reading order; None: the vectors have no context."""


@dataclass(frozen=True)
class Coverage:
    """Shares of texts, in [0, 1], that a victim cannot read in full; None: the victim reads all texts in full."""

    cut: float | None = None
    """Texts that are longer than the victim reads."""
    unknown: float | None = None
    """Texts without a word that the victim knows."""


class Plugin(ABC):  # noqa: B024 (its members have defaults)
    """The common base of datasets, victims and attacks."""

    threads: ClassVar[int | None] = None
    """Number of threads of the victim's fit and publication, or of the attack; None: the suite's number."""
    uses_gpu: ClassVar[bool | None] = None
    """Whether the plugin uses the GPU of `leakboard.execution.devices.device()`.

    None: a victim uses none, and an attack uses one if the victim does.
    """

    @classmethod
    def availability(cls) -> str:
        """Return one line for ``list``: ``ready``, or a missing file or package and how to get it."""
        return "ready"

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a small instance for the conformance suite; write the files that it reads into ``folder``."""
        return cls()

    def fingerprint(self) -> str:
        """Identify the files that the plugin reads, by checksum or version; empty: it reads no file.

        Raises:
            RequestError: a file is missing.
        """
        return ""


class Dataset(Plugin):
    """Supplies a corpus."""

    @property
    def texts_are_invented(self) -> bool:
        """Whether a program wrote the texts, so that boards may publish some of them as examples."""
        return False

    @abstractmethod
    def load(self) -> Corpus:
        """Build the corpus, the same at each call.

        Raises:
            RequestError: data are missing or malformed; the message names the file and the rows.
        """


class FittedVictim:
    """A trained encoder, as a frozen dataclass.

    Fields that are arrays, numbers, text, lists of these, or None are saved automatically. For other fields override
    ``save`` and `Victim.load`.
    """

    @property
    def claim(self) -> PrivacyClaim | None:
        """The author's privacy claim; None: the author claims no privacy."""
        return None

    @property
    def mechanism(self) -> ReleaseMechanism | None:
        """The mechanism that adds the noise, if the victim publishes ``releases``; else None."""
        return None

    def inputs(self, texts: Texts) -> Floats | None:
        """Return the inputs of the mechanism for these texts, float (n, d) from 0 to 1; None: no mechanism, or random.

        Audits compare up to 100 documents with releases of these inputs. Inputs may be random only if the claim is
        about a word or a document; then nothing is compared.
        """
        return None

    def publish_documents(self, texts: Texts, rng: Generator) -> Floats:
        """Return one vector for each text, float32 (n, d): exactly what an eavesdropper sees, noise included."""
        raise RequestError(f"{type(self).__name__} publishes no documents")

    def publish_queries(self, texts: Texts, rng: Generator) -> Floats:
        """Return vectors of texts that search published documents by cosine, float32 (n, d); d is the documents'."""
        return self.publish_documents(texts, rng)

    def unprotected(self, texts: Texts) -> Floats | None:
        """Return the public encoder's vectors before protection, float32 (n, d), for attackers who know the encoder.

        None: there is no public encoder.
        """
        return None

    def publish_texts(self, texts: Texts, rng: Generator) -> Texts:
        """Return each text with its words replaced, one by one and in order, split at blanks.

        A victim that publishes ``rewritten_texts`` returns a new text for each, of any length. A victim that publishes
        texts and documents publishes vectors of these texts: the same ``rng`` gives their vectors.
        """
        raise RequestError(f"{type(self).__name__} publishes no texts")

    @property
    def text_channel(self) -> Any:
        """The public rule that replaces the words, a `leakboard.privacy.channels.texts.TextChannel`; else None."""
        return None

    def publish_words(self, texts: Texts, rng: Generator) -> PublishedWords:
        """Return the whole table of words; a contextual encoder returns the words of ``texts``."""
        raise RequestError(f"{type(self).__name__} publishes no words")

    def exact_words(self, texts: Texts) -> PublishedWords | None:
        """Return what ``publish_words`` returns, without the mechanism's noise; None: no mechanism, or unknown."""
        return None

    def predict(self, vectors: Floats) -> Integers | None:
        """Return task labels of published vectors, int64 (n,); None: LeakBoard trains a classifier."""
        return None

    def coverage(self, texts: Texts) -> Coverage:
        """Return the shares of texts that the victim cannot read in full."""
        return Coverage()

    def save(self, folder: Path) -> None:
        """Write everything that publishing needs into an empty folder, as safetensors, NumPy or JSON."""
        save_fields(self, folder)


class Victim(Plugin):
    """A recipe for an encoder."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents",)
    encodes_texts: ClassVar[bool] = True
    """Whether vectors are computed from texts; False: a file has a vector for each row of the dataset."""
    encodes_parts: ClassVar[bool] = True
    """Whether a part of a text is a text, too; False: texts have a fixed form, such as a number for each coordinate."""
    trainable: ClassVar[bool] = True
    """Whether attackers may train the recipe on their own texts."""
    streams_of: ClassVar[str] = ""
    """Name of another victim plugin whose random draws this one repeats, to be compared with it; empty: none."""

    @property
    def encoder_reads_texts(self) -> bool:
        """Whether `FittedVictim.unprotected` encodes any text; False: only the texts of the dataset."""
        return self.encodes_texts

    @classmethod
    def example_corpus(cls) -> Corpus | None:
        """Return a corpus to fit the example on; None: any corpus with users, labels and secrets."""
        return None

    @abstractmethod
    def fit(self, corpus: Corpus, seed: int) -> FittedVictim:
        """Train on the train split, and choose by the dev split; the corpus has no test split."""

    def load(self, folder: Path) -> FittedVictim:
        """Return the fitted victim that `FittedVictim.save` wrote, of the type in ``fit``'s return annotation."""
        return load_fields(get_type_hints(type(self).fit)["return"], folder)

    def why_not_applicable(self, corpus: Corpus) -> str:
        """Return why a corpus cannot train the victim, for instance for lack of users; else empty."""
        return ""

    def training_config(self) -> Victim:
        """Return the recipe without options that act only at publication; equal recipes share one fit."""
        return self

    def non_private(self) -> Victim:
        """Return the recipe without privacy of its training data, for attackers to train."""
        return self


class Attack(Plugin):
    """A recipe for an attacker. Each threat has its own base class of attacks."""

    threat: ClassVar[Any]
    """The `leakboard.threats.threat.Threat`, which builds the attacker's view and scores the answer."""
    steals_store: ClassVar[bool] = False
    """Whether the attacker steals published vectors, and learns from its own texts under an encoder that it knows."""
    only_by_name: ClassVar[bool] = False
    """Whether ``attacks: all`` leaves the attack out, since it takes very long."""

    @abstractmethod
    def fit(self, view: Any, seed: int) -> Any:
        """Learn from the threat's view, and return the fitted attacker in the form that the threat describes."""
