"""The contract between datasets, victims, attacks and the referee. Read this file first.

A *dataset* loads a `Corpus`: texts with a task label and secrets. A *victim* is fitted on it and publishes
vectors. An *attack* sees an `AttackerView` (never the test secrets), is fitted, and turns the published test
vectors into guesses. The referee, not the plugin, scores the guesses.

A plugin is one class decorated with ``dataset``, ``victim`` or ``attack`` of `leakboard.suite.options`; the fields of
the class are its options. The learner and the learned are two types: ``fit`` returns something frozen.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from leakboard.errors import RequestError

if TYPE_CHECKING:
    from datasets import DatasetDict

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

Publication = Literal["documents", "words", "releases"]
"""What a victim publishes: one vector a text, one vector a word, or private releases of any vector that it is given."""

Unit = Literal["word", "pair", "document", "user", "coordinate", "vector"]
"""What neighbouring inputs differ in."""

TrainingUnit = Literal["pair", "document", "user"]
"""What is protected as one in training data: a (centre, context) pair of words, a text, or all texts of a user."""

POSTERIOR = "posterior:"
"""Prefix of the columns with the exact probability of each value of a secret given the text, where it is known."""

SecretKind = Literal["attribute", "entity"]

AuxiliaryRegime = Literal["within", "overlap", "disjoint"]
"""How the attacker's texts overlap with the victim's: `leakboard.data.auxiliary` divides one corpus accordingly."""


@dataclass(frozen=True)
class Secret:
    """A private variable of a text.

    ``attribute``: one of several values (gender, age group). ``entity``: absent or present, in this order, so that
    value 1 means that the text mentions it.
    """

    name: str
    values: tuple[str, ...]
    kind: SecretKind


class Texts(list[str]):
    """Texts in order, with the number of the source row each came from (``None`` where there is none)."""

    def __init__(self, texts: Sequence[str], rows: Integers | None = None):
        super().__init__(texts)
        self.rows = rows


@dataclass(frozen=True)
class Corpus:
    """A text corpus with a task label and secrets, in splits that no text crosses unless ``checks`` says so.

    ``splits`` maps train, dev and test to columns ``text``, ``label`` (ClassLabel, optional), ``row`` (int64, place
    in the source), ``user`` (optional), one ClassLabel column a secret, one float64 column a numeric target, and where
    the generating model is known ``posterior:<secret>``: the exact probability of every value given the text.
    A stage that must not see a split gets a corpus without it.
    """

    name: str
    secrets: tuple[Secret, ...]
    splits: DatasetDict
    checks: Mapping[str, float] = field(default_factory=dict)
    """Counts and shares found when the corpus was loaded: copies across splits, conflicting labels, dropped rows."""
    numeric_targets: tuple[str, ...] = ()
    """Columns that a regression may be asked for, as scores of personality; of a user, the same in all of its rows."""

    def texts(self, split: str) -> Texts:
        """Return the texts of a split with their source rows."""
        part = self.splits[split]
        return Texts(part["text"][:], np.asarray(part["row"][:], dtype=np.int64))

    def column(self, split: str, name: str) -> Integers:
        """Return a ClassLabel column of a split as int64 (n,)."""
        return np.asarray(self.splits[split][name][:], dtype=np.int64)

    def values(self, name: str) -> tuple[str, ...]:
        """Return the class names of a ClassLabel column (empty when the corpus has no such column)."""
        features = self.splits["train"].features
        return tuple(features[name].names) if name in features else ()

    @property
    def has_labels(self) -> bool:
        """Whether the texts carry a task label."""
        return "label" in self.splits["train"].features

    def only(self, *names: str) -> Corpus:
        """Return the corpus with just these splits, and without the posteriors: those are the referee's."""
        from datasets import DatasetDict

        kept = DatasetDict({name: self.splits[name] for name in names})
        hidden = {c for part in kept.values() for c in part.column_names if c.startswith(POSTERIOR)}
        kept = kept.remove_columns(sorted(hidden))
        return dataclasses.replace(self, splits=kept)

    def with_rows(self, split: str, rows: Sequence[int]) -> Corpus:
        """Return the corpus with just these rows of a split."""
        from datasets import DatasetDict

        return dataclasses.replace(self, splits=DatasetDict({**self.splits, split: self.splits[split].select(rows)}))


