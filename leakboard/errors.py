"""Errors that a user can cause, each reported in one line, and the nearest valid name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RequestError(ValueError):
    """The request itself is wrong: a suite, an option, a name, a data file. Exit status 2, no traceback."""


class NotApplicable(RequestError):
    """An attack does not apply to what a victim published; its cell is skipped, with this reason."""


class StopRun(RequestError):
    """The run as a whole cannot go on; what was finished is kept."""


class StorageError(StopRun):
    """A folder cannot be written, or the disk is full."""


class DataError(StopRun):
    """A dataset, or somebody's own vectors, cannot be read as the suite asks: a column is missing, rows are bad."""


def nearest(name: object, allowed: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the closest allowed name, or an empty string."""
    matches = difflib.get_close_matches(str(name), list(allowed), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def one_line(error: BaseException) -> str:
    """Return an exception as one line: its type, unless the request was at fault, and its message."""
    message = " ".join(str(error).split()) or "no message"
    return message if isinstance(error, RequestError) else f"{type(error).__name__}: {message}"
