"""Test whether vectors from a file belong to the rows of the dataset's table, and warn if they seem not to.

If the vectors are in another order than the rows, every attack fails, and that looks like perfect privacy. So two tests
ask whether the vector of a row fits the row better than the vectors of other rows do:

- ``classes``: a ridge regression guesses label and secrets from a vector.
- ``words``: a ridge regression guesses the vector from the words of the text.

Both learn from rows of train. The fit of a row of test is the product of its guess and its truth. It is scaled: the
products of this guess with the truths of all rows have mean 0 and deviation 1. Each test asks two questions, and
answers them by permutations:

- Is the mean fit larger than for vectors in random order? If no test finds this, ``rows_match`` is 0, with a warning.
  The probability that vectors in random order escape the warning is at most `LEVEL`; the tests share it (Bonferroni).
- Is the fit the same all along the table? A lost row shifts all rows after it, so that only the first rows fit. If a
  test finds a change, and the rows on one side of it do not fit, ``rows_match_throughout`` is 0.

The tests do not notice:

- a wrong order of vectors without information, since no order of them fits better than another;
- single rows in wrong places all over the table, if the other rows still fit;
- an exchange of rows that share their classes and words.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Corpus, Floats, Integers
from leakboard.metrics.measures import Metric, authors

LEVEL = 0.01
"""Largest probability that vectors in random order pass, and that a change is found in a right order."""
DRAWS = 499
"""Number of permutations in a test."""
MAX_ROWS = 2_500
"""Largest number of rows that are used: of train, and of test."""
MIN_ROWS = 20
"""Fewest rows that a test needs."""

Array = NDArray[np.float64]

NOT_REJECTED: Mapping[str, str] = {
    "classes": "label and secrets cannot be guessed from the vectors",
    "words": "the words of a text say nothing of its vector",
}


class Fit(NamedTuple):
    """The guess about each row of test, and the truth, float64 (n, k) each."""

    guessed: Array
    truth: Array


class Change(NamedTuple):
    """Where the fit changes along the table."""

    p_value: float
    rows: str
    """The rows that do not fit, in words; empty if both sides fit."""


def row_match_metrics(corpus: Corpus, documents: Mapping[str, Floats]) -> list[Metric]:
    """Return the p-values of the tests that the corpus allows, and the verdicts.

    ``row_match_p`` and ``row_change_p`` are the p-values of the two questions. The verdicts ``rows_match`` and
    ``rows_match_throughout`` are 1, or 0 with a warning as their status. ``rows_match`` has no value if nothing could
    be tested; ``rows_match_throughout`` is left out if the rows do not match, or have no order.

    Args:
        corpus: has train and test.
        documents: published vectors of each split, float32 (n, d).
    """
    rng = np.random.default_rng(0)
    chosen = {split: rng.permutation(len(documents[split]))[:MAX_ROWS] for split in ("train", "test")}
    fits: dict[str, Fit] = {}
    if (fewest := min(map(len, chosen.values()))) < MIN_ROWS:
        return [Metric("rows_match", None, status=f"a test needs {MIN_ROWS} rows of train and of test, not {fewest}")]
    vectors = {split: documents[split][rows].astype(np.float64) for split, rows in chosen.items()}
    known = vectors["train"]
    vectors = {split: _standardised(part, known) for split, part in vectors.items()}
    columns = [*(["label"] if corpus.has_labels else []), *(secret.name for secret in corpus.secrets)]
    codes = {split: [corpus.column(split, name)[rows] for name in columns] for split, rows in chosen.items()}
    in_both = [len(np.intersect1d(*parts)) > 1 for parts in zip(codes["train"], codes["test"], strict=True)]
    codes = {split: list(itertools.compress(parts, in_both)) for split, parts in codes.items()}
    if any(in_both):  # false if the author is the secret: no author is in both
        fits["classes"] = _scaled(_classes(vectors, codes))
    if corpus.has_texts:
        texts = {split: corpus.texts(split) for split in chosen}
        chosen_texts = {split: [texts[split][row] for row in rows] for split, rows in chosen.items()}
        fits["words"] = _scaled(_words(vectors, chosen_texts))
    if not fits:
        return [Metric("rows_match", None, status="there is no label, secret or text to compare with")]
    p_values = {name: _match_p(fit, rng) for name, fit in fits.items()}
    metrics = [Metric("row_match_p", p, name) for name, p in p_values.items()]
    if min(p_values.values()) >= LEVEL / len(fits):
        results = "; ".join(f"{NOT_REJECTED[name]}, p = {p:.2g}" for name, p in p_values.items())
        warning = (
            "do the rows match? Either the vectors and the rows of the table do not belong together, or the vectors "
            f"hold no information ({results})"
        )
        return [*metrics, Metric("rows_match", 0.0, status=warning)]
    metrics.append(Metric("rows_match", 1.0))
    rows = corpus.texts("test").rows
    if rows is None:
        return metrics
    units = authors(corpus, "test")
    owners = np.arange(len(rows)) if units is None else units
    changes = {
        name: _change(*_by_unit(_fit_of_rows(fit), rows[chosen["test"]], owners[chosen["test"]]), rng)
        for name, fit in fits.items()
    }
    metrics += [Metric("row_change_p", change.p_value, name) for name, change in changes.items()]
    found = [change.rows for change in changes.values() if change.p_value < LEVEL / len(fits) and change.rows]
    warning = f"do the rows match? The vectors fit the rows of the table, but not {found[0]}" if found else ""
    return [*metrics, Metric("rows_match_throughout", float(not found), status=warning)]


def _classes(vectors: Mapping[str, Array], codes: Mapping[str, list[Integers]]) -> Fit:
    """Guess the classes of each column, as indicators of mean 0 and equal weight."""
    from sklearn.linear_model import Ridge

    def indicators(split: str) -> Array:
        parts = [
            column[:, None] == np.unique(known) for column, known in zip(codes[split], codes["train"], strict=True)
        ]
        return np.concatenate(parts, axis=1).astype(np.float64)

    known = indicators("train")
    ridge = Ridge(alpha=0.1 * len(known)).fit(vectors["train"], _standardised(known, known))
    return Fit(ridge.predict(vectors["test"]).reshape(-1, known.shape[1]), _standardised(indicators("test"), known))


def _words(vectors: Mapping[str, Array], texts: Mapping[str, list[str]]) -> Fit:
    """Guess the vectors from the words, or from letters if no word occurs twice."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.kernel_ridge import KernelRidge

    try:
        vectoriser = TfidfVectorizer(min_df=2, sublinear_tf=True).fit(texts["train"])
    except ValueError:
        vectoriser = TfidfVectorizer(analyzer="char", ngram_range=(1, 3)).fit(texts["train"])
    ridge = KernelRidge(alpha=1.0).fit(vectoriser.transform(texts["train"]), vectors["train"])
    return Fit(ridge.predict(vectoriser.transform(texts["test"])), vectors["test"])


