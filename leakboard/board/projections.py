"""Project published vectors of test texts to two dimensions, by t-SNE, with a secret of each text.

This is figure 4 of Lyu et al. (2020), who give no settings. Perplexity, start, exact gradients and number of texts are
those of the code of Vu et al. (2019). That code takes 5,000 steps; 1,000 steps give the same picture.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakboard.board.schema import Row
from leakboard.data.corpora import load_corpus
from leakboard.interfaces import Corpus
from leakboard.pipeline.publications import load_publications
from leakboard.pipeline.runner import Run
from leakboard.suite.plan import Job

PROJECTIONS_FILE = "projections.csv"
TEXTS = 500
PERPLEXITY = 30.0
STEPS = 1_000
MIN_TEXTS = 10
"""Fewest texts that are drawn."""


def project(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the t-SNE of vectors, float32 (n, d), as float32 (n, 2): the same vectors give the same points."""
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="pca", method="exact", max_iter=STEPS, random_state=0)
    return np.asarray(tsne.fit_transform(vectors), dtype=np.float32)


def projections(run: Run) -> list[Row]:
    """Return a row for each of the first test texts of every victim that the suite wants projected, at the first seed.

    The rows are made from the vectors in the run's store. If a victim's results were published before and taken over,
    its vectors are not there, and its published rows are kept.
    """
    jobs: dict[tuple[str, str], Job] = {}
    for job in (*run.jobs, *run.others):
        names = run.suite.names
        key = names.name("dataset", job.cell.source.label), names.name("victim", job.cell.victim.label)
        if key[1] in run.suite.file.projected:
            jobs.setdefault(key, job)
    kept = read_projections(run.suite.home)
    return [row for key, job in jobs.items() for row in _rows(run, job, key) or kept.get(key, [])]


def _rows(run: Run, job: Job, key: tuple[str, str]) -> list[Row]:
    """Return the rows of one victim; none if its vectors, or the secrets of the texts, are not in the store."""
    corpus_path = run.store.path("corpora", job.cell.source.corpus.name, job.corpus_key)
    if not (run.store.has("publications", job.victim_slug, job.victim_key) and corpus_path.is_dir()):
        return []
    vectors = load_publications(run.store.path("publications", job.victim_slug, job.victim_key)).documents.get("test")
    corpus = load_corpus(corpus_path)
    if vectors is None or len(vectors) < MIN_TEXTS or not corpus.secrets:
        return []
    secret, values = _secret(corpus)
    points = project(vectors[:TEXTS])
    head = {"dataset": key[0], "victim": key[1], "seed": job.cell.seed, "secret": secret}
    return [
        {**head, "value": value, "x": float(x), "y": float(y)} for value, (x, y) in zip(values, points, strict=True)
    ]


def _secret(corpus: Corpus) -> tuple[str, list[str]]:
    """Return the secret whose most frequent value is least frequent among the first test texts, and its values."""
    best: tuple[float, str, list[str]] | None = None
    for secret in corpus.secrets:
        classes = corpus.column("test", secret.name)[:TEXTS]
        share = np.bincount(classes).max() / len(classes)
        if best is None or share < best[0]:
            best = share, secret.name, [secret.values[index] for index in classes]
    assert best, "a corpus with secrets"
    return best[1:]


def read_projections(folder: Path) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of a folder's ``projections.csv`` by dataset and victim; none if there is no such file."""
    import pandas as pd

    rows: dict[tuple[str, str], list[Row]] = {}
    if (folder / PROJECTIONS_FILE).is_file():
        texts = dict.fromkeys(("dataset", "victim", "secret", "value"), str)
        for row in pd.read_csv(folder / PROJECTIONS_FILE, dtype=texts, keep_default_na=False).to_dict("records"):
            entry = {str(name): value for name, value in row.items()}
            rows.setdefault((entry["dataset"], entry["victim"]), []).append(entry)
    return rows
