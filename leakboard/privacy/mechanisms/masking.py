"""Hide words of a text before it is encoded (DPNR, Lyu, He and Li 2020, algorithm 2, step 1).

A word is a run of characters between blanks. One mask replaces it as a whole, so the number of words stays visible.
Every word is hidden independently, with a fresh secret draw, as the theorem of `WordDropout` requires.

The paper's own formula hides an exact number of words, for which the theorem does not follow. Its code hides word
pieces through the attention mask, and the noise study treats words and bigrams separately: neither hides a word. The
option `bert: {attend_masks: false}` hides whole words by the attention mask.
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
    """Replace words of the texts by the mask.

    Args:
        texts: n texts.
        mask: replaces a hidden word.
        dropout: hides every word with its rate.
        sensitive: words in lower case that are always hidden, also inside compounds.
        generator: draws one number for each word, listed words included.
        exact: hide exactly this share of each text's words, rounded, instead of each word with this probability.
    """
    rows, ids = getattr(texts, "rows", None), getattr(texts, "ids", None)
    if not dropout.rate and not sensitive:
        return Texts(texts, rows, ids)
    hidden = []
    for text in texts:
        words = text.split()
        keep = dropout.keep(len(words), generator)
        if exact:
            keep = generator.permutation(len(words)) >= round(dropout.rate * len(words))
        pairs = zip(words, keep, strict=True)
        hidden.append(" ".join(word if kept and sensitive.isdisjoint(_parts(word)) else mask for word, kept in pairs))
    return Texts(hidden, rows, ids)


def _parts(word: str) -> list[str]:
    return re.findall(r"\w+", word.lower())


def check_sensitive(words: Iterable[str]) -> None:
    """Refuse entries that match no word.

    Raises:
        RequestError: an entry has other characters than letters, digits and underscores.
    """
    for word in words:
        if not re.fullmatch(r"\w+", word):
            raise RequestError(f"sensitive_words: {word!r} is not one word: letters and digits alone")
