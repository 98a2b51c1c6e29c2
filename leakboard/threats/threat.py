"""Define a threat: what an attacker sees, how its answer is scored, and the sentences about the score.

A new threat is a new file with a `Threat` and a base class for its attacks (`docs/design.md`).
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from leakboard.claims import PrivacyClaim, ReleaseClaim
from leakboard.column import KINDS, LEADERBOARD_TABLES, Column
from leakboard.data.corpora import detached
from leakboard.errors import RequestError, nearest
from leakboard.interfaces import Attack, Corpus, FittedVictim, Floats, Integers, Publication, SecretKind, Victim
from leakboard.metrics.measures import Metric
from leakboard.metrics.row_guesses import RowGuesses
from leakboard.metrics.word_scores import RecoveredSentence
from leakboard.randomness import Streams
from leakboard.threats.published import Publications, Publisher
from leakboard.threats.sentence_parts import (
    NO_PROOF,
    TOO_FEW,
    audit_sentence,
    beats_constant,
    gain_in_words,
    has_too_few,
    is_number,
    percent,
    secrets_of,
    tested,
    why_chance,
)

A = TypeVar("A", bound=Attack)


def fit_recipe(recipe: Victim, corpus: Corpus, seed: int) -> FittedVictim:
    """Train a recipe on a corpus."""
    return recipe.fit(corpus, seed)


@dataclass(frozen=True)
class VictimSide:
    """The victim's side of an attack, from which a threat builds the attacker's view."""

    corpus: Corpus
    """The victim's corpus, with all splits."""
    auxiliary: Corpus
    """The attacker's own corpus; views leave out its test split."""
    victim: Victim
    fitted: Callable[[], FittedVictim]
    """Loads the fitted victim, for attacks that query it."""
    published: Publications
    streams: Streams
    """Random streams of the cell."""
    identity: Callable[[], str] = str
    """Returns the identity of the fitted victim."""
    train: Callable[[Victim, Corpus, int], FittedVictim] = fit_recipe
    """Trains a recipe on the attacker's corpus with a seed."""
    victim_share: float = 1.0
    """Share of the dataset's distinct train texts that are in ``corpus``."""
    external_auxiliary: bool = False
    """Whether the attacker's texts come from another dataset."""
    text_guesses: Callable[[SecretKind], Integers] | None = None
    """Returns guesses of text classifiers, int64 (n, secrets of the kind); None: the suite has none."""

    def new_publisher(self) -> Publisher:
        """Return a publisher of texts with fresh noise."""
        return Publisher(self.victim, self.fitted, self.identity)


@dataclass(frozen=True)
class Audited:
    """The subject of an audit: the epsilon of one unit at a delta."""

    unit: str
    delta: float


@dataclass(frozen=True)
class AttackResult:
    """The scores of an attack."""

    secrets: tuple[str, ...]
    """Names of the attacked secrets, or one name that the threat chooses, such as ``words``."""
    test_size: int
    """Number of texts, words, candidates or draws that the headline is computed from."""
    metrics: list[Metric]
    details: str = ""
    """How the attack answered, in words."""
    sentences: Sequence[RecoveredSentence] = ()
    """Texts that the attack recovered; never published."""
    claim: PrivacyClaim | None = None
    """The victim's claim about what the attack saw; None: the row shows no claimed epsilon.

    `release_claim` returns the claim about publications of a text.
    """
    audited: Audited | None = None
    """The subject of an audit; None for other attacks."""
    guesses: RowGuesses | None = dataclasses.field(default=None, repr=False, compare=False)
    """Guesses of each test row, for the owner of the rows alone: no record has them. None: the threat gives none."""

    def value(self, name: str) -> float | None:
        """Return a metric over all secrets; None if there is none of this name."""
        return next((m.value for m in self.metrics if m.name == name and not m.variable and not m.group), None)


class Doubt(NamedTuple):
    """Why the sentence about a row claims no finding."""

    why: str
    """In the words of the sentence; empty: it claims one, or that nothing was found."""
    is_too_few: bool = False
    """Whether the test is too small for a score at all."""


