"""Compare the numbers of ``findings.md`` and ``papers.md`` with the tables and settings that they come from.

Compared are numbers in digits, and fractions such as "a quarter"; other numbers in words are not.
"""

import functools
import io
import itertools
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal

import pandas as pd

from leakboard.suite.yaml_files import read_yaml

FRACTIONS = {"a half": "0.5", "a third": "0.33", "a quarter": "0.25", "a fifth": "0.2", "a tenth": "0.1"}
NUMBER = re.compile(
    r"(?<![\w.])(?<!figure )(?<!table )(?!20\d\d\))"  # neither in a name, nor of a paper: its figure, table or year
    rf"-?\d+(?:,\d{{3}})*(?:\.\d+)?(?:e-?\d+|/\d+)?(?: ?%)?|\b(?:{'|'.join(FRACTIONS)})\b",
    re.IGNORECASE,
)
SECTION = re.compile(r"^## .*", re.MULTILINE)
"""Heading of a section: of ``papers.md`` a paper with its year."""
ROUNDINGS = {"nearest": (ROUND_HALF_UP, ROUND_HALF_DOWN), "down": (ROUND_FLOOR,), "up": (ROUND_CEILING,)}
"""How a number may have been rounded. Tables are rounded already, so the nearest of a last digit 5 is open."""


@dataclass(frozen=True)
class Origin:
    """Where a number comes from: cells of a table, or a setting of ``suite.yaml``."""

    number: str
    """As the page writes it."""
    table: str = "leaderboard.csv"
    """CSV, relative to the page's folder; or ``README.md``, for measures of vectors. They also have a ``section``."""
    where: str = ""
    """Pandas query of the rows; all rows, if left out. Without `aggregate` each of them has the number."""
    column: str = ""
    aggregate: str = ""
    """Of the rows: min, max, mean or count."""
    rounded: str = "nearest"
    """One of `ROUNDINGS`: down for "at least", up for "at most"."""
    suite: str = ""
    """Key of the ``suite.yaml`` next to the table, instead of the table: the number is among its values."""


def problems(home, listing, page="findings.md"):
    """Return how a page of a folder differs from the origins that a file lists; empty if they agree."""
    origins = [Origin(**entry) for entry in read_yaml(listing)]
    named = NUMBER.findall(" ".join(SECTION.sub("", (home / page).read_text("utf-8")).split()))
    for place, (ours, listed) in enumerate(itertools.zip_longest(named, (o.number for o in origins)), start=1):
        if ours != listed:
            return [f"number {place} of {page} is {ours}, but {listing.name} lists {listed}"]
    table, settings = functools.cache(_table), functools.cache(read_yaml)
    values = [
        _settings(settings(path.with_name("suite.yaml")), o.suite) if o.suite else _cells(table(path), o)
        for o, path in ((o, home / o.table) for o in origins)
    ]
    pairs = zip(origins, values, strict=True)
    return [f"{origin} has {[*map(str, found)]}" for origin, found in pairs if not agrees(origin, found)]


def agrees(origin, values):
    """Decide whether a setting is a number exactly, or whether all cells are after rounding."""
    written = as_decimal(origin.number)
    if origin.suite:
        return written in values
    modes = ROUNDINGS[origin.rounded]
    return bool(values) and all(
        value.is_finite() and any(value.quantize(written, mode) == written for mode in modes) for value in values
    )


def as_decimal(number):
    """Return a number of a page with as many digits: two for 0.50, and for 85 %."""
    if fraction := FRACTIONS.get(number.lower()):
        return Decimal(fraction)
    dividend, _, divisor = number.replace(",", "").rstrip(" %").partition("/")
    value = Decimal(dividend) / Decimal(divisor) if divisor else Decimal(dividend)
    return value.scaleb(-2) if number.endswith("%") else value


def _cells(rows, origin):
    """Return the cells of a table that have a number, or their aggregate."""
    column = (rows.query(origin.where) if origin.where else rows)[origin.column]
    values = [column.agg(origin.aggregate)] if origin.aggregate else column
    return [Decimal(str(value)) for value in values]


def _settings(part, key, under=False):
    """Return the numbers under a key of a suite, single or in a list, at any depth."""
    if isinstance(part, dict):
        return [number for name, value in part.items() for number in _settings(value, key, name == key)]
    if isinstance(part, list):
        return [number for value in part for number in _settings(value, key, under)]
    return [Decimal(str(part))] if under and type(part) in (int, float) else []


def _table(path):
    """Return the rows of a CSV, or the measures of the vectors of all sections of a page."""
    if path.suffix == ".csv":
        return pd.read_csv(path)
    frames, section = [], ""
    for block in path.read_text("utf-8").split("\n\n"):
        section = block[3:] if block.startswith("## ") else section
        if block.startswith("| victim |"):
            head, _, *lines = (line[2:-2].replace("\\", "") for line in block.splitlines())
            rows = pd.read_csv(io.StringIO("\n".join([head, *lines])), sep=r" \| ", engine="python")
            frames.append(rows.assign(section=section))
    return pd.concat(frames)
