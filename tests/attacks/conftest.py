"""Keep forests small, and score attacks that read texts."""

import numpy as np
import pytest
from planted_texts import any_words, view_of

from leakboard.attacks._portfolio import neighbours_and_trees
from leakboard.metrics.text_scores import text_metrics


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    """Grow 20 trees in a forest: with 100, forests are more than half of the time of an ensemble on few texts."""
    monkeypatch.setattr(neighbours_and_trees, "TREES", 20)


@pytest.fixture
def scored(make_corpus):
    """Return a function that searches for 40 unknown texts, and returns the scores and the details."""

    def score(attack, encode, oracle):
        view, rng = view_of(encode, oracle), np.random.default_rng(1)
        texts = [any_words(rng) for _ in range(40)]
        guesses = attack.fit(view, 0)(encode(texts))
        splits = {"train": list(view.train.texts), "dev": texts, "test": texts}
        corpus = make_corpus({name: {"text": part} for name, part in splits.items()}, [])
        return {metric.name: metric for metric in text_metrics(guesses.texts, True, corpus)}, guesses.details

    return score
