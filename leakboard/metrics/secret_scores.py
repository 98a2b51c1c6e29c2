"""Score guesses of secrets of documents, next to guesses from a constant, the task label and the text itself.

Accuracy hides rare secrets: the constant guess "no" is right in 97 % of the texts if 3 % have the secret, and an attack
that finds most of these 3 % may still be right in 97 %. So the advantage is next to it: 2 area - 1, with the area under
the ROC curve. It is 0 for every constant guess and 1 for an attack that ranks all texts right, however rare the secret.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy

from leakboard.data.corpora import posterior
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Integers, Secret
from leakboard.metrics import baselines
from leakboard.metrics.areas import Area, Ranking
from leakboard.metrics.baselines import Codes
from leakboard.metrics.fairness import EMPTY_GROUP
from leakboard.metrics.intervals import unit_codes
from leakboard.metrics.measures import Metric, Ratio, accuracy, authors, micro_f1, remaining_privacy
from leakboard.metrics.new_texts import on_new_texts, without_copy
from leakboard.metrics.rates import true_positive_rate_at
from leakboard.metrics.row_guesses import SecretScores

SCORES = {"attribute": ("accuracy", accuracy), "entity": ("f1", micro_f1)}
"""The headline score of each kind of secret: accuracy averaged over attributes, micro F1 over (text, entity) pairs."""
AREA_METRICS = ("attack_auc", "attack_advantage", "attack_advantage_p")
FALSE_ALARMS = 0.01
"""Share of the texts without a value that may be taken for texts with it."""
MOST_SUSPECTED = 10
"""Least number of texts that the lift is computed from."""
_Ranked = Mapping[str, Ranking]
"""Rankings of the texts by the values of a secret."""


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
    checked = [_checked(scores, secret, len(truth)) for secret in secrets]
    guessed = np.stack([of_secret.argmax(1) for of_secret in checked], axis=1)
    units = authors(corpus, "test")
    rankings = _all_ranked(secrets, checked, truth, units)
    attack, constant = score(guessed, truth, units), score(_constant(corpus, secrets), truth, units)
    metrics = [attack.metric("attack_score"), remaining_privacy(attack, constant), _uncapped(attack)]
    metrics += _privacy_without_vectors(corpus, secrets, text_guesses)
    new = without_copy(corpus)
    metrics += on_new_texts(attack, constant, new)
    metrics += _mean_area(secrets, rankings, units)
    for column, secret in enumerate(secrets):
        metrics += _by_secret(secret, rankings[column], guessed[:, column], truth[:, column], units)
        of_text = None if text_guesses is None else text_guesses[:, [column]]
        left = _privacy_without_vectors(corpus, [secret], of_text, secret.name)
        guesses = (guessed[:, [column]], _constant(corpus, [secret]))
        attack, constant = (score(codes, truth[:, [column]], units) for codes in guesses)
        metrics += [remaining_privacy(attack, constant, secret.name), _uncapped(attack, secret.name), *left]
        metrics += on_new_texts(attack, constant, new, secret.name)
    if kind == "entity":
        f1 = [micro_f1(guessed[:, [c]], truth[:, [c]]).value for c in range(len(secrets))]
        metrics.append(Metric("attack_f1_macro", float(np.mean(f1)), n=len(truth)))
    return metrics


def _uncapped(attack: Ratio, variable: str = "") -> Metric:
    """Return 1 - the attack's score, as the papers define privacy, also where the best constant guess is better."""
    low, high = attack.interval()
    return Metric("uncapped_privacy", 1 - attack.value, variable, "", 1 - high, 1 - low, len(attack.numerator))


def dev_metrics(corpus: Corpus, secrets: Sequence[Secret], scores: Mapping[str, np.ndarray]) -> list[Metric]:
    """Return the scores of guesses about the dev texts, for all secrets and for each; empty without guesses.

    Arguments and errors are those of `secret_metrics`.
    """
    if not scores:
        return []
    truth = baselines.truth(corpus, "dev", secrets)
    checked = [_checked(scores, secret, len(truth), " on dev") for secret in secrets]
    guessed = np.stack([of_secret.argmax(1) for of_secret in checked], axis=1)
    rankings = _all_ranked(secrets, checked, truth)
    score, every = SCORES[secrets[0].kind][1], list(range(len(secrets)))
    metrics = []
    for name, chosen in ({"": every} | {secret.name: [column] for column, secret in enumerate(secrets)}).items():
        metrics.append(Metric("attack_score_dev", score(guessed[:, chosen], truth[:, chosen]).value, name))
        area = _mean_area([secrets[c] for c in chosen], [rankings[c] for c in chosen])
        metrics += [Metric("attack_advantage_dev", m.value, name) for m in area if m.name == "attack_advantage"]
    return metrics


