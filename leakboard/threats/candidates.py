"""Draw candidates of attacks on training data: as many units of train as of test."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.claims import PrivacyClaim, TrainingClaim, TrainingUnit
from leakboard.data.auxiliary import thinned
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable
from leakboard.interfaces import Corpus, Integers, Texts
from leakboard.threats.published import Publications


@dataclass(frozen=True)
class Candidates:
    """Units that may have been in the training data, in random order."""

    unit: TrainingUnit
    units: Sequence[Texts]
    members: NDArray[np.bool_]
    """bool (n,): True for units of train, False for units of test, which the victim never saw."""
    authors: Sequence[str]
    """The author of each candidate; without users, the text that the candidate is from."""

    @property
    def owners(self) -> Integers:
        """A code for each candidate's author, int64 (n,); equal codes mean the same author."""
        number = {author: code for code, author in enumerate(dict.fromkeys(self.authors))}
        return np.array([number[author] for author in self.authors], np.int64)


def why_no_candidates(unit: TrainingUnit | None, corpus: Corpus, published: Publications | None) -> str:
    """Return why there are no candidates to attack; empty if there are some."""
    if unit == "user" and not corpus.has_users:
        return f"{corpus.name} names no users"
    if published and published.words is not None and published.words.text_index is not None:
        return "needs a static word table; this victim's word vectors depend on context"
    return ""


def training_unit(requested: TrainingUnit | None, claim: PrivacyClaim | None, corpus: Corpus) -> TrainingUnit:
    """Return the attacked unit: the requested one, else the claim's, else users if there are any, else documents.

    Raises:
        NotApplicable: users are requested, and the corpus names none.
    """
    claimed = claim.unit if isinstance(claim, TrainingClaim) else None
    unit = requested or claimed or ("user" if corpus.has_users else "document")
    if unit == "user" and not corpus.has_users:
        raise NotApplicable(f"unit: 'user' is not allowed (pair, document): {corpus.name} names no users")
    return unit


def draw_candidates(
    corpus: Corpus, unit: TrainingUnit, most: int, rng: np.random.Generator, share: float
) -> Candidates:
    """Draw as many units of train as of test, by the same rule on both sides.

    - A document is a distinct text that occurs in exactly one of train and test.
    - A user has a text that is not in the other split.
    - A pair is two neighbouring words that occur as neighbours only once in train and test together.

    The victim may have got only a share of the texts of train. For documents and users, test is thinned to the same
    share. So members and non-members have similar numbers of texts and copies.

    Args:
        corpus: the victim's corpus.
        unit: the kind of a candidate.
        most: largest number of candidates.
        rng: makes the draws.
        share: share of the distinct texts of train that the victim got.

    Raises:
        NotApplicable: train or test has no such unit.
    """
    if unit != "pair" and share < 1:
        corpus = thinned(corpus, "test", share, rng)
    sides = _pairs_once(corpus) if unit == "pair" else [_units(corpus, split, unit) for split in ("train", "test")]
    if not (half := min(*map(len, sides), most // 2)):
        raise NotApplicable(f"{corpus.name} has no {unit} that is in train or in test alone")
    chosen = [side[i] for side in sides for i in rng.choice(len(side), half, replace=False)]
    order = rng.permutation(2 * half)
    return Candidates(unit, [chosen[i][1] for i in order], order < half, [chosen[i][0] for i in order])


def _authors_and_texts(corpus: Corpus, split: str) -> list[tuple[str, str]]:
    """Return author and text of each row; without users, the text is its own author."""
    texts = corpus.texts(split)
    return list(zip(corpus.splits[split]["user"][:] if corpus.has_users else texts, texts, strict=True))


def _pairs_once(corpus: Corpus) -> list[list[tuple[str, Texts]]]:
    sides = [
        [(author, pair) for author, text in _authors_and_texts(corpus, split) for pair in _pairs(text)]
        for split in ("train", "test")
    ]
    both = Counter(pair for side in sides for _, pair in side)
    return [[(author, Texts([pair])) for author, pair in side if both[pair] == 1] for side in sides]


def _pairs(text: str) -> list[str]:
    return [" ".join(sorted(pair)) for pair in itertools.pairwise(words(text))]


def _units(corpus: Corpus, split: str, unit: TrainingUnit) -> list[tuple[str, Texts]]:
    """Return author and texts of the units of a split that are not in the other split."""
    other = set(corpus.texts("test" if split == "train" else "train"))
    texts = _authors_and_texts(corpus, split)
    if unit == "document":
        return [
            (user, Texts([text])) for text, user in {text: user for user, text in texts}.items() if text not in other
        ]
    of_user: dict[str, list[str]] = {}
    for user, text in texts:
        of_user.setdefault(user, []).append(text)
    return [(user, Texts(written)) for user, written in of_user.items() if not other.issuperset(written)]


def without_candidates(corpus: Corpus, candidates: Candidates, external: bool = False) -> Corpus:
    """Return an attacker's corpus without the candidates.

    All texts with a candidate pair, and all texts of candidate users, are removed, too.

    Args:
        corpus: the attacker's corpus.
        candidates: the candidates of the attack.
        external: whether the corpus comes from another dataset. Then a user with a candidate's name is another person.
    """
    hidden = {text for unit in candidates.units for text in unit}
    users = set(candidates.authors) if candidates.unit == "user" and not external else set()
    for split in corpus.splits:
        rows = list(enumerate(_authors_and_texts(corpus, split)))
        if candidates.unit == "pair":
            kept = [row for row, (_, text) in rows if hidden.isdisjoint(_pairs(text))]
        else:
            kept = [row for row, (author, text) in rows if text not in hidden and author not in users]
        corpus = corpus.with_rows(split, kept)
    return corpus
