"""Test whether published words come from a channel, by Pearson's chi-square test.

For each word, the outputs are ordered by their probability, the likeliest first, and equally likely ones by their
index. A published word covers its part of the interval from 0 to 1, and a uniform point is drawn in this part. If the
words come from the channel, the points are uniform. So equal bins of the interval have equal expected counts, however
large the vocabulary is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakboard.privacy.channels.channel import ROWS
from leakboard.privacy.channels.texts import TextChannel

BINS = 20
"""Largest number of equal bins of the interval."""
EXPECTED = 5
"""Least number of words that a bin expects: with fewer, p-values are too small."""


def sampling_p_value(
    channel: TextChannel, plain: Sequence[str], published: Sequence[str], rng: np.random.Generator
) -> float:
    """Return the p-value of published words under their channel; 0 if a published word is impossible.

    It is 1 if there are fewer than ten words to compare.

    Args:
        channel: the declared channel.
        plain: the private words.
        published: a published word for each private word.
        rng: draws the points.

    Raises:
        RequestError: the channel has no matrix.
    """
    from scipy import stats

    pairs = [(word, new) for word, new in zip(plain, published, strict=True) if not _is_kept(channel, word)]
    if any(new != word for word, new in zip(plain, published, strict=True) if _is_kept(channel, word)):
        return 0.0
    if any(new not in channel.rows for _, new in pairs):
        return 0.0
    if not pairs:
        return 1.0
    inputs, place = np.unique(channel.inputs([word for word, _ in pairs]), return_inverse=True)
    outputs, points = np.array([channel.rows[new] for _, new in pairs]), np.empty(len(pairs))
    for start in range(0, len(inputs), ROWS):
        chances = np.exp(channel.known.log_probabilities(inputs[start : start + ROWS]))
        for i in np.flatnonzero((place >= start) & (place < start + ROWS)):
            row = chances[place[i] - start]
            own = row[outputs[i]]
            if own == 0:
                return 0.0
            equal_before = (row[: outputs[i]] == own).sum()
            points[i] = row[row > own].sum() + (equal_before + rng.random()) * own
    if (bins := min(BINS, len(points) // EXPECTED)) < 2:
        return 1.0
    counts = np.bincount(np.minimum((points * bins).astype(np.int64), bins - 1), minlength=bins)
    return float(stats.chisquare(counts).pvalue)


def _is_kept(channel: TextChannel, word: str) -> bool:
    return channel.unknown == "kept" and word not in channel.rows
