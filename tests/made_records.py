"""Build attack records for the tests of boards, pages and reports."""

import dataclasses
from statistics import NormalDist

from leakboard.board.schema import columns
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record
from leakboard.site.build import write_report
from leakboard.site.content import make_board
from leakboard.site.own_report import Notes

SCRIPT, FORMULA, REVERSED = "<script>document.title='run'</script>", '=cmd("calc")', "\u202ereversed"
HOSTILE = (SCRIPT, FORMULA, REVERSED, "</script><img src=x onerror=document.title='run'>")
"""Names that pages must show as text."""

SECRETS = ("gender", "age group", "region", "smoker", "income", "first language")
CHANGES = {"rotation": "no difference shown", "gaussian(sigma=0.05)": "less", "gaussian(sigma=0.5)": "more"}
"""Secrets and protections of `write_comparison`, and what each protection gives away."""

WINDOW_WIDTH = 1280
"""Width of a browser window in pixels, unless a test changes it."""

CLAIM = {
    "about": "release",
    "epsilon": 0.5,
    "delta": 1e-6,
    "unit": "document",
    "mechanism": "laplace",
    "sensitivity": "L1, 1",
    "proved": 4.0,
}


def record(
    victim, attack="attack", dataset="data", seed=0, *, accuracy=0.8, privacy=0.3, score=None, constant=0.5,
    margin=0.02, secrets=("gender",), more=None, **fields,
):  # fmt: skip
    """Return the record of a finished attack.

    Intervals reach ``margin`` to both sides. ``more`` replaces the attack's accuracy on each secret.
    """
    score = 1 - privacy if score is None else score
    n = fields.get("test_size", 100)
    metrics = [
        Metric("task_accuracy", accuracy, low=accuracy - margin, high=accuracy + margin, n=n),
        Metric("attack_score", score, n=n),
        Metric("empirical_privacy", privacy, low=privacy - margin, high=privacy + margin, n=n),
        Metric("privacy_best_constant", constant, n=n),
        *gain(score, constant, margin),
        *([Metric("attack_accuracy", score, secret, n=n) for secret in secrets] if more is None else more),
    ]
    usual = {"threat": "attributes", "attack_metric": "accuracy", "test_size": n, "metrics": metrics}
    usual |= {"key": f"{dataset}{victim}{attack}{seed}"}
    return Record(dataset, victim, attack, seed, "ok", secrets=secrets, **(usual | fields))


def gain(score, constant, margin, secret=""):
    """Return the advantage of an attack with this score, and its p-value, if its interval reaches so far."""
    value = (score - 1 + constant) / constant
    ends = (value - margin / constant, min(1.0, value + margin / constant))
    p_value = NormalDist().cdf(-1.96 * value * constant / margin)
    return [Metric("attack_advantage", value, secret, "", *ends), Metric("attack_advantage_p", p_value, secret)]


def scored(seed, score, constant=0.5, attack="guesser", victim="encoder", **fields):
    """Return the record of an attack on two secrets; intervals are ± 0.1, task accuracy is 0.8 + seed / 10."""
    usual = {
        "accuracy": 0.8 + seed / 10,
        "privacy": min(1 - score, constant),
        "margin": 0.1,
        "secrets": ("age", "gender"),
        "test_size": 40,
        "checks": {"test_copies": 0.25},
        "more": [Metric("task_majority", 0.55, n=40), Metric("privacy_text_classifier", 0.125, n=40)],
    }
    return record(victim, attack, "texts", seed, score=score, constant=constant, **(usual | fields))


def without_result(status, reason, seed=0, **names):
    """Return the record of a failed or skipped attack."""
    names = {"dataset": "texts", "victim": "encoder", "attack": "guesser", "key": f"{status} {seed}"} | names
    return Record(**names, seed=seed, status=status, reason=reason)


def with_metrics(made, *metrics):
    """Return the record with more metrics."""
    return dataclasses.replace(made, metrics=[*made.metrics, *metrics])


def on_dev(made, score, **by_secret):
    """Return the record with the attack's scores on dev, on all secrets together and on each."""
    scores = {"": score} | by_secret
    names = ("attack_score_dev", "attack_advantage_dev")
    return with_metrics(made, *(Metric(name, value, secret) for secret, value in scores.items() for name in names))


def write_comparison(path):
    """Write the report on the made vectors "as stored", and on three protections of them."""

    def numbers(*names):
        return {f"{name}{end}": 0.2 for name in names for end in ("", "_low", "_high")}

    releases = ("as stored", *CHANGES)
    measured = {"attack_score": 0.6, "empirical_privacy": 0.4, "privacy_best_constant": 0.5}
    more = [Metric(name, value, secret) for secret in SECRETS for name, value in measured.items()]
    more += [metric for secret in SECRETS for metric in gain(0.6, 0.5, 0.2, secret)]
    records = [record(name, secrets=SECRETS, privacy=0.4, more=more) for name in releases]
    gains = [
        {"secret": secret, "release": name, "gives_away": change}
        | numbers("first_advantage", "attack_advantage", "difference")
        for secret in SECRETS
        for name, change in CHANGES.items()
    ]
    costs = [{"release": name} | numbers("neighbours_kept", "task_accuracy") for name in releases]
    tables = [("Gains", columns("report: differences"), gains), ("Costs", columns("report: utility"), costs)]
    notes = Notes(warnings=["few texts"] * 3, tables=tables, releases=releases)
    write_report(make_board("own vectors", "", records, path.parent, path.parent), path, "2026-11-27", notes)
