"""Placeholders where no texts are known: the dataset ``table`` needs a column of them, all different.

Whoever uses them must leave out what reads texts: classifiers on the text, and attacks that recover it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from leakboard.errors import RequestError, one_line

READERS: Mapping[str, Callable[[Path], Any]] = {
    ".csv": partial(pd.read_csv, dtype=str, keep_default_na=False),
    ".tsv": partial(pd.read_csv, dtype=str, keep_default_na=False, sep="\t"),
    ".parquet": pd.read_parquet,
    ".jsonl": partial(pd.read_json, lines=True, dtype=False),
}


def with_placeholders(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with a column ``text`` that says nothing but which row it is."""
    texts = [f"row {row}" for row in range(len(frame))]
    return frame.assign(text=texts)


def file_with_placeholders(path: Path, folder: Path) -> Path:
    """Write a table with placeholders into ``table.parquet`` of a folder and return its path.

    Raises:
        RequestError: the file cannot be read as a table.
    """
    if path.suffix not in READERS:
        raise RequestError(f"{path}: unknown format {path.suffix!r} (allowed: {', '.join(READERS)})")
    try:
        frame = READERS[path.suffix](path)
    except (OSError, ValueError) as error:
        raise RequestError(f"{path}: cannot be read ({one_line(error)})") from None
    folder.mkdir(parents=True, exist_ok=True)
    with_placeholders(frame).to_parquet(folder / "table.parquet", index=False)
    return folder / "table.parquet"
