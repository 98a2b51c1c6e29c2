"""Attribute inference, 11,657 x 384, five secrets: our MLP and ensemble against scikit-learn's MLP.

    python benchmarks/attribute_inference.py [--rounds 3]

Vectors are MiniLM's for AG where they are here, else planted ones of the same size. scikit-learn's
``MLPClassifier((512,), early_stopping=True)`` learns the five secrets at once, as a multi-label problem; F1 is micro,
on test; our MLP takes a probability of one half for "present", as scikit-learn does.
"""

import argparse
import warnings

import numpy as np
import torch
from _sides import alternate, verdict
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from leakboard.attacks.entity_presence import EntityPresence
from leakboard.errors import RequestError
from leakboard.interfaces import Secret, Texts
from leakboard.suite.registry import Registry
from leakboard.threats.secrets import KnownTexts, SecretsView

Parts = dict[str, tuple[np.ndarray, np.ndarray]]
"""For each split vectors float32 (n, 384) and secrets int64 (n, 5)."""


def real() -> Parts:
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


def planted() -> Parts:
    """Return random vectors in which five secrets of the same sizes show, not quite linearly."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((5, 384)) / 8
    parts = {}
    for split, n in (("train", 11_657), ("dev", 1_457), ("test", 1_457)):
        secrets = (rng.random((n, 5)) < [0.54, 0.26, 0.18, 0.10, 0.10]).astype(np.int64)
        vectors = np.tanh(secrets @ directions + rng.standard_normal((n, 384)) / 2)
        parts[split] = (vectors.astype(np.float32), secrets)
    return parts


def f1(guessed: np.ndarray, truth: np.ndarray) -> float:
    return float(2 * (guessed * truth).sum() / (guessed.sum() + truth.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.simplefilter("ignore", ConvergenceWarning)
    try:
        parts = real()
    except RequestError as error:
        print(f"planted vectors instead of MiniLM's: {error}")
        parts = planted()
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

    def scikit() -> None:
        model = MLPClassifier((512,), early_stopping=True, random_state=0).fit(*parts["train"])
        scores["scikit-learn"] = f1(model.predict(parts["test"][0]), parts["test"][1])
        print(f"  scikit-learn: F1 {scores['scikit-learn']:.4f}")

    sides = {
        "mlp": lambda: attack("mlp", portfolio="mlp", threshold=False),
        "ensemble": lambda: attack("ensemble"),
    }
    times = alternate(arguments.rounds, **{"scikit-learn": scikit, **sides})
    for name in times:
        print(f"{name}: {times[name]:.2f} s, F1 {scores[name]:.4f}")
    verdict("attribute_inference_ensemble", times["ensemble"] / times["scikit-learn"], 6.0, at_most=True)
    verdict("attribute_inference_f1", scores["mlp"] / scores["scikit-learn"], 1.0)
    verdict("attribute_inference", times["scikit-learn"] / times["mlp"], 1.5)


if __name__ == "__main__":
    main()
