"""Search for the text of a vector: write likely texts, then edit them until their vectors are nearest.

1. A bag of words, trained as by `bag_of_words`, gives the evidence for each word. Trigrams give the prior of a text.
2. The first texts are the likeliest ones under both, and the nearest known texts.
3. Edits improve them. What an edit does to the vector is predicted at first, without a question.
4. The best predicted edits are encoded, and the nearest texts kept. Evidence for the next edits is what the bag of
   words finds in the target and not in the text's own vector.

Steps 3 and 4 take the place of the corrector of vec2text (Morris et al. 2023, section 3), which is a network that is
trained for days. If the oracle refuses, step 4 is left out, and the details say so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field

from leakboard.attacks._alignment.known_encoder import search
from leakboard.attacks._reading.asking import questions
from leakboard.attacks._reading.climbing import Climbing, Found
from leakboard.attacks._reading.edits import Edits
from leakboard.attacks._reading.first_texts import Text, first_texts
from leakboard.attacks._reading.word_sums import WordSums
from leakboard.attacks.bag_of_words import BagOfWords, FittedBagOfWords
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats, Integers, Texts
from leakboard.logs import log_progress
from leakboard.models.search import normalised
from leakboard.models.trigrams import Trigrams
from leakboard.suite.options import ALWAYS_NAMED, Count, attack, part
from leakboard.threats.texts import TextGuesses, TextsAttack, TextsView

EVIDENCE = 3.0
"""Weight of the evidence of the bag of words in the first texts. The best of 0.7 to 4 on captions."""
PRIOR_SHARE = 0.5
"""Share of a word's log-odds before the vector was seen that the evidence leaves out. The best of 0, 0.25, 0.5, 1."""
LOGGED = 50
"""A line tells the progress after so many first texts."""
TRIED, BEAM = 40, 8
"""Words and texts at once of the beam search for the first texts."""


@attack(revision=1)
class Search(TextsAttack):
    bag: Annotated[part({"bag_of_words": BagOfWords}), ALWAYS_NAMED] = Field(default=BagOfWords())  # type: ignore[valid-type]
    """The bag of words, with its options; its vocabulary is that of the search."""
    beam: Count = 3
    """Number of texts that are edited in each round."""
    rounds: Annotated[int, Field(ge=0)] = 9
    """Largest number of rounds of questions; 0: no question is asked."""
    candidates: Count = 20
    """Number of edited texts that are encoded in each round, for each vector."""
    questions: Count = 50_000
    """Largest number of questions about all vectors; a round that could exceed it is not begun. Up to 40 more choose
    who is asked."""
    words: Count = 20
    """Number of words that edits may write, those with the largest evidence."""
    nearest: Annotated[int, Field(ge=0)] = 2
    """Number of nearest known texts that the search also starts from."""
    longest: Count = 64
    """Longest text that is written at first; edits may lengthen it (words)."""
    prior: Annotated[float, Field(ge=0)] = 5e-4
    """Weight of ln P(text) by trigrams next to the cosine."""

    uses_gpu: ClassVar[bool] = True
    only_by_name: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a short search after one epoch of a narrow network."""
        return cls(bag=BagOfWords.example(folder), rounds=2, candidates=4, beam=2)

    def fit(self, view: TextsView, seed: int) -> "FittedSearch":
        """Train the bag of words, count trigrams, and fit the words' vectors."""
        bag = self.bag.fit(view, seed)
        codes = {word: code for code, word in enumerate(bag.vocabulary.units)}
        unknown = len(codes)
        known = [[codes.get(word, unknown) for word in words(text)] for text in view.train.texts]
        sums = WordSums.fit(known, view.train.vectors, unknown + 1)
        encode, asked = questions(view) if self.rounds else (None, "rounds: 0")
        edits = Edits(Trigrams.fit(known, unknown + 1), sums, self.prior)
        return FittedSearch(self, bag, edits, known, view.train.vectors, encode, asked)


@dataclass(frozen=True)
class FittedSearch:
    options: Search
    bag: FittedBagOfWords
    edits: Edits
    known: Sequence[Sequence[int]]
    """Codes of the words of the known texts; the code after the vocabulary is for any other word."""
    vectors: Floats
    """Of the known texts, float32 (n, d)."""
    encode: Callable[[Texts], Floats] | None
    """Answers questions; None: no question is asked."""
    asked: str
    """Who answers the questions, or why there is no answer."""

    def __call__(self, vectors: Floats) -> TextGuesses:
        """Search for the text of each vector."""
        options, targets, odds = self.options, normalised(vectors), self.bag.log_odds(vectors)
        climbing = Climbing(self.edits, self.bag.log_odds, options.words, options.beam, options.candidates)
        found: list[Found] = []
        for target, evidence, starts in zip(targets, odds, self._starts(vectors, odds), strict=True):
            if len(found) % LOGGED == 0:
                log_progress(f"first texts: {len(found):,} of {len(targets):,}")
            improved = {climbing.predicted(text, target, evidence) for text in starts}
            texts = list(dict.fromkeys(text for _, text in sorted(improved, reverse=True)))
            found.append(Found(target, evidence, texts))
        details = self._ask(found, climbing)
        return TextGuesses([self._written(one.texts[0]) for one in found], details=f"{details}{self.bag.remark}")

    def _starts(self, vectors: Floats, odds: Floats) -> list[list[Text]]:
        """Return the texts that edits start from, the likeliest first."""
        shares = np.array(self.bag.vocabulary.shares).clip(1e-6, 1 - 1e-6)
        evidence = odds - PRIOR_SHARE * np.log(shares / (1 - shares)).astype(np.float32)
        likely = first_texts(evidence, self.edits.trigrams, EVIDENCE, TRIED, BEAM, self.options.longest)
        rows = self._nearest(vectors)
        unknown = len(shares)
        copies = [[tuple(code for code in self.known[row] if code != unknown) for row in near] for near in rows]
        return [[first[0], *filter(None, near)] for first, near in zip(likely, copies, strict=True)]

    def _nearest(self, vectors: Floats) -> Integers:
        if not self.options.nearest:
            return np.empty((len(vectors), 0), np.int64)
        rows: Integers = search(vectors, self.vectors, vectors, self.options.nearest).rows
        return rows[:, : self.options.nearest]

    def _ask(self, found: Sequence[Found], climbing: Climbing) -> str:
        """Improve texts by questions, and say what was asked."""
        if self.encode is None:
            return f"no questions ({self.asked})"
        encode, options = self.encode, self.options
        if (starts := sum(len(one.texts) for one in found)) > options.questions:
            return f"no questions ({starts} first texts, but questions: {options.questions})"

        answered = 0

        def answer(texts: Sequence[Text]) -> Floats:
            nonlocal answered
            vectors = encode(Texts([self._written(text) for text in texts]))
            answered += len(texts)
            return vectors

        try:
            climbing.rounds(found, answer, options.rounds, options.questions)
        except (NotApplicable, RequestError) as error:
            return f"stopped after {answered} questions ({error})" if answered else f"no questions ({error})"
        cosine = float(np.mean([one.vectors[one.texts[0]] @ one.target for one in found])) if found else 0.0
        return f"{answered / max(1, len(found)):.0f} questions a text to {self.asked}; mean cosine {cosine:.3f}"

    def _written(self, text: Text) -> str:
        return " ".join(self.bag.vocabulary.units[code] for code in text)
