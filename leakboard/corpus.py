"""Define a corpus: texts with a task label and secrets, in splits."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from datasets import DatasetDict

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Strings = NDArray[np.str_]

SecretKind = Literal["attribute", "entity"]
POSTERIOR = "posterior:"
"""Prefix of columns with the exact probability of each value of a secret given the text."""


@dataclass(frozen=True)
class Secret:
    """A private variable of a text: an attribute (gender), or an entity with the values absent and present."""

    name: str
    values: tuple[str, ...]
    kind: SecretKind


class Texts(list[str]):
    """Texts in order, with the source row and the id of each text; None if unknown."""

    def __init__(self, texts: Sequence[str], rows: Integers | None = None, ids: Sequence[str] | None = None):
        super().__init__(texts)
        self.rows, self.ids = rows, ids

    def take(self, places: Sequence[int]) -> Texts:
        """Return the texts at these places, in this order."""
        rows = None if self.rows is None else self.rows[list(places)]
        ids = None if self.ids is None else [self.ids[place] for place in places]
        return Texts([self[place] for place in places], rows, ids)

    def coded(self) -> tuple[Texts, list[int]]:
        """Return each text once, without rows and ids, and the place of every text among these."""
        place = {text: code for code, text in enumerate(dict.fromkeys(self))}
        return Texts([*place]), [place[text] for text in self]

    def distinct(self) -> Texts:
        """Return each text once, with its last row and id."""
        return self.take([*{text: place for place, text in enumerate(self)}.values()])


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts with a task label and secrets.

    ``splits`` maps the names of splits (train, dev, test) to tables with these columns:

    - ``row``: number of the row in the source (int64);
    - ``text``, ``label`` (ClassLabel), ``id``, ``user`` and ``document``: each optional;
    - the name of a secret: its value (ClassLabel);
    - the name of a numeric target: its value (float64);
    - ``posterior:<secret>``, for generated texts: the probability of each value given the text.
    """

    name: str
    secrets: tuple[Secret, ...]
    splits: DatasetDict
    checks: Mapping[str, float] = field(default_factory=dict)
    """Counts and shares from loading the corpus, such as copies across splits and dropped rows."""
    numeric_targets: tuple[str, ...] = ()
    """Columns that a regression may predict; all rows of a user have the same value."""
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def texts(self, split: str) -> Texts:
        """Return the texts of a split with their source rows and ids; a corpus without texts gives empty texts."""
        if split not in (kept := self._kept.setdefault("texts", {})):
            part = self.splits[split]
            texts, ids = (part[name][:] if name in part.column_names else None for name in ("text", "id"))
            kept[split] = texts or [""] * len(part), np.asarray(part["row"][:], dtype=np.int64), ids
        texts, rows, ids = kept[split]
        return Texts(texts, rows.copy(), ids and list(ids))

    def column(self, split: str, name: str) -> Integers:
        """Return a ClassLabel column of a split as int64 (n,)."""
        if (key := f"{split}: {name}") not in self._kept:
            self._kept[key] = np.asarray(self.splits[split][name][:], dtype=np.int64)
        return self._kept[key].copy()  # type: ignore[no-any-return]

    def values(self, name: str) -> tuple[str, ...]:
        """Return the class names of a ClassLabel column; empty: there is no such column."""
        if (key := f"values of {name}") not in self._kept:
            train = self.splits["train"]
            self._kept[key] = tuple(train.features[name].names) if name in train.column_names else ()
        return self._kept[key]  # type: ignore[no-any-return]

    @property
    def has_texts(self) -> bool:
        """Whether the texts are known, and not only their vectors."""
        return all("text" in part.column_names for part in self.splits.values())

    @property
    def has_labels(self) -> bool:
        """Whether the texts have a task label."""
        return "label" in self.splits["train"].column_names

    @property
    def has_users(self) -> bool:
        """Whether the author of each text is known."""
        return "user" in self.splits["train"].column_names

    def only(self, *names: str) -> Corpus:
        """Return the corpus with these splits only, without posteriors, which only scoring may see."""
        if names not in self._kept:
            parts = type(self.splits)({name: self.splits[name] for name in names})
            hidden = {c for part in parts.values() for c in part.column_names if c.startswith(POSTERIOR)}
            self._kept[names] = parts.remove_columns(sorted(hidden))
        parts = type(self.splits)({name: copy.copy(part) for name, part in self._kept[names].items()})
        corpus = dataclasses.replace(self, splits=parts)
        corpus._kept["texts"] = self._kept.setdefault("texts", {})  # the same texts: each is read once
        return corpus

    def with_rows(self, split: str, rows: Sequence[int]) -> Corpus:
        """Return the corpus with only these rows of a split."""
        parts = type(self.splits)({**self.splits, split: self.splits[split].select(rows)})
        return dataclasses.replace(self, splits=parts)
