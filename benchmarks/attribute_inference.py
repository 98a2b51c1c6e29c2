"""Compare LeakBoard's MLP and ensemble with scikit-learn's MLP on attribute inference: 11,657 x 384, five secrets.

The vectors are MiniLM's of AG if that data set is here, else random ones of the same size with planted secrets.
scikit-learn's ``MLPClassifier((512,), early_stopping=True)`` learns the five secrets at once, as a multi-label problem.
F1 is micro F1 on test. Our MLP says "present" above a probability of one half, as scikit-learn does.
"""

import warnings

import numpy as np
import torch
from _timing import alternate, verdict
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from leakboard.attacks.entity_presence import EntityPresence
from leakboard.errors import RequestError
from leakboard.interfaces import Secret, Texts
from leakboard.suite.registry import Registry
from leakboard.threats.secrets import KnownTexts, SecretsView

Parts = dict[str, tuple[np.ndarray, np.ndarray]]
"""For each split: vectors float32 (n, 384), and secrets int64 (n, 5)."""


def minilm_vectors() -> Parts:
    """Return MiniLM's vectors of AG with the presence of its five entities."""
    registry = Registry()
    corpus = registry.load("datasets", "ag")(duplicates="keep").load()
    encoder = registry.load("victims", "sentence_encoder")(max_tokens=128).fit(corpus.only("train", "dev"), 0)
    names = [secret.name for secret in corpus.secrets]
    return {
        split: (
            encoder.publish_documents(corpus.texts(split), np.random.default_rng(0)),
            np.stack([corpus.column(split, name) for name in names], axis=1),
        )
        for split in ("train", "dev", "test")
    }


def planted_vectors() -> Parts:
    """Return random vectors that show five secrets of the same frequencies, not quite linearly."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((5, 384)) / 8
    parts = {}
    for split, n in (("train", 11_657), ("dev", 1_457), ("test", 1_457)):
        secrets = (rng.random((n, 5)) < [0.54, 0.26, 0.18, 0.10, 0.10]).astype(np.int64)
        vectors = np.tanh(secrets @ directions + rng.standard_normal((n, 384)) / 2)
        parts[split] = (vectors.astype(np.float32), secrets)
    return parts


def f1(guessed: np.ndarray, truth: np.ndarray) -> float:
    """Return micro F1 of "present"."""
    return float(2 * (guessed * truth).sum() / (guessed.sum() + truth.sum()))


def main(rounds: int = 3, threads: int = 2) -> None:
    """Time each side, and print its F1."""
    torch.set_num_threads(threads)
    warnings.simplefilter("ignore", ConvergenceWarning)
    try:
        parts = minilm_vectors()
    except RequestError as error:
        print(f"planted vectors instead of MiniLM's: {error}")
        parts = planted_vectors()
    names = [f"entity {i}" for i in range(5)]

    def texts_of(split: str) -> KnownTexts:
        vectors, secrets = parts[split]
        return KnownTexts(Texts([""] * len(vectors)), vectors, {n: secrets[:, i] for i, n in enumerate(names)})

    view = SecretsView(
        tuple(Secret(name, ("absent", "present"), "entity") for name in names),
        texts_of("train"),
        texts_of("dev"),
        claim=None,
        oracle=None,  # type: ignore[arg-type]
    )
    scores: dict[str, float] = {}

    def attack(name: str, **options: object) -> None:
        guesses = EntityPresence(**options).fit(view, seed=0)(parts["test"][0])  # type: ignore[arg-type]
        guessed = np.stack([guesses.scores[n].argmax(1) for n in names], axis=1)
        scores[name] = f1(guessed, parts["test"][1])
        print(f"  {name}: F1 {scores[name]:.4f} ({guesses.details})")

    def scikit_learn() -> None:
        model = MLPClassifier((512,), early_stopping=True, random_state=0).fit(*parts["train"])
        scores["scikit-learn"] = f1(model.predict(parts["test"][0]), parts["test"][1])
        print(f"  scikit-learn: F1 {scores['scikit-learn']:.4f}")

    sides = {
        "scikit-learn": scikit_learn,
        "mlp": lambda: attack("mlp", portfolio="mlp", threshold=False),
        "ensemble": lambda: attack("ensemble"),
    }
    times = alternate(rounds, **sides)
    for name in times:
        print(f"{name}: {times[name]:.2f} s, F1 {scores[name]:.4f}")
    verdict("attribute_inference_ensemble", times["ensemble"] / times["scikit-learn"], 6.0, at_most=True)
    verdict("attribute_inference_f1", scores["mlp"] / scores["scikit-learn"], 1.0)
    verdict("attribute_inference", times["scikit-learn"] / times["mlp"], 1.5)
