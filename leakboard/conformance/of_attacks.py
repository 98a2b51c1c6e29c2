"""Check the promises of attacks, for every threat."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from leakboard.conformance.promises import NotChecked, expect, promise
from leakboard.conformance.subjects import Subject
from leakboard.conformance.values import arrays, digest, mappings
from leakboard.conformance.watched import answers, run_watched, with_other_secrets, with_shuffled_dev
from leakboard.errors import nearest
from leakboard.metrics.entries import METRICS
from leakboard.metrics.measures import Metric, overlap
from leakboard.pipeline.attacking import EXPECTED_METRICS
from leakboard.threats.threat import AttackResult, Threat

COUNTS = [("canary_right", "canary_guesses", "canaries"), ("false_positives", "true_positives")]
"""Counts of audits, in ascending order."""


@promise("attacks", is_required=True)
def answers_and_changes_nothing_that_it_sees(subject: Subject) -> None:
    """The fitted attack answers its threat, gives one question one answer, and does not change its view or inputs."""
    watched, _ = subject.attacked
    expect(watched.calls, "its threat never calls the object that fit returns", subject.cls.fit)


@promise("attacks")
def answers_in_finite_numbers(subject: Subject) -> None:
    """Answers are finite, float32 for float32 vectors, and about every secret; an audit's event is not constant."""
    watched, result = subject.attacked
    fit = subject.cls.fit
    events = []
    for inputs, answer in watched.calls:
        floats = [array for array in arrays(answer) if array.dtype.kind == "f"]
        expect(all(np.isfinite(array).all() for array in floats), "an answer holds NaN or infinity", fit)
        if isinstance(inputs[0], np.ndarray) and inputs[0].dtype == np.float32:
            wrong = [str(array.dtype) for array in floats if array.dtype != np.float32]
            expect(not wrong, f"an answer about float32 vectors is {', '.join(wrong)}, not float32", fit)
        for mapping in filter(None, mappings(answer)):
            expect(
                set(mapping) == set(result.secrets),
                f"it answers about {', '.join(mapping)}, not {', '.join(result.secrets)}",
                fit,
            )
        events += [array for array in arrays(answer) if array.dtype == bool]
    varied = not events or result.audited is None or 0 < np.mean(np.concatenate(events)) < 1
    expect(varied, "its event happens for all releases or for none", fit)


@promise("attacks")
def answers_the_same_each_time(subject: Subject) -> None:
    """Fitted again with the same seed, also in another process, it gives the same answers and scores."""
    first = digest(answers(*subject.attacked))
    plugin = subject.example()
    second = digest(answers(*run_watched(plugin, subject.group.sides(plugin))))
    expect(first == second, "fitted again with the same seed, it answers differently", subject.cls.fit)
    subject.expect_same_in_subprocess(first, subject.cls.fit)


@promise("attacks")
def does_not_know_the_secrets(subject: Subject) -> None:
    """Its answers stay the same if the secrets of the test texts are changed but the publications are not."""
    side = subject.group.sides(subject.plugin)
    if not side.corpus.secrets:
        raise NotChecked("the texts have no secrets")
    if not {secret.name for secret in side.corpus.secrets} & set(subject.attacked[1].secrets):
        raise NotChecked("the answer is about none of the corpus's secrets")
    first, second = (run_watched(subject.example(), s)[0] for s in (side, with_other_secrets(side)))
    same = digest([call for _, call in first.calls]) == digest([call for _, call in second.calls])
    expect(same, "if the secrets of the test texts are changed, it answers differently", subject.cls.fit)


@promise("attacks")
def scores_dev_before_it_learns_from_dev(subject: Subject) -> None:
    """If it scores dev texts, shuffled secrets of dev are guessed no better than by the best constant guess."""
    side = subject.group.sides(subject.plugin)
    _, attacked = subject.attacked
    if attacked.value("attack_score_dev") is None:
        raise NotChecked("its answer has no `on_dev`, which is optional")
    _, result = run_watched(subject.example(), with_shuffled_dev(side))
    dev, constant = (result.value(name) or 0.0 for name in ("attack_score_dev", "privacy_best_constant"))
    chance = 1 - constant + 2 / np.sqrt(len(side.corpus.splits["dev"]))  # four standard deviations at most
    expect(dev <= chance, f"shuffled secrets of dev are guessed in {100 * dev:.0f} %", subject.cls.fit)


@promise("attacks")
def does_not_foresee_random_draws(subject: Subject) -> None:
    """Its score stays in its interval if the noise of publications and the order of test rows are drawn again."""
    plugin = subject.example()
    before = _score(subject.attacked[1])
    after = _score(run_watched(plugin, subject.group.sides(plugin, secrets.token_hex(16)))[1])
    if (same := overlap(before, after)) is None:
        raise NotChecked("its score has no interval")
    expect(same, f"with other draws it scores {after.value:.3f} instead of {before.value:.3f}", subject.cls.fit)


def _score(result: AttackResult) -> Metric:
    return next(metric for metric in result.metrics if metric.name == "attack_score" and not metric.variable)


@promise("attacks")
def is_scored(subject: Subject) -> None:
    """Its threat scores it, and each of several secrets; it fills its columns. The headline is from 0 to 1.

    The headline of an audit is a bound, with counts in order.
    """
    _, result = subject.attacked
    fit = subject.cls.fit
    expect(result.secrets and result.test_size > 0, "nothing is scored", fit)
    values = {metric.name: metric.value or 0.0 for metric in result.metrics if not metric.variable}
    _expect_all_metrics(subject.cls.threat, result)
    score = values["attack_score"]
    if result.audited is None:
        expect(0 <= score <= 1, f"attack_score = {score}, not from 0 to 1", fit)
        privacy, best = values["empirical_privacy"], values["privacy_best_constant"]
        expect(0 <= privacy <= best <= 1, f"empirical_privacy = {privacy}, privacy_best_constant = {best}", fit)
        return
    expect(0 <= score < np.inf, f"attack_score = {score}, not a finite number from 0", fit)
    (names,) = [names for names in COUNTS if values.keys() >= set(names)]
    counts = [values[name] for name in names]
    expect(sorted(counts) == counts and counts[0] >= 0, f"{', '.join(names)} = {counts}, not in ascending order", fit)


def _expect_all_metrics(threat: Threat[Any], result: AttackResult) -> None:
    """Report a secret without metrics of its own, and a column whose metric the threat does not return."""
    returned = {(metric.name, metric.variable) for metric in result.metrics}
    score, *others = EXPECTED_METRICS
    alternatives = [(score, f"attack_{threat.headline}"), *((name,) for name in others if not threat.bounds_epsilon)]
    for secret in result.secrets if len(result.secrets) > 1 else ():
        for accepted in alternatives:
            message = f"there are several secrets, but no metric {accepted[0]!r} with variable={secret!r}"
            expect(any((name, secret) in returned for name in accepted), message, type(threat).evaluate)
    of_victims = {name for name, entry in METRICS.items() if entry.of == "victim"}
    names = {name for name, _ in returned} | of_victims
    for column in threat.columns:
        message = f"its column {column.name!r} shows the metric {column.metric!r}, which evaluate does not return"
        expect(column.metric in names, f"{message}{nearest(column.metric, names - of_victims)}", type(threat))
