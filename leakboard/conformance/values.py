"""Compare nested values: compute their digests, summarise their numbers, and find their arrays and mappings."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from leakboard.interfaces import Corpus
from leakboard.store import fields_of

DIGITS = 6
"""Significant digits of the numbers of a summary."""


def digest(value: Any) -> str:
    """Return the SHA-256 of arrays, lists, mappings, corpora and dataclasses, to the last bit, without functions."""
    h = hashlib.sha256()

    def add(item: Any) -> None:
        parts = None if callable(item) else _parts(content(item) if isinstance(item, Corpus) else item)
        if parts is not None:
            for part in parts:
                add(part)
        elif isinstance(item, np.ndarray):
            h.update(f"{item.dtype}{item.shape}".encode() + np.ascontiguousarray(item).tobytes())
        elif not callable(item):
            h.update(repr(item).encode())
        h.update(b";")

    add(value)
    return h.hexdigest()


def content(corpus: Corpus) -> list[Any]:
    """Return everything in a corpus as nested lists and mappings."""
    rows = {split: {name: list(part[name][:]) for name in part.column_names} for split, part in corpus.splits.items()}
    return [corpus.name, list(corpus.secrets), rows, dict(corpus.checks)]


def arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    """Return every array in lists, mappings and dataclasses."""
    return [leaf for leaf in _leaves(value) if isinstance(leaf, np.ndarray)]


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return a mapping itself, and the mappings that a dataclass holds."""
    parts = vars(value).values() if dataclasses.is_dataclass(value) else [value]
    return [part for part in parts if isinstance(part, dict)]


def summary(value: Any) -> dict[str, list[Any]]:
    """Summarise a nested value in a few numbers, for ``tests/pins.json``.

    Returns:
        ``floats``: count, mean, root mean square and four entries; ``integers``: count, mean and root mean square;
        ``strings``: count, total length and a digest, of strings and of values of other types. If there is no value
        of a type, its key is missing.
    """
    floats: list[Any] = []
    integers: list[Any] = []
    strings: list[str] = []
    for leaf in _leaves(value):
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf":
            (floats if leaf.dtype.kind == "f" else integers).append(leaf.ravel().astype(np.float64))
        elif isinstance(leaf, bool | int | np.integer | np.bool_):
            integers.append(np.array([leaf], np.float64))
        elif isinstance(leaf, float | np.floating) and math.isfinite(leaf):
            floats.append(np.array([leaf], np.float64))
        else:
            strings.append(leaf if isinstance(leaf, str) else repr(leaf))
    result: dict[str, list[Any]] = {}
    if floats:
        numbers = np.concatenate(floats)
        chosen = [0, len(numbers) // 3, 2 * len(numbers) // 3, len(numbers) - 1]
        result["floats"] = [*_moments(numbers), *map(_rounded, numbers[chosen])]
    if integers:
        result["integers"] = _moments(np.concatenate(integers))
    if strings:
        text_digest = hashlib.sha256("\x1f".join(strings).encode()).hexdigest()[:12]
        result["strings"] = [len(strings), sum(map(len, strings)), text_digest]
    return result


def _parts(value: Any) -> list[Any] | None:
    """Return the parts of a list, mapping or dataclass, with keys and field names in order; None for other values."""
    if not isinstance(value, dict) and dataclasses.is_dataclass(value):
        value = fields_of(value)
    if isinstance(value, dict):
        return [[key, value[key]] for key in sorted(value)]
    return list(value) if isinstance(value, list | tuple) else None


def _leaves(value: Any) -> Iterator[Any]:
    """Yield every value in lists, mappings and dataclasses, with the mappings' keys and the fields' names."""
    if (parts := _parts(value)) is None:
        yield value
    else:
        for part in parts:
            yield from _leaves(part)


def _moments(numbers: Any) -> list[float]:
    return [len(numbers), _rounded(numbers.mean()), _rounded(np.sqrt(np.mean(numbers**2)))]


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
