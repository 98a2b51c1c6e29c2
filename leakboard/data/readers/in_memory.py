"""Read rows and vectors in memory as if they were a collection of a vector database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakboard.data.readers.vector_databases import CollectionAddress, InputRow


@dataclass(frozen=True, eq=False)
class InMemory(CollectionAddress):
    """A frame of rows, or an array of vectors, float32 (n, d)."""

    content: Any

    @classmethod
    def of(cls, name: str, content: Any) -> InMemory:
        """Return the source of a frame or an array, with a name for messages."""
        return cls("memory", "", name, content)

    def __str__(self) -> str:
        return self.collection

    def rows(self) -> Iterator[InputRow]:
        """Yield the frame's rows."""
        names = list(self.content.columns)
        for values in self.content.itertuples(index=False, name=None):
            yield dict(zip(names, values, strict=True))

    def checksum(self) -> str:
        """Return the SHA-256 of the rows, or of the array with its shape and type."""
        if not isinstance(self.content, np.ndarray):
            return super().checksum()
        hashed = hashlib.sha256(f"{self.content.shape} {self.content.dtype}".encode())
        hashed.update(np.ascontiguousarray(self.content).data.cast("B"))
        return hashed.hexdigest()