class Dataset(Protocol):
    """Supplies a corpus.

    It may have a static method ``state() -> str``, as may every plugin: one line for ``list`` that says what is there,
    what is missing, and how to get it. A plugin without one is ready when it can be imported.
    """

    def fingerprint(self) -> str:
        """Identify the bytes that the corpus is made from, without building it (a checksum, a version).

        Raises:
            RequestError: a file is missing or unreadable.
        """

    def load(self) -> Corpus:
        """Build the corpus. The same options and the same fingerprint give the same corpus.

        Raises:
            RequestError: the data are missing or malformed; the message names file and rows.
        """


@dataclass(frozen=True)
class PrivacyClaim:
    """What a victim's author states about its privacy, beside what follows from what its code does.

    Raises:
        ValueError: a number is out of range, or the claim names no mechanism or no sensitivity.
    """

    epsilon: float
    """Claimed."""
    delta: float
    unit: Unit
    mechanism: str
    sensitivity: str
    """The sensitivity that the claim assumes, in words: norm and bound."""
    proved: float = math.inf
    """The epsilon that is proved for the code, with its true sensitivity, at ``delta``; infinite where none is."""
    releases: int = 1
    """How many publications of the same input the numbers are for."""
    protects: Literal["text", "training"] = "text"
    """Whose neighbours: a published text or vector, or the training data that word vectors were made from."""
    caveat: str = ""
    """What a reader must know before believing it, in one line; it stands in the ``status`` of every row."""

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < math.inf:
            raise ValueError(f"claim: epsilon={self.epsilon!r} is not allowed: a number from 0, not infinite")
        if not 0 <= self.delta < 1:
            raise ValueError(f"claim: delta={self.delta!r} is not allowed: a number from 0, below 1")
        if not self.proved >= 0:
            raise ValueError(f"claim: proved={self.proved!r} is not allowed: a number from 0, or infinity")
        if self.unit not in get_args(Unit):
            raise ValueError(f"claim: unit={self.unit!r} is not allowed: one of {', '.join(get_args(Unit))}")
        for name in ("mechanism", "sensitivity"):
            if not getattr(self, name).strip():
                raise ValueError(f"claim: {name} is empty: a claim says which noise it adds, and for which sensitivity")


