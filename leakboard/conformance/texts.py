"""The corpus that victims and attacks are tried on: it has all that a corpus may have, and shows it in its words."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from leakboard.interfaces import Corpus, FittedVictim, Secret, Victim

PERSONS = ("anna", "otto")


@functools.cache
def corpus() -> Corpus:
    """Return 120 texts by 40 users with a label, an attribute and two entities, all of which show in the words."""
    import pandas as pd

    from leakboard.data.corpora import build_corpus

    rng = np.random.default_rng(0)
    names = [f"{first}{second}" for first in "bdfglmnprst" for second in ("an", "ell", "ik", "on", "ura", "yt")]
    frequent = 1 / np.arange(1, len(names) + 1)
    rows: list[dict[str, Any]] = []
    for user in range(40):
        age = int(rng.integers(3))
        for _ in range(3):
            label, *persons = (int(rng.random() < share) for share in (0.5, 0.4, 0.2))
            shown = [("dull", "fine")[label], ("young", "ripe", "old")[age]]
            shown += [name for name, is_present in zip(PERSONS, persons, strict=True) if is_present]
            text = " ".join([*shown, *rng.choice(names, 12, p=frequent / frequent.sum()), f"text{len(rows)}."])
            values = {"label": label, "age": age} | dict(zip(PERSONS, persons, strict=True))
            rows.append({"text": text, "row": len(rows), "user": f"user {user}", **values})
    frame = pd.DataFrame(rows)
    splits = {"train": frame[:72], "dev": frame[72:90], "test": frame[90:]}
    secrets = [Secret("age", ("young", "ripe", "old"), "attribute")]
    secrets += [Secret(name, ("absent", "present"), "entity") for name in PERSONS]
    return build_corpus("conformance", splits, secrets, ("dull", "fine"))


@functools.cache
def corpus_without_labels() -> Corpus:
    """Return the same texts without their task label."""
    whole = corpus()
    return dataclasses.replace(whole, splits=whole.splits.remove_columns("label"))


def corpus_for(victim: Victim) -> Corpus:
    """Return what a victim's example is fitted on."""
    return victim.example_corpus() or corpus()


def published(victim: Victim, fitted: FittedVictim, given: Corpus) -> list[Any]:
    """Return everything that a fitted victim publishes of the test texts, and its predictions."""
    texts = given.texts("test")
    result: list[Any] = []
    if "documents" in victim.publishes:
        vectors = fitted.publish_documents(texts, np.random.default_rng(0))
        result.append(vectors)
        if given.has_labels:
            result.append(fitted.predict(vectors))
    if "words" in victim.publishes:
        result.append(fitted.publish_words(texts, np.random.default_rng(0)))
    return result
