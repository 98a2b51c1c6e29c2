"""Join the tokens of a text, whose order is unknown, to words."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from leakboard.data.tokens import words
from leakboard.models.static_vectors import StaticVectors

START = "\u2581"
"""Begins a token that begins a word (SentencePiece)."""
UNKNOWN = 15.0
"""Cost of a token outside all known strings (nats); a string costs -ln of its share."""
MOST_ORDERS = 400
"""Most orders of tokens that are tried after the first token of an unknown word."""

String = tuple[int, ...]
"""Tokens of a string between blanks, without punctuation."""


@dataclass(frozen=True)
class Joiner:
    """Joins tokens to the likeliest known strings; what is left continues words if the tokenizer splits these so."""

    vectors: StaticVectors
    costs: Mapping[String, float]
    """-ln of the share of each known string (nats)."""
    by_first: Mapping[int, Sequence[String]]
    """The known strings that begin with a token."""

    @classmethod
    def of(cls, vectors: StaticVectors, texts: Iterable[str]) -> "Joiner":
        """Learn the strings of texts."""
        counts = Counter(string for text in texts for string in text.split())
        strings: Counter[String] = Counter()
        for tokens, count in zip(vectors.tokens(list(counts)), counts.values(), strict=True):
            strings[tuple(token for token in tokens if _belongs_to_word(vectors, token))] += count
        del strings[()]
        by_first: dict[int, list[String]] = {}
        for string in strings:
            by_first.setdefault(string[0], []).append(string)
        total = strings.total()
        return cls(vectors, {string: math.log(total / count) for string, count in strings.items()}, by_first)

    def __call__(self, counts: Mapping[int, int]) -> list[str]:
        """Return the words of tokens, from how often each is in the text; without counts, in alphabetical order."""
        left = Counter({token: count for token, count in counts.items() if _belongs_to_word(self.vectors, token)})
        strings = self._known_strings(left)
        left -= Counter(token for string in strings for token in string)
        strings += [(token,) for token in left.elements() if self._starts(token)]
        inner = [token for token in left.elements() if not self._starts(token)]
        # Rare words first: they are likelier to be the beginnings of unknown words
        strings.sort(key=lambda string: -self.costs.get(string, math.inf))
        for place, string in enumerate(strings):
            if len(string) == 1 and self._starts(string[0]):
                strings[place] = self._continued(string, inner)
                for token in strings[place][1:]:
                    inner.remove(token)
        texts = [self._text(string) for string in [*strings, *((token,) for token in inner)]]
        return sorted({word for text in texts for word in words(text)})

    def _known_strings(self, counts: Counter[int]) -> list[String]:
        """Return the likeliest known strings that together have no more than these tokens, by an integer program."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        fitting = [string for token in counts for string in self.by_first.get(token, ()) if Counter(string) <= counts]
        if not fitting:
            return []
        needed = np.array([[string.count(token) for string in fitting] for token in counts])
        gains = np.array([UNKNOWN * len(string) - self.costs[string] for string in fitting])
        limits = LinearConstraint(needed, ub=np.array(list(counts.values())))
        result = milp(-gains, constraints=limits, integrality=np.ones(len(fitting)), bounds=Bounds(0, np.inf))
        if result.x is None:
            return []
        return [string for string, count in zip(fitting, result.x, strict=True) for _ in range(round(count))]

    def _continued(self, start: String, inner: Sequence[int]) -> String:
        """Return a token and the most tokens after it, if the tokenizer splits the whole in the same way."""
        sizes = [size for size in range(1, len(inner) + 1) if math.perm(len(inner), size) <= MOST_ORDERS]
        for size in reversed(sizes):
            runs = [start + order for order in dict.fromkeys(permutations(inner, size))]
            for run, tokens in zip(runs, self.vectors.tokens([self._text(run) for run in runs]), strict=True):
                if run == tuple(tokens):
                    return run
        return start

    def _text(self, string: String) -> str:
        text: str = self.vectors.tokenizer.decode(list(string))
        return text

    def _starts(self, token: int) -> bool:
        return str(self.vectors.tokenizer.id_to_token(token)).startswith(START)


def _belongs_to_word(vectors: StaticVectors, token: int) -> bool:
    """Return whether a token is more than punctuation; a lone blank is, since it begins a number."""
    text = str(vectors.tokenizer.id_to_token(token))
    return text == START or bool(words(text.removeprefix(START)))
