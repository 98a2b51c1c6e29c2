"""Time ``evaluate`` on a user's own vectors, next to scikit-learn's fastest classifiers of equal score.

The vectors have 384 dimensions and two planted secrets, of 2 and 8 values. ``evaluate`` runs in a process of its own,
with its imports; its peak memory is that process's. Its attack is the only one of LeakBoard's that applies; `all` would
also run those of the benchmarks. scikit-learn's side is the time to train three classifiers for both secrets on the
same rows, with as many threads as there are cores: the three fastest whose accuracy is at most `EQUAL` below the best
one's. The rates of matrix products on one core tell how fast the machine is.
"""

import resource
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import torch
from _leakboard import FOLDER  # noqa: F401
from _timing import busy, seconds, verdict
from numpy.typing import NDArray

GOALS = {5_000: (5, 0.8), 20_000: (15, 1.0), 100_000: (60, 2.0), 1_000_000: (600, 6.0)}
"""Seconds and GB of memory, by the number of rows, on 2 cores."""
SECRETS = {"gender": 2, "age": 8}
EQUAL = 0.01
"""Largest difference of accuracies that count as equal."""
TEST_SHARE = 0.2
WITH_SCIKIT_LEARN = (5_000, 20_000, 100_000)
"""Numbers of rows for which scikit-learn is timed, too."""


def planted(rows: int, dimensions: int = 384) -> tuple[NDArray[np.float32], dict[str, NDArray[np.int64]]]:
    """Return vectors of length 1, float32 (rows, dimensions), that show two secrets, not quite linearly."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((dimensions, dimensions)))[0] / np.sqrt(1 + np.arange(dimensions) / 8)
    secrets = {name: rng.integers(0, values, rows) for name, values in SECRETS.items()}
    means = [0.03 * rng.standard_normal((values, dimensions)) for values in SECRETS.values()]
    vectors = np.empty((rows, dimensions), np.float32)
    for start in range(0, rows, 10_000):
        part = slice(start, start + 10_000)
        plain = rng.standard_normal((len(vectors[part]), dimensions)) @ rotation
        plain += sum(mean[codes[part]] for mean, codes in zip(means, secrets.values(), strict=True))
        vectors[part] = np.tanh(0.7 * plain)
        vectors[part] /= np.linalg.norm(vectors[part], axis=1, keepdims=True)
    return vectors, secrets


def ours(rows: int) -> tuple[float, float, dict[str, float]]:
    """Evaluate; return seconds, peak memory (GB), and the accuracy for each secret."""
    vectors, secrets = planted(rows)
    start = time.perf_counter()
    import leakboard

    columns = {name: codes.astype(str) for name, codes in secrets.items()}
    report = leakboard.evaluate(vectors, columns, attacks=["attribute_inference"], progress=False)
    taken = time.perf_counter() - start
    table = report.table[report.table["secret"].astype(bool)]
    accuracy = table.groupby("secret")["attack_score"].max().to_dict()
    scale = 1e9 if sys.platform == "darwin" else 1e6
    return taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale, accuracy


def theirs(rows: int) -> tuple[float, float]:
    """Train scikit-learn's classifiers; return the seconds of the fastest three, and the best mean accuracy."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    warnings.simplefilter("ignore")
    classifiers = [
        LogisticRegression(max_iter=200),
        RidgeClassifier(),
        LinearDiscriminantAnalysis(),
        MLPClassifier((512,), early_stopping=True, random_state=0),
        ExtraTreesClassifier(100, n_jobs=-1, random_state=0),
        KNeighborsClassifier(15, n_jobs=-1),
    ]
    vectors, secrets = planted(rows)
    known = int(rows * (1 - TEST_SHARE))
    results = []
    for classifier in classifiers:
        start = time.perf_counter()
        right = []
        for codes in secrets.values():
            classifier.fit(vectors[:known], codes[:known])
            right.append(classifier.score(vectors[known:], codes[known:]))
        results.append((time.perf_counter() - start, float(np.mean(right))))
        print(f"  {type(classifier).__name__}: {results[-1][0]:.1f} s, accuracy {results[-1][1]:.4f}", flush=True)
    best = max(accuracy for _, accuracy in results)
    return sum(sorted(taken for taken, accuracy in results if accuracy >= best - EQUAL)[:3]), best


def product_shares(rows: int = 20_000) -> None:
    """Print which share of the rate of matrix products, on one core, discriminant analysis and a network reach."""
    from threadpoolctl import threadpool_limits

    from leakboard.attacks._portfolio import discriminant, mlp
    from leakboard.attacks._portfolio.members import Task
    from leakboard.attacks.attribute_inference import AttributeInference
    from leakboard.interfaces import Secret, Texts
    from leakboard.threats.secrets import KnownTexts

    vectors, codes = planted(rows)
    dimensions, options = vectors.shape[1], AttributeInference(epochs=4, patience=4)
    known = KnownTexts(Texts([""] * rows), vectors, codes)
    few = known.rows(np.arange(100))
    secrets = tuple(Secret(name, tuple(map(str, range(values))), "attribute") for name, values in SECRETS.items())
    task = Task(known, few, secrets, options, 0)
    with threadpool_limits(1):
        torch.set_num_threads(1)
        cases = [  # each multiplies the vectors twice; a network does so in each epoch
            ("discriminant", discriminant.fit_discriminant, 2 * dimensions, vectors.astype(np.float64), np.matmul),
            ("network", mlp.fit_mlp, 2 * options.hidden * options.epochs, torch.from_numpy(vectors), torch.matmul),
        ]
        for name, fit, products, matrix, multiply in cases:
            other = matrix + 0  # NumPy computes only half of the product of a matrix with itself
            rate = 2 * rows * dimensions**2 / min(seconds(partial(multiply, matrix.T, other)) for _ in range(5))
            reached = 2 * rows * dimensions * products / min(seconds(partial(fit, task)) for _ in range(3))
            print(f"{name}: {reached / 1e9:.0f} of {rate / 1e9:.0f} GFLOP/s of a product", flush=True)
            verdict(f"own_vectors_share_of_product_rate_{name}", reached / rate, 0.5)


def main(rows: list[int] | None = None, keep_busy: bool = False) -> None:
    """Measure for each number of ``rows``; ``keep_busy`` occupies one core meanwhile."""
    product_shares()
    for count in rows or list(WITH_SCIKIT_LEARN):
        with busy(keep_busy), ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
            taken, memory, accuracy = pool.submit(ours, count).result()
            shown = ", ".join(f"{name} {value:.4f}" for name, value in accuracy.items())
            print(f"{count} rows: {taken:.1f} s, {memory:.2f} GB, accuracy: {shown}", flush=True)
            if count in WITH_SCIKIT_LEARN:
                fastest, best = pool.submit(theirs, count).result()
                print(f"  scikit-learn's three fastest of equal score: {fastest:.1f} s, best accuracy {best:.4f}")
                verdict(f"own_vectors_to_scikit_learn_{count}", taken / fastest, 3.0, at_most=True)
        for name, value, goal in zip(("seconds", "gb"), (taken, memory), GOALS.get(count, ()), strict=False):
            verdict(f"own_vectors_{name}_{count}", value, goal, at_most=True)
