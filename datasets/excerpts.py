"""The first words of another dataset's texts, for attacks on texts: how much comes back of 8, 16 or 64 words?

Texts with fewer words are left out, so all excerpts have the same length. Labels, secrets and authors stay those of the
whole texts: a person may be labelled present although the excerpt does not name it. A copy is a text whose excerpt is
also in train. Reading a text can take seconds, so ``test`` limits the number of test texts.
"""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from leakboard.data.corpora import SPLITS, check
from leakboard.datasets.ag import Ag
from leakboard.datasets.captions import Captions
from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.datasets.quora import Quora
from leakboard.datasets.table import Table
from leakboard.datasets.tatoeba import Tatoeba
from leakboard.datasets.trustpilot import Trustpilot
from leakboard.errors import RequestError
from leakboard.interfaces import POSTERIOR, Corpus, Dataset
from leakboard.randomness import stream
from leakboard.suite.options import ALWAYS_NAMED, Count, dataset, part

if TYPE_CHECKING:
    import datasets as hub

WHOLE = {
    "ag": Ag,
    "captions": Captions,
    "generated_reviews": GeneratedReviews,
    "quora": Quora,
    "table": Table,
    "tatoeba": Tatoeba,
    "trustpilot": Trustpilot,
}
"""Datasets whose texts can be cut, by name."""


@dataset(revision=1)
class Excerpts(Dataset):
    of: Annotated[part(WHOLE), ALWAYS_NAMED]  # type: ignore[valid-type]
    """The dataset of the whole texts, with its options."""
    words: Count | None = None
    """Number of words from the beginning of each text, split at white space and joined by blanks; null: all."""
    train: Count | None = None
    """Largest number of texts of train, drawn at random; null: all."""
    test: Count | None = 500
    """Largest number of texts of test, drawn at random; null: all."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return the first words of generated reviews."""
        return cls(of=GeneratedReviews.example(folder), words=12, test=20)

    @property
    def texts_are_invented(self) -> bool:
        """Whether those of the whole dataset are."""
        return bool(self.of.texts_are_invented)

    def fingerprint(self) -> str:
        """Return the fingerprint of the whole dataset."""
        return str(self.of.fingerprint())

    def load(self) -> Corpus:
        """Load the whole dataset and cut its texts.

        Raises:
            RequestError: the dataset cannot be loaded or has no texts, or a split has no text of so many words.
        """
        whole = self.of.load()
        if not whole.has_texts:
            raise RequestError(f"excerpts: of: {whole.name} has no texts")
        limits = {"train": self.train, "test": self.test}
        splits = type(whole.splits)({s: self._cut(whole.splits[s], s, limits.get(s)) for s in SPLITS})
        cut = dataclasses.replace(whole, splits=splits)
        return dataclasses.replace(cut, checks={**whole.checks, **check(cut)})

    def _cut(self, rows: "hub.Dataset", split: str, limit: int | None) -> "hub.Dataset":
        texts = [text.split() for text in rows["text"][:]]
        kept = np.array([i for i, words in enumerate(texts) if len(words) >= (self.words or 1)])
        if not len(kept):
            raise RequestError(f"excerpts: words: {self.words}: no text of {split} has {self.words or 'any'} words")
        if limit is not None and len(kept) > limit:
            kept = np.sort(stream("excerpts", split).choice(kept, limit, replace=False))
        # the posteriors are of the whole texts
        replaced = ["text", *(name for name in rows.column_names if name.startswith(POSTERIOR))]
        return (
            rows.select(kept)
            .remove_columns(replaced)
            .add_column("text", [" ".join(texts[i][: self.words]) for i in kept])
        )
