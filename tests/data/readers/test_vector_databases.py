"""Collections of embedded vector databases can be read as tables and as vectors."""

import json
import os
import sys

import numpy as np
import pytest
from loading import refused

from leakboard.data.readers.vector_databases import CollectionAddress, collection_address
from leakboard.datasets.table import Table
from leakboard.errors import RequestError
from leakboard.victims.precomputed import Precomputed

ROWS = 60
VECTORS = np.random.default_rng(0).standard_normal((ROWS, 4)).astype(np.float32)
ORDER = np.random.default_rng(1).permutation(ROWS)


def payload(row):
    return {"text": f"text {row}", "gender": "fm"[row % 2], "row": int(row)}


def qdrant(folder):
    client = pytest.importorskip("qdrant_client")
    from qdrant_client import models

    database = client.QdrantClient(path=str(folder))
    database.create_collection("reviews", models.VectorParams(size=4, distance=models.Distance.DOT))
    points = [models.PointStruct(id=1000 + int(i), vector=VECTORS[i].tolist(), payload=payload(i)) for i in ORDER]
    database.upsert("reviews", points)
    database.close()
    return f"qdrant:{folder}#reviews", "payload"


def chroma(folder):
    chromadb = pytest.importorskip("chromadb")
    collection = chromadb.PersistentClient(str(folder)).create_collection("reviews", embedding_function=None)
    collection.add(ids=[str(1000 + i) for i in ORDER], embeddings=VECTORS[ORDER], metadatas=[payload(i) for i in ORDER])
    return f"chroma:{folder}#reviews", "metadata"


def lancedb(folder):
    client = pytest.importorskip("lancedb")
    rows = [{"id": 1000 + int(i), "vector": VECTORS[i].tolist(), "about": payload(i)} for i in ORDER]
    client.connect(folder).create_table("reviews", rows)
    return f"lancedb:{folder}#reviews", "about"


def pgvector(folder):
    psycopg, server = pytest.importorskip("psycopg"), pytest.importorskip("pgserver")
    if os.geteuid() == 0:
        pytest.skip("PostgreSQL does not run as root")
    address = server.get_server(folder).get_uri()
    with psycopg.connect(address) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE reviews (id integer, embedding vector(4), about jsonb)")
        for i in ORDER:
            values = (1000 + int(i), str(VECTORS[i].tolist()), json.dumps(payload(i)))
            connection.execute("INSERT INTO reviews VALUES (%s, %s, %s)", values)
    return f"pgvector:{address}#reviews", "about"


@pytest.mark.parametrize("fill", [qdrant, chroma, lancedb, pgvector])
def test_a_collection_is_a_table_and_vectors(tmp_path, fill):
    folder = tmp_path / "database"
    folder.mkdir()
    address, prefix = fill(folder)
    names = {"text": f"{prefix}.text", "secrets": (f"{prefix}.gender",), "id": "id"}
    table, victim = Table(path=address, **names), Precomputed(vectors=address)
    corpus = table.load()
    fitted = victim.fit(corpus.only("train", "dev"), 0)
    for split in corpus.splits:
        rows = [int(text.removeprefix("text ")) for text in corpus.texts(split)]
        assert corpus.texts(split).ids == [str(1000 + row) for row in rows]
        assert corpus.column(split, f"{prefix}.gender").tolist() == [row % 2 for row in rows]
        np.testing.assert_allclose(fitted.publish_documents(corpus.texts(split), None), VECTORS[rows], rtol=1e-6)
    assert sum(len(corpus.splits[split]) for split in corpus.splits) == ROWS
    assert table.fingerprint() == Table(path=address).fingerprint()
    assert len(victim.fingerprint()) == 64
    missing = address.replace("#reviews", "#reviewz")
    assert refused(Precomputed(vectors=missing).fingerprint).startswith(f"{missing}: cannot be read (")


def test_an_address_has_database_location_and_collection():
    address = collection_address("qdrant:http://localhost:6333#a")
    assert (address.database, address.location, address.collection) == ("qdrant", "http://localhost:6333", "a")
    assert str(address) == "qdrant:http://localhost:6333#a"
    for file in ("a.csv", "C:/a.csv", "folder/qdrant.npy"):
        assert collection_address(file) is None
    with pytest.raises(RequestError, match="qdrant:folder: names no collection; allowed: qdrant:LOCATION#"):
        collection_address("qdrant:folder")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("pgvector:postgresql://bob:secret@db/x#t", "pgvector:postgresql://bob:***@db/x#t"),
        ("pgvector:postgresql://bob:12#secret@db/x#t", "pgvector:postgresql://bob:***@db/x#t"),
        ("pgvector:postgresql://bob:secret@db/x", "pgvector:postgresql://bob:***@db/x"),
        ("pgvector:postgresql://db/x?user=bob&password=secret#t", "pgvector:postgresql://db/x?user=bob&password=***#t"),
        ("pgvector:host=db PASSWORD = 'my secret' user=bob#t", "pgvector:host=db PASSWORD = *** user=bob#t"),
        ("qdrant:https://bob:secret@db:6333#t", "qdrant:https://bob:***@db:6333#t"),
    ],
)
def test_a_password_in_an_address_is_refused_and_never_shown(address, shown):
    for use in (Precomputed(vectors=address).fingerprint, Table(path=address).fingerprint, Table(path=address).load):
        message = refused(use)
        assert message.startswith(f"{shown}: holds a password")
        assert message.endswith("in the variable PGPASSWORD or in the file ~/.pgpass")
        assert "secret" not in message
    assert "secret" not in str(CollectionAddress("pgvector", address.partition(":")[2], "t"))


@pytest.mark.parametrize(
    "address",
    [
        "pgvector:postgresql://bob@db:5432/x#t",
        "pgvector:host=db user=bob#t",
        "qdrant:http://localhost:6333#a@b",
        "lancedb:a:b@c/passwords#t",
    ],
)
def test_an_address_without_a_password_is_not_changed(address):
    assert str(collection_address(address)) == address


@pytest.mark.parametrize("database", ["qdrant", "chroma", "lancedb"])
def test_a_missing_folder_is_refused_and_not_made(tmp_path, database):
    with pytest.raises(RequestError, match="no such folder"):
        Table(path=f"{database}:{tmp_path / 'none'}#a").load()
    assert list(tmp_path.iterdir()) == []


def test_the_extra_with_a_missing_client_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(RequestError, match=r"needs lancedb: pip install 'leakboard\[stores\]'"):
        Table(path=f"lancedb:{tmp_path}#a").load()
