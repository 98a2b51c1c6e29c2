"""Pages from templates (Jinja2, everything escaped), and what is embedded in them."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from leakboard.site.page_columns import Column, shown

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet take a text for a formula."""


@functools.cache
def environment() -> Environment:
    """Return the environment of the templates: autoescape on, an unknown name is an error."""
    found = Environment(
        loader=PackageLoader("leakboard.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["markdown"] = markdown
    found.globals["shown"] = shown
    found.globals["grouped"] = grouped
    return found


def page(template: str, **content: Any) -> str:
    """Return a page.

    Raises:
        jinja2.UndefinedError: the template asks for something that it is not given.
    """
    return environment().get_template(f"{template}.html").render(**content)


def markdown(text: str) -> Markup:
    """Return Markdown as HTML; HTML in it stays text, and a link goes nowhere but to the web or into the site."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    return Markup(reader.render(text))  # noqa: S704 (the reader escapes)


def grouped(columns: Sequence[Column]) -> list[tuple[str, list[Column]]]:
    """Return neighbouring columns of the same group together."""
    groups: list[tuple[str, list[Column]]] = []
    for column in columns:
        if not column.group or not groups or groups[-1][0] != column.group:
            groups.append((column.group, []))
        groups[-1][1].append(column)
    return groups


def table_data(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows for a page's downloads: ``csv``, a text, and ``columns`` and ``rows`` for JSON (infinity as text)."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_plain(row.get(name)) for name in columns] for row in rows]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_guarded(value) for value in row] for row in cells)
    return {"csv": out.getvalue(), "columns": columns, "rows": cells}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        if value != value:
            return None
        return str(value) if value in (float("inf"), -float("inf")) else round(value, 6)
    return value


def _guarded(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula: a text that begins like one gets an apostrophe."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
