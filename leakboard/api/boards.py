"""Open published leaderboards from Python: no computation, no data, no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leakboard.api.arguments import FilePath, require
from leakboard.errors import RequestError, nearest

if TYPE_CHECKING:
    from leakboard.api.report import Report
    from leakboard.suite.names import Names


def boards() -> list[str]:
    """Return the names of the leaderboards that LeakBoard comes with."""
    from leakboard.pipeline.results import published_homes
    from leakboard.suite.suites import suite_folder

    root = suite_folder()
    return sorted(home.relative_to(root).as_posix() for home in published_homes())


def open_board(name: str | Path) -> Report:
    """Return the report of a published leaderboard.

    Args:
        name: one of `boards`, or a folder that a leaderboard was published into.

    Raises:
        RequestError: there is no such leaderboard; the message offers the nearest name.
    """
    from leakboard.api.report import Report
    from leakboard.board.published_numbers import read_reference
    from leakboard.pipeline.records import PUBLISHED, published_entries
    from leakboard.suite.names import Names
    from leakboard.suite.suites import suite_folder
    from leakboard.suite.yaml_files import read_yaml

    require(FilePath, name=name)
    known = boards()
    folder = suite_folder() / name if str(name) in known else Path(name)
    if not (folder / PUBLISHED).is_file():
        allowed = f"one of {', '.join(known)}, or a folder with {PUBLISHED}"
        raise RequestError(f"open_board: {str(name)!r} is no published leaderboard: {allowed}{nearest(name, known)}")
    entries = published_entries(folder)
    path = _suite_file(folder)
    suite = read_yaml(path) if path else {}
    return Report(
        name=str(name),
        description=str(suite.get("description", "")),
        suite=suite,
        records=[record for record, _ in entries],
        stage_costs={record.key: costs for record, costs in entries},
        reference=read_reference(folder),
        names=_names(path) if path else Names(),
        home=folder,
    )


def _suite_file(folder: Path) -> Path | None:
    """Return the suite of a folder: its ``suite.yaml``, or the file of its name next to it."""
    paths = (folder / "suite.yaml", folder.with_suffix(".yaml"))
    return next((path for path in paths if path.is_file()), None)


def _names(path: Path) -> Names:
    """Return the names of a suite's entries; labels where one of its plugins is not installed."""
    from leakboard.suite.names import Names
    from leakboard.suite.registry import Registry
    from leakboard.suite.suites import load_suite

    try:
        return load_suite(path, Registry()).names
    except RequestError:
        return Names()
