"""What plugins answer, compared to the last bit: digests of nested values, and the arrays and mappings in them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from leakboard.interfaces import Corpus


def digest(value: Any) -> str:
    """Return the SHA-256 of arrays, lists, mappings, corpora and dataclasses, to the last bit, functions left out."""
    h = hashlib.sha256()

    def add(item: Any) -> None:
        if isinstance(item, np.ndarray):
            h.update(f"{item.dtype}{item.shape}".encode() + np.ascontiguousarray(item).tobytes())
        elif isinstance(item, Corpus):
            add(content(item))
        elif callable(item):
            pass
        elif dataclasses.is_dataclass(item):
            add({field.name: getattr(item, field.name) for field in dataclasses.fields(item)})
        elif isinstance(item, dict):
            for key in sorted(item):
                add([key, item[key]])
        elif isinstance(item, list | tuple):
            for part in item:
                add(part)
        else:
            h.update(repr(item).encode())
        h.update(b";")

    add(value)
    return h.hexdigest()


def content(corpus: Corpus) -> list[Any]:
    """Return everything in a corpus, for its digest."""
    rows = {split: {name: list(part[name][:]) for name in part.column_names} for split, part in corpus.splits.items()}
    return [corpus.name, list(corpus.secrets), rows, dict(corpus.checks)]


def arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    """Return every array in lists, mappings and dataclasses."""
    if isinstance(value, np.ndarray):
        return [value]
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return [found for part in parts for found in arrays(part)]


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return a mapping itself, and those that a dataclass holds."""
    parts = vars(value).values() if dataclasses.is_dataclass(value) else [value]
    return [part for part in parts if isinstance(part, dict)]
