"""The pages of a run beside its tables, and the page beside a published suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leakboard.pipeline.records import Record
from leakboard.pipeline.runner import Run
from leakboard.site.build import write_page
from leakboard.site.content import make_board, read_board
from leakboard.site.readme import write_readme
from leakboard.suite.suites import find_suite, home_of


def write_run_pages(run: Run, records: Sequence[Record], html: Path | None) -> list[Path]:
    """Write ``README.md`` beside a run's tables, and where a path is given all of it as one HTML file.

    Raises:
        StorageError: a file cannot be written.
    """
    board = make_board(run.suite.name, run.suite.file.description, records, run.folder, run.suite.home)
    paths = write_readme(board, run.folder)
    if html:
        write_page(board, html)
        paths.append(html)
    return paths


def write_published_page(name: str) -> list[Path]:
    """Write ``README.md`` beside a published suite, unless one is there that somebody wrote by hand.

    Raises:
        StorageError: the file cannot be written.
    """
    return write_readme(read_board(name), home_of(find_suite(name)))
