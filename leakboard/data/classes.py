"""Turn the values of a column into classes, put numbers into bins, and refuse columns that cannot be secrets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakboard.errors import RequestError
from leakboard.interfaces import POSTERIOR
from leakboard.logs import log_warning

if TYPE_CHECKING:
    import pandas as pd

SEPARATOR = "; "
"""Separator between the names of secrets in the published tables."""
MAX_CLASSES = 1_000
MAX_NUMBERS = 20
"""A secret with more values, most of them numbers, is a measurement: it needs bins."""


def encode(frame: pd.DataFrame, column: str, source: str) -> tuple[str, ...]:
    """Replace class names by their numbers and return the names: whole numbers first, in numeric order.

    Raises:
        RequestError: there are more than `MAX_CLASSES`; the message names ``source``.
    """
    values = sorted(frame[column].unique(), key=_class_order)
    if len(values) > MAX_CLASSES:
        raise RequestError(f"{source}: column {column!r} has {len(values)} values; allowed: {MAX_CLASSES}")
    frame[column] = frame[column].map({value: code for code, value in enumerate(values)}).astype(int)
    return tuple(values)


def encode_bins(frame: pd.DataFrame, column: str, bins: int | Sequence[float]) -> tuple[str, ...]:
    """Replace values by the numbers of their bins, and return the names of the bins, lowest first.

    Bins without rows are left out.

    Args:
        frame: has the column.
        column: of finite numbers.
        bins: the number of bins, of sizes as equal as the values allow (quantiles of all rows). Or a list of numbers at
            which a new bin begins; the values below the first number and from the last on are bins too.
    """
    values = frame[column].to_numpy(np.float64)
    is_whole = bool((values == np.floor(values)).all())
    if isinstance(bins, int):
        shares = np.arange(1, bins) / bins
        edges = np.unique(np.quantile(values, shares, method="higher"))
        edges = edges[edges > values.min()]
        if len(edges) + 1 < bins:
            log_warning(f"{column}: {len(edges) + 1} bins instead of {bins}, since many rows have the same value")
        ends = (values.min(), values.max())
    else:
        edges, ends = np.asarray(bins, np.float64), (None, None)
    codes = np.digitize(values, edges)
    names = _bin_names(edges, ends, is_whole and bool((edges == np.floor(edges)).all()))
    used = np.unique(codes)
    frame[column] = np.searchsorted(used, codes)
    return tuple(names[code] for code in used)


def _bin_names(edges: NDArray[np.float64], ends: tuple[float | None, float | None], is_whole: bool) -> list[str]:
    """Return the names of the bins, such as "18-29", from the lower end, the edges and the upper end; None: no end."""
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
    """Return numbers as text: whole ones in full, others with six digits, or with more if they would look equal."""
    numbers = sorted({*numbers})
    min_digits = max(6, len(f"{max(map(abs, numbers)):.0f}"))  # all digits before the decimal point are shown
    for digits in range(min_digits, min_digits + 18):
        spelt = [f"{number:.0f}" if number.is_integer() else f"{number:.{digits}g}" for number in numbers]
        if len({*map(float, spelt)}) == len(numbers):
            break
    return dict(zip(numbers, spelt, strict=True))


def check_secret(values: Sequence[str], column: str, source: str, is_binned: bool = False) -> None:
    """Refuse a secret that has only one value, or that is a measurement.

    Args:
        values: the classes that occur.
        column: of the secret.
        source: the file or glob, for the message.
        is_binned: whether the values are names of bins, which may be single numbers.

    Raises:
        RequestError: the secret is refused; for a measurement the message offers bins.
    """
    if len(values) == 1:
        raise RequestError(f"{source}: the secret {column!r} has one value only, {values[0]!r}: nothing can be guessed")
    if complaint := about_spelling(values):
        raise RequestError(f"{source}: the secret {column!r}: {complaint}")
    if not is_binned and is_measurement(values):
        raise RequestError(
            f"{source}: the secret {column!r} has {len(values)} values, most of them numbers (from {values[0]} to "
            f"{values[-1]}); put them into bins: `evaluate --bins {column}=5` makes five of equal "
            f"size; so does bins: {{{column}: 5}} in a suite's dataset `table`, and [18, 30, 45] says where they begin"
        )


def about_spelling(values: Iterable[str], what: str = "classes", case_counts: bool = False) -> str:
    """Return a complaint if two names differ only in spaces, invisible letters or their encoding.

    Unless case counts, names that differ in case, and `true` and `1`, are the same, too.
    """
    first: dict[str, str] = {}
    for value in values:
        plain = value
        if not (case_counts and value.isascii() and value.isalnum()):
            shown = "".join(c for c in value if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf"))
            plain = " ".join(unicodedata.normalize("NFKC", shown).split()) or value
        if not case_counts:
            plain = {"true": "1", "false": "0"}.get(plain.casefold(), plain.casefold())
        if (other := first.setdefault(plain, value)) != value:
            return f"the {what} {other!r} and {value!r} differ in spelling only; write one of them"
    return ""


def listed(value: Any) -> Any:
    """Return a list, a set or an array of values as a text that `about_kind` knows, and anything else as it is."""
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return repr([str(entry) for entry in value])
    return value


def about_kind(names: Collection[str], column: str, is_label: bool = False) -> str:
    """Return a complaint, with a way out, if most classes of a column are lists, or many of them are dates; else empty.

    A few dates may be classes, such as the days of a survey.
    """
    first = min(names)
    if _most(_LIST, names):
        way_out = "write a column of 0 and 1 for each value; these are entities (--entities a,b) or, in Python, secrets"
        return f"lists of values, as {first}; {'allowed: one class a row' if is_label else way_out}"
    if len(names) > MAX_NUMBERS and _most(_DATE, names):
        way_out = (
            "write the year into a column of its own, and put it into bins, as --bins year=4 does, or in Python "
            f"pandas.cut(frame[{column!r}].dt.year, 4)"
        )
        shown = f"{len(names)} values, most of them dates, as {first}"
        return f"{shown}; {'allowed: classes, such as decades' if is_label else way_out}"
    return ""


def _most(pattern: re.Pattern[str], names: Collection[str]) -> bool:
    return sum(bool(pattern.fullmatch(name)) for name in names) > len(names) / 2


_LIST = re.compile(r"\[\s*(['\"].*)?\]", re.DOTALL)
"""A list in JSON or Python. Intervals of pandas, as ``[0, 30]``, have no quotes."""
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?([./])\d\d?\2(\d{4}|\d\d)([ T].*)?", re.ASCII)


def is_measurement(values: Sequence[str]) -> bool:
    """Return whether a secret has more than `MAX_NUMBERS` values, most of them numbers."""
    return len(values) > MAX_NUMBERS and sum(map(_is_number, values)) > len(values) / 2


def check_names(names: Iterable[str], source: str) -> None:
    """Refuse names of secrets that would be ambiguous in tables or in the files of a corpus.

    Raises:
        RequestError: a name is refused; the message has ``source`` and the name.
    """
    for name in names:
        if not (name.strip() and name.isprintable()) or name.startswith(POSTERIOR) or SEPARATOR in name:
            raise RequestError(
                f"{source}: {name!r} is not allowed as the name of a secret; rename the column: a line of text, "
                f"not beginning with {POSTERIOR!r}, without {SEPARATOR!r}"
            )


def _is_number(value: str) -> bool:
    try:
        return np.isfinite(float(value))  # type: ignore[return-value]
    except ValueError:
        return False


def _class_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), name) if re.fullmatch(r"-?\d{1,99}", name) else (1, 0, name)
