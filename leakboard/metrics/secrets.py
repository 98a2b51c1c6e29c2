"""Scores of guesses of document secrets, beside what a constant, the task label and the text itself reveal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from leakboard.data.corpora import posterior
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Integers, Secret
from leakboard.metrics import baselines
from leakboard.metrics.baselines import Codes
from leakboard.metrics.fairness import NOBODY
from leakboard.metrics.measures import Metric, accuracy, authors, micro_f1, remaining_privacy

SCORES = {"attribute": ("accuracy", accuracy), "entity": ("f1", micro_f1)}
"""The headline score of each kind of secret: accuracy averaged over attributes, micro F1 over (text, entity) pairs."""


def secret_metrics(
    corpus: Corpus, secrets: Sequence[Secret], scores: Mapping[str, np.ndarray], text_guesses: Codes | None
) -> list[Metric]:
    """Return what the guesses of document secrets reveal, beside every baseline.

    Args:
        corpus: with train and test.
        secrets: those that are attacked, all of one kind.
        scores: of every value of every secret, float (n, values); the guess is the argmax.
        text_guesses: of classifiers trained on the text, or None.

    Raises:
        RequestError: the guesses are incomplete, of a wrong shape, or not finite.
    """
    kind = secrets[0].kind
    score = SCORES[kind][1]
    truth = baselines.truth(corpus, "test", secrets)
    train = baselines.truth(corpus, "train", secrets)
    guessed = np.stack([_checked(scores, secret, len(truth)).argmax(1) for secret in secrets], axis=1)
    constant_guess = np.broadcast_to(baselines.best_constant(train, kind), truth.shape)
    units = authors(corpus, "test")
    attack, constant = score(guessed, truth, units), score(constant_guess, truth, units)
    metrics = [
        attack.metric("attack_score"),
        remaining_privacy(attack, constant),
        Metric("privacy_best_constant", 1 - constant.value, n=len(truth)),
    ]
    if corpus.has_labels:
        labels = corpus.column("test", "label")
        suggested = baselines.from_label(train, corpus.column("train", "label"), labels, kind)
        metrics.append(Metric("privacy_label", 1 - score(suggested, truth).value, n=len(truth)))
    if text_guesses is not None:
        metrics.append(Metric("privacy_text_classifier", 1 - score(text_guesses, truth).value, n=len(truth)))
    posteriors = [posterior(corpus, "test", secret.name) for secret in secrets]
    if all(p is not None for p in posteriors):
        bayes = baselines.bayes_score([p for p in posteriors if p is not None], kind)
        metrics.append(Metric("privacy_bayes", 1 - bayes, n=len(truth)))
    for column, secret in enumerate(secrets):
        metrics += _by_secret(secret, scores[secret.name], guessed[:, column], truth[:, column], units)
    if kind == "entity":
        f1 = [micro_f1(guessed[:, [c]], truth[:, [c]]).value for c in range(len(secrets))]
        metrics.append(Metric("attack_f1_macro", float(np.mean(f1)), n=len(truth)))
    return metrics


def _checked(scores: Mapping[str, np.ndarray], secret: Secret, n: int) -> np.ndarray:
    if secret.name not in scores:
        raise RequestError(f"the attack guesses nothing for {secret.name!r}")
    array = np.asarray(scores[secret.name])
    if array.shape != (n, len(secret.values)):
        raise RequestError(f"guesses of {secret.name!r} have shape {array.shape}, not {(n, len(secret.values))}")
    if not np.isfinite(array).all():
        raise RequestError(f"guesses of {secret.name!r} are not finite")
    return array


def _by_secret(
    secret: Secret, scores: np.ndarray, guessed: Integers, truth: Integers, units: Integers | None
) -> list[Metric]:
    """Return accuracy, balanced accuracy, area under the curve and, for entities, F1 of one secret.

    And the accuracy of each group. For an entity the groups are absent and present: specificity and recall, as in DPNR
    Table 5.
    """
    right = accuracy(guessed, truth, units)
    metrics = [right.metric("attack_accuracy", secret.name)]
    recalls = []
    for code, group in enumerate(secret.values):
        inside = truth == code
        if not inside.any():
            metrics.append(Metric("attack_accuracy", None, secret.name, group, n=0, status=NOBODY))
            continue
        recall = right.within(inside)
        metrics.append(recall.metric("attack_accuracy", secret.name, group))
        recalls.append(recall.value)
    metrics.append(Metric("attack_balanced_accuracy", float(np.mean(recalls)), secret.name, n=len(truth)))
    if secret.kind == "entity":
        metrics.append(micro_f1(guessed[:, None], truth[:, None], units).metric("attack_f1", secret.name))
    metrics.append(_area(secret, np.asarray(scores, np.float64), truth))
    return metrics


def _area(secret: Secret, scores: np.ndarray, truth: Integers) -> Metric:
    """Return the area under the ROC curve; with more than two values, the mean over values against the rest."""
    from sklearn.metrics import roc_auc_score

    present = np.unique(truth)
    if len(present) < 2:
        return Metric("attack_auc", None, secret.name, n=len(truth), status="one class only")
    if len(secret.values) == 2:
        return Metric("attack_auc", float(roc_auc_score(truth, scores[:, 1] - scores[:, 0])), secret.name, n=len(truth))
    areas = [roc_auc_score(truth == code, scores[:, code]) for code in present]
    return Metric("attack_auc", float(np.mean(areas)), secret.name, n=len(truth))
