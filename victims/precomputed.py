"""Vectors that you already have, one a row of a table: audit what is in your vector store without any model.

Row i of the file belongs to row i of the dataset's source, files of a glob taken in sorted order and bad rows counted
too. New texts cannot be encoded, so attacks that query the victim are skipped.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self
from zipfile import BadZipFile

import numpy as np

from leakboard.errors import RequestError, nearest, one_line
from leakboard.interfaces import Corpus, FittedVictim, Floats, Texts, Victim
from leakboard.store import file_checksum
from leakboard.suite.options import victim


@victim(revision=1)
class Precomputed(Victim):
    vectors: str
    """File of float vectors, (rows, d): npy, npz, or Parquet with a column of lists."""
    column: str | None = None
    """Array of the npz or column of the Parquet file; may be left out where there is one only."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return random vectors for the first thousand rows of any corpus."""
        np.save(folder / "vectors.npy", np.random.default_rng(0).standard_normal((1000, 5)).astype(np.float32))
        return cls(vectors=str(folder / "vectors.npy"))

    def fingerprint(self) -> str:
        """Identify the file's bytes."""
        return file_checksum(Path(self.vectors))

    def fit(self, corpus: Corpus, seed: int) -> "FittedPrecomputed":
        """Read the vectors.

        Raises:
            RequestError: the file is missing or malformed, or has another number of rows than the dataset's.
        """
        fitted = FittedPrecomputed(self.vectors, self._read())
        rows = corpus.checks.get("source_rows", len(fitted.table))
        if rows != len(fitted.table):
            raise RequestError(
                f"{self.vectors}: {len(fitted.table)} vectors, but the dataset's files have {rows:g} rows"
            )
        fitted.look_up(corpus.texts("train"))
        return fitted

    def load(self, folder: Path) -> "FittedPrecomputed":
        """Read the vectors again."""
        return FittedPrecomputed(self.vectors, self._read())

    def _read(self) -> Floats:
        path = Path(self.vectors)
        readers = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet}
        if path.suffix not in readers:
            raise RequestError(f"{path}: unknown format {path.suffix!r} (allowed: {', '.join(readers)})")
        try:
            table = np.asarray(readers[path.suffix](path, self.column))
        except (OSError, ValueError, EOFError, TypeError, BadZipFile) as error:
            if isinstance(error, RequestError):
                raise
            raise RequestError(f"{path}: cannot be read ({one_line(error)})") from None
        if table.ndim != 2 or table.dtype.kind not in "fiu":
            raise RequestError(
                f"{path}: {table.dtype} array of shape {table.shape}; allowed: numbers of shape (rows, d)"
            )
        return table.astype(np.float32)


def _read_npy(path: Path, column: str | None) -> np.ndarray:
    return np.load(path, allow_pickle=False)


def _read_npz(path: Path, column: str | None) -> np.ndarray:
    with np.load(path, allow_pickle=False) as file:
        return file[_choose(path, column, file.files)]


def _read_parquet(path: Path, column: str | None) -> np.ndarray:
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        name = _choose(path, column, file.schema_arrow.names)
        lists = file.read([name])[name].combine_chunks()
        widths = pyarrow.compute.fill_null(pyarrow.compute.list_value_length(lists), 0).unique().to_pylist()
        numbers = lists.flatten().cast(pyarrow.float32(), safe=False)
    except pyarrow.ArrowException as error:
        raise ValueError(error) from None
    if len(widths) != 1:
        raise ValueError(f"column {name!r} has vectors of different lengths: {sorted(widths)[:5]}")
    return numbers.to_numpy(zero_copy_only=False).reshape(len(lists), widths[0])


def _choose(path: Path, column: str | None, names: list[str]) -> str:
    if column is None and len(names) == 1:
        return names[0]
    if column not in names:
        raise RequestError(f"{path}: column {column!r} is not one of {', '.join(names)}{nearest(column, names)}")
    return column


@dataclass(frozen=True)
class FittedPrecomputed(FittedVictim):
    path: str
    table: Floats
    """float32 (rows, d)."""

    def look_up(self, texts: Texts) -> Floats:
        """Return the vectors of the texts' source rows.

        Raises:
            RequestError: a text has no source row, or the file has too few.
        """
        if texts.rows is None:
            raise RequestError(f"precomputed: {self.path} cannot encode new texts")
        if (last := int(texts.rows.max(initial=0))) >= len(self.table):
            raise RequestError(f"{self.path}: {len(self.table)} vectors, but the dataset has a row {last + 1}")
        return self.table[texts.rows]

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return the rows' vectors."""
        return self.look_up(texts)

    def save(self, folder: Path) -> None:
        """Write nothing: the vectors stay in their file."""
