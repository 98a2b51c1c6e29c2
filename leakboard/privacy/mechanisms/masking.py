"""Hiding words of a text before it is encoded (DPNR, Lyu, He and Li 2020, algorithm 2, step 1).

A word is what stands between blanks, and is replaced as a whole by one mask, so the number of words stays visible.
Every word is hidden independently, with a fresh secret draw: what `WordDropout`'s theorem asks for. The paper's own
formula hides an exact number of words, for which the theorem does not follow. (Its code hides word pieces, through the
attention mask; the noise study words and bigrams each by itself: neither hides a word. `bert: {attend_masks: false}`
hides whole words by the attention mask.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.privacy.mechanisms.textbook import WordDropout


def hide_words(
    texts: Sequence[str],
    mask: str,
    dropout: WordDropout,
    sensitive: AbstractSet[str],
    generator: np.random.Generator,
    exact: bool = False,
) -> Texts:
    """Return the texts with words replaced by the mask.

    Args:
        texts: to hide words of.
        mask: what stands for a hidden word.
        dropout: hides every word with its rate.
        sensitive: words in lower case that are hidden wherever they stand, inside of compounds too.
        generator: one number a word is drawn, listed words included.
        exact: hide the share itself of each text's words, rounded, instead of each word with this probability.
    """
    rows = getattr(texts, "rows", None)
    if not dropout.rate and not sensitive:
        return Texts(texts, rows)
    hidden = []
    for text in texts:
        words = text.split()
        keep = dropout.keep(len(words), generator)
        if exact:
            keep = generator.permutation(len(words)) >= round(dropout.rate * len(words))
        chosen = zip(words, keep, strict=True)
        hidden.append(" ".join(w if k and sensitive.isdisjoint(_parts(w)) else mask for w, k in chosen))
    return Texts(hidden, rows)


def _parts(word: str) -> list[str]:
    return re.findall(r"\w+", word.lower())


def check_sensitive(words: Iterable[str]) -> None:
    """Refuse what no word can match.

    Raises:
        RequestError: an entry is not letters, digits and underscores alone; it would hide nothing.
    """
    for word in words:
        if not re.fullmatch(r"\w+", word):
            raise RequestError(f"sensitive_words: {word!r} is not one word: letters and digits alone")
