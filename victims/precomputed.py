"""Publish vectors that you already have, one for each row of a table: audit your vector store without any model.

If both the table and the vectors have ids, each row gets the vector with its id. Their order does not matter, and
vectors with other ids are left out. Otherwise row i of the file belongs to row i of the dataset's source. The files of
a glob are numbered in sorted order, and rows that the dataset drops still count in the numbering. New texts cannot be
encoded, so attacks that query the victim, or train its recipe, do not apply.

With ``protection`` you try a protection on your own vectors before you deploy it. They are scaled to length 1 first.
The table of ``vector_store`` lists the protections. There is no search, since queries would have to be encoded.

Attacks on vector stores (``linking``, ``presence``, ``aligned``) need an encoder that the attacker knows:

| option | the attacker's vectors of texts |
|---|---|
| ``encoder`` | those of another victim, which encodes any text |
| ``encoded`` | those in a second file, of the same rows |
| neither, but ``protection`` | those in the file, before the protection |
| none of these | none: these attacks do not apply |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from leakboard.claims import ReleaseClaim
from leakboard.data.readers.tabular import clean_id
from leakboard.data.readers.vector_databases import source, source_checksum
from leakboard.data.readers.vectors import columns_of_numbers, read_vectors
from leakboard.errors import RequestError, nearest
from leakboard.interfaces import Corpus, FittedVictim, Floats, Texts, Victim
from leakboard.logs import log_progress, log_warning
from leakboard.privacy.protections.protection import FittedProtection
from leakboard.randomness import stream
from leakboard.suite.files import File, FileName
from leakboard.suite.options import part, victim
from leakboard.victims._encoders import DOCUMENT_ENCODERS
from leakboard.victims._protections import PROTECTIONS

SEARCHED_IDS = 1_000
"""Number of ids among which an error message looks for the id nearest to a missing one."""
ENCODER = "encoder"
"""Folder of the saved encoder."""


@victim(revision=4)
class Precomputed(Victim):
    vectors: File
    """File of vectors (npy, npz, parquet, arrow, feather, csv, tsv, jsonl): a column of lists, or one column for each
    dimension.

    Or a collection of a vector database, as in ``qdrant:path/to/folder#reviews``."""
    column: str | None = None
    """Array of the npz file, column of lists, or prefix of the columns (``e`` for e0, e1, ...); null: the only one."""
    id: str | None = None
    """Column or array of the ids that join vectors and rows; null: the column ``id``, if there is one."""

    protection: part(PROTECTIONS) | None = None  # type: ignore[valid-type]
    """How the vectors are protected before they are published, as in ``vector_store``; null: published as they are."""
    encoder: part(DOCUMENT_ENCODERS) | None = None  # type: ignore[valid-type]
    """Victim that attackers of stores know as the encoder of the texts, with its own options; null: none."""
    encoded: File | None = None
    """File of the vectors that the attacker's encoder gives to the same rows, joined like ``vectors``; null: none."""

    def __post_init__(self) -> None:
        if self.encoder is not None and self.encoded is not None:
            raise RequestError("precomputed: encoder and encoded are both given; allowed: one of them, or neither")

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return random vectors for the first thousand rows of any corpus."""
        np.save(folder / "vectors.npy", np.random.default_rng(0).standard_normal((1000, 5)).astype(np.float32))
        return cls(vectors=FileName(folder / "vectors.npy"))

    encodes_texts: ClassVar[bool] = False
    trainable: ClassVar[bool] = False

    @property
    def known_encoder(self) -> Victim | None:
        """The encoder that attackers of stores know; None: no encoder is named."""
        if self.encoded is not None:
            return Precomputed(vectors=self.encoded)
        found: Victim | None = self.encoder
        return found

    @property
    def encoder_reads_texts(self) -> bool:
        """Whether attackers can encode any text."""
        return self.encoder is not None

    def fingerprint(self) -> str:
        """Identify the files' bytes, or the store's rows, and the files of the attacker's encoder."""
        own, known = source_checksum(source(self.vectors.located)), self.known_encoder
        return own if known is None else f"{own} {known.fingerprint()}"

    def why_not_applicable(self, corpus: Corpus) -> str:
        """Return why the attacker's encoder cannot be fitted on a corpus."""
        if self.encoder is None:
            return ""
        return str(self.encoder.why_not_applicable(corpus)) if corpus.has_texts else "the encoder needs texts"

    def fit(self, corpus: Corpus, seed: int) -> "FittedPrecomputed":
        """Read the vectors.

        Raises:
            RequestError: the file is missing or malformed; it lacks the id of a row; or it is joined by position, and
                has another number of rows than the dataset.
        """
        fitted, texts = self._read(), corpus.texts("train")
        self._check_columns_of_numbers({secret.name for secret in corpus.secrets})
        vectors, rows = len(fitted.table), int(corpus.checks.get("source_rows", len(fitted.table)))
        if fitted.ids is not None and texts.ids is not None:
            rows -= int(corpus.checks.get("dropped_rows", 0))
            log_progress(f"{self.vectors}: {vectors} vectors are joined by id with the dataset's {rows} rows")
        elif rows != vectors:
            raise RequestError(f"{self.vectors}: {vectors} vectors, but the dataset's files have {rows} rows")
        elif fitted.ids is not None:
            log_warning(f"{self.vectors}: joined by position and not by id, since the dataset names no column of ids")
        elif texts.ids is not None:
            log_warning(f"{self.vectors} has no ids; joined by position")
        stored = fitted.publish_documents(texts, np.random.default_rng(0))  # no vector may be missing
        _check_columns(self.vectors, fitted.table)
        if (encoder := self.known_encoder) is not None:
            fitted = replace(fitted, encoder=encoder.fit(corpus, seed))
        if self.protection is None:
            return fitted
        return replace(fitted, protection=self.protection.fit(stored, stream(seed, "protection")))

    def _check_columns_of_numbers(self, secrets: set[str]) -> None:
        """Warn about columns of numbers next to the dimensions that are neither dimensions nor secrets.

        Raises:
            RequestError: a secret is a dimension, such as ``e8`` next to ``e0`` to ``e7``; the message has its name.
        """
        dimensions, others = columns_of_numbers(source(self.vectors.located), self.column, self.id)
        if taken := secrets & {*dimensions}:
            raise RequestError(f"{self.vectors}: {min(taken)!r} is a secret and would be a dimension, too; rename it")
        if left_out := [name for name in others if name not in secrets]:
            shown = f"the dimensions {dimensions[0]} to {dimensions[-1]}"
            log_warning(f"{self.vectors}: columns of numbers that are not among {shown}: {', '.join(left_out)}")

    def load(self, folder: Path) -> "FittedPrecomputed":
        """Read the vectors again, and the protection's key and the attacker's encoder if there are such."""
        fitted = self._read()
        if (encoder := self.known_encoder) is not None:
            fitted = replace(fitted, encoder=encoder.load(folder / ENCODER))
        return fitted if self.protection is None else replace(fitted, protection=self.protection.load(folder))

    def _read(self) -> "FittedPrecomputed":
        ids, table = read_vectors(source(self.vectors.located), self.column, self.id)
        return FittedPrecomputed(str(self.vectors.located), table, ids)


