"""Classes of a column: names in order, numbers put into bins, and secrets that cannot be guessed refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakboard.errors import RequestError
from leakboard.interfaces import POSTERIOR
from leakboard.logs import log_progress

if TYPE_CHECKING:
    import pandas as pd

SEPARATOR = "; "
"""What tables write between the names of secrets."""
MAX_CLASSES = 1_000
MAX_NUMBERS = 20
"""A secret with more values than this, most of them numbers, is a measurement: it is refused unless it has bins."""


def encode(frame: pd.DataFrame, column: str, source: str) -> tuple[str, ...]:
    """Replace class names by their numbers and return the names, numbers in numeric order.

    Raises:
        RequestError: there are more than a thousand; names ``source``.
    """
    values = sorted(frame[column].unique(), key=_class_order)
    if len(values) > MAX_CLASSES:
        raise RequestError(f"{source}: column {column!r} has {len(values)} values; allowed: {MAX_CLASSES}")
    frame[column] = frame[column].map({value: code for code, value in enumerate(values)}).astype(int)
    return tuple(values)


def encode_bins(frame: pd.DataFrame, column: str, bins: int | Sequence[float]) -> tuple[str, ...]:
    """Replace numbers by the numbers of their bins and return the names of the bins, lowest first.

    Args:
        frame: holds the column of finite numbers.
        column: its name.
        bins: how many bins of as equal size as the values allow (quantiles of all rows), or the numbers at which a
            new bin begins; below the first and from the last on lies a bin too.
    """
    values = frame[column].to_numpy(np.float64)
    is_whole = bool((values == np.floor(values)).all())
    if isinstance(bins, int):
        shares = np.arange(1, bins) / bins
        edges = np.unique(np.quantile(values, shares, method="higher"))
        edges = edges[edges > values.min()]
        if len(edges) + 1 < bins:
            log_progress(f"{column}: {len(edges) + 1} bins instead of {bins}, since many rows have the same value")
        ends = (values.min(), values.max())
    else:
        edges, ends = np.asarray(bins, np.float64), (None, None)
    codes = np.digitize(values, edges)
    names = _bin_names(edges, ends, is_whole and bool((edges == np.floor(edges)).all()))
    used = np.unique(codes)
    frame[column] = np.searchsorted(used, codes)
    return tuple(names[code] for code in used)


def _bin_names(edges: NDArray[np.float64], ends: tuple[float | None, float | None], is_whole: bool) -> list[str]:
    """Return the names of the bins between ends and edges, as in "18-29"; None is an open end."""
    limits = [ends[0], *edges.tolist(), ends[1]]
    spelt = _spelt([limit for limit in limits if limit is not None])

    def between(low: float | None, high: float | None, is_last: bool) -> str:
        if low is None:
            return f"below {spelt[high]}"
        if high is None:
            return f"{spelt[low]} and above"
        if not is_whole:
            return f"{spelt[low]} to {spelt[high]}" if is_last else f"{spelt[low]} to under {spelt[high]}"
        last = high if is_last else high - 1
        return f"{low:.0f}" if low == last else f"{low:.0f}-{last:.0f}"

    return [between(low, high, i == len(edges)) for i, (low, high) in enumerate(pairwise(limits))]


def _spelt(numbers: Sequence[float]) -> dict[float | None, str]:
    """Return numbers as they are written: whole ones in full, others with six digits, or as many as tell them apart."""
    numbers = sorted({*numbers})
    fewest = max(6, len(f"{max(map(abs, numbers)):.0f}"))  # no part of a number before its point is rounded
    for digits in range(fewest, fewest + 18):
        spelt = [f"{number:.0f}" if number.is_integer() else f"{number:.{digits}g}" for number in numbers]
        if len({*map(float, spelt)}) == len(numbers):
            break
    return dict(zip(numbers, spelt, strict=True))


def check_secret(values: Sequence[str], column: str, source: str) -> None:
    """Refuse a secret that has one value only, or so many numbers for values that it is a measurement.

    Args:
        values: the classes that occur.
        column: the secret's.
        source: the file or glob.

    Raises:
        RequestError: names file, column and value, and offers bins.
    """
    if len(values) == 1:
        raise RequestError(f"{source}: the secret {column!r} has one value only, {values[0]!r}: nothing can be guessed")
    if is_measurement(values):
        raise RequestError(
            f"{source}: the secret {column!r} has {len(values)} values, most of them numbers (from {values[0]} to "
            f"{values[-1]}); put them into bins: bins: {{{column}: 5}} makes five of equal size, "
            f"bins: {{{column}: [18, 30, 45]}} names where they begin"
        )


def is_measurement(values: Sequence[str]) -> bool:
    """Return whether the values of a secret are so many, most of them numbers, that they are no classes."""
    return len(values) > MAX_NUMBERS and sum(map(_is_number, values)) > len(values) / 2


def check_names(names: Iterable[str], source: str) -> None:
    """Refuse names of secrets that tables and files of the corpus could not hold.

    Raises:
        RequestError: names ``source`` and the first such name.
    """
    for name in names:
        if not name.strip() or name.startswith(POSTERIOR) or SEPARATOR in name:
            raise RequestError(
                f"{source}: {name!r} is not allowed as the name of a secret; rename the column: some text, "
                f"not beginning with {POSTERIOR!r}, without {SEPARATOR!r}"
            )


def _is_number(value: str) -> bool:
    try:
        return np.isfinite(float(value))  # type: ignore[return-value]
    except ValueError:
        return False


def _class_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), name) if re.fullmatch(r"-?\d{1,99}", name) else (1, 0, name)
