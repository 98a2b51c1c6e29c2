"""Score guesses of secrets of documents, next to guesses from a constant, the task label and the text itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leakboard.data.corpora import posterior
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Integers, Secret
from leakboard.metrics import baselines
from leakboard.metrics.baselines import Codes
from leakboard.metrics.fairness import EMPTY_GROUP
from leakboard.metrics.measures import Metric, Ratio, accuracy, authors, micro_f1, remaining_privacy

SCORES = {"attribute": ("accuracy", accuracy), "entity": ("f1", micro_f1)}
"""The headline score of each kind of secret: accuracy averaged over attributes, micro F1 over (text, entity) pairs."""


def secret_metrics(
    corpus: Corpus, secrets: Sequence[Secret], scores: Mapping[str, np.ndarray], text_guesses: Codes | None
) -> list[Metric]:
    """Return the scores of guesses of secrets of documents, next to every baseline.

    Args:
        corpus: has train, dev and test.
        secrets: the attacked secrets, all of one kind.
        scores: score of every value, float (n, values), for each secret; the guess is the value with the highest score.
        text_guesses: guesses of classifiers trained on the text, or None.

    Raises:
        RequestError: the guesses are incomplete, of a wrong shape, or not finite.
    """
    kind = secrets[0].kind
    score = SCORES[kind][1]
    truth = baselines.truth(corpus, "test", secrets)
    guessed = np.stack([_checked(scores, secret, len(truth)).argmax(1) for secret in secrets], axis=1)
    units = authors(corpus, "test")
    attack, constant = score(guessed, truth, units), score(_constant(corpus, secrets), truth, units)
    metrics = [attack.metric("attack_score"), remaining_privacy(attack, constant)]
    metrics += _privacy_without_vectors(corpus, secrets, text_guesses)
    new = _without_copy(corpus)
    metrics += _on_new_texts(attack, constant, new)
    for column, secret in enumerate(secrets):
        metrics += _by_secret(secret, scores[secret.name], guessed[:, column], truth[:, column], units)
        of_text = None if text_guesses is None else text_guesses[:, [column]]
        left = _privacy_without_vectors(corpus, [secret], of_text, secret.name)
        guesses = (guessed[:, [column]], _constant(corpus, [secret]))
        attack, constant = (score(codes, truth[:, [column]], units) for codes in guesses)
        metrics += [_privacy_of_secret(secret.name, attack, constant), *left]
        metrics += _on_new_texts(attack, constant, new, secret.name)
    if kind == "entity":
        f1 = [micro_f1(guessed[:, [c]], truth[:, [c]]).value for c in range(len(secrets))]
        metrics.append(Metric("attack_f1_macro", float(np.mean(f1)), n=len(truth)))
    return metrics


def dev_metrics(corpus: Corpus, secrets: Sequence[Secret], scores: Mapping[str, np.ndarray]) -> list[Metric]:
    """Return the scores of guesses about the dev texts, for all secrets and for each; empty without guesses.

    Arguments and errors are those of `secret_metrics`.
    """
    if not scores:
        return []
    truth = baselines.truth(corpus, "dev", secrets)
    guessed = np.stack([_checked(scores, secret, len(truth), " on dev").argmax(1) for secret in secrets], axis=1)
    score, every = SCORES[secrets[0].kind][1], list(range(len(secrets)))
    columns = {"": every} | {secret.name: [column] for column, secret in enumerate(secrets)}
    return [Metric("attack_score_dev", score(guessed[:, c], truth[:, c]).value, name) for name, c in columns.items()]


def _without_copy(corpus: Corpus) -> NDArray[np.bool_] | None:
    """Return which test texts are in no other split of the corpus, bool (n,); None if none or all are."""
    if not corpus.has_texts:
        return None
    known = {*corpus.texts("train"), *corpus.texts("dev")}
    new = np.array([text not in known for text in corpus.texts("test")])
    return new if new.any() and not new.all() else None


def _on_new_texts(attack: Ratio, constant: Ratio, new: NDArray[np.bool_] | None, variable: str = "") -> list[Metric]:
    """Return score and privacy over the test texts that are in no other split: no attacker can look these up."""
    if new is None:
        return []
    attack, constant = attack.within(new), constant.within(new)
    privacy = remaining_privacy(attack, constant)
    return [
        attack.metric("attack_score_new", variable),
        dataclasses.replace(privacy, name="empirical_privacy_new", variable=variable),
    ]


def _constant(corpus: Corpus, secrets: Sequence[Secret]) -> Codes:
    """Return the constant guess that does best on test, for every test text, int64 (n, secrets).

    The constant that is best on train can score below chance on test: if the whole dataset is balanced, a class that is
    frequent in train is rare in test. An attack that knows nothing would then seem to beat the constant.
    """
    guess = baselines.best_constant(baselines.truth(corpus, "test", secrets), secrets[0].kind)
    return np.broadcast_to(guess, (len(corpus.splits["test"]), len(secrets)))


def _privacy_without_vectors(
    corpus: Corpus, secrets: Sequence[Secret], text_guesses: Codes | None, variable: str = ""
) -> list[Metric]:
    """Return 1 - the score of each guess without the vectors, for these secrets together.

    The best constant comes first.

    Args:
        corpus: has train and test.
        secrets: secrets of one kind.
        text_guesses: guesses of classifiers trained on the text, int64 (n, secrets), or None.
        variable: the secret that the metrics are about; empty for all.
    """
    kind, truth = secrets[0].kind, baselines.truth(corpus, "test", secrets)
    guesses = {"privacy_best_constant": _constant(corpus, secrets)}
    if corpus.has_labels:
        train, labels = baselines.truth(corpus, "train", secrets), corpus.column("train", "label")
        guesses["privacy_label"] = baselines.from_label(train, labels, corpus.column("test", "label"), kind)
    if text_guesses is not None:
        guesses["privacy_text_classifier"] = text_guesses
    score = SCORES[kind][1]
    left = {name: 1 - score(guess, truth).value for name, guess in guesses.items()}
    posteriors = [posterior(corpus, "test", secret.name) for secret in secrets]
    if all(p is not None for p in posteriors):
        left["privacy_bayes"] = 1 - baselines.bayes_score([p for p in posteriors if p is not None], kind)
    return [Metric(name, value, variable, n=len(truth)) for name, value in left.items()]


def _privacy_of_secret(name: str, attack: Ratio, constant: Ratio) -> Metric:
    """Return the empirical privacy of one secret.

    The score is the larger one of attack and constant. Both have a 95 % interval of their own. The lower end of the
    score's interval is the larger one of their lower ends, and likewise for the upper end.

    - True privacy is below the interval only if the interval of the better guess ends below its true score. This
      happens in 2.5 % of samples.
    - True privacy is above the interval only if one of the two intervals begins above its true score. This happens in
      at most 5 % of samples.
    """
    (low, high), (least, most) = attack.interval(), constant.interval()
    scores = ((attack.value, constant.value), (high, most), (low, least))
    value, low, high = (1 - max(pair) for pair in scores)
    return Metric("empirical_privacy", value, name, "", low, high, len(attack.numerator))


def _checked(scores: Mapping[str, np.ndarray], secret: Secret, n: int, where: str = "") -> np.ndarray:
    what = f"{secret.name!r}{where}"
    if secret.name not in scores:
        raise RequestError(f"the attack guesses nothing for {what}")
    array = np.asarray(scores[secret.name])
    if array.dtype.kind not in "fiub":
        raise RequestError(f"guesses of {what} are {array.dtype}, not real numbers")
    if array.shape != (n, len(secret.values)):
        columns = f"a column for each value: {', '.join(secret.values)}"
        raise RequestError(f"guesses of {what} have shape {array.shape}, not {(n, len(secret.values))}, {columns}")
    if not np.isfinite(array).all():
        raise RequestError(f"guesses of {what} are not finite")
    return array


def _by_secret(
    secret: Secret, scores: np.ndarray, guessed: Integers, truth: Integers, units: Integers | None
) -> list[Metric]:
    """Return accuracy, accuracy by group, balanced accuracy, area under the curve and, for entities, F1 of one secret.

    The groups of an entity are absent and present: their accuracies are specificity and recall, as in DPNR Table 5.
    """
    right = accuracy(guessed, truth, units)
    metrics = [right.metric("attack_accuracy", secret.name)]
    recalls = []
    for code, group in enumerate(secret.values):
        inside = truth == code
        if not inside.any():
            metrics.append(Metric("attack_accuracy", None, secret.name, group, n=0, status=EMPTY_GROUP))
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
