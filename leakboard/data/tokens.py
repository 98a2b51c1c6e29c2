"""Words of a text as the word2vec study cleans them (Zouhri and Abecidan 2021, algorithm A1, step 1)."""

from __future__ import annotations

import string

_DELETED = str.maketrans("", "", string.punctuation)


def words(text: str) -> list[str]:
    """Return lower-cased words, ASCII punctuation deleted, split on white space."""
    return text.lower().translate(_DELETED).split()
