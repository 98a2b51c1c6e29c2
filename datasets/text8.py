"""Text8: the first 100 million characters of cleaned English Wikipedia of 2006 (Mahoney).

No task and no secrets: for attacks on words and texts, and as the public corpus of the gold model of DPUGC (Vu, Tran
and Jiang 2019). The file is one line of 17,005,207 words of the letters a to z. It is cut into texts of
``words_per_text`` words in reading order (the last may be shorter), which are divided at random. The file does not mark
the ends of articles, so neighbouring texts may belong to one article. Wikipedia's text is under CC BY-SA and the GFDL.
"""

import string
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from leakboard.data.corpora import build_corpus
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.archives import open_bytes
from leakboard.datasets._preparation.random_rows import DrawnSplits
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus
from leakboard.suite.options import dataset

FILE = PublicFile(
    "text8",
    "text8.zip",
    "https://mattmahoney.net/dc/text8.zip",
    "sha256:a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
)
MEMBER = "text8"
ALLOWED = string.ascii_lowercase.encode() + b" \n"
BLOCK = 2**20
"""Bytes to read at a time: all words together, as Python objects, would take more than a gigabyte."""


@dataset(revision=1)
class Text8(DrawnSplits):
    words_per_text: Annotated[int, Field(ge=1)] = 1000
    """Length of a text (words)."""
    words: Annotated[int, Field(ge=1)] | None = None
    """Number of words to read from the start; null: all."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the file is present."""
        return availability([FILE])

    def fingerprint(self) -> str:
        """Return the checksum of the published file."""
        return FILE.identity()

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``, and cut it into texts.

        Raises:
            RequestError: the file cannot be fetched, is not the published one, or has fewer words than ``words``.
        """
        import pandas as pd

        texts = list(self._texts(FILE.fetch()))
        frame = pd.DataFrame({"text": texts, "row": np.arange(len(texts))})
        return build_corpus("text8", self.divide(frame), (), None, {"source_rows": len(texts)})

    def _texts(self, path: Path) -> Iterator[str]:
        size, taken = self.words_per_text, 0
        waiting: list[str] = []
        for block in _words(path):
            kept = block if self.words is None else block[: self.words - taken]
            taken += len(kept)
            waiting += kept
            whole = len(waiting) - len(waiting) % size
            yield from (" ".join(waiting[start : start + size]) for start in range(0, whole, size))
            waiting = waiting[whole:]
            if taken == self.words:
                break
        if taken < (self.words or 1):
            raise RequestError(f"{path}: {taken} words, fewer than words={self.words or 1}")
        if waiting:
            yield " ".join(waiting)


def _words(path: Path) -> Iterator[list[str]]:
    """Yield the words of the file, some at a time.

    Raises:
        RequestError: a character is not allowed.
    """
    with open_bytes(path, MEMBER) as stream:
        position, last = 0, ""
        while block := stream.read(BLOCK):
            if wrong := block.translate(None, ALLOWED):
                at = position + block.index(wrong[:1])
                raise RequestError(f"{path}: byte {at} of {MEMBER} is {wrong[:1]!r}; allowed: a to z and blanks")
            position += len(block)
            *complete, last = (last + block.decode("ascii").replace("\n", " ")).split(" ")
            yield [word for word in complete if word]
        yield [last] if last else []
