"""Render pages from templates (Jinja2, everything escaped), and the data that they carry."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from leakboard.board.schema import column_names, columns, threats_of
from leakboard.board.table_layouts import Table
from leakboard.board.tables import guarded
from leakboard.column import Column
from leakboard.site.rendering import cell, filled


@functools.cache
def environment() -> Environment:
    """Return the environment of the templates, with autoescape; an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("leakboard.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"markdown": markdown, "sentence": sentence, "breakable": breakable, "unbroken": unbroken}
    made.globals |= {"cell": cell, "columns": columns, "filled": filled, "grouped": grouped, "in_sight": in_sight}
    return made


def page(template: str, **content: Any) -> str:
    """Return a page.

    Raises:
        jinja2.UndefinedError: the template asks for something that it is not given.
    """
    return environment().get_template(f"{template}.html").render(**content)


def table_html(caption: str, shown: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table as HTML, without the columns that have nothing to show; everything is escaped."""
    macros: Any = environment().get_template("macros.html").module
    return str(macros.table(caption, shown, rows, sortable=False))


def markdown(text: str) -> Markup:
    """Return Markdown as HTML. HTML in it stays text, and links lead only to the web or into the site."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    return Markup(reader.render(text))  # noqa: S704 (the reader escapes)


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends with a mark."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def unbroken(text: str) -> str:
    """Return a text whose lines do not break before a percent sign."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def breakable(text: str) -> Markup:
    """Return a name as HTML that may be broken before a bracket and, in a part of 25 letters or more, after a mark."""
    parts = re.sub(r"[^\s(]{25,}", lambda part: re.sub("([_=])", r"\1<wbr>", part[0]), str(escape(text)))
    return Markup(parts.replace("(", "<wbr>("))  # noqa: S704 (it is escaped)


def grouped(columns: Sequence[Column]) -> list[tuple[str, list[Column]]]:
    """Return neighbouring columns by their group."""
    groups: list[tuple[str, list[Column]]] = []
    for column in columns:
        if not column.group or not groups or groups[-1][0] != column.group:
            groups.append((column.group, []))
        groups[-1][1].append(column)
    return groups


def in_sight(columns: Sequence[Column], layout: Table) -> tuple[list[Column], list[Column]]:
    """Return the columns that a row shows, those of wide screens included, and the columns that unfold."""
    shown = [column for column in columns if column.name in (*layout.in_sight, *layout.on_wide)]
    return shown, [column for column in columns if column.name not in layout.in_sight]


def table_data(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows for a page's downloads: ``csv``, a text, and ``columns`` and ``rows`` for JSON (infinity as text)."""
    head = column_names("leaderboard.csv", threats_of(rows))
    cells = [[_plain(row.get(name)) for name in head] for row in rows]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([guarded(value) if isinstance(value, str) else value for value in row] for row in cells)
    return {"csv": out.getvalue(), "columns": head, "rows": cells}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        if value != value:
            return None
        return str(value) if value in (float("inf"), -float("inf")) else round(value, 6)
    return value
