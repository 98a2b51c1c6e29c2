"""Search for the text of a vector: edit texts, encode the most promising, keep the nearest.

1. Without a question: take the best predicted edit, until none is better.
2. In each round: encode the best predicted edits of the best texts, and keep the best by their exact vectors. Words
   that edits may write are those with more evidence in the target than in the text's own vector.
3. A target is finished when a round brings nothing better.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from leakboard.attacks._reading.edits import Edits
from leakboard.attacks._reading.first_texts import Text
from leakboard.interfaces import Floats
from leakboard.logs import log_progress
from leakboard.models.search import normalised

MOST_STEPS = 40
"""Largest number of edits without a question."""

Encode = Callable[[Sequence[Text]], Floats]
"""Encodes texts, float32 (n, d)."""


@dataclass
class Found:
    """The best texts of a target so far, best first, with their exact vectors and values."""

    target: Floats
    """Of length 1, float32 (d,)."""
    evidence: Floats
    """For each word of the vocabulary, float32 (words,)."""
    texts: list[Text]
    vectors: dict[Text, Floats] = field(default_factory=dict)
    values: dict[Text, float] = field(default_factory=dict)
    finished: bool = False


@dataclass(frozen=True)
class Climbing:
    edits: Edits
    log_odds: Callable[[Floats], Floats]
    """Evidence for each word in vectors, float32 (n, words)."""
    words: int
    """Number of words that edits may write."""
    beam: int
    """Texts that are edited in each round."""
    candidates: int
    """Edited texts that are encoded in each round, for each target."""

    def predicted(self, text: Text, target: Floats, evidence: Floats) -> tuple[float, Text]:
        """Return the best text that edits reach by predicted values alone, and its value."""
        words = _largest(evidence, self.words)
        value = float(normalised(self.edits.sums(text)[None])[0] @ target)
        value += self.edits.prior * float(self.edits.log_laws([text])[0])
        for _ in range(MOST_STEPS):
            proposed = self.edits.proposed(text, target, words)
            if not proposed or proposed[best := max(proposed, key=proposed.__getitem__)] <= value:
                break
            text, value = best, proposed[best]
        return value, text

    def rounds(self, found: Sequence[Found], encode: Encode, most: int, limit: int) -> int:
        """Improve texts by their exact vectors; return the number of questions.

        Args:
            found: what was found so far; it is changed.
            encode: answers questions.
            most: largest number of rounds.
            limit: number of questions; a round that could exceed it is not begun.
        """
        questions = self._judge(found, [one.texts for one in found], encode)
        for number in range(1, most + 1):
            log_progress(f"round {number} of {most}: {questions:,} questions so far")
            active = [one for one in found if not one.finished]
            if not active or questions + len(active) * self.candidates > limit:
                break
            proposed = [self._proposed(one) for one in active]
            before = [list(one.texts) for one in active]
            questions += self._judge(active, proposed, encode)
            for one, texts in zip(active, before, strict=True):
                one.finished = one.texts == texts
        return questions

    def _proposed(self, one: Found) -> list[Text]:
        """Return the edits to encode."""
        values: dict[Text, float] = {}
        own = self.log_odds(np.stack([one.vectors[text] for text in one.texts]))
        for text, evidence in zip(one.texts, own, strict=True):
            words = _largest(one.evidence - evidence, self.words)
            for edited, value in self.edits.proposed(text, one.target, words, one.vectors[text]).items():
                values[edited] = max(value, values.get(edited, value))
        new = (text for text in sorted(values, key=lambda text: (-values[text], text)) if text not in one.values)
        return [text for text, _ in zip(new, range(self.candidates), strict=False)]

    def _judge(self, found: Sequence[Found], texts: Sequence[Sequence[Text]], encode: Encode) -> int:
        """Encode texts of each target, and keep the best; return their number."""
        flat = [text for own in texts for text in own]
        if not flat:
            return 0
        judged = zip(normalised(encode(flat)), self.edits.log_laws(flat), strict=True)
        for one, own in zip(found, texts, strict=True):
            exact = {}
            for text, (vector, law) in zip(own, judged, strict=False):
                exact[text] = vector
                one.values[text] = float(vector @ one.target) + self.edits.prior * float(law)
            one.texts = sorted({*one.texts, *own}, key=lambda text: (-one.values[text], text))[: self.beam]
            known = one.vectors | exact
            one.vectors = {text: known[text] for text in one.texts}
        return len(flat)


def _largest(evidence: Floats, words: int) -> list[int]:
    return [int(word) for word in np.argsort(-evidence, kind="stable")[:words]]
