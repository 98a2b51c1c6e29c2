"""Write a cell of a table as text, and say what it is sorted by, for each kind of column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.board.doubts import hides_score
from leakboard.board.schema import Row, metric_title, threats_of
from leakboard.column import Column
from leakboard.metrics.audits import rounded_down
from leakboard.suite.names import natural
from leakboard.threats.threat import threat_named

LAST = 1e308
"""Sort key of a missing number, larger than every number. Browsers sort "Infinity" as text."""


@dataclass(frozen=True)
class Cell:
    """The text of a cell; the template escapes it."""

    text: str
    order: float | str = ""
    """Sort key."""
    small: str = ""
    """A second line: an interval, options, or the secret of a gap."""
    chip: str = ""
    """The class of a coloured label."""


def decimals(value: Any, digits: int = 3) -> str:
    """Return a number with fixed decimals (from 1,000, none); infinity as a word; an empty text without a number."""
    if value is None or value != value:
        return ""
    if not math.isfinite(value):
        return "infinite"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:z.{digits}f}"


def _metric(row: Row, key: str) -> Cell:
    name = metric_title(str(row[key]), threats_of([row]))
    return Cell(name, name)


def _text(row: Row, key: str) -> Cell:
    value = "" if row.get(key) is None else str(row[key])
    return Cell(value, _letters(value), row.get(f"{key}_small", ""))


def _number(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell(decimals(value), _order(value))


def _score(row: Row, key: str) -> Cell:
    """Round a lower bound on epsilon down."""
    cell = _number(row, key)
    bounds = cell.text and threat_named(row.get("threat", "")).bounds_epsilon
    return Cell(rounded_down(row[key], 4), cell.order) if bounds else cell


def _delta(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None else f"{value:.4g}", _order(value))


def _interval(row: Row, key: str) -> Cell:
    """Show the 95 % interval below the number or, without one, the standard deviation over seeds."""
    value, low, high, spread = (row.get(name) for name in (key, f"{key}_low", f"{key}_high", f"{key}_sd"))
    parts = [f"{decimals(low)} to {decimals(high)}"] if low is not None and high is not None else []
    parts += [f"sd {decimals(spread)}"] if spread is not None and not parts else []
    return Cell(decimals(value), _order(value), " ".join(parts))


def _epsilon(row: Row, key: str) -> Cell:
    value = row.get(key)
    if value is None:
        return Cell("", LAST)
    shown = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"  # no exponents
    return Cell(shown if math.isfinite(value) else "none", _order(value))


def _claim(row: Row, key: str) -> Cell:
    """Show the unit of a claim below it, and its delta."""
    cell = _epsilon(row, key)
    unit, delta = row.get("privacy_unit"), row.get("delta")
    below = [f"per {unit}"] if unit else []
    below += [f"delta {delta:.4g}"] if delta else []
    return Cell(cell.text, cell.order, ", ".join(below) if cell.text else "")


def _bound(row: Row, key: str) -> Cell:
    cell = _epsilon(row, key)
    if cell.text:
        return Cell(f"≥ {rounded_down(row[key])}" if math.isfinite(row[key]) else "infinite", cell.order)
    return Cell("", cell.order, "not audited here" if row.get("epsilon_claimed") is not None else "")


def _rank(row: Row, key: str) -> Cell:
    """Show the range of ranks that the intervals allow: tied victims share a range."""
    if not row.get(key):
        return Cell("", LAST)
    first, last = row[key], row["last_rank"]
    return Cell(str(first) if first == last else f"{first} to {last}", first + last / 1e6)


def _name(row: Row, key: str) -> Cell:
    return Cell(str(row[key]), _letters(str(row[key])), row.get("small", ""))


def _verdict(row: Row, key: str) -> Cell:
    verdict = row.get(key) or ""
    chip = "unaudited" if verdict == "holds, not audited" else verdict
    return Cell(verdict, verdict, row.get(f"{key}_small", ""), chip)


def _gap(row: Row, key: str) -> Cell:
    """Show how wide a gap is at least; below it the secret and the measured gap, which is too wide on average.

    Boards of version 0.1.0 have the measured gap alone.
    """
    value, low = row.get(key), row.get(f"{key}_low")
    if value is None:
        return Cell("", LAST)
    secret = row.get(f"{key.removesuffix('_gap')}_variable") or ""
    if low is None:
        return Cell(decimals(value), _order(value), secret)
    return Cell(f"≥ {decimals(low)}" if low > 0 else "none shown", _order(low), f"{secret}: {decimals(value)}")


def _seconds(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}", _order(value))


def _share(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None else f"{100 * value:.0f} %", _order(value))


def _whole(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None else f"{value:,.0f}", _order(value))


def _signed(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None or value != value else f"{value:+.3f}", _order(value))


def _errors(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None or value != value else f"{value:+.1f}", _order(value))


def _letters(text: str) -> str:
    """Return a sort key for a name: numbers have one width, so that a browser sorts them by value."""
    return "".join(part if isinstance(part, str) else f"{part:025.9f}" for part in natural(text)[0])


def _order(value: Any) -> float:
    """Return the sort key of a number; missing numbers come last in ascending order."""
    return LAST if value is None or value != value else min(float(value), LAST / 10)


RENDERERS: dict[str, Callable[[Row, str], Cell]] = {
    "text": _text,
    "number": _number,
    "score": _score,
    "delta": _delta,
    "baseline": _number,
    "interval": _interval,
    "epsilon": _epsilon,
    "claim": _claim,
    "bound": _bound,
    "rank": _rank,
    "name": _name,
    "verdict": _verdict,
    "gap": _gap,
    "seconds": _seconds,
    "share": _share,
    "whole": _whole,
    "count": _whole,
    "mark": _text,
    "metric": _metric,
    "signed": _signed,
    "errors": _errors,
}
"""Writes a cell of a row, by the kind of its column."""


TOO_FEW = "too few"
"""Shown instead of a score from too small a test; the remark of the row says why."""


def cell(column: Column, row: Row) -> Cell:
    """Return a column's cell of a row; `TOO_FEW` for a score that `leakboard.board.doubts` marked."""
    if hides_score(row, column.name):
        return Cell(TOO_FEW, LAST)
    return RENDERERS[column.kind](row, column.name)


def filled(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns that have something to show in at least one row."""
    return [c for c in columns if any(shown.text or shown.small for shown in (cell(c, row) for row in rows))]


def same_in_all(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns that have one value in all of several rows, so that a sentence can replace them."""
    kinds = ("baseline", "count", "mark")
    return [c for c in columns if c.kind in kinds and len(rows) > 1 and len({cell(c, row).text for row in rows}) == 1]
