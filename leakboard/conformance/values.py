"""Compare what plugins answer: digests of nested values, a few numbers of them, and the arrays and mappings in them."""

from __future__ import annotations

import dataclasses
import hashlib
import math
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


DIGITS = 6
"""Significant digits of a number."""


def summary(value: Any) -> dict[str, list[Any]]:
    """Return counts, mean, root mean square and four entries of all floats in a value, and likewise of the rest."""
    floats: list[Any] = []
    integers: list[Any] = []
    strings: list[str] = []

    def add(item: Any) -> None:
        if isinstance(item, dict):
            for key in sorted(item):
                add([key, item[key]])
        elif dataclasses.is_dataclass(item):
            add({field.name: getattr(item, field.name) for field in dataclasses.fields(item)})
        elif isinstance(item, list | tuple):
            for part in item:
                add(part)
        elif isinstance(item, np.ndarray) and item.dtype.kind in "biuf":
            (floats if item.dtype.kind == "f" else integers).append(item.ravel().astype(np.float64))
        elif isinstance(item, bool | int | np.integer | np.bool_):
            integers.append(np.array([item], np.float64))
        elif isinstance(item, float | np.floating) and math.isfinite(item):
            floats.append(np.array([item], np.float64))
        else:
            strings.append(item if isinstance(item, str) else repr(item))

    add(value)
    result: dict[str, list[Any]] = {}
    if floats:
        numbers = np.concatenate(floats)
        places = [0, len(numbers) // 3, 2 * len(numbers) // 3, len(numbers) - 1]
        result["floats"] = [*_moments(numbers), *map(_rounded, numbers[places])]
    if integers:
        result["integers"] = _moments(np.concatenate(integers))
    if strings:
        digest = hashlib.sha256("\x1f".join(strings).encode()).hexdigest()[:12]
        result["strings"] = [len(strings), sum(map(len, strings)), digest]
    return result


def _moments(numbers: Any) -> list[float]:
    return [len(numbers), _rounded(numbers.mean()), _rounded(np.sqrt(np.mean(numbers**2)))]


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