def _standardised(part: Array, known: Array) -> Array:
    deviation = known.std(0)
    return np.divide(part - known.mean(0), deviation, out=np.zeros_like(part), where=deviation > 0)


def _fit_of_rows(scaled: Fit) -> Array:
    """Return the product of guess and truth of each row, float64 (n,)."""
    return np.asarray(np.einsum("ij,ij->i", scaled.guessed, scaled.truth))


def _scaled(fit: Fit) -> Fit:
    """Return a scaled fit: the products of a row's guess with all truths have mean 0 and standard deviation 1."""
    truth = fit.truth - fit.truth.mean(0)
    covariance = truth.T @ truth / len(truth)
    variance = np.einsum("ij,ij->i", fit.guessed @ covariance, fit.guessed)
    scale = np.sqrt(np.maximum(variance, 0))[:, None]
    return Fit(np.divide(fit.guessed, scale, out=np.zeros_like(fit.guessed), where=scale > 0), truth)


def _match_p(fit: Fit, rng: np.random.Generator) -> float:
    """Return the p-value of the mean fit, against vectors in random order.

    The permutation test is valid for any guesses if the vectors of test are exchangeable.
    """
    guessed, truth = fit
    shuffled = np.array([np.vdot(guessed, truth[rng.permutation(len(truth))]) for _ in range(DRAWS)])
    return _share_as_good(float(np.vdot(guessed, truth)), shuffled)


def _by_unit(fits: Array, rows: Integers, owners: Integers) -> tuple[Array, Integers]:
    """Return the mean fit of each unit, scaled to deviation 1 for independent rows, and the unit's first row.

    Rows of one author or document fit equally well, and may be neighbours in the table. So the test permutes units.
    """
    _, codes = np.unique(owners, return_inverse=True)
    sizes = np.bincount(codes)
    first = np.full(len(sizes), np.iinfo(np.int64).max)
    np.minimum.at(first, codes, rows)
    return np.bincount(codes, weights=fits) / np.sqrt(sizes), first


def _change(fits: Array, rows: Integers, rng: np.random.Generator) -> Change:
    """Find where the mean fit changes most along the table, by the largest standardised difference of two means.

    Args:
        fits: fit of each row of test, or of each unit of rows, float64 (n,).
        rows: number in the table of each row, or of each unit's first row, from 0.
        rng: draws the permutations.
    """
    order = np.argsort(rows, kind="stable")
    ordered, n = fits[order], len(fits)
    if n < MIN_ROWS:
        return Change(1.0, "")
    ends = np.arange(MIN_ROWS // 2, n - MIN_ROWS // 2 + 1)  # sizes of the first side

    def differences(values: Array) -> Array:
        sums = np.cumsum(values - values.mean())[ends - 1]
        return np.abs(sums) * np.sqrt(n / (ends * (n - ends)))

    largest = differences(ordered)
    shuffled = np.array([differences(rng.permutation(ordered)).max() for _ in range(DRAWS)])
    end = int(ends[largest.argmax()])
    first, second = ordered[:end], ordered[end:]
    is_second = bool(first.mean() > second.mean())
    worse, number = (second, rows[order[end]] + 1) if is_second else (first, rows[order[end - 1]] + 1)
    side = f"from about row {number} on" if is_second else f"up to about row {number}"
    fits_too = worse.mean() > 2 / np.sqrt(len(worse))
    return Change(_share_as_good(float(largest.max()), shuffled), "" if fits_too else side)


def _share_as_good(given: float, shuffled: Array) -> float:
    """Return (1 + as good) / (1 + draws) (Phipson and Smyth 2010, Permutation p-values should never be zero)."""
    return float((1 + (shuffled >= given - 1e-12 * abs(given)).sum()) / (1 + len(shuffled)))
