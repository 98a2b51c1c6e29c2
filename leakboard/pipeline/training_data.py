"""Attacks on training data: who is asked about, which canaries are planted, and how the referee judges."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.data.auxiliary import thinned
from leakboard.data.corpora import with_texts
from leakboard.data.words import words
from leakboard.errors import NotApplicable
from leakboard.interfaces import Corpus, FittedCanaryAudit, Integers, PrivacyClaim, Texts, TrainingUnit, Victim
from leakboard.logs import log_progress
from leakboard.metrics.claims import canary_metrics
from leakboard.metrics.measures import Metric
from leakboard.pipeline.fitting import Names


@dataclass(frozen=True)
class Candidates:
    """Units that an attacker asks about, in random order."""

    unit: TrainingUnit
    units: Sequence[Texts]
    members: NDArray[np.bool_]
    """bool (n,): in train, or in test, which the victim never saw."""
    authors: Sequence[str]
    """Who wrote each; where nobody is named, the text that it is or stands in."""

    @property
    def owners(self) -> Integers:
        """Return the number of each candidate's author, int64 (n,): those of one author are not independent."""
        number = {author: place for place, author in enumerate(dict.fromkeys(self.authors))}
        return np.array([number[author] for author in self.authors], np.int64)


def training_unit(attack: Any, claim: PrivacyClaim | None, corpus: Corpus) -> TrainingUnit:
    """Return what an attack on training data is about: as its option says, what the claim protects, or whoever wrote.

    Raises:
        NotApplicable: the attack asks for users where there are none, or audits a claim about another unit.
    """
    claimed: Any = claim.unit if claim and claim.protects == "training" else None
    users = has_users(corpus)
    unit: TrainingUnit = getattr(attack, "unit", None) or claimed or ("user" if users else "document")
    if unit == "user" and not users:
        raise NotApplicable(f"unit: 'user' is not allowed (pair, document): {corpus.name} names no users")
    if attack.target == "claim" and claimed and unit != claimed:
        raise NotApplicable(f"unit: {unit!r} is not allowed: the claim is about one {claimed}")
    return unit


def has_users(corpus: Corpus) -> bool:
    """Return whether a corpus says who wrote each text."""
    return "user" in corpus.splits["train"].features


def draw_candidates(
    corpus: Corpus, unit: TrainingUnit, most: int, rng: np.random.Generator, share: float = 1.0
) -> Candidates:
    """Draw as many units of train as of test, by the same rule on both sides.

    Documents are distinct texts of one of the splits alone; users have a text that the other split has not; pairs are
    two words that stand next to each other once in both splits together. Where the victim was given a share of the
    texts of train, its users have fewer of them than they wrote, and fewer texts have a copy there: test then keeps as
    large a share of its own, or the number of a user's texts would tell who is who.

    Args:
        corpus: the victim's.
        unit: what is asked about.
        most: how many units at most.
        rng: of the draws.
        share: of the distinct texts of train that the victim was given.

    Raises:
        NotApplicable: one side has none.
    """
    if unit != "pair" and share < 1:
        corpus = thinned(corpus, "test", share, rng)
    sides = _pairs_once(corpus) if unit == "pair" else [_units(corpus, split, unit) for split in ("train", "test")]
    if not (half := min(*map(len, sides), most // 2)):
        raise NotApplicable(f"{corpus.name} has no {unit} that is in train or in test alone")
    chosen = [side[i] for side in sides for i in rng.choice(len(side), half, replace=False)]
    order = rng.permutation(2 * half)
    return Candidates(unit, [chosen[i][1] for i in order], order < half, [chosen[i][0] for i in order])


def _by_author(corpus: Corpus, split: str) -> list[tuple[str, str]]:
    """Return author and text of each row; the text itself where nobody is named."""
    texts = corpus.texts(split)
    return list(zip(corpus.splits[split]["user"][:] if has_users(corpus) else texts, texts, strict=True))


def _pairs_once(corpus: Corpus) -> list[list[tuple[str, Texts]]]:
    """Return author and words of the pairs of train and of test that stand once in both together."""
    found = [
        [(author, pair) for author, text in _by_author(corpus, split) for pair in _pairs(text)]
        for split in ("train", "test")
    ]
    both = Counter(pair for side in found for _, pair in side)
    return [[(author, Texts([pair])) for author, pair in side if both[pair] == 1] for side in found]


def _pairs(text: str) -> list[str]:
    return [" ".join(sorted(pair)) for pair in itertools.pairwise(words(text))]


def _units(corpus: Corpus, split: str, unit: TrainingUnit) -> list[tuple[str, Texts]]:
    """Return author and texts of a split's units that the other split has not."""
    other = set(corpus.texts("test" if split == "train" else "train"))
    texts = _by_author(corpus, split)
    if unit == "document":
        return [
            (user, Texts([text])) for text, user in {text: user for user, text in texts}.items() if text not in other
        ]
    of_user: dict[str, list[str]] = {}
    for user, text in texts:
        of_user.setdefault(user, []).append(text)
    return [(user, Texts(own)) for user, own in of_user.items() if not other.issuperset(own)]


def without(corpus: Corpus, candidates: Candidates, strangers: bool = False) -> Corpus:
    """Return an attacker's corpus without what it asks about.

    That is the texts themselves, or those in which an asked pair stands; of asked users every other text too, since of
    members alone the attacker may have some.

    Args:
        corpus: the attacker's.
        candidates: what is asked about.
        strangers: the corpus is another dataset's, where the same name is somebody else.
    """
    asked = {text for unit in candidates.units for text in unit}
    rows = list(enumerate(_by_author(corpus, "train")))
    if candidates.unit == "pair":
        kept = [row for row, (_, text) in rows if asked.isdisjoint(_pairs(text))]
    else:
        users = set(candidates.authors) if candidates.unit == "user" and not strangers else set()
        kept = [row for row, (author, text) in rows if text not in asked and author not in users]
    return corpus.with_rows("train", kept)


def units_in(canary: Texts, unit: TrainingUnit) -> int:
    """Return how many units of a claim a canary is at most: ordered pairs at any distance, texts, or one user."""
    if unit == "pair":
        return sum(n * (n - 1) for n in (len(words(text)) for text in canary))
    return len(canary) if unit == "document" else 1


def judge_canaries(
    audit: FittedCanaryAudit,
    unit: TrainingUnit,
    victim: Victim,
    corpus: Corpus,
    claim: PrivacyClaim | None,
    names: Names,
) -> list[Metric]:
    """Toss the coins, train the victim with the canaries that came up, and return what the scores prove.

    Raises:
        ValueError: the scores are not one finite number a canary.
    """
    rng = names.stream(f"canaries {names.label}")
    planted = rng.random(len(audit.canaries)) < 0.5
    log_progress(f"training with {planted.sum()} of {len(planted)} canaries")
    fitted = victim.fit(with_texts(corpus, audit.canaries, planted), names.seed_for("canaries"))
    scores = np.asarray(audit.score(fitted.publish_words(Texts([]), rng)), np.float64)
    if scores.shape != planted.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"scores of shape {scores.shape} are not one finite number for each of {len(planted)} canaries"
        )
    group = max(units_in(canary, unit) for canary in audit.canaries)
    return canary_metrics(scores, planted, claim.delta if claim else audit.delta, group, unit)
