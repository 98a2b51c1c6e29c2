"""Score the task on published vectors, overall and by group."""

from __future__ import annotations

import numpy as np

from leakboard.interfaces import Corpus, Integers
from leakboard.metrics.fairness import group_metrics, group_shares
from leakboard.metrics.measures import Metric, accuracy, authors


def task_metrics(corpus: Corpus, predicted: Integers | None) -> list[Metric]:
    """Return the share of every group and, if the corpus has a task, its accuracy on test, overall and by group."""
    groups = {secret.name: corpus.column("test", secret.name) for secret in corpus.secrets}
    shares = [metric for secret in corpus.secrets for metric in group_shares(secret, groups[secret.name])]
    if predicted is None:
        return shares
    labels, train = corpus.column("test", "label"), corpus.column("train", "label")
    majority = np.full(len(labels), np.bincount(train).argmax())
    units = authors(corpus, "test")
    metrics = [
        *shares,
        accuracy(predicted, labels, units).metric("task_accuracy"),
        Metric("task_majority", accuracy(majority, labels).value, n=len(labels)),
    ]
    for secret in corpus.secrets:
        metrics += group_metrics(secret, groups[secret.name], predicted, labels, units)
    return metrics
