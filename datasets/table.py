"""Your own data: any CSV, TSV, Parquet, Arrow or JSON Lines file or glob, with columns for text, label and secrets.

Without given splits, the rows are divided at random: by user, else by document, else by distinct text. So no user,
document or text is in two splits. Name the columns of the secrets: none is taken for one by itself. A name with dots
(``payload.gender``) is looked up in nested objects. If only vectors are known (the victim ``precomputed``), no text is
needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field

from leakboard.data.classes import (
    MAX_CLASSES,
    about_kind,
    about_spelling,
    check_names,
    check_secret,
    encode,
    encode_bins,
    is_measurement,
    listed,
)
from leakboard.data.corpora import SPLITS, build_corpus, count_rows, divide, draw_from_train, drop_copies
from leakboard.data.readers.tabular import InputRow, Rows, clean_category, clean_id, clean_text, expand, read_rows
from leakboard.data.readers.vector_databases import source_checksum
from leakboard.errors import RequestError, nearest
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.store import digest
from leakboard.suite.files import File, FileName
from leakboard.suite.options import Strings, dataset

if TYPE_CHECKING:
    import pandas as pd

PRESENCE = {"0": 0, "1": 1, "false": 0, "true": 1, "absent": 0, "present": 1, "no": 0, "yes": 1}
SPLIT_NAMES = {"train": "train", "dev": "dev", "valid": "dev", "validation": "dev", "test": "test"}

Share = Annotated[float, Field(gt=0, lt=1)]
ColumnName = Annotated[str, Field(min_length=1)]
Bins = Annotated[int, Field(ge=2, le=MAX_CLASSES)] | Annotated[list[float], Field(min_length=1)]


@dataset(revision=2)
class Table(Dataset):
    path: File
    """File or glob (csv, tsv, parquet, arrow, feather, jsonl), relative to the suite.

    It has all rows, or those of train if there are files of dev or test. Or a collection of a vector database, as in
    ``qdrant:path/to/folder#reviews``."""
    text: ColumnName | None = "text"
    """Column of the texts; null: not known, and victims or attacks that need texts do not apply."""
    id: ColumnName | None = None
    """Column with a different id in every row, to join vectors that have ids, in any order."""
    label: ColumnName | None = None
    """Column of the task label; null: there is no task to score."""
    secrets: Strings = ()
    """Columns of the attribute secrets (gender, age group): each text has one of several values."""
    bins: Mapping[str, Bins] | None = None
    """For secrets that are numbers (age): the number of bins of equal size, or the numbers at which bins begin."""
    entities: Strings = ()
    """Columns of the entity secrets: 0/1, true/false, no/yes or absent/present."""
    numbers: Strings = ()
    """Columns of finite numbers, equal in all rows of a user: targets of a regression, or a victim's budgets."""
    user: ColumnName | None = None
    """Column of the author; drawn splits share no user, and users shared by given splits are counted."""
    document: ColumnName | None = None
    """Column of the document that a row is a chunk of; drawn splits share no document. With ``user``, each document has
    one user."""
    split: ColumnName | None = None
    """Column with train, dev or test; without it, and without files of dev and test, the splits are drawn."""
    dev: File | None = None
    """File or glob of the dev split."""
    test: File | None = None
    """File or glob of the test split."""
    dev_share: Share = 0.1
    """Share drawn for dev: of users, else of documents, else of distinct texts."""
    test_share: Share = 0.1
    """Share drawn for test, as for dev."""
    split_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the drawn split."""
    duplicates: Literal["drop", "keep"] = "drop"
    """For given splits: ``drop`` removes texts of test from dev, and of both from train; ``keep`` leaves them there."""
    on_bad_rows: Literal["error", "drop"] = "error"
    """Bad rows (text or label missing, wrong type, undecodable bytes): refuse the file, or drop and count them."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Write a table of forty rows into the folder, and return an instance that reads it."""
        import pandas as pd

        rows = {"text": [f"row {i} of a table" for i in range(40)], "label": ["yes", "no"] * 20}
        rows |= {"age": ["old", "young", "old", "old"] * 10, "person": ["no", "yes", "no", "no"] * 10}
        pd.DataFrame(rows).to_csv(folder / "table.csv", index=False)
        return cls(path=FileName(folder / "table.csv"), label="label", secrets=("age",), entities=("person",))

    def fingerprint(self) -> str:
        """Return a digest of the contents of all files."""
        patterns = [p for p in (self.path, self.dev, self.test) if p]
        return digest({p: [source_checksum(f) for f in expand(p.located)] for p in patterns})

    def load(self) -> Corpus:
        """Read, check and divide the rows.

        Raises:
            RequestError: a file or column is missing, rows are bad, ids are repeated, or a secret has one value only,
                many numbers without bins, or no value that is in both train and test.
        """
        import pandas as pd

        if self.split and (self.dev or self.test):
            raise RequestError(f"table: give a column of splits ({self.split!r}) or files for dev and test, not both")
        if self.label in (*self.secrets, *self.entities):
            raise RequestError(f"table: {self.label!r} is the task label, which victims publish: it cannot be a secret")
        files = {"train": self.path, "dev": self.dev, "test": self.test}
        frames, dropped, first_row = {}, 0, 0
        sources: dict[int, Rows] = {}
        for name, pattern in files.items():
            if pattern:
                read = read_rows(pattern.located, self._columns(), self._clean, self.on_bad_rows)
                frames[name] = read.frame(first_row)
                sources[first_row] = read
                first_row += read.total
                dropped += read.dropped
        whole = pd.concat(frames, names=["file"]).reset_index("file").reset_index(drop=True)
        if self.id:
            _check_ids(whole, self.id, sources)
        if self.user and self.document:
            _check_users(whole, self.path)
        secrets = [Secret(s, self._encode_secret(whole, s), "attribute") for s in self.secrets]
        secrets += [Secret(e, ("absent", "present"), "entity") for e in self.entities]
        for entity in self.entities:
            check_secret([secrets[-1].values[code] for code in whole[entity].unique()], entity, self.path)
        for role in ("user", "document"):
            if role in whole and (complaint := about_spelling(whole[role].unique(), f"{role}s", case_counts=True)):
                raise RequestError(f"{self.path}: {complaint}")
        if self.label and (complaint := about_kind(whole["label"].unique(), self.label, True)):
            raise RequestError(f"{self.path}: the label {self.label!r} has {complaint}")
        labels = encode(whole, "label", self.path) if self.label else None
        if labels and (complaint := about_spelling(labels)):
            raise RequestError(f"{self.path}: the label {self.label!r}: {complaint}")
        if labels and (is_measurement(labels) or len(labels) == len(whole)):
            raise RequestError(
                f"{self.path}: the label {self.label!r} has {len(labels)} values in {len(whole)} rows; allowed: classes"
            )
        if self.user and self.numbers:
            _check_numbers(whole, self.numbers, self.path)
        splits = self._splits(whole)
        for secret in self.secrets:
            if not splits["train"][secret].isin(splits["test"][secret]).any():
                reason = "none of its values is in both train and test, so no attack could guess it"
                raise RequestError(f"{self.path}: the secret {secret!r}: {reason}; leave it out")
        copies = len(whole) - count_rows(splits)
        checks = {"source_rows": first_row, "dropped_rows": dropped, "dropped_copies": copies}
        return build_corpus("table", splits, secrets, labels, checks, numeric_targets=self.numbers)

    def _columns(self) -> list[str]:
        attributes = [*self.secrets, *self.entities, *self.numbers]
        check_names(attributes, "table")
        named = [self.text, self.label, self.id, self.user, self.document, self.split, *attributes]
        taken = {"text", "label", "row", "id", "user", "document", "split", "file"} & {*attributes}
        if taken or len({*attributes}) < len(attributes):
            names = sorted(taken) or "one is named twice"
            raise RequestError(f"table: a column of secrets or numbers needs a name of its own: {names}")
        if unknown := [column for column in self.bins or () if column not in self.secrets]:
            known = ", ".join(self.secrets)
            hint = nearest(unknown[0], self.secrets)
            raise RequestError(f"table: bins: {unknown[0]!r} is not one of the secrets ({known}){hint}")
        for column, edges in (self.bins or {}).items():
            if isinstance(edges, list) and not (all(map(math.isfinite, edges)) and edges == sorted({*edges})):
                raise RequestError(f"table: bins: {column}: {edges} is not allowed: finite numbers that increase")
        return [column for column in named if column]

    def _clean(self, row: InputRow) -> InputRow:
        clean: InputRow = {}
        if self.text:
            clean["text"] = clean_text(row[self.text], self.text)
        if self.id:
            clean["id"] = clean_id(row[self.id], self.id)
        if self.label:
            clean["label"] = clean_category(listed(row[self.label]), self.label)
        if self.user:
            clean["user"] = clean_category(row[self.user], self.user)
        if self.document:
            clean["document"] = clean_id(row[self.document], self.document)
        for secret in self.secrets:
            is_number = self.bins and secret in self.bins
            clean[secret] = _finite(row[secret], secret) if is_number else clean_category(listed(row[secret]), secret)
        for entity in self.entities:
            clean[entity] = _look_up(PRESENCE, row[entity], entity)
        for number in self.numbers:
            clean[number] = _finite(row[number], number)
        if self.split:
            clean["split"] = _look_up(SPLIT_NAMES, row[self.split], self.split)
        return clean

    def _encode_secret(self, frame: pd.DataFrame, column: str) -> tuple[str, ...]:
        """Replace the values of a secret by the numbers of its classes, and return the names of the classes."""
        bins = (self.bins or {}).get(column)
        if bins is None and (complaint := about_kind(frame[column].unique(), column)):
            raise RequestError(f"{self.path}: the secret {column!r} has {complaint}")
        values = encode(frame, column, self.path) if bins is None else encode_bins(frame, column, bins)
        check_secret(values, column, self.path, is_binned=bins is not None)
        return values

    def _splits(self, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
        if not (self.split or self.dev or self.test):
            return divide(frame, self.dev_share, self.test_share, self.split_seed)
        split_of = frame["split"] if self.split else frame["file"]
        splits = {name: frame[split_of == name] for name in SPLITS}
        for name, share in (("test", self.test_share), ("dev", self.dev_share)):
            if splits[name].empty:
                splits = draw_from_train(splits, name, share, self.split_seed)
        return drop_copies(splits) if self.duplicates == "drop" else splits


def _check_ids(frame: pd.DataFrame, column: str, sources: Mapping[int, Rows]) -> None:
    """Refuse repeated ids.

    Args:
        frame: all rows.
        column: of the ids, in the user's file.
        sources: the rows of each file or glob, by the number of their first row.

    Raises:
        RequestError: an id is repeated; the message has the id and both rows.
    """

    def location(row: int) -> str:
        first = max(first for first in sources if first <= row)
        return sources[first].location(row - first)

    repeated = frame[frame.duplicated("id", keep=False)]
    if len(repeated):
        value = repeated["id"].iloc[0]
        first, second = map(location, repeated[repeated["id"] == value]["row"].iloc[:2])
        raise RequestError(f"{first} and {second} have the same {column}, {value!r}; every row needs an id of its own")


def _check_numbers(frame: pd.DataFrame, columns: Sequence[str], source: str) -> None:
    """Refuse numbers that differ between the rows of a user.

    Raises:
        RequestError: there are some; the message has the column and the user.
    """
    for column in columns:
        values = frame.groupby("user")[column].nunique()
        if (values > 1).any():
            raise RequestError(
                f"{source}: the user {values.idxmax()!r} has {values.max()} numbers in {column!r}; allowed: one"
            )


def _check_users(frame: pd.DataFrame, source: str) -> None:
    """Refuse a document that two users have: the splits are drawn by user.

    Raises:
        RequestError: there is one; the message has its name.
    """
    users = frame.groupby("document")["user"].nunique()
    if (users > 1).any():
        raise RequestError(f"{source}: the document {users.idxmax()!r} has rows of {users.max()} users; allowed: one")


def _look_up(table: dict[str, int] | dict[str, str], value: object, column: str) -> int | str:
    name = clean_category(value, column)
    try:
        return table[name.lower()]
    except KeyError:
        raise ValueError(f"{column} is {name!r}; allowed: {', '.join(table)}") from None


def _finite(value: object, column: str) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{column} is {str(value)[:40]!r}; allowed: a finite number")
    return number
