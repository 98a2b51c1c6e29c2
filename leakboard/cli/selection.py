"""Read the options that several commands share: ``--seeds``, ``--only``, ``--out`` and limits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Optional

import typer

from leakboard.errors import RequestError, nearest

Limits = Annotated[Optional[list[str]], typer.Option(help="A limit of every row, as in attack_score=0.6; repeatable.")]  # noqa: UP045
"""The form of ``--at-most`` and ``--at-least``."""


def read_seeds(text: str | None) -> list[int] | None:
    """Return the seeds of a text such as ``0,1,2``; None where it is left out.

    A seed may be listed twice; `leakboard.suite.suites.Suite.cells` refuses that.

    Raises:
        RequestError: one is not a whole number.
    """
    if text is None:
        return None
    parts = text.split(",")
    if not all(re.fullmatch(r"\s*[0-9]{1,18}\s*", part) for part in parts):
        raise RequestError(f"--seeds {text[:60]}: allowed are whole numbers with commas, as in 0,1,2")
    return sorted(map(int, parts))


def out_folder(out: Path | None, suite: str) -> Path:
    """Return the folder of a run: as given, else the folder in which `evaluate` kept the suite, else ``runs``."""
    from leakboard.suite.suites import KEPT

    path = Path(suite)
    home = path if path.is_dir() else path.parent
    return out or (home if (home / KEPT).is_file() else Path("runs"))


def require_folder(out: Path) -> None:
    """Refuse a path that is no folder and that cannot become one, before anything is computed.

    Raises:
        RequestError: the path, or a folder that it lies in, is a file or cannot be reached.
    """
    try:
        out.resolve()
        found = next(path for path in (out, *out.parents) if path.exists())
    except (OSError, RuntimeError) as error:
        raise RequestError(f"--out {out}: not a folder that can be reached ({error})") from None
    if not found.is_dir():
        raise RequestError(f"--out {out}: {found} is a file; allowed: a folder")


def read_only(entries: list[str] | None) -> dict[str, list[str]]:
    """Return names by kind, from entries such as ``victim=bert``.

    Raises:
        RequestError: an entry does not have this form.
    """
    keys = ("dataset", "victim", "attack")
    only: dict[str, list[str]] = {}
    for entry in entries or ():
        key, equals, value = entry.partition("=")
        if key not in keys or not equals:
            raise RequestError(
                f"--only {entry}: allowed are {', '.join(f'{k}=NAME' for k in keys)}{nearest(key, keys)}"
            )
        only.setdefault(key, []).append(value)
    return only