class Threat(ABC, Generic[A]):
    """One way to attack the publications of victims."""

    name: ClassVar[str]
    """Name in records."""
    identity: ClassVar[str] = ""
    """Name in the identities of results; empty: ``name``."""
    title: ClassVar[str] = ""
    """Heading of the tables; empty: the names of the secrets."""
    headline: ClassVar[str]
    """Name of the measure that ``evaluate`` returns as ``attack_score``, for example ``accuracy``."""
    headline_title: ClassVar[str] = ""
    """The headline in words; empty: ``headline``."""
    found: ClassVar[str] = "the strongest attack scores {score}, the best constant guess {constant}"
    """The score of the strongest attack, in words: the end of the sentence about its advantage."""
    nothing_found: ClassVar[str] = (
        "{what}: the strongest attack gains nothing over the best constant guess, whose score is {constant}"
    )
    """The sentence if no attack beats the best constant guess; it is no proof of privacy."""
    sees: ClassVar[str] = ""
    """What the attacker is given, in words, for the pages of attacks."""
    guessed: ClassVar[str] = ""
    """What the attacks guess, in words; empty: the secrets of the dataset, by their names."""
    things: ClassVar[str] = "texts"
    """The test's texts, words, candidates or draws, in words."""
    bounds_epsilon: ClassVar[bool] = False
    """Whether the headline is a lower bound on epsilon."""
    columns: ClassVar[tuple[Column, ...]] = ()
    """Columns of the threat's rows, in addition to those of all rows."""
    needs: ClassVar[Publication]
    """The kind of publication that the victim must make."""
    revision: ClassVar[int]
    """Number to raise with every change of view or scoring that changes results."""
    beside_text_classifiers: ClassVar[bool] = False
    """Whether scores are compared with classifiers of the text itself."""
    doubts_perfect_scores: ClassVar[bool] = True
    """Whether a score of 1 is reported as a possible bug."""

    reads_texts: ClassVar[bool] = True
    """Whether the attacker or the scores need texts; False: vectors are enough."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the threat known by its name.

        Raises:
            RequestError: a member is missing, the revision is no whole number from 1, a sentence has an unknown
                placeholder, no table can show a column, or a threat of LeakBoard has the same name.
        """
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            _check(cls)
            _THREATS[cls.name] = cls

    @classmethod
    def of_competing(cls, competing: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return cells to add to the row of the strongest attack, from the rows of all competing attacks."""
        return {}

    @classmethod
    def doubt(cls, row: Mapping[str, Any]) -> Doubt:
        """Return why the sentence about a row claims no finding."""
        if has_too_few(row):
            return Doubt(TOO_FEW, is_too_few=True)
        has_gain = beats_constant(row) and is_number(row.get("attack_advantage"))
        return Doubt(why_chance(row) if has_gain else "")

    @classmethod
    def sentence(cls, row: Mapping[str, Any]) -> str:
        """Return the sentence about a leaderboard's row of the strongest attack: `found` or `nothing_found`.

        Every sentence has the number of test texts, if the row has it. An attack may gain by its ranks, though its
        guesses score no more than the best constant guess.
        """
        what, score, constant_privacy = (
            cls.guessed or secrets_of(row),
            percent(row["attack_score"]),
            row.get("privacy_best_constant"),
        )
        size = f" ({number})" if (number := tested(row, cls.things)) else ""
        if not is_number(constant_privacy):
            return f"{what}: the {row['attack_metric']} of the strongest attack is {score}{size}"
        words = {"what": what, "score": score, "constant": percent(1 - constant_privacy)}
        found = cls.found.format(**words)
        if not beats_constant(row):
            few = f"; {TOO_FEW}" if has_too_few(row) else ""
            return f"{cls.nothing_found.format(**words)}{size}; {NO_PROOF}{few}"
        if not is_number(row.get("attack_advantage")):
            return f"{what}: {found}{size}; whether this is chance is unknown"
        if row["attack_score"] <= 1 - constant_privacy:
            area = f" (area under the ROC curve {row['attack_auc']:.2f})" if is_number(row.get("attack_auc")) else ""
            found = f"it tells them apart by rank{area}; its own guesses are no better than a constant guess"
        return f"{what}: an attacker gains {gain_in_words(row, cls.things)}; {found}"

    def why_not_applicable(self, attack: A, corpus: Corpus, published: Publications | None) -> str:
        """Return why the attack does not apply to this corpus or its publications; empty if it applies.

        Args:
            attack: the attacker.
            corpus: the victim's corpus.
            published: the victim's publications; None before the victim is fitted.
        """
        return ""

    @abstractmethod
    def evaluate(self, attack: A, side: VictimSide) -> AttackResult:
        """Fit the attack on its view, let it answer, and score the answer.

        Raises:
            NotApplicable: the attack does not apply; its cell is skipped with this reason.
            RequestError: the answer has a wrong form.
            ValueError: a release is not finite, or the auditor's answer to it has a wrong type or shape.
        """


_THREATS: dict[str, type[Threat[Any]]] = {}


def _check(threat: type[Threat[Any]]) -> None:
    place, own = threat.__qualname__, f"{__package__}."
    if missing := [member for member in ("headline", "needs", "revision") if not hasattr(threat, member)]:
        raise RequestError(f"{place}: {', '.join(missing)} missing; a threat has name, headline, needs and revision")
    if type(threat.revision) is not int or threat.revision < 1:
        raise RequestError(f"{place}: revision = {threat.revision!r} is not allowed: a whole number from 1 on")
    for column in threat.columns:
        _check_column(column, f"{place}: column {column.name!r}")
    for member in ("found", "nothing_found"):
        try:
            getattr(threat, member).format(what="", score="", constant="")
        except (LookupError, ValueError) as error:
            allowed = "{what}, {score}, {constant}"
            raise RequestError(f"{place}.{member}: {error!r} in its placeholders; allowed: {allowed}") from None
    if not threat.__module__.startswith(own):
        known_threats()
        known = _THREATS.get(threat.name)
        if known and known.__module__.startswith(own):
            raise RequestError(f"{place}: name = {threat.name!r} is the name of {known.__qualname__}; choose another")


def _check_column(column: Column, place: str) -> None:
    if column.kind not in KINDS:
        kinds = ", ".join(sorted(KINDS))
        raise RequestError(f"{place}: kind {column.kind!r} is not one of {kinds}{nearest(column.kind, KINDS)}")
    wrong = sorted(set(column.tables) - set(LEADERBOARD_TABLES))
    if wrong or LEADERBOARD_TABLES[0] not in column.tables:
        allowed = f"{LEADERBOARD_TABLES[0]}, alone or with {', '.join(LEADERBOARD_TABLES[1:])}"
        hint = nearest(wrong[0], LEADERBOARD_TABLES) if wrong else ""
        raise RequestError(f"{place}: its tables are {', '.join(column.tables) or 'none'}; allowed: {allowed}{hint}")


class UnknownThreat(Threat[Attack]):
    """A threat whose plugin is not installed."""

    def evaluate(self, attack: Attack, side: VictimSide) -> AttackResult:
        """Refuse: only records of this threat can be read."""
        raise RequestError("the threat of this attack is not installed")


def threat_named(name: str) -> type[Threat[Any]]:
    """Return the threat of a record; `UnknownThreat` if its plugin is not installed."""
    if name and name not in _THREATS:
        known_threats()
    return _THREATS.get(name, UnknownThreat)


def known_threats() -> list[str]:
    """Return the names of LeakBoard's threats, and of the threats that loaded plugins define."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{__package__}.{module.name}")
    return sorted(_THREATS)


NO_TEXTS = "the corpus has no texts"


def why_no_fit(victim: Victim, corpus: Corpus) -> str:
    """Return why a victim cannot be fitted on a corpus; empty if it can."""
    if victim.encodes_texts and not corpus.has_texts:
        return NO_TEXTS
    return victim.why_not_applicable(corpus)


def why_no_attack(attack: Attack, corpus: Corpus, auxiliary: Corpus, published: Publications | None) -> str:
    """Return why an attack does not apply to a corpus or its publications; empty if it applies.

    Args:
        attack: the attacker.
        corpus: the victim's corpus.
        auxiliary: the attacker's own corpus.
        published: the victim's publications; None before the victim is fitted.
    """
    if attack.threat.reads_texts and not (corpus.has_texts and auxiliary.has_texts):
        return NO_TEXTS
    reason: str = attack.threat.why_not_applicable(attack, corpus, published)
    return reason


class AuditThreat(Threat[A]):
    """A threat whose attacks audit a claim: the headline is a lower bound on epsilon."""

    title: ClassVar = "claims of privacy, audited"
    headline: ClassVar = "epsilon"
    things: ClassVar = "draws"
    bounds_epsilon: ClassVar = True
    doubts_perfect_scores: ClassVar = False

    @classmethod
    def sentence(cls, row: Mapping[str, Any]) -> str:
        """Return the sentence about the audits of a claim."""
        return audit_sentence(row)


def shuffled(vectors: Floats, rng: np.random.Generator) -> tuple[Floats, Integers]:
    """Return a shuffled copy of the vectors, and the permutation. An attacker sees only the copy."""
    order = rng.permutation(len(vectors))
    return vectors[order], order


def observe(side: VictimSide, times: int) -> Floats:
    """Return the vectors of the test texts, float32 (n, d), or (n, m, d) for m > 1 publications of each."""
    first = side.published.documents["test"]
    if times == 1:
        return first
    texts, rng, publish = side.corpus.texts("test"), side.streams.stream("observe"), side.new_publisher()
    return np.stack([first, *(publish(texts, rng) for _ in range(times - 1))], axis=1)


def release_claim(side: VictimSide, times: int) -> ReleaseClaim | None:
    """Return the claim about several publications of a text; None if the victim claims nothing about publications.

    By sequential composition, epsilons and deltas add up (Dwork and Roth 2014, theorem 3.16).
    """
    claim = side.published.claim
    if not isinstance(claim, ReleaseClaim):
        return None
    return dataclasses.replace(
        claim,
        epsilon=times * claim.epsilon,
        proved=times * claim.proved,
        delta=min(times * claim.delta, float(np.nextafter(1.0, 0.0))),
        observations=times,
    )


def attacker_corpus(side: VictimSide) -> Corpus:
    """Return train and dev of the attacker's own corpus, in memory, without columns that only scoring may see."""
    return _detached(side.auxiliary).only("train", "dev")  # each attack gets its own copy


@lru_cache(maxsize=2)
def _detached(corpus: Corpus) -> Corpus:
    return detached(corpus.only("train", "dev"))


def expect(answer: Any, kind: type, threat: str) -> None:
    """Check the type of an answer.

    Raises:
        RequestError: the answer is of another type; the message names the right one.
    """
    if not isinstance(answer, kind):
        raise RequestError(f"an attack on {threat} returns {kind.__name__}, not {type(answer).__name__}")
