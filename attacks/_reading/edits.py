"""Propose edits of a text: what its vector would become is predicted, how likely its words are is known.

An edit replaces a word, inserts one, leaves one out, or moves up to five words in a row. The value of a text is the
cosine between its vector and the target, plus a small weight times ln P(text). Of an edited text the vector is
predicted: the exact vector of the text before, plus the change by `WordSums`. A move leaves this prediction as it is,
so that moves are ordered by ln P alone. Texts of over 40 words are not reordered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._reading.first_texts import Text
from leakboard.attacks._reading.word_sums import WordSums
from leakboard.interfaces import Floats, Integers
from leakboard.models.search import normalised
from leakboard.models.trigrams import Trigrams

SPAN = 5
"""Largest number of words that move together."""
EXCHANGES = 80
"""Largest number of pairs of a removed and an added word that are tried at all places, those predicted best."""
MOVES = 200
"""Largest number of moves that are tried, the likeliest."""
LONGEST = 40
"""Longest text that is reordered: the number of moves grows with the square of its length."""
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
        found = dict.fromkeys(self._moved(text), float(cosines[0]))
        for pair in best:
            out, new = removed[pair // len(added)], added[pair % len(added)]
            found |= dict.fromkeys(_exchanged(text, out, new), float(cosines[pair]))
        found.pop(text, None)
        texts = [edited for edited in found if edited]
        values = np.array([found[edited] for edited in texts]) + self.prior * self.log_laws(texts)
        return dict(zip(texts, values.tolist(), strict=True))

    def _moved(self, text: Text) -> list[Text]:
        """Return the likeliest texts with up to `SPAN` words in a row at another place."""
        orders = _orders(len(text)) if len(text) <= LONGEST else np.empty((0, len(text)), np.int64)
        law, codes = self.trigrams, np.array([*text], np.int64)
        if len(orders) > MOVES:
            words, places = np.unique([law.start, law.start, *text, law.end], return_inverse=True)
            ends = (np.repeat(places[at][None], len(orders), axis=0) for at in (slice(0, 2), slice(-1, None)))
            line = np.concatenate([next(ends), places[2:-1][orders], next(ends)], axis=1)
            triples = (line[:, :-2] * len(words) + line[:, 1:-1]) * len(words) + line[:, 2:]
            is_seen = np.zeros(len(words) ** 3, bool)
            is_seen[triples] = True
            logs, seen = np.zeros(len(is_seen)), np.flatnonzero(is_seen)
            logs[seen] = law.log_probabilities(*(words[part] for part in np.unravel_index(seen, (len(words),) * 3)))
            orders = orders[np.argsort(-logs[triples].sum(1), kind="stable")[:MOVES]]
        return [tuple(map(int, moved)) for moved in codes[orders]]

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


@lru_cache(maxsize=LONGEST)
def _orders(length: int) -> Integers:
    """Return the orders of words in which up to `SPAN` words in a row are at another place, int64 (n, length)."""
    found, places = set(), tuple(range(length))
    for start in places:
        for end in range(start + 1, min(length, start + SPAN) + 1):
            rest, moved = places[:start] + places[end:], places[start:end]
            found |= {rest[:i] + moved + rest[i:] for i in range(len(rest) + 1)}
    return np.array(sorted(found - {places}), np.int64).reshape(-1, length)
