"""Hide words of a text before it is encoded (DPNR, Lyu, He and Li 2020, algorithm 2, step 1).

One mask replaces the whole word, so the number of words stays visible. By default, every word is hidden independently,
with a fresh secret draw, as the theorem of `leakboard.privacy.mechanisms.textbook.WordDropout` requires.

- The formula of the paper hides an exact number of words (``exact``). The theorem does not cover this.
- The paper's code hides word pieces by the attention mask. The option ``attend_masks: false`` of BERT comes near.
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
        mask: text in place of a hidden word.
        dropout: the probability of hiding a word.
        sensitive: words in lower case. A word is always hidden if it or a part of it (as in ``x-ray``) is one of them.
        generator: draws the words to hide.
        exact: hide exactly the share ``dropout.rate`` of each text's words, rounded to whole words.
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
    """Refuse entries that are not one word.

    Raises:
        RequestError: an entry has other characters than letters, digits and underscores.
    """
    for word in words:
        if not re.fullmatch(r"\w+", word):
            raise RequestError(f"sensitive_words: {word!r} is not one word: letters, digits and underscores alone")
