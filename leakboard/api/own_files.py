"""Keep a user's rows and vectors: in files of one folder, or in memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakboard.errors import RequestError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


@contextmanager
def reserved(folder: Path, vectors: Sequence[str] = ()) -> Iterator[None]:
    """Reserve a folder for one evaluation: its files have fixed names. A new folder gets the mode 0700.

    Raises:
        RequestError: another process evaluates in the folder, or it has a file of such a name that no evaluation wrote.
    """
    from leakboard.execution.reservations import Reservation, ReservedError
    from leakboard.store import write_file
    from leakboard.suite.suites import KEPT

    names = ("suite.yaml", "suite", *(("table.parquet", *(f"{name}.npy" for name in vectors)) if vectors else ()))
    foreign = [name for name in names if (folder / name).exists() and not (folder / KEPT).is_file()]
    if foreign:
        allowed = "a folder without it, or one that `evaluate` made"
        raise RequestError(f"{folder / foreign[0]}: no evaluation wrote this file; allowed: {allowed}")
    with suppress(OSError):  # the reservation tells the error
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    reservation = Reservation(folder / ".evaluate", uuid.uuid4().hex)
    try:
        with reservation.held():
            write_file(folder / KEPT, "Files of `leakboard evaluate` in this folder are overwritten by the next one.\n")
            yield
    except ReservedError:
        allowed = "one evaluation at a time; give the other one another folder"
        raise RequestError(f"{folder}: in use by {reservation.holder() or 'another'}; allowed: {allowed}") from None


def kept_in_memory(arrays: Mapping[str, tuple[str, NDArray[Any]]], frame: pd.DataFrame) -> tuple[str, dict[str, str]]:
    """Return file names that refer to rows and arrays in memory.

    Args:
        arrays: title in messages, and content, of each array.
        frame: rows.
    """
    from leakboard.data.readers.in_memory import InMemory
    from leakboard.suite.files import FileName

    def named(name: str, title: str, content: Any) -> str:
        file = FileName(name)
        file.content = InMemory.of(title, content)
        return file

    return named("rows", "rows", frame), {name: named(name, *given) for name, given in arrays.items()}


def file_names(releases: int) -> list[str]:
    """Return ``vectors``, or of several releases a numbered name each: tables have them in this order."""
    return ["vectors"] if releases == 1 else [f"vectors_{number + 1}" for number in range(releases)]


def write_files(
    folder: Path, arrays: Mapping[str, tuple[str, NDArray[Any]]], frame: pd.DataFrame
) -> tuple[str, dict[str, str]]:
    """Write ``table.parquet`` and a file of NumPy for each array, and return their paths.

    Raises:
        StorageError: the folder cannot be written.
    """
    import numpy as np

    from leakboard.store import write_file

    table = BytesIO()
    frame.to_parquet(table, index=False)
    write_file(folder / "table.parquet", table.getvalue())
    for name, (_, content) in arrays.items():
        array = BytesIO()
        np.save(array, content)
        write_file(folder / f"{name}.npy", array.getvalue())
    return str(folder / "table.parquet"), {name: str(folder / f"{name}.npy") for name in arrays}