class ReleaseMechanism(Protocol):
    """The last step of a private victim, whoever gives it its input: a vector goes in, a noisy vector comes out.

    Its epsilon must hold for every two vectors of the unit cube (for a claim about one coordinate: every two that
    differ in one), since audits try corners. A victim whose claim rests on what its encoder can make publishes no
    ``releases``.

    Its releases are drawn from several threads at once. It may have ``log_ratio(outputs, first, second)``:
    ln p(output | first) - ln p(output | second) of each row, float64 (n,), or None where that is not known; an audit
    uses it.
    """

    @property
    def dimension(self) -> int:
        """Width d of the vectors, whose coordinates lie in [0, 1]."""

    @property
    def epsilon(self) -> float:
        """What is claimed for one release."""

    @property
    def delta(self) -> float:
        """What is claimed for one release."""

    def release(self, values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """Release every row of ``values`` (n, d) by itself."""


@dataclass(frozen=True)
class PublishedWords:
    """Word vectors as published.

    A static table has one row a word and ``text_index`` is None; contextual vectors have one row a word occurrence,
    in reading order, and ``text_index`` (int64, (V,)) says which of the given texts the row comes from.
    """

    words: list[str]
    vectors: Floats
    """float32 (V, d)."""
    text_index: Integers | None = None


class FittedVictim(Protocol):
    """A trained encoder, ready to publish.

    It may have a method ``coverage(texts) -> Mapping[str, float]``: shares of the texts that it treats otherwise than a
    reader would expect (cut, without a known word), named ``..._texts``; they stand in ``cells.csv``.

    One that publishes ``releases`` has ``mechanism``, a `ReleaseMechanism` or None where it adds no noise, and
    ``inputs(texts)``: the vectors that its mechanism is given for these texts, float (n, d); its documents are releases
    of these vectors and nothing else, so what is released again for an attack is not encoded again. None says that a
    document is not one release of a fixed vector (words are hidden at random, or each word is released by itself).
    """

    @property
    def claim(self) -> PrivacyClaim | None:
        """The author's privacy claim, or None where none is made."""

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return float32 (n, d): exactly what an eavesdropper sees, noise included."""

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Return the published words: the whole table, or for contextual encoders the words of ``texts``."""

    def predict(self, vectors: Floats) -> Integers:
        """Return the task labels, int64 (n,), that the server's classifier gives to published vectors."""

    def save(self, folder: Path) -> None:
        """Write everything needed to publish again into an empty folder: safetensors, NumPy or JSON, no pickle."""


class Victim(Protocol):
    """A recipe for an encoder; its fields are the options.

    It may have a method ``trained_as() -> Victim``: the same recipe with every option that says only what is published
    of a training at its default. Victims that are trained alike share one fit, and ``load`` brings the options back.

    It may have a method ``without_noise() -> Victim``: the same recipe less what protects its training data.

    It may have a method ``mismatch(corpus) -> str``: why it cannot be trained on a corpus (no users), else an empty
    string; its cells are then skipped with that reason.
    """

    publishes: ClassVar[tuple[Publication, ...]]

    def fit(self, corpus: Corpus, seed: int) -> FittedVictim:
        """Train on the train split and select on the dev split; the corpus holds no test split."""

    def load(self, folder: Path) -> FittedVictim:
        """Return what `FittedVictim.save` wrote."""


@dataclass(frozen=True)
class KnownTexts:
    """Texts that the attacker knows, with their published vectors."""

    texts: Texts
    secrets: Mapping[str, Integers]
    """int64 (n,) a secret that it is to guess: indices into its values."""
    vectors: Floats | None
    """float32 (n, d), or None where the victim publishes no documents."""


class Imitate(Protocol):
    """Trains the victim's public recipe."""

    def __call__(self, seed: int, corpus: Corpus | None = None, *, noise: bool = True) -> FittedVictim:
        """Train on train and dev of a corpus; None: of ``auxiliary``.

        Without noise it is the recipe less what protects its training data: an attacker's own texts need none.
        """


def _no_release(*_: Any) -> Any:
    raise RequestError("the victim publishes no releases")


@dataclass(frozen=True)
class AttackerView:
    """The threat model: everything an attacker may use before seeing the test publications.

    The attacker knows the algorithm of the victim (``imitate``), can have texts of its own encoded (``query``), and
    holds labelled texts. It never sees a test text or a test secret.
    """

    secrets: tuple[Secret, ...]
    train: KnownTexts
    dev: KnownTexts
    auxiliary: Corpus
    """Texts that the attacker collected; how they overlap with the victim's is the suite's ``auxiliary`` setting."""
    query: Callable[[Texts], Floats]
    """Publish these texts again, with fresh noise."""
    query_words: Callable[[Texts], PublishedWords]
    """Publish the words of these texts; a static table comes whole."""
    imitate: Imitate
    """Train the victim's public recipe."""
    contextual: bool | None
    """Whether published words depend on their context; None where no words are published."""
    claim: PrivacyClaim | None
    """Public, as is the mechanism."""
    mechanism: Callable[[], ReleaseMechanism] = _no_release
    """The victim's last step, to try at will; where it publishes ``releases``."""
    inputs: Callable[[Texts], NDArray[Any] | None] = _no_release
    """What the mechanism is given for these texts; where the victim publishes ``releases``."""
    unit: TrainingUnit = "document"
    """Of the training data, for attacks on it: what candidates and canaries are."""
    words: Sequence[str] = ()
    """The words of the published table, for attacks on training data."""
    candidates: Sequence[Texts] = ()
    """Units that may have been in the training data, for attacks on membership."""


@dataclass(frozen=True)
class SecretGuesses:
    """Guesses of document secrets: float32 (n, values) each, higher is more likely, the guess is the argmax."""

    scores: Mapping[str, Floats]
    note: str = ""
    """How the guesses came about (the portfolio's choice), for the record."""


@dataclass(frozen=True)
class WordGuesses:
    """Ranked candidate words: row i of ``ranked`` holds indices into ``vocabulary``, best first, -1 for none."""

    vocabulary: list[str]
    ranked: Integers
    """int64 (V, k)."""
    similarity: Floats
    """float32 (V, k): cosine similarities of the candidates."""
    note: str = ""


@dataclass(frozen=True)
class TextGuesses:
    """The texts that vectors were made of, as the attacker reads them: one a vector."""

    texts: Sequence[str]
    ordered: bool = True
    """Whether the order of the words means something; otherwise each is a set of words, and says nothing of counts."""
    note: str = ""


@dataclass(frozen=True)
class MembershipGuesses:
    """How likely each candidate was in the training data: float64 (n,), higher is likelier, as the view orders them."""

    scores: NDArray[np.float64]
    note: str = ""


@dataclass(frozen=True)
class Distinguisher:
    """A way to tell from one release which of two neighbouring inputs it came from, fixed before the referee draws.

    The referee releases both inputs ``draws`` times each and counts how often ``holds`` is true.
    """

    first: NDArray[Any] | str
    """A vector of the unit cube, float (d,), for the victim's mechanism, or a text, which the victim publishes."""
    second: NDArray[Any] | str
    holds: Callable[[NDArray[Any]], NDArray[np.bool_]]
    """Maps releases (n, d) to whether the event holds, bool (n,)."""
    draws: int
    note: str = ""


class FittedAudit(Protocol):
    """What an attack whose target is a claim is fitted to; the referee draws, counts, and works out the bound."""

    @property
    def distinguisher(self) -> Distinguisher:
        """The event that the bound on epsilon rests on."""

    @property
    def repeats(self) -> int:
        """Releases of either input for the sanity check of Habernal (2022), which has one event only; 0 for none."""


class FittedCanaryAudit(Protocol):
    """What an attack whose target is a claim about training data is fitted to.

    The referee tosses a coin for each canary, trains the victim on its corpus with those that came up, and counts.
    """

    @property
    def canaries(self) -> Sequence[Texts]:
        """The texts of each unit that is planted or not."""

    @property
    def delta(self) -> float:
        """Of the bound, where the victim claims nothing."""

    def score(self, published: PublishedWords) -> NDArray[Any]:
        """Return how likely each canary was planted, float (m,), higher is likelier."""


class FittedMembershipAttack(Protocol):
    """A trained attacker who tells members of the training data from others."""

    def guess_members(self, published: PublishedWords) -> MembershipGuesses:
        """Score the view's candidates by the published table."""


class FittedAttack(Protocol):
    """A trained attacker."""

    def guess(self, vectors: Floats) -> SecretGuesses | WordGuesses | TextGuesses:
        """Guess from published test vectors, float32 (n, d), or (n, m, d) where it asked for m ``observations``.

        Returns guesses, never metrics.
        """


class Attack(Protocol):
    """A recipe for an attacker; its fields are the options.

    It may have ``observations`` (int): how many publications of the same test text it sees. The claim that its score
    stands beside is then that of as many releases.

    An attack on training data (membership, or a claim where it has ``audits = "training"``) reads static word tables.
    It may have ``unit`` (`TrainingUnit` or None: what the claim protects) and ``candidates`` (int, at most so many).
    """

    needs: ClassVar[Publication]
    target: ClassVar[Literal["attribute", "entity", "words", "text", "membership", "claim"]]
    """What it guesses: it is skipped where the corpus has no such secrets, or the victim claims nothing.

    ``words`` names published word vectors, ``text`` reads the text from its vector, ``membership`` tells which texts
    a word table was trained on.
    """

    def fit(
        self, view: AttackerView, seed: int
    ) -> FittedAttack | FittedMembershipAttack | FittedAudit | FittedCanaryAudit:
        """Learn from the view."""
