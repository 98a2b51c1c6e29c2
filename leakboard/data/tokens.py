"""Split a text into words as the word2vec study does (Zouhri and Abecidan 2021, algorithm A1, step 1)."""

from __future__ import annotations

import string

_DELETED = str.maketrans("", "", string.punctuation)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without ASCII punctuation, split on white space."""
    return text.lower().translate(_DELETED).split()