def _mean_area(
    secrets: Sequence[Secret], rankings: Sequence[_Ranked], units: Integers | None = None, variable: str = ""
) -> list[Metric]:
    """Return the mean area of the secrets that have rankings, its advantage and p-value; empty if none has."""
    pairs = [(secret, ranked) for secret, ranked in zip(secrets, rankings, strict=True) if ranked]
    chosen = [ranking for secret, ranked in pairs for ranking in _of_area(secret, ranked)]
    return Area.of(chosen, units).metrics(variable) if chosen else []


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
    secret: Secret, ranked: _Ranked, guessed: Integers, truth: Integers, units: Integers | None
) -> list[Metric]:
    """Return accuracy, accuracy by group, balanced accuracy, area under the curve and, for entities, F1 of one secret.

    For each value that is ranked, also return the share found at `FALSE_ALARMS` and the lift.

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
    if not ranked:
        status = "fewer than two texts (or authors) with each of two values"
        return [*metrics, *(Metric(name, None, secret.name, n=len(truth), status=status) for name in AREA_METRICS)]
    metrics += _mean_area([secret], [ranked], units, secret.name)
    for value, ranking in ranked.items():
        found = true_positive_rate_at(FALSE_ALARMS, ranking.scores, ranking.inside, units)
        metrics += [dataclasses.replace(m, variable=secret.name, group=value) for m in (found, _lift(ranking))]
    return metrics


def _all_ranked(
    secrets: Sequence[Secret], scores: Sequence[np.ndarray], truth: Codes, units: Integers | None = None
) -> list[_Ranked]:
    """Return the rankings of each secret."""
    columns = zip(secrets, scores, truth.T, strict=True)
    return [_ranked(secret, of_secret, codes, units) for secret, of_secret, codes in columns]


def _ranked(secret: Secret, scores: np.ndarray, truth: Integers, units: Integers | None) -> _Ranked:
    """Return the rankings of the texts by each value.

    A text is ranked by the score of the value minus the logarithm of the summed exponentials of the other scores. For
    log-probabilities these are the log-odds of the value, whatever number is added to all scores of a text. Of two
    values it is the difference of the scores.

    A value is left out if fewer than two texts (or authors) have it, or have it not: how much its area depends on them
    cannot be known.
    """
    scores, codes = np.asarray(scores, np.float64), unit_codes(units, len(truth))
    kinds = {code: truth == code for code in range(len(secret.values))}
    known = [code for code, kind in kinds.items() if min(len(np.unique(codes[part])) for part in (kind, ~kind)) > 1]
    return {
        secret.values[code]: Ranking(
            scores[:, code] - scipy.special.logsumexp(np.delete(scores, code, axis=1), axis=1),
            kinds[code],
            1 / len(known),
        )
        for code in known
    }


def _of_area(secret: Secret, ranked: _Ranked) -> list[Ranking]:
    """Return the rankings whose mean area counts; of two values one, since the other is the same in reverse."""
    return (
        list(ranked.values()) if len(secret.values) > 2 else [dataclasses.replace(ranked[secret.values[1]], weight=1)]
    )


def rankings_of(scores: SecretScores, units: Integers | None) -> list[Ranking]:
    """Return the rankings of the test texts whose mean area is the area of a secret; empty if it has none.

    Args:
        scores: of the secret's values.
        units: int64 (n,), the author of each text; None: the text itself.
    """
    ranked = _ranked(scores.secret, scores.scores, scores.truth, units)
    return _of_area(scores.secret, ranked) if ranked else []


def _lift(ranking: Ranking) -> Metric:
    """Return how many times as frequent the value is among the most suspected texts: 1 % of them, at least ten.

    Of equally suspected texts all are counted, in equal parts.
    """
    chosen = min(max(MOST_SUSPECTED, math.ceil(FALSE_ALARMS * len(ranking.scores))), len(ranking.scores))
    least = np.sort(ranking.scores)[-chosen]
    above, tied = ranking.scores > least, ranking.scores == least
    right = ranking.inside[above].sum() + (chosen - above.sum()) * ranking.inside[tied].mean()
    return Metric("lift", float(right / chosen / ranking.inside.mean()), n=chosen)
