"""Read collections of vector databases through their own clients: each row is a point with its id, vector and fields.

The address of a collection is ``DATABASE:LOCATION#COLLECTION``:

| example | columns of the rows |
|---|---|
| ``qdrant:path/to/folder#reviews`` | ``id``, ``vector`` (named vectors: ``vector.NAME``), ``payload.FIELD`` |
| ``qdrant:http://localhost:6333#reviews`` | the same |
| ``chroma:path/to/folder#reviews`` | ``id``, ``vector``, ``document``, ``metadata.FIELD`` |
| ``lancedb:path/to/folder#reviews`` | those of the table |
| ``pgvector:postgresql://user@host/database#reviews`` | those of the table; the rows are ordered by the first |

An address is published with the results, so passwords are refused. PostgreSQL's clients read the password from the
variable ``PGPASSWORD`` or from ``~/.pgpass``. The clients are the extra ``leakboard[stores]``.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakboard.errors import RequestError, one_line
from leakboard.store import file_checksum

InputRow = dict[str, Any]
BATCH = 1_000
"""Rows in one request."""
WITH_SERVERS = ("qdrant", "lancedb", "pgvector")
"""Databases whose location may be the address of a server."""
LOCK_SECONDS = 60.0
"""Longest time to wait for a folder that another process has open (seconds)."""
PASSWORDS = re.compile(
    r"(://[^/@]*:)(?!\d{1,5}(?:/[^#@]*)?#[^#]*$)[^@]*(?=@)"  # user:password@, but no port before a collection with an @
    r"|((?:password|passwd|api_?key)\s*=\s*)(?:'[^']*'|[^&#\s]+)",
    re.IGNORECASE,
)
"""Passwords in an address: ``postgresql://user:password@host``, ``password=...``. A group has the part before."""


@dataclass(frozen=True)
class CollectionAddress:
    """The address of a collection in a vector database."""

    database: str
    location: str
    """A folder, or the address of a server."""
    collection: str

    def __str__(self) -> str:
        return _without_passwords(f"{self.database}:{self.location}#{self.collection}")

    def rows(self) -> Iterator[InputRow]:
        """Yield the rows, always in the same order.

        Raises:
            RequestError: the client is not installed, or the database or the collection cannot be read.
        """
        if not ("://" in self.location and self.database in WITH_SERVERS) and not Path(self.location).is_dir():
            raise RequestError(f"{self}: no such folder")
        try:
            yield from READERS[self.database](self.location, self.collection)
        except ImportError as error:
            raise RequestError(f"{self}: needs {error.name}: pip install 'leakboard[stores]'") from None
        except RequestError:
            raise
        except Exception as error:  # each client has its own errors
            raise RequestError(f"{self}: cannot be read ({one_line(error)})") from None

    def checksum(self) -> str:
        """Return the SHA-256 of the rows."""
        hashed = hashlib.sha256()
        for row in self.rows():
            hashed.update(json.dumps(row, sort_keys=True, default=str).encode())
        return hashed.hexdigest()


Source = Path | CollectionAddress
"""A file, or a collection of a vector database."""


def source(text: str | Source) -> Source:
    """Return the file or the collection that a text names; return a source as it is."""
    if not isinstance(text, str):
        return text
    return collection_address(text) or Path(text)


def source_checksum(source: Source) -> str:
    """Return the SHA-256 of a file's bytes, or of a collection's rows.

    Raises:
        RequestError: the source is missing, or cannot be read.
    """
    if isinstance(source, Path) and not source.exists():
        raise RequestError(f"{source}: no such file")
    return file_checksum(source) if isinstance(source, Path) else source.checksum()


def collection_address(text: str) -> CollectionAddress | None:
    """Return the address of a collection; None: the text does not begin with the name of a vector database.

    Raises:
        RequestError: the address names no collection, or holds a password.
    """
    database, colon, rest = text.partition(":")
    if not colon or database not in READERS:
        return None
    if PASSWORDS.search(text):
        raise RequestError(
            f"{_without_passwords(text)}: holds a password, and addresses are published; allowed: an address without "
            "one, with the password in the variable PGPASSWORD or in the file ~/.pgpass"
        )
    location, _, collection = rest.rpartition("#")
    if not location or not collection:
        raise RequestError(f"{text}: names no collection; allowed: {database}:LOCATION#COLLECTION")
    return CollectionAddress(database, location, collection)


def _without_passwords(address: str) -> str:
    return PASSWORDS.sub(lambda match: f"{match[1] or match[2]}***", address)


def _qdrant(location: str, collection: str) -> Iterator[InputRow]:
    with closing(_qdrant_client(location)) as client:
        offset, is_first = None, True
        while is_first or offset is not None:
            points, offset = client.scroll(collection, limit=BATCH, offset=offset, with_vectors=True)
            is_first = False
            for point in points:
                yield {"id": point.id, "vector": point.vector, "payload": point.payload or {}}


def _qdrant_client(location: str) -> Any:
    """Return a client; wait if another process has the folder open, since only one may."""
    from qdrant_client import QdrantClient

    if "://" in location:
        return QdrantClient(url=location)
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return QdrantClient(path=location)
        except RuntimeError as error:
            if "already accessed" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _chroma(location: str, collection: str) -> Iterator[InputRow]:
    import chromadb

    client = chromadb.PersistentClient(location)
    source, start = client.get_collection(collection), 0
    while start < source.count():
        part = source.get(limit=BATCH, offset=start, include=["embeddings", "metadatas", "documents"])
        start += BATCH
        columns = (part[name] for name in ("ids", "embeddings", "documents", "metadatas"))
        for id, vector, document, metadata in zip(*columns, strict=True):
            yield {"id": id, "vector": vector.tolist(), "document": document, "metadata": dict(metadata or {})}


def _lancedb(location: str, collection: str) -> Iterator[InputRow]:
    import lancedb

    table = lancedb.connect(location).open_table(collection)
    for batch in table.to_arrow().to_batches(BATCH):
        yield from batch.to_pylist()


def _pgvector(location: str, collection: str) -> Iterator[InputRow]:
    import psycopg
    from psycopg import rows, sql

    query = sql.SQL("SELECT * FROM {} ORDER BY 1").format(sql.Identifier(*collection.split(".")))
    with psycopg.connect(location) as connection, connection.cursor("rows", row_factory=rows.dict_row) as cursor:
        yield from cursor.execute(query)


READERS: Mapping[str, Callable[[str, str], Iterator[InputRow]]] = {
    "qdrant": _qdrant,
    "chroma": _chroma,
    "lancedb": _lancedb,
    "pgvector": _pgvector,
}
"""The reader of each database: it yields the rows, given the location and the collection's name."""
