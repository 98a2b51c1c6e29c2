"""Helpers for tests of loaders: the message of a refusal, and a corpus as plain rows."""

import re

import pandas as pd
import pytest

from leakboard.errors import RequestError


def refused(load):
    """Return the message of the RequestError that a call raises; it must be one line."""
    with pytest.raises(RequestError) as caught:
        load()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def everything(corpus):
    return {split: part.to_dict() for split, part in corpus.splits.items()}


def rows_of(corpus):
    """Return all rows of a corpus as one frame, by their number in the source."""
    parts = [part.to_pandas().assign(split=split) for split, part in corpus.splits.items()]
    return pd.concat(parts).set_index("row").sort_index()


def sizes(corpus):
    return {split: len(part) for split, part in corpus.splits.items()}


def by_row(corpus, column="text"):
    """Return a column of all splits, in the order of the source."""
    return rows_of(corpus)[column].to_dict()


def fake_tagger(text: str) -> list[str]:
    """Return the persons of the tests that a text mentions."""
    return re.findall(r"\b(?:Ann Lee|Bob|Cyd|Bush|Merkel|Rare)\b", text)
