"""A few numbers of nested values, to be kept and compared: counts, means and entries, and digests of text."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from typing import Any

import numpy as np

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
