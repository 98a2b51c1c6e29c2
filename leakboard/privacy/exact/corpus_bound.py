"""Compute the context-free bound of a corpus: what the best attacker of single words gets right on average.

It knows how often each word occurs in these very texts, and guesses argmax_x count(x) P(y | x) for a published word y.
So no attacker who looks at one published word at a time is right more often on average over the channel's draws. An
attacker who reads the sentence may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from leakboard.errors import RequestError
from leakboard.privacy.channels.texts import TextChannel
from leakboard.privacy.exact.bayes import BestGuess
from leakboard.privacy.exact.scan import scan


def corpus_bound(channel: TextChannel, every: Sequence[str]) -> float | None:
    """Return the share of words that the best attacker of single words gets right; None: the channel has no matrix.

    Args:
        channel: how the words were replaced.
        every: all private words of the corpus.
    """
    counts = Counter(every)
    inputs = channel.inputs([*counts])
    most = np.zeros(len(channel.known))
    sure = 0
    for (word, count), row in zip(counts.items(), inputs, strict=True):
        if channel.unknown == "kept" and word not in channel.rows:
            sure += count
        else:  # of the words that share the token's row, one can be guessed
            most[row] = max(most[row], count)
    if not most.any():
        return 1.0 if every else None
    guess = BestGuess(most)
    try:
        scan(channel.known, [guess], np.flatnonzero(most))
    except RequestError:
        return None
    return float((sure + np.exp(guess.log_joint).sum() * most.sum()) / len(every))
