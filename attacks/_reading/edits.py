"""Propose edits of a text: what its vector would become is predicted, how likely its words are is known.

An edit replaces a word, inserts one, leaves one out, or moves up to five words in a row. The value of a text is the
cosine between its vector and the target, plus a small weight times ln P(text). Of an edited text the vector is
predicted: the exact vector of the text before, plus the change by `WordSums`. A move leaves this prediction as it is,
so that moves are ordered by ln P alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._reading.first_texts import Text
from leakboard.attacks._reading.word_sums import WordSums
from leakboard.interfaces import Floats
from leakboard.models.search import normalised
from leakboard.models.trigrams import Trigrams

SPAN = 5
"""Largest number of words that move together."""
EXCHANGES = 80
"""Largest number of pairs of a removed and an added word that are tried at all places, those predicted best."""
NO_WORD = -1


@dataclass(frozen=True)
class Edits:
    """Values texts and their edits."""

    trigrams: Trigrams
    sums: WordSums
    prior: float
    """Weight of ln P(text) next to the cosine."""

    def proposed(
        self, text: Text, target: Floats, words: Sequence[int], vector: Floats | None = None
    ) -> dict[Text, float]:
        """Return the values of edited texts.

        Args:
            text: codes of its words.
            target: vector that is looked for, of length 1, float32 (d,).
            words: codes of words that edits may write.
            vector: exact vector of the text, of length 1, float32 (d,); None: the prediction is taken for it.
        """
        removed, added = [NO_WORD, *dict.fromkeys(text)], [NO_WORD, *words]
        predicted = self.sums.changed(text, removed, added)
        error = 0.0 if vector is None else vector - self.sums(text)
        cosines = normalised((predicted + error).reshape(-1, len(target))) @ target
        best = np.argsort(-cosines, kind="stable")[:EXCHANGES]
        found = dict.fromkeys(_moved(text), float(cosines[0]))
        for pair in best:
            out, new = removed[pair // len(added)], added[pair % len(added)]
            found |= dict.fromkeys(_exchanged(text, out, new), float(cosines[pair]))
        found.pop(text, None)
        texts = [edited for edited in found if edited]
        values = np.array([found[edited] for edited in texts]) + self.prior * self.log_laws(texts)
        return dict(zip(texts, values.tolist(), strict=True))

    def log_laws(self, texts: Sequence[Text]) -> NDArray[np.float64]:
        """Return ln P of each text, float64 (n,)."""
        base, law = self.trigrams.words + 2, self.trigrams
        lengths = np.array([len(text) + 1 for text in texts], np.int64)
        marked = ((law.start, law.start, *text, law.end) for text in texts)
        line = np.fromiter((code for text in marked for code in text), np.int64)
        ends = np.cumsum(lengths + 2)
        place = np.delete(np.arange(len(line)), np.concatenate([ends - lengths - 2, ends - lengths - 1]))
        triples, rows = np.unique((line[place - 2] * base + line[place - 1]) * base + line[place], return_inverse=True)
        pairs, third = np.divmod(triples, base)
        logs = law.log_probabilities(*np.divmod(pairs, base), third)[rows]  # few triples are new in an edited text
        return np.add.reduceat(logs, np.cumsum(lengths) - lengths) if len(texts) else np.empty(0)


def _exchanged(text: Text, out: int, new: int) -> Iterator[Text]:
    """Yield the texts with a word left out, inserted, or replaced by another one."""
    if out == NO_WORD and new != NO_WORD:
        yield from ((*text[:i], new, *text[i:]) for i in range(len(text) + 1))
    added = () if new == NO_WORD else (new,)
    yield from ((*text[:i], *added, *text[i + 1 :]) for i, word in enumerate(text) if word == out)


def _moved(text: Text) -> Iterator[Text]:
    """Yield the texts with up to `SPAN` words in a row at another place."""
    for start in range(len(text)):
        for end in range(start + 1, min(len(text), start + SPAN) + 1):
            rest, moved = text[:start] + text[end:], text[start:end]
            yield from (rest[:i] + moved + rest[i:] for i in range(len(rest) + 1))
