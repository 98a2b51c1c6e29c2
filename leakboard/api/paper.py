"""Write a leaderboard for a paper: a table in LaTeX, and an entry of BibTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leakboard import __version__
from leakboard.pipeline.records import Record
from leakboard.store import digest
from leakboard.suite.names import KINDS, natural

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 3
"""Digits after the point."""
SPECIAL = str.maketrans({character: f"\\{character}" for character in "&%$#_{}"} | {"\\": "", "~": " ", "^": " "})
"""How LaTeX writes its special characters in a title."""


def latex(rows: pd.DataFrame, columns: Sequence[str], headings: Mapping[str, str], caption: str, label: str) -> str:
    """Return columns of a leaderboard as a LaTeX table of the package booktabs.

    Rows are in the natural order of their names: epsilon 5 comes before epsilon 10. A number has its 95 % interval next
    to it, if the rows have one.

    Args:
        rows: of a leaderboard.
        columns: names of columns, in order.
        headings: of the columns, by their names.
        caption: of the table; empty: none.
        label: for references to the table; empty: none.
    """
    ordered = rows.loc[sorted(rows.index, key=lambda index: [natural(str(rows.at[index, kind])) for kind in KINDS])]
    shown = ordered[[*columns]].astype(object)
    for name in columns:
        ends = f"{name}_low", f"{name}_high"
        if set(ends) <= set(ordered):
            cells = zip(*(ordered[column] for column in (name, *ends)), strict=True)
            shown[name] = [_with_interval(*map(float, cell)) for cell in cells]
    is_text = [ordered[name].map(lambda value: isinstance(value, str)).all() for name in columns]
    style = shown.rename(columns=dict(headings)).style.hide(axis="index")
    style = style.format(precision=DIGITS, escape="latex", na_rep="").format_index(escape="latex", axis=1)
    return str(
        style.to_latex(
            hrules=True,
            column_format="".join("l" if text else "r" for text in is_text),
            position_float="centering" if caption or label else None,  # type: ignore[arg-type]
            caption=caption or None,
            label=label or None,
        )
    )


def bibtex(name: str, description: str, records: Sequence[Record]) -> str:
    """Return an entry of BibTeX for a leaderboard, with the version and the digest of its cells."""
    cells = digest({"cells": sorted(record.key for record in records)})[:16]
    fields: dict[str, Any] = {
        "author": "{The LeakBoard developers}",
        "title": f"{{LeakBoard}}: {description.translate(SPECIAL)}" if description else "{LeakBoard}",
        "note": f"Leaderboard {name.translate(SPECIAL)}, LeakBoard {__version__}, {len(records)} cells, {cells}",
    }
    lines = "".join(f"  {key} = {{{value}}},\n" for key, value in fields.items())
    return f"@misc{{leakboard-{name.replace('/', '-').replace('_', '-')},\n{lines}}}\n"


def _with_interval(value: float, low: float, high: float) -> str | float:
    """Return a number with its interval; without one, the number."""
    if not low <= high:  # NaN too
        return value
    return f"{value:.{DIGITS}f} [{low:.{DIGITS}f}, {high:.{DIGITS}f}]"
