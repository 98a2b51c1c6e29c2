"""Count or read the vocabulary of skip-gram: words, their order, and how often each is drawn as a negative.

A list given from outside is public and costs nothing. A vocabulary counted in the private texts is a release too:
`counted` adds noise and is paid for. `exact` counts without noise, as papers do, and nothing is proved for it.

Theorem (noisy vocabulary; the argument of Korolova et al. 2009 and Gopi et al. 2020). Let the Gaussian release of the
histogram with noise multiplier s, together with all that follows on its words, be (epsilon, delta)-private. Then the
noisy vocabulary is (epsilon - ln(1 - p), delta + p)-private.

Setting. Every unit adds to the histogram a vector of 2-norm at most 1 with at most `MAX_WORDS_PER_UNIT` entries. The
count x_w gets noise N(0, s**2). The word w is kept if its noisy count exceeds t = 1 + s z. A standard normal number
exceeds z with probability p / `MAX_WORDS_PER_UNIT`.

Proof. Let D' have one unit more than D. A word that only this unit has counts at most 1, so it is kept with probability
at most p / `MAX_WORDS_PER_UNIT`. Let E be the event that no such word is kept. E has probability at least 1 - p, over
noise that affects nothing else. On E the output is that of the Gaussian release over the words of D. So for any set S::

    P(D' in S) <= e**epsilon P(D in S) + delta + p
    P(D in S) <= e**epsilon P(D' in S) / (1 - p) + delta

The second line holds since E is independent of the noise of the words of D. Both together give the theorem.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leakboard.data import tokens
from leakboard.data.readers.tabular import InputRow, read_lines
from leakboard.errors import RequestError

MAX_WORDS_PER_UNIT = 10_000
"""Distinct words of a unit that are counted: its most frequent words."""
NEGATIVES_POWER = 0.75
"""Negatives are drawn in proportion to the count to this power (Mikolov et al. 2013)."""


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their rows, the most frequent first."""

    words: list[str]
    counts: np.ndarray
    """float64 (V,), positive."""

    @property
    def frequencies(self) -> np.ndarray:
        """Weight of each word in the draw of the negatives, float64 (V,)."""
        return self.counts**NEGATIVES_POWER


def exact(texts: Iterable[Sequence[str]], min_count: int, max_words: int | None) -> Vocabulary:
    """Count words without noise: the result depends on every text.

    Args:
        texts: the words of each text.
        min_count: rarer words are left out (occurrences).
        max_words: largest number of words; None for no limit.
    """
    counts = Counter(word for text in texts for word in text)
    kept = {word: count for word, count in counts.items() if count >= min_count}
    return _ordered(list(kept), np.array(list(kept.values())), max_words)


def counted(
    texts: Sequence[Sequence[str]],
    owners: Sequence[int] | None,
    window: int,
    *,
    noise_multiplier: float,
    failure: float,
    max_words: int | None,
    generator: np.random.Generator,
) -> Vocabulary:
    """Count words with noise, and keep the words with a noisy count above the `threshold`.

    Args:
        texts: the words of each text.
        owners: the unit of each text; None if every pair is a unit, which then counts for its centre.
        window: of the pairs (words).
        noise_multiplier: s, standard deviation of the noise on a count.
        failure: p, probability of keeping a word that only one unit has.
        max_words: largest number of words; None for no limit.
        generator: source of the noise.
    """
    histogram: Counter[str] = Counter()
    if owners is None:
        for text in texts:
            for position, word in enumerate(text):
                histogram[word] += min(position, window) + min(len(text) - 1 - position, window)
    else:
        by_unit: dict[int, Counter[str]] = {}
        for text, owner in zip(texts, owners, strict=True):
            by_unit.setdefault(owner, Counter()).update(text)
        for counts in by_unit.values():
            chosen = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:MAX_WORDS_PER_UNIT]
            norm = np.linalg.norm([count for _, count in chosen])
            histogram.update({word: count / norm for word, count in chosen})  # type: ignore[dict-item]
    words = sorted(word for word, count in histogram.items() if count > 0)
    noisy = np.array([histogram[word] for word in words]) + noise_multiplier * generator.standard_normal(len(words))
    kept = np.flatnonzero(noisy > threshold(noise_multiplier, failure))
    return _ordered([words[i] for i in kept], noisy[kept], max_words)


def threshold(noise_multiplier: float, failure: float) -> float:
    """Return t, the noisy count that a word must exceed."""
    from scipy import stats

    return 1 + noise_multiplier * float(stats.norm.isf(failure / MAX_WORDS_PER_UNIT))


def read(path: Path) -> Vocabulary:
    """Read a public vocabulary. Each line is a word, or a word, a tab, and its count in public texts.

    Without counts the words are taken to be in order of frequency, the i-th (from 1) as frequent as 1/i (Zipf).

    Raises:
        RequestError: the file cannot be read, a word occurs twice, or a count is not a number above 0.
    """
    lines: dict[str, int] = {}

    def parse(line: str) -> InputRow:
        row = _parse_line(line)
        if row["word"] in lines:
            raise ValueError(f"{row['word']!r} occurs twice, first as word {lines[row['word']]}")
        lines[row["word"]] = len(lines) + 1
        return row

    rows = read_lines(path, parse, None).rows
    counts = [row["count"] for row in rows]
    if None in counts and any(counts):
        raise RequestError(
            f"{path}: {sum(map(bool, counts))} of {len(counts)} words have a count; allowed: all or none"
        )
    if not any(counts):
        counts = [1 / rank for rank in range(1, len(rows) + 1)]
    return Vocabulary([row["word"] for row in rows], np.array(counts, np.float64))


def _parse_line(line: str) -> InputRow:
    word, _, count = line.rstrip().partition("\t")
    if tokens.words(word) != [word]:
        raise ValueError(f"{word!r} is not allowed: one word in lower case, without punctuation or blanks")
    try:
        number = float(count) if count else None
    except ValueError:
        number = -1.0
    if number is not None and not 0 < number < math.inf:
        raise ValueError(f"count {count!r} is not allowed: a number above 0")
    return {"word": word, "count": number}


def _ordered(words: Sequence[str], counts: np.ndarray, max_words: int | None) -> Vocabulary:
    order = sorted(range(len(words)), key=lambda i: (-counts[i], words[i]))[:max_words]
    return Vocabulary([words[i] for i in order], counts[order].astype(np.float64))
