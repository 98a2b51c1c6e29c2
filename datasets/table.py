"""Your own data: any CSV, TSV, Parquet or JSON Lines file or glob, with columns for text, label and secrets.

Without given splits the rows are divided at random, by user where there is one, else by distinct text, so that
neither crosses splits. It does not guess what is secret: name the columns.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field

from leakboard.data.corpora import SPLITS, build_corpus, divide, drop_copies
from leakboard.data.tabular import Row, clean_category, clean_text, expand, read_rows
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.store import digest, file_checksum
from leakboard.suite.options import Strings, dataset

if TYPE_CHECKING:
    import pandas as pd

PRESENCE = {"0": 0, "1": 1, "false": 0, "true": 1, "absent": 0, "present": 1, "no": 0, "yes": 1}
SPLIT_NAMES = {"train": "train", "dev": "dev", "valid": "dev", "validation": "dev", "test": "test"}
MAX_CLASSES = 1_000

Share = Annotated[float, Field(gt=0, lt=1)]


@dataset(revision=1)
class Table(Dataset):
    path: str
    """File or glob (csv, tsv, parquet, jsonl), relative to the working folder; all texts, or just train's."""
    text: str = "text"
    """Column of the texts."""
    label: str | None = None
    """Column of the task label; without one there is no task to score."""
    secrets: Strings = ()
    """Columns of the attribute secrets (gender, age group): one of several values a text."""
    entities: Strings = ()
    """Columns of the entity secrets: 0/1, true/false, no/yes or absent/present."""
    numbers: Strings = ()
    """Columns of finite numbers, of a user the same in all rows: predicted by regression, or a victim's budgets."""
    user: str | None = None
    """Column that says who wrote the text; drawn splits share no user, in given ones those shared are counted."""
    split: str | None = None
    """Column that says train, dev or test; without one, and without files for them, the split is drawn."""
    dev: str | None = None
    """File or glob of the dev split."""
    test: str | None = None
    """File or glob of the test split."""
    dev_share: Share = 0.1
    """Share of the texts (or users) drawn for dev."""
    test_share: Share = 0.1
    """Share of the texts (or users) drawn for test."""
    split_seed: int = 0
    """Seed of the drawn split."""
    duplicates: Literal["drop", "keep"] = "drop"
    """Given splits: whether texts of dev and test are taken out of train."""
    on_bad_rows: Literal["error", "drop"] = "error"
    """Bad rows (text or label missing, wrong type, undecodable bytes): refuse the file, or count and leave them out."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a table of forty rows, which is written into the folder."""
        import pandas as pd

        rows = {"text": [f"row {i} of a table" for i in range(40)], "label": ["yes", "no"] * 20}
        rows |= {"age": ["old", "young", "old", "old"] * 10, "person": ["no", "yes", "no", "no"] * 10}
        pd.DataFrame(rows).to_csv(folder / "table.csv", index=False)
        return cls(path=str(folder / "table.csv"), label="label", secrets=("age",), entities=("person",))

    def fingerprint(self) -> str:
        """Identify the bytes of all files."""
        patterns = [p for p in (self.path, self.dev, self.test) if p]
        return digest({p: [file_checksum(f) for f in expand(p)] for p in patterns})

    def load(self) -> Corpus:
        """Read, check and divide the rows.

        Raises:
            RequestError: a file or column is missing, or rows are bad.
        """
        import pandas as pd

        if self.split and (self.dev or self.test):
            raise RequestError(f"table: give a column of splits ({self.split!r}) or files for dev and test, not both")
        files = {"train": self.path, "dev": self.dev, "test": self.test}
        frames, dropped, first_row = {}, 0, 0
        for name, pattern in files.items():
            if pattern:
                read = read_rows(pattern, self._columns(), self._clean, self.on_bad_rows)
                frames[name] = read.frame(first_row)
                first_row += len(read.rows) + read.dropped
                dropped += read.dropped
        whole = pd.concat(frames, names=["file"]).reset_index("file").reset_index(drop=True)
        secrets = [Secret(s, self._encode(whole, s), "attribute") for s in self.secrets]
        secrets += [Secret(e, ("absent", "present"), "entity") for e in self.entities]
        labels = self._encode(whole, "label") if self.label else None
        splits = self._splits(whole)
        copies = len(whole) - sum(map(len, splits.values()))
        checks = {"source_rows": first_row, "dropped_rows": dropped, "dropped_copies": copies}
        return build_corpus("table", splits, secrets, labels, checks, numeric_targets=self.numbers)

    def _columns(self) -> list[str]:
        named = [self.text, self.label, self.user, self.split, *self.secrets, *self.entities, *self.numbers]
        attributes = [*self.secrets, *self.entities, *self.numbers]
        taken = {"text", "label", "row", "user", "split", "file"} & {*attributes}
        if taken or len({*attributes}) < len(attributes):
            names = sorted(taken) or "one is named twice"
            raise RequestError(f"table: a column of secrets or numbers needs a name of its own: {names}")
        return [column for column in named if column]

    def _clean(self, row: Row) -> Row:
        clean: Row = {"text": clean_text(row[self.text], self.text)}
        if self.label:
            clean["label"] = clean_category(row[self.label], self.label)
        if self.user:
            clean["user"] = clean_category(row[self.user], self.user)
        for secret in self.secrets:
            clean[secret] = clean_category(row[secret], secret)
        for entity in self.entities:
            clean[entity] = _look_up(PRESENCE, row[entity], entity)
        for number in self.numbers:
            clean[number] = _finite(row[number], number)
        if self.split:
            clean["split"] = _look_up(SPLIT_NAMES, row[self.split], self.split)
        return clean

    def _encode(self, frame: pd.DataFrame, column: str) -> tuple[str, ...]:
        """Replace class names by their numbers and return the names, numbers in numeric order."""
        values = sorted(frame[column].unique(), key=_class_order)
        if len(values) > MAX_CLASSES:
            raise RequestError(f"{self.path}: column {column!r} has {len(values)} values; allowed: {MAX_CLASSES}")
        frame[column] = frame[column].map({value: code for code, value in enumerate(values)}).astype(int)
        return tuple(values)

    def _splits(self, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
        if not (self.split or self.dev or self.test):
            return divide(frame, self.dev_share, self.test_share, self.split_seed)
        split_of = frame["split"] if self.split else frame["file"]
        splits = {name: frame[split_of == name] for name in SPLITS}
        for name, share in (("test", self.test_share), ("dev", self.dev_share)):
            if splits[name].empty:
                drawn = divide(splits["train"], share, share, self.split_seed)
                splits[name] = drawn[name]
                splits["train"] = splits["train"].drop(drawn[name].index)
        return drop_copies(splits) if self.duplicates == "drop" else splits


def _class_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), name) if re.fullmatch(r"-?\d{1,99}", name) else (1, 0, name)


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
