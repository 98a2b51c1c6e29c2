"""Vector stores, read through their own clients: each row a point with its id, its vector and what is stored with it.

A store is written like the address of a page, ``STORE:LOCATION#COLLECTION``:

- ``qdrant:path/to/folder#reviews`` or ``qdrant:http://localhost:6333#reviews``; rows have ``id``, ``vector`` (named
  vectors: ``vector.NAME``) and ``payload.FIELD``;
- ``chroma:path/to/folder#reviews``; rows have ``id``, ``vector``, ``document`` and ``metadata.FIELD``;
- ``lancedb:path/to/folder#reviews``; rows have the table's own columns;
- ``pgvector:postgresql://user@host/database#reviews``; rows have the table's own columns, ordered by the first.

An address is published with the results, so it may hold no password; PostgreSQL's clients look for one in the variable
``PGPASSWORD`` and in ``~/.pgpass``. The clients are the extra ``leakboard[stores]``.
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

Row = dict[str, Any]
BATCH = 1_000
"""Rows that are asked for at once."""
WITH_SERVERS = ("qdrant", "lancedb", "pgvector")
"""Stores whose location may be a server's address."""
PATIENCE = 60.0
"""How long another process may keep a folder that only one may open (seconds)."""
PASSWORDS = re.compile(
    r"(://[^/@]*:)(?!\d{1,5}(?:/[^#@]*)?#[^#]*$)[^@]*(?=@)"  # user:password@, but no port before a collection with an @
    r"|((?:password|passwd|api_?key)\s*=\s*)(?:'[^']*'|[^&#\s]+)",
    re.IGNORECASE,
)
"""Passwords in an address, as in ``postgresql://user:password@host`` and in ``password=...``; what precedes one is a
group."""


@dataclass(frozen=True)
class StoreAddress:
    """A collection of a vector store."""

    store: str
    location: str
    """A folder, or the address of a server."""
    collection: str

    def __str__(self) -> str:
        return _without_passwords(f"{self.store}:{self.location}#{self.collection}")

    def rows(self) -> Iterator[Row]:
        """Return the rows, always in the same order.

        Raises:
            RequestError: the client is not installed, or the store or the collection cannot be read.
        """
        if not ("://" in self.location and self.store in WITH_SERVERS) and not Path(self.location).is_dir():
            raise RequestError(f"{self}: no such folder")
        try:
            yield from READERS[self.store](self.location, self.collection)
        except ImportError as error:
            raise RequestError(f"{self}: needs {error.name}: pip install 'leakboard[stores]'") from None
        except RequestError:
            raise
        except Exception as error:  # each client has errors of its own
            raise RequestError(f"{self}: cannot be read ({one_line(error)})") from None

    def checksum(self) -> str:
        """Return the SHA-256 of the rows."""
        hashed = hashlib.sha256()
        for row in self.rows():
            hashed.update(json.dumps(row, sort_keys=True, default=str).encode())
        return hashed.hexdigest()


Source = Path | StoreAddress
"""Where rows are read: a file, or a collection of a vector store."""


def source(text: str | Source) -> Source:
    """Return the file or the collection that a text names, and one that is known already as it is."""
    if not isinstance(text, str):
        return text
    return store_address(text) or Path(text)


def source_checksum(source: Source) -> str:
    """Return the SHA-256 of a file's bytes, or of a collection's rows.

    Raises:
        RequestError: it is missing, or cannot be read.
    """
    if isinstance(source, Path) and not source.exists():
        raise RequestError(f"{source}: no such file")
    return file_checksum(source) if isinstance(source, Path) else source.checksum()


def store_address(text: str) -> StoreAddress | None:
    """Return the address of a vector store, or None where the text does not begin with the name of one.

    Raises:
        RequestError: it names no collection, or holds a password.
    """
    store, colon, rest = text.partition(":")
    if not colon or store not in READERS:
        return None
    if PASSWORDS.search(text):
        raise RequestError(
            f"{_without_passwords(text)}: holds a password, and addresses are published; allowed: an address without "
            "one, with the password in the variable PGPASSWORD or in the file ~/.pgpass"
        )
    location, _, collection = rest.rpartition("#")
    if not location or not collection:
        raise RequestError(f"{text}: names no collection; a store is written {store}:LOCATION#COLLECTION")
    return StoreAddress(store, location, collection)


def _without_passwords(address: str) -> str:
    return PASSWORDS.sub(lambda match: f"{match[1] or match[2]}***", address)


def _qdrant(location: str, collection: str) -> Iterator[Row]:
    with closing(_qdrant_client(location)) as client:
        offset, is_first = None, True
        while is_first or offset is not None:
            points, offset = client.scroll(collection, limit=BATCH, offset=offset, with_vectors=True)
            is_first = False
            for point in points:
                yield {"id": point.id, "vector": point.vector, "payload": point.payload or {}}


def _qdrant_client(location: str) -> Any:
    """Return a client; a folder can be opened by one process at a time, so others are waited for."""
    from qdrant_client import QdrantClient

    if "://" in location:
        return QdrantClient(url=location)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return QdrantClient(path=location)
        except RuntimeError as error:
            if "already accessed" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.2)


def _chroma(location: str, collection: str) -> Iterator[Row]:
    import chromadb

    client = chromadb.PersistentClient(location)
    source, start = client.get_collection(collection), 0
    while start < source.count():
        part = source.get(limit=BATCH, offset=start, include=["embeddings", "metadatas", "documents"])
        start += BATCH
        columns = (part[name] for name in ("ids", "embeddings", "documents", "metadatas"))
        for id, vector, document, metadata in zip(*columns, strict=True):
            yield {"id": id, "vector": vector.tolist(), "document": document, "metadata": dict(metadata or {})}


def _lancedb(location: str, collection: str) -> Iterator[Row]:
    import lancedb

    table = lancedb.connect(location).open_table(collection)
    for batch in table.to_arrow().to_batches(BATCH):
        yield from batch.to_pylist()


def _pgvector(location: str, collection: str) -> Iterator[Row]:
    import psycopg
    from psycopg import rows, sql

    query = sql.SQL("SELECT * FROM {} ORDER BY 1").format(sql.Identifier(*collection.split(".")))
    with psycopg.connect(location) as connection, connection.cursor("rows", row_factory=rows.dict_row) as cursor:
        yield from cursor.execute(query)


READERS: Mapping[str, Callable[[str, str], Iterator[Row]]] = {
    "qdrant": _qdrant,
    "chroma": _chroma,
    "lancedb": _lancedb,
    "pgvector": _pgvector,
}
"""What yields the rows of a collection, given the store's location and the collection's name."""
