"""The vocabulary of skip-gram: words, their order, and how often each is drawn as a negative.

All three come from somewhere. Given from outside they are public and cost nothing. Counted in the private texts they
are a release too: `counted` adds noise and pays for it. `exact` counts without noise, as papers do without a word.

Theorem (noisy vocabulary; the argument of Korolova et al. 2009 and Gopi et al. 2020). Every unit adds to the histogram
a vector of 2-norm at most 1 with at most `MOST_WORDS` entries. Count x_w gets N(0, s**2) and is kept where the noisy
count exceeds t = 1 + s * z, z the normal quantile that tail probability p / `MOST_WORDS` lies above. Let D' have one
unit more than D. Each word that only this unit has counts at most 1 and passes with probability at most
p / `MOST_WORDS`; so with probability 1 - p at least, over noise that touches nothing else, no such word passes (event
E). On E the output is that of a Gaussian release with noise multiplier s of the histogram over the words of D. So for
any set S, with (epsilon, delta) that of the Gaussian release and all that follows on its words:

    P(D' in S) <= e**epsilon P(D in S) + delta + p,    P(D in S) <= e**epsilon P(D' in S) / (1 - p) + delta,

the second since E is independent of the noise of the words of D. Together: (epsilon - ln(1 - p), delta + p).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leakboard.data import tokens
from leakboard.data.readers.tabular import Row, read_lines
from leakboard.errors import RequestError

MOST_WORDS = 10_000
"""Distinct words of a unit that are counted, its most frequent ones."""
POWER = 0.75
"""Negatives are drawn in proportion to the count to this power (Mikolov et al. 2013)."""


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their rows, the most frequent first."""

    words: list[str]
    counts: np.ndarray
    """float64 (V,), positive: what the distribution of the negatives is made of."""

    @property
    def frequencies(self) -> np.ndarray:
        """How likely each word is drawn as a negative, up to a factor, float64 (V,)."""
        return self.counts**POWER


def exact(texts: Iterable[Sequence[str]], min_count: int, most: int | None) -> Vocabulary:
    """Count words without noise: what comes out depends on every text.

    Args:
        texts: the words of each text.
        min_count: rarer words are left out (occurrences).
        most: how many words are kept at most.
    """
    counts = Counter(word for text in texts for word in text)
    kept = {word: count for word, count in counts.items() if count >= min_count}
    return _ordered(list(kept), np.array(list(kept.values())), most)


def counted(
    texts: Sequence[Sequence[str]],
    owners: Sequence[int] | None,
    window: int,
    *,
    noise_multiplier: float,
    failure: float,
    most: int | None,
    generator: np.random.Generator,
) -> Vocabulary:
    """Count words with noise; a word is kept where its noisy count exceeds the `threshold`.

    Args:
        texts: the words of each text.
        owners: which unit each text belongs to; None where every pair is a unit: it counts for its centre.
        window: of the pairs (words).
        noise_multiplier: s, standard deviation of the noise on a count.
        failure: p, probability that a word of one unit alone comes out.
        most: how many words are kept at most.
        generator: of the noise.
    """
    histogram: Counter[str] = Counter()
    if owners is None:
        for text in texts:
            for position, word in enumerate(text):
                histogram[word] += min(position, window) + min(len(text) - 1 - position, window)
    else:
        of_unit: dict[int, Counter[str]] = {}
        for text, owner in zip(texts, owners, strict=True):
            of_unit.setdefault(owner, Counter()).update(text)
        for counts in of_unit.values():
            chosen = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_WORDS]
            norm = np.linalg.norm([count for _, count in chosen])
            histogram.update({word: count / norm for word, count in chosen})  # type: ignore[dict-item]
    words = sorted(word for word, count in histogram.items() if count > 0)
    noisy = np.array([histogram[word] for word in words]) + noise_multiplier * generator.standard_normal(len(words))
    kept = np.flatnonzero(noisy > threshold(noise_multiplier, failure))
    return _ordered([words[i] for i in kept], noisy[kept], most)


def threshold(noise_multiplier: float, failure: float) -> float:
    """Return t, the noisy count above which a word is kept."""
    from scipy import stats

    return 1 + noise_multiplier * float(stats.norm.isf(failure / MOST_WORDS))


def read(path: Path) -> Vocabulary:
    """Read a public vocabulary: one word a line, or a word, a tab, and its count somewhere public.

    Without counts the words are taken to be in order of frequency, the i-th from 1 as frequent as 1/i (Zipf).

    Raises:
        RequestError: the file cannot be read, a word is there twice, or a count is no number above 0.
    """
    lines: dict[str, int] = {}

    def entry(line: str) -> Row:
        row = _entry(line)
        if row["word"] in lines:
            raise ValueError(f"{row['word']!r} is there twice, first as word {lines[row['word']]}")
        lines[row["word"]] = len(lines) + 1
        return row

    rows = read_lines(path, entry, None).rows
    counts = [row["count"] for row in rows]
    if None in counts and any(counts):
        raise RequestError(
            f"{path}: {sum(map(bool, counts))} of {len(counts)} words have a count; allowed: all or none"
        )
    numbers = counts if any(counts) else [1 / rank for rank in range(1, len(rows) + 1)]
    return Vocabulary([row["word"] for row in rows], np.array(numbers, np.float64))


def _entry(line: str) -> Row:
    word, _, count = line.rstrip().partition("\t")
    if tokens.words(word) != [word]:
        raise ValueError(f"{word!r} is no word as texts are read: lower case, without punctuation or blanks")
    try:
        number = float(count) if count else None
    except ValueError:
        number = -1.0
    if number is not None and not 0 < number < math.inf:
        raise ValueError(f"count {count!r} is not allowed: a number above 0")
    return {"word": word, "count": number}


def _ordered(words: Sequence[str], counts: np.ndarray, most: int | None) -> Vocabulary:
    order = np.lexsort((np.array(words), -counts))[:most] if len(words) else np.empty(0, np.int64)
    return Vocabulary([words[i] for i in order], counts[order].astype(np.float64))
