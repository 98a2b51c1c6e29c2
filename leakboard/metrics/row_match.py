"""Test whether vectors that come from outside belong to the rows of the table, and warn if no test finds that.

If the vectors are in another order than the rows, every attack fails, and that looks like perfect privacy. So four null
hypotheses are tested by permutations. Each is true if the order of the vectors is random:

- ``task``: the vectors predict no more labels of test than vectors in random order.
- ``classes``: vectors of the same label or secret are no more similar than others. The statistic is the variance
  between classes, summed over standardised dimensions and columns.
- ``neighbours``: vectors of texts with nearly the same words are no nearer to each other than those of other pairs. The
  statistic is the mean rank of their cosine.
- ``words``: a ridge regression from a text's words to its vector explains nothing of rows that it was not trained on.

If no hypothesis is rejected, there is a warning. For vectors in random order the warning is missing with probability
1 % at most, since the tests share that level (Bonferroni). Vectors without information, such as very noisy ones, look
the same, and the warning says so. A wrong order that is not random may pass, for example if few rows are out of place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.interfaces import Corpus, Floats, Integers
from leakboard.metrics.measures import Metric

LEVEL = 0.01
"""Largest probability that vectors in random order pass."""
DRAWS = 999
"""Permutations of a test."""
MAX_ROWS, MAX_PAIRS = 1_500, 300
"""Largest numbers of rows that a test uses, and of pairs of neighbours that it compares."""
MIN_ROWS = 20
"""Fewest rows, or pairs, that a test needs."""
MAX_NUMBERS = 600_000
"""Largest number of rows times dimensions in the test of classes."""

Array = NDArray[np.float64]

NOT_REJECTED: Mapping[str, str] = {
    "task": "the task is guessed no better than in random order",
    "classes": "vectors of the same label or secret are no more alike than others",
    "neighbours": "texts with nearly the same words are not nearer than others",
    "words": "the words of a text say nothing of its vector",
}


def row_match_metrics(corpus: Corpus, documents: Mapping[str, Floats], predicted: Integers | None) -> list[Metric]:
    """Return the p-value of each test that the corpus allows, ``row_match_p``, and the verdict, ``rows_match``.

    The verdict is 1 if a test finds that vectors and rows belong together, else 0 with a warning as its status. It has
    no value if nothing could be tested.

    Args:
        corpus: with train and test.
        documents: published vectors, float32 (n, d) a split.
        predicted: task labels of test by the published vectors, int64 (n,).
    """
    tests: dict[str, Callable[[], float | None]] = {}
    if predicted is not None:
        tests["task"] = lambda: _task(predicted, corpus.column("test", "label"))
    if columns := [*(["label"] if corpus.has_labels else []), *(secret.name for secret in corpus.secrets)]:
        tests["classes"] = lambda: _classes(corpus, documents, columns)
    if corpus.has_texts:
        tests["neighbours"] = lambda: _neighbours(corpus, documents)
        tests["words"] = lambda: _words(corpus, documents)
    p_values = {name: p for name, test in tests.items() if (p := test()) is not None}
    metrics = [Metric("row_match_p", p, name) for name, p in p_values.items()]
    if not p_values:
        return [Metric("rows_match", None, status="not checked: too few labels, secrets or texts to compare with")]
    if min(p_values.values()) < LEVEL / len(p_values):
        return [*metrics, Metric("rows_match", 1.0)]
    results = "; ".join(f"{NOT_REJECTED[name]}, p = {p:.2g}" for name, p in p_values.items())
    warning = (
        "the vectors and the rows of the table may not belong together, or the vectors hold no information "
        f"({results}): do the rows match?"
    )
    return [*metrics, Metric("rows_match", 0.0, status=warning)]


def _task(predicted: Integers, labels: Integers) -> float:
    """Return the p-value of the number of right labels, against guesses in random order."""
    rng = np.random.default_rng(3)
    shuffled = np.array([(rng.permutation(predicted) == labels).sum() for _ in range(DRAWS)])
    return _share_as_good(float((predicted == labels).sum()), shuffled)


def _classes(corpus: Corpus, documents: Mapping[str, Floats], columns: Sequence[str]) -> float | None:
    rng = np.random.default_rng(2)
    rows, dimensions = sum(map(len, documents.values())), next(iter(documents.values())).shape[1]
    chosen = rng.permutation(rows)[: min(MAX_ROWS, MAX_NUMBERS // dimensions)]
    if len(chosen) < MIN_ROWS:
        return None
    vectors = _taken(documents, chosen)
    vectors = _standardised(vectors, vectors)
    codes = [np.concatenate([corpus.column(split, name) for split in documents])[chosen] for name in columns]
    members = scipy.sparse.vstack([_members(column) for column in codes]).tocsr()
    given = members.indices.copy()

    def between(order: Integers) -> float:
        members.indices = order[given]
        return float(((members @ vectors) ** 2).sum())

    shuffled = [between(rng.permutation(len(chosen))) for _ in range(DRAWS)]
    return _share_as_good(between(np.arange(len(chosen))), np.array(shuffled))


def _taken(documents: Mapping[str, Floats], chosen: Integers) -> Array:
    """Return the chosen rows, numbered over all splits, float64, without a copy of the others."""
    taken, first = np.empty((len(chosen), next(iter(documents.values())).shape[1])), 0
    for vectors in documents.values():
        inside = (chosen >= first) & (chosen < first + len(vectors))
        taken[inside] = vectors[chosen[inside] - first]
        first += len(vectors)
    return taken


def _members(codes: Integers) -> Any:
    """Return the rows of each class, sparse (classes, n): 1 / sqrt(size of the class) for its rows, else 0."""
    _, code, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    return scipy.sparse.csr_matrix((1 / np.sqrt(sizes[code]), (code, np.arange(len(code)))))


def _neighbours(corpus: Corpus, documents: Mapping[str, Floats]) -> float | None:
    texts = [text for split in documents for text in corpus.texts(split)]
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(texts))[:MAX_ROWS]
    pairs = _similar_pairs(_word_counts([texts[row] for row in chosen])[0])
    if len(pairs) < MIN_ROWS:
        return None
    vectors = _taken(documents, chosen)
    vectors = _standardised(vectors, vectors)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    cosines = unit[pairs[:, 0]] @ unit[pairs[:, 1]].T
    return _match_p(scipy.stats.rankdata(cosines).reshape(cosines.shape), rng)


def _similar_pairs(words: Any) -> Integers:
    """Return pairs of rows with the most similar words, int64 (pairs, 2); no row is in two pairs."""
    similarity = (words @ words.T).toarray()
    np.fill_diagonal(similarity, 0)
    nearest = similarity.argmax(1)
    taken: set[int] = set()
    pairs = []
    for first in np.argsort(-similarity.max(1), kind="stable"):
        second = nearest[first]
        if similarity[first, second] > 0 and not {first, second} & taken:
            taken |= {first, second}
            pairs.append((first, second))
    return np.array(pairs[:MAX_PAIRS], np.int64).reshape(-1, 2)


def _words(corpus: Corpus, documents: Mapping[str, Floats]) -> float | None:
    from sklearn.kernel_ridge import KernelRidge

    rng = np.random.default_rng(1)
    rows = {split: rng.permutation(len(documents[split]))[:MAX_ROWS] for split in ("train", "test")}
    if min(map(len, rows.values())) < MIN_ROWS:
        return None
    texts = {split: corpus.texts(split) for split in rows}
    train, test = _word_counts(*([texts[split][row] for row in rows[split]] for split in rows))
    known = documents["train"][rows["train"]].astype(np.float64)
    truth = _standardised(documents["test"][rows["test"]].astype(np.float64), known)
    guessed = KernelRidge(alpha=1.0).fit(train, _standardised(known, known)).predict(test)
    return _match_p((guessed - guessed.mean(0)) @ (truth - truth.mean(0)).T, rng)


def _word_counts(*texts: list[str]) -> list[Any]:
    """Return TF-IDF of words for each list of texts, learned from the first; of characters if no word occurs twice."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        vectoriser = TfidfVectorizer(min_df=2, sublinear_tf=True).fit(texts[0])
    except ValueError:
        vectoriser = TfidfVectorizer(analyzer="char", ngram_range=(1, 3)).fit(texts[0])
    return [vectoriser.transform(part) for part in texts]


def _standardised(vectors: Array, known: Array) -> Array:
    deviation = known.std(0)
    return np.divide(vectors - known.mean(0), deviation, out=np.zeros_like(vectors), where=deviation > 0)


def _match_p(similarity: Array, rng: np.random.Generator) -> float:
    """Return the p-value of the mean of the diagonal, against columns in random order.

    The permutation test is valid for any similarity, if the columns are exchangeable.

    Args:
        similarity: (m, m), between the items of rows and of columns.
        rng: of the permutations.
    """
    rows = np.arange(len(similarity))
    shuffled = np.array([similarity[rows, rng.permutation(rows)].mean() for _ in range(DRAWS)])
    return _share_as_good(similarity[rows, rows].mean(), shuffled)


def _share_as_good(given: float, shuffled: Array) -> float:
    """Return (1 + as good) / (1 + draws) (Phipson and Smyth 2010, Permutation p-values should never be zero)."""
    return float((1 + (shuffled >= given - 1e-12 * abs(given)).sum()) / (1 + len(shuffled)))
