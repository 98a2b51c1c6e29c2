"""Hiding words of a text before it is encoded (DPNR, Lyu, He and Li 2020, algorithm 2, step 1).

A word is what stands between blanks, and is replaced as a whole by one mask, so the number of words stays visible.
Every word is hidden independently, with a fresh secret draw: what `WordDropout`'s theorem asks for. (The paper hides an
exact number of words; its code hides word pieces.)
"""

from __future__ import annotations

import string
from collections.abc import Collection, Sequence

import numpy as np

from leakboard.interfaces import Texts
from leakboard.privacy.mechanisms import WordDropout


def hide_words(
    texts: Sequence[str], mask: str, dropout: WordDropout, sensitive: Collection[str], generator: np.random.Generator
) -> Texts:
    """Return the texts with words replaced by the mask.

    Args:
        texts: to hide words of.
        mask: what stands for a hidden word.
        dropout: hides every word with its rate.
        sensitive: words in lower case, without punctuation, that are hidden wherever they stand.
        generator: one number a word is drawn, listed words included.
    """
    rows = getattr(texts, "rows", None)
    if not dropout.rate and not sensitive:
        return Texts(texts, rows)
    hidden = []
    for text in texts:
        words = text.split()
        keep = dropout.keep(len(words), generator)
        chosen = zip(words, keep, strict=True)
        hidden.append(" ".join(w if k and _bare(w) not in sensitive else mask for w, k in chosen))
    return Texts(hidden, rows)


def _bare(word: str) -> str:
    return word.lower().strip(string.punctuation)
