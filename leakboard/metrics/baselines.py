"""Guess secrets without the vectors: from constants, the task label, the text itself, and the exact posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.interfaces import Corpus, Integers, Secret, SecretKind
from leakboard.metrics.measures import accuracy, best_offset, micro_f1

Codes = NDArray[np.int64]
"""int64 (n, secrets): indices of values."""


def truth(corpus: Corpus, split: str, secrets: Sequence[Secret]) -> Codes:
    """Return the secrets of a split, int64 (n, secrets)."""
    return np.stack([corpus.column(split, secret.name) for secret in secrets], axis=1)


def best_constant(known: Codes, kind: str) -> Codes:
    """Return the constant guess that does best on these texts, int64 (secrets,).

    For attributes it is the most frequent value of each. For entities it is the set with the largest micro F1. Among
    sets of one size, the most frequent entities have the most true positives, so one set of each size is tried.
    """
    if kind == "attribute":
        return np.array([np.bincount(column).argmax() for column in known.T])
    order = np.argsort(-known.sum(0), kind="stable")
    guesses = np.zeros((len(order), len(order)), np.int64)
    for size in range(len(order)):
        guesses[size, order[: size + 1]] = 1
    return max(guesses, key=lambda guess: micro_f1(np.broadcast_to(guess, known.shape), known).value)


def from_label(train: Codes, train_labels: Integers, labels: Integers, kind: str) -> Codes:
    """Return the best guess from the task label alone for each text, int64 (n, secrets).

    For attributes it is the most frequent value of the training texts with the same label. For entities it is the set
    of (label, entity) pairs with the largest micro F1 on train. Among sets that name equally many, those that are most
    often right are best. So sort the pairs by the share of the label's texts that mention the entity; the best set is
    a prefix. (Coavoux et al. 2018 take the best set of each label by itself, which is not the best together.)

    For an unseen label it is the best constant guess of all training texts.
    """
    known = np.unique(train_labels)
    if kind == "attribute":
        guesses = np.stack([best_constant(train[train_labels == y], kind) for y in known])
    else:
        texts = np.array([np.sum(train_labels == y) for y in known])
        present = np.stack([train[train_labels == y].sum(0) for y in known])
        order = np.argsort(-(present / texts[:, None]).ravel(), kind="stable")
        named = np.repeat(texts, train.shape[1])[order].cumsum()
        f1 = 2 * present.ravel()[order].cumsum() / (named + present.sum())
        guesses = np.zeros(present.size, np.int64)
        guesses[order[: int(f1.argmax()) + 1]] = 1
        guesses = guesses.reshape(present.shape)
    per_label, default = dict(zip(known, guesses, strict=True)), best_constant(train, kind)
    return np.stack([per_label.get(y, default) for y in labels])


def from_text(corpus: Corpus, secrets: Sequence[Secret], seed: int) -> Codes:
    """Return the guesses of classifiers that read the test texts of a corpus, int64 (n, secrets): `read_secrets`."""
    train, dev = ((corpus.texts(split), truth(corpus, split, secrets)) for split in ("train", "dev"))
    return read_secrets(secrets, train, dev, corpus.texts("test"), seed)


def read_secrets(
    secrets: Sequence[Secret],
    train: tuple[Sequence[str], Codes],
    dev: tuple[Sequence[str], Codes],
    texts: Sequence[str],
    seed: int,
) -> Codes:
    """Return the guesses of classifiers that read texts, one for each secret, int64 (n, secrets).

    The classifiers are logistic regressions on TF-IDF of words and word pairs. Dev chooses the regularisation and, for
    entities, the threshold of "present". The classifiers are strong but ordinary: another attacker may do better.

    Args:
        secrets: of one kind.
        train: texts to learn from, and their secrets.
        dev: texts to choose by, and their secrets.
        texts: to read.
        seed: of the regressions.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectoriser = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    try:
        of_train = vectoriser.fit_transform(train[0])
    except ValueError:  # no word occurs twice
        vectoriser = TfidfVectorizer(analyzer="char", ngram_range=(1, 3))
        of_train = vectoriser.fit_transform(train[0])
    of_dev, of_texts = (vectoriser.transform(part) for part in (dev[0], texts))
    models = [
        _best_model(of_train, of_dev, values, dev_values, secret.kind, seed)
        for secret, values, dev_values in zip(secrets, train[1].T, dev[1].T, strict=True)
    ]
    if secrets[0].kind == "attribute":
        return np.stack([model.predict(of_texts) for model in models], axis=1)
    on_dev, margins = (np.stack([_presence(model, part) for model in models], axis=1) for part in (of_dev, of_texts))
    offset = best_offset(on_dev.ravel(), dev[1].ravel())
    return (margins + offset > 0).astype(np.int64)


def _best_model(train: Any, dev: Any, values: Integers, dev_values: Integers, kind: SecretKind, seed: int) -> Any:
    """Return the logistic regression with the best score on dev, or a constant if train has only one value."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(values)) == 1:
        return DummyClassifier().fit(train, values)
    recipes = [LogisticRegression(C=c, max_iter=1000, random_state=seed) for c in (1.0, 10.0, 100.0)]
    models = [recipe.fit(train, values) for recipe in recipes]
    if kind == "attribute":
        return max(models, key=lambda model: accuracy(model.predict(dev), dev_values).value)
    margins = [_presence(model, dev) for model in models]
    f1 = [micro_f1((m + best_offset(m, dev_values) > 0).astype(np.int64), dev_values).value for m in margins]
    return models[int(np.argmax(f1))]


def _presence(model: Any, texts: Any) -> NDArray[np.float64]:
    """Return the log-odds that each text mentions the entity, float64 (n,)."""
    chances = model.predict_proba(texts)[:, model.classes_ == 1].sum(1)
    return scipy.special.logit(np.clip(chances, 1e-12, 1 - 1e-12))


def bayes_score(posteriors: Sequence[NDArray[np.float64]], kind: str) -> float:
    """Return the best expected score of an attacker who guesses from each text by itself, given the exact posteriors.

    Attributes: the mean over texts and secrets of the largest posterior (expected accuracy of the Bayes classifier).
    Entities: 2 E[TP] / (guessed + positives), for the best set of (text, entity) pairs. If the pairs are sorted by
    posterior, the best set is a prefix, so all prefixes are tried. The ratio of expected counts approaches the expected
    ratio as the number of texts grows.
    """
    if kind == "attribute":
        return float(np.mean([p.max(1).mean() for p in posteriors]))
    present = np.sort(np.concatenate([p[:, 1] for p in posteriors]))[::-1]
    f1 = 2 * np.cumsum(present) / (np.arange(1, len(present) + 1) + present.sum())
    return float(f1.max())
