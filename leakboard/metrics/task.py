"""Score the task on published vectors: by the victim's own classifier, and by one that is retrained on the vectors.

A user of published vectors trains a classifier on them. A victim's own classifier may never have seen the noise of a
publication, and then its accuracy says little about the vectors.
"""

from __future__ import annotations

import numpy as np

from leakboard.interfaces import Corpus, Floats, Integers
from leakboard.metrics.fairness import group_metrics, group_shares, widest_gaps
from leakboard.metrics.measures import Metric, accuracy, authors

BINS = 15
"""Number of bins of the calibration error, as in Guo et al. (2017)."""


def task_metrics(corpus: Corpus, predicted: Integers | None, probabilities: Floats | None = None) -> list[Metric]:
    """Return the share of every group and, if the corpus has a task, its scores on test, overall and by group.

    Args:
        corpus: has train and test.
        predicted: labels by the victim's classifier, int64 (n,); None: the corpus has no task, or no vectors.
        probabilities: of all labels by the retrained classifier, float32 (n, labels); None as above.
    """
    groups = {secret.name: corpus.column("test", secret.name) for secret in corpus.secrets}
    shares = [metric for secret in corpus.secrets for metric in group_shares(secret, groups[secret.name])]
    if predicted is None:
        return shares
    labels, train = corpus.column("test", "label"), corpus.column("train", "label")
    majority = np.full(len(labels), np.bincount(train).argmax())
    units = authors(corpus, "test")
    metrics = [
        *shares,
        *_scores("task", predicted, labels, units),
        Metric("task_majority", accuracy(majority, labels).value, n=len(labels)),
    ]
    if probabilities is not None:
        metrics += [
            *_scores("retrained", probabilities.argmax(1), labels, units),
            Metric("retrained_calibration_error", calibration_error(probabilities, labels), n=len(labels)),
        ]
    for secret in corpus.secrets:
        metrics += group_metrics(secret, groups[secret.name], predicted, labels, units)
    return metrics + widest_gaps(groups, predicted, labels, units)


def _scores(classifier: str, predicted: Integers, labels: Integers, units: Integers | None) -> list[Metric]:
    """Return accuracy, macro F1 and balanced accuracy; classes that no test text has are left out."""
    from sklearn.metrics import f1_score, recall_score

    averaged = {"labels": np.unique(labels), "average": "macro", "zero_division": 0.0}
    return [
        accuracy(predicted, labels, units).metric(f"{classifier}_accuracy"),
        Metric(f"{classifier}_f1_macro", float(f1_score(labels, predicted, **averaged)), n=len(labels)),
        Metric(f"{classifier}_balanced_accuracy", float(recall_score(labels, predicted, **averaged)), n=len(labels)),
    ]


def calibration_error(probabilities: Floats, labels: Integers) -> float:
    """Return the expected calibration error (Guo et al. 2017, equation 3).

    Texts are put into `BINS` equal bins by the probability of the predicted label. The error is the mean over texts of
    the difference between their bin's accuracy and its mean probability.

    Args:
        probabilities: of all labels, float32 (n, labels).
        labels: true labels, int64 (n,).
    """
    confidence = probabilities.max(1).astype(np.float64)
    surplus = (probabilities.argmax(1) == labels) - confidence
    bins = np.minimum(np.ceil(confidence * BINS).astype(np.int64) - 1, BINS - 1)
    return float(np.abs(np.bincount(bins, surplus, BINS)).sum() / len(labels))
