"""What an attack promises, whatever its threat."""

from __future__ import annotations

import numpy as np

from leakboard.conformance import watched as attacking
from leakboard.conformance.expect import expect
from leakboard.conformance.presentation import same_elsewhere
from leakboard.conformance.promises import promise
from leakboard.conformance.subjects import Subject
from leakboard.conformance.values import arrays, digest, mappings

COUNTS = [("canary_right", "canary_guesses", "canaries"), ("false_positives", "true_positives")]
"""What audits count, in ascending order."""


@promise("attacks", opens=True)
def leaves_what_it_is_shown(subject: Subject) -> None:
    """It is asked, writes into nothing that it is shown, and answers the same question the same way."""
    watched, _ = subject.attacked
    expect(watched.calls, "what it learned is never asked", subject.cls.fit)


@promise("attacks")
def answers_in_finite_numbers(subject: Subject) -> None:
    """Answers are finite, float32 where vectors are, about every secret, and no event holds always or never."""
    watched, result = subject.attacked
    events = []
    for inputs, answer in watched.calls:
        floats = [array for array in arrays(answer) if array.dtype.kind == "f"]
        expect(all(np.isfinite(array).all() for array in floats), "an answer holds NaN or infinity", subject.cls.fit)
        if isinstance(inputs[0], np.ndarray) and inputs[0].dtype == np.float32:
            wrong = [str(array.dtype) for array in floats if array.dtype != np.float32]
            expect(not wrong, f"an answer about float32 vectors is {', '.join(wrong)}", subject.cls.fit)
        for mapping in filter(None, mappings(answer)):
            expect(set(mapping) == set(result.secrets), f"it answers about {', '.join(mapping)}", subject.cls.fit)
        events += [array for array in arrays(answer) if array.dtype == bool]
    varied = not events or 0 < np.mean(np.concatenate(events)) < 1
    expect(varied, "an event holds always or never", subject.cls.fit)


@promise("attacks")
def answers_the_same_each_time(subject: Subject) -> None:
    """The same seed gives the same answers and scores, fitted again here and in another process."""
    made = digest(attacking.answers(*subject.attacked))
    plugin = subject.example()
    again = digest(attacking.answers(*attacking.attacked(plugin, subject.group.sides(plugin))))
    expect(made == again, "fitted again with the same seed, it answers otherwise", subject.cls.fit)
    same_elsewhere(subject, made, subject.cls.fit)


@promise("attacks")
def is_scored(subject: Subject) -> None:
    """Its threat scores it: a headline between 0 and 1, or of an audit a bound with counts that agree."""
    _, result = subject.attacked
    place = subject.cls.fit
    expect(result.secrets and result.test_size > 0, "nothing is scored", place)
    found = {metric.name: metric.value or 0.0 for metric in result.metrics if not metric.variable}
    score = found["attack_score"]
    if result.audited is None:
        expect(0 <= score <= 1, f"attack_score = {score}", place)
        privacy, best = found["empirical_privacy"], found["privacy_best_constant"]
        expect(0 <= privacy <= best <= 1, f"empirical_privacy = {privacy}, privacy_best_constant = {best}", place)
        return
    expect(0 <= score < np.inf, f"attack_score = {score}", place)
    (names,) = [names for names in COUNTS if found.keys() >= set(names)]
    counts = [found[name] for name in names]
    expect(sorted(counts) == counts and counts[0] >= 0, f"{', '.join(names)} = {counts}", place)
