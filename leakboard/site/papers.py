"""Describe published numbers on pages: their paper, why ours differ, and how near ours are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leakboard.board.schema import Row
from leakboard.site import samplers
from leakboard.site.charts import Figure
from leakboard.site.content import slug
from leakboard.site.sections import read_sections
from leakboard.suite.suites import suite_folder

PAPER = re.compile(r"^.*?\b\d{4}\b\)?")
"""Authors and year at the beginning of a source; the table or figure follows."""

FIGURES = {"Habernal 2022": samplers.histograms}
"""Figures of papers that need no record."""


def paper_of(row: Row) -> str:
    """Return the paper of a published number; empty for other numbers, such as exact values."""
    match = PAPER.match(str(row["source"]))
    return match[0] if match else ""


def file_of(name: str) -> str:
    """Return the file of a paper's page."""
    return f"{slug(name)}.html"


def explanations() -> dict[str, str]:
    """Return the explanations of the differences from each paper: the sections of ``papers.md`` (Markdown)."""
    path = suite_folder() / "papers.md"
    return read_sections(path.read_text("utf-8")) if path.is_file() else {}


def nearness(rows: Sequence[Row]) -> str:
    """Return a sentence on how near the published numbers are to ours."""
    errors = [abs(row["standard_errors"]) for row in rows if row["standard_errors"] is not None]
    measured = sum(row["ours"] is not None for row in rows)
    text = f"{len(rows)} published numbers. We measured {'all of them' if measured == len(rows) else measured}."
    near = sum(error < 2 for error in errors)
    close = f"In {near} of these the published number lies within two standard errors."
    return f"{text} Ours has an interval in {len(errors)} cases. {close}" if errors else text


def figures(name: str) -> Sequence[tuple[str, Figure]]:
    """Return the figures of a paper that need no record, each with a description."""
    return FIGURES[name]() if name in FIGURES else ()
