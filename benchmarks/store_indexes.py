"""Compare the search of local vector stores with exact search, and list what an answer shows: AG, MiniLM.

The stores have their default index for cosine similarity. They are extras: ``pip install -e .[stores]``. AG comes from
``LEAKBOARD_DATA``.

| column | what it is |
|---|---|
| recall@10 | share of the ten nearest stored vectors of a query that the store's search finds |
| answer shows | the fields of an answer, with no more asked than the ten nearest rows |
"""

import tempfile
from collections.abc import Callable, Collection

import numpy as np
from _ag import ag_vectors, share_kept, ten_nearest

QUERIES = 300
Answers = tuple[np.ndarray, Collection[str]]
"""Rows that were found, int64 (q, 10), and the names of the fields of an answer."""


def chroma(stored: np.ndarray, queries: np.ndarray, folder: str) -> Answers:
    """Search with Chroma's graph of neighbours."""
    import chromadb

    client = chromadb.PersistentClient(folder)
    collection = client.create_collection("rows", embedding_function=None, metadata={"hnsw:space": "cosine"})
    ids = list(map(str, range(len(stored))))
    for start in range(0, len(stored), client.get_max_batch_size()):
        part = slice(start, start + client.get_max_batch_size())
        collection.add(ids=ids[part], embeddings=stored[part], documents=["text"] * len(ids[part]))
    answer = collection.query(query_embeddings=queries, n_results=10)
    return np.array(answer["ids"], np.int64), [name for name, value in answer.items() if value and name != "included"]


def lance(stored: np.ndarray, queries: np.ndarray, folder: str) -> Answers:
    """Search with LanceDB's clusters and product quantisation."""
    import lancedb

    rows = [{"row": i, "vector": vector, "text": "text"} for i, vector in enumerate(stored)]
    table = lancedb.connect(folder).create_table("rows", rows)
    table.create_index(metric="cosine", vector_column_name="vector")
    answers = [table.search(query).distance_type("cosine").limit(10).to_list() for query in queries]
    return np.array([[row["row"] for row in answer] for answer in answers]), answers[0][0].keys()


def qdrant(stored: np.ndarray, queries: np.ndarray, folder: str) -> Answers:
    """Search with Qdrant's local mode, which has no index."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=folder)
    client.create_collection("rows", models.VectorParams(size=stored.shape[1], distance=models.Distance.COSINE))
    client.upload_collection("rows", stored, payload=[{"text": "text"}] * len(stored), ids=range(len(stored)))
    answers = [client.query_points("rows", query, limit=10).points for query in queries]
    shown = [name for name, value in answers[0][0] if value is not None]
    client.close()
    return np.array([[point.id for point in answer] for answer in answers]), shown


STORES: dict[str, Callable[[np.ndarray, np.ndarray, str], Answers]] = {
    "chromadb": chroma,
    "lancedb": lance,
    "qdrant-client": qdrant,
}


def main(rows: int = 8_000) -> None:
    """Store ``rows`` vectors in each store, and search for 300 others."""
    stored, queries = np.split(ag_vectors(rows + QUERIES), [rows])
    exact = ten_nearest(queries, stored)
    print("| package | recall@10 | answer shows |\n|---|---|---|")
    for package, search in STORES.items():
        with tempfile.TemporaryDirectory() as folder:
            rows_found, shown = search(stored, queries, folder)
            print(f"| {package} | {share_kept(rows_found, exact):.3f} | {', '.join(shown)} |", flush=True)