def _check_columns(path: str, table: Floats) -> None:
    """Warn about dimensions that are the same in all rows.

    Raises:
        RequestError: all dimensions are the same in all rows.
    """
    constant = (table == table[:1]).all(0)
    if len(table) < 2:
        return
    if constant.all():
        raise RequestError(f"{path}: all {len(table)} vectors are the same")
    if constant.any():
        count, first = int(constant.sum()), int(constant.argmax()) + 1
        log_warning(f"{path}: {count} of {len(constant)} dimensions are the same in all rows; the first is {first}")


@dataclass(frozen=True)
class FittedPrecomputed(FittedVictim):
    path: str
    table: Floats
    """float32 (rows, d)."""
    ids: Sequence[Any] | None = None
    """Ids of the rows, as in the file."""
    protection: FittedProtection | None = None
    encoder: FittedVictim | None = None
    """Known to attackers of stores."""

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """The row of each id.

        Raises:
            RequestError: an id is missing, or belongs to two rows.
        """
        rows: dict[str, int] = {}
        for row, written in enumerate(self.ids or ()):
            try:
                name = clean_id(written, "id")
            except ValueError as error:
                raise RequestError(f"{self.path}: row {row + 1}: {error}") from None
            if name in rows:
                raise RequestError(f"{self.path}: rows {rows[name] + 1} and {row + 1} have the same id, {name!r}")
            rows[name] = row
        return rows

    @property
    def claim(self) -> ReleaseClaim | None:
        """The protection's claim."""
        return self.protection.claim if self.protection else None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return the vectors of the texts, protected if there is a protection."""
        vectors = self.in_file(texts)
        return self.protection.protect(vectors, rng) if self.protection else vectors

    def unprotected(self, texts: Texts) -> Floats | None:
        """Return the vectors of the attacker's encoder, else those in the file if there is a protection; else None."""
        if self.encoder is not None:
            return self.encoder.publish_documents(texts, np.random.default_rng(0))
        return self.in_file(texts) if self.protection else None

    def in_file(self, texts: Texts) -> Floats:
        """Return the vectors of the texts' ids, or of their source rows, as they are in the file.

        Raises:
            RequestError: a text has no source row, or the file has no vector for it.
        """
        if texts.rows is None:
            raise RequestError(f"precomputed: {self.path} cannot encode new texts")
        if self.ids is None or texts.ids is None:
            if (last := int(texts.rows.max(initial=0))) >= len(self.table):
                raise RequestError(f"{self.path}: {len(self.table)} vectors, but the dataset has a row {last + 1}")
            return self.table[texts.rows]
        missing = [(row, name) for row, name in zip(texts.rows, texts.ids, strict=True) if name not in self.row_of]
        if missing:
            row, name = missing[0]
            raise RequestError(
                f"{self.path}: no vector has the id {name!r} of row {row + 1} of the dataset"
                f"{nearest(name, list(self.row_of)[:SEARCHED_IDS])}; "
                f"{len(missing)} of {len(texts)} rows of this split have none"
            )
        return self.table[[self.row_of[name] for name in texts.ids]]

    def save(self, folder: Path) -> None:
        """Write the protection's key and the attacker's encoder; the vectors stay in their files."""
        if self.protection:
            self.protection.save(folder)
        if self.encoder is not None:
            (folder / ENCODER).mkdir()
            self.encoder.save(folder / ENCODER)
