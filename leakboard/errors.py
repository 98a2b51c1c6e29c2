"""Define the errors that a user can cause, each reported in one line with the nearest valid name."""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


class RequestError(ValueError):
    """The request is wrong: a suite, an option, a name, a data file. Exit status 2, no traceback.

    The message is one line. A long message is cut, for example one that lists a hundred thousand names.
    """

    def __init__(self, message: object = ""):
        super().__init__(" ".join(line.strip() for line in plain(str(message)).splitlines()))


class NotApplicable(RequestError):
    """An attack does not apply to a victim's publications; its cell is skipped, with this reason."""


class StopRun(RequestError):
    """The whole run must stop; finished cells are kept."""


class StorageError(StopRun):
    """A folder cannot be written, or the disk is full."""


class DataError(StopRun):
    """A dataset or the user's own vectors cannot be read as the suite asks: a column is missing, rows are bad."""


def nearest(name: object, allowed: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the closest allowed name, or an empty string."""
    matches = difflib.get_close_matches(str(name), list(allowed), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else ""


LONGEST = 2_000
"""Longest text of a plugin or of data that is kept and shown (characters)."""


def plain(text: str, longest: int = LONGEST) -> str:
    """Cut a text of a plugin or of data, and replace its control characters and lone surrogates.

    Escape codes would reach the reader's terminal; a lone surrogate can be written to no file.
    """
    shown = text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest:,} more characters)"
    return shown if shown.isprintable() else _CONTROL.sub("\ufffd", shown)  # the first is faster


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def one_line(error: BaseException) -> str:
    """Return an exception as one line: type and message, or for a RequestError the message only."""
    message = " ".join(plain(str(error)).split()) or "no message"
    return message if isinstance(error, RequestError) else f"{type(error).__name__}: {message}"


def failure_line(error: BaseException, file: str = "") -> str:
    """Return an exception as one line with its place in a plugin, as in ``ValueError: odd data (mine.py:42)``.

    A RequestError is shown without a place: its message is about what the user wrote.
    """
    location = "" if isinstance(error, RequestError) else plugin_line(error, file)
    return f"{one_line(error)} ({location})" if location else one_line(error)


def plugin_line(error: BaseException, file: str = "") -> str:
    """Return file and line, as in ``mine.py:42``, of the innermost frame of an error in a plugin's file.

    Args:
        error: with its traceback.
        file: of a plugin that cannot be imported. Any other file is a plugin's if it declares a plugin's class.

    Returns:
        An empty string if no frame is in such a file.
    """
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file or _declares_a_plugin(frame.f_globals)
    ]
    return f"{Path(frames[-1][0]).name}:{frames[-1][1]}" if frames else ""


def _declares_a_plugin(module: Mapping[str, Any]) -> bool:
    classes = [value for value in tuple(module.values()) if isinstance(value, type)]
    return any(cls.__module__ == module.get("__name__") and "__leakboard_kind__" in vars(cls) for cls in classes)
