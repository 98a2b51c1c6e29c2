"""The leaderboard CSVs: a pure function of the cell records. Same records, same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from leakboard.board.reference import COMPARISON
from leakboard.metrics.claims import DELTA, corrected_bound, verdict
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record
from leakboard.store import write_file

LEADERBOARD = (
    "dataset, victim, attack, secrets, seeds, test_size, task_accuracy, task_majority, attack_metric, attack_score, "
    "empirical_privacy, empirical_privacy_low, empirical_privacy_high, privacy_best_constant, "
    "privacy_text_classifier, privacy_bayes, fairness_gap, fairness_variable, epsilon_claimed, epsilon_proved, "
    "epsilon_audited, delta, privacy_unit, verdict, status, privacy_label, task_accuracy_sd, empirical_privacy_sd, "
    "test_copies, observations"
)
CELLS = "dataset, victim, attack, seed, metric, variable, group, value, low, high, n, status, details"
FAIRNESS = (
    "dataset, victim, variable, group, n, share, task_accuracy, gap, gap_low, gap_high, p_value, tpr_gap, "
    "attack_score, attack"
)
COST = "dataset, victim, attack, seed, stage, seconds, peak_memory_mib, device, threads"
SENTENCE = "dataset, victim, attack, seed, text, recovered, words_right, words, similarity"

LOST = "attack failed: no better than the best constant guess"

ROUNDING = 1e-9
"""1 - (1 - x) is not x: without it an attack that equals the constant could pass for better."""

Row = dict[str, Any]


def write_tables(
    folder: Path, records: Sequence[Record], costs: Mapping[str, Sequence[Row]], comparison: Sequence[Row] = ()
) -> list[Path]:
    """Write all CSVs of a run, whole, and return their paths.

    Args:
        folder: where to write.
        records: one a cell, in any order.
        costs: by a record's key, what each stage of its cell took.
        comparison: with published numbers; without, there is no ``comparison.csv``.

    Raises:
        RequestError: the folder cannot be written.
    """
    ordered = sorted(records, key=lambda r: (r.dataset, r.victim, r.attack, r.seed))
    done = [record for record in ordered if record.status == "ok"]
    tables = {
        "leaderboard.csv": (LEADERBOARD, leaderboard(ordered)),
        "cells.csv": (CELLS, [row for record in ordered for row in _cell_rows(record)]),
        "fairness.csv": (FAIRNESS, fairness(ordered)),
        "costs.csv": (COST, [{**_head(record), **cost} for record in done for cost in costs.get(record.key, ())]),
        "sentences.csv": (SENTENCE, [{**_head(record), **row} for record in done for row in record.sentences]),
    }
    (folder / "comparison.csv").unlink(missing_ok=True)
    if comparison:
        tables["comparison.csv"] = (COMPARISON, list(comparison))
    paths = []
    for name, (columns, rows) in tables.items():
        texts = [{name: _text(name, value) for name, value in row.items()} for row in rows]
        frame = pd.DataFrame(texts, columns=columns.split(", "))
        write_file(folder / name, frame.to_csv(index=False, lineterminator="\n"))
        paths.append(folder / name)
    return paths


def _text(column: str, value: Any) -> str:
    """Return a value as its field in a CSV; never dependent on the other rows, as a column's common type would be."""
    if value is None or value != value:
        return ""
    if column == "delta":
        return f"{value:.4g}"
    return f"{value:.4f}" if isinstance(value, float) else str(value).replace("\r", " ")  # which pandas leaves unquoted


def leaderboard(records: Sequence[Record]) -> list[Row]:
    """Return one row a (dataset, victim, attack): means over seeds.

    The interval is the mean over seeds of each run's own 95 % interval over test texts (sampling); the columns
    ``..._sd`` hold the standard deviation over seeds (training), empty with one seed. ``epsilon_audited`` is the
    largest bound that the audits of the victim give, all seeds and pairs taken together (`corrected_bound`); it
    stands in every row of the victim that carries its claim. It and the verdict are on one release, at its own
    delta, also in rows of an attack that sees several (``observations``), whose claimed and proved epsilons and delta
    are the sums. A victim that claims nothing has it in the rows of its audits alone, for their unit and delta.
    """
    rows = []
    for of_victim in _grouped(records, lambda r: (r.dataset, r.victim)):
        audits = _grouped([record for record in of_victim if record.attack_metric == "epsilon"], _audited)
        bounds = {_audited(group[0]): corrected_bound([record.metrics for record in group]) for group in audits}
        rows += [_leaderboard_row(group, bounds) for group in _grouped(of_victim, lambda r: r.attack)]
    return rows


def _audited(record: Record) -> tuple[str, float | None]:
    """Return what an audit of the victim is about: its claim, or where it claims nothing the audit's unit and delta."""
    if record.claim:
        return "claim", None
    return (record.audited["unit"], record.audited["delta"]) if record.audited else ("", None)


def _leaderboard_row(records: Sequence[Record], bounds: Mapping[tuple[str, float | None], float | None]) -> Row:
    done = [record for record in records if record.status == "ok"]
    first = done[0] if done else records[0]
    row: Row = {"dataset": first.dataset, "victim": first.victim, "attack": first.attack, "seeds": len(done)}
    row["status"] = _status(records, done)
    if not done:
        return row
    row |= {
        "secrets": "; ".join(first.secrets),
        "test_size": round(sum(r.test_size or 0 for r in done) / len(done)),
        "attack_metric": first.attack_metric,
        "test_copies": first.checks.get("test_copies"),
    }
    for name in ("task_accuracy", "task_majority", "attack_score", "empirical_privacy", "privacy_best_constant"):
        row[name] = _mean(done, name)
    for name in ("privacy_text_classifier", "privacy_bayes", "privacy_label"):
        row[name] = _mean(done, name)
    for end in ("low", "high"):
        row[f"empirical_privacy_{end}"] = _mean(done, "empirical_privacy", end)
    for name in ("task_accuracy", "empirical_privacy"):
        row[f"{name}_sd"] = _deviation(done, name)
    audited = bounds.get(_audited(first))
    if first.claim:
        row |= {
            "epsilon_claimed": first.claim["epsilon"],
            "epsilon_proved": first.claim["proved"],
            "delta": first.claim["delta"],
            "privacy_unit": first.claim["unit"],
            "verdict": _verdict(first.claim, audited),
            "observations": first.claim.get("observations", 1),
        }
    elif audited is not None:
        unit, delta = _audited(first)
        row |= {"delta": delta, "privacy_unit": unit}
    row["epsilon_audited"] = audited
    row["fairness_gap"], row["fairness_variable"] = _widest_gap(done)
    return row


def _verdict(claim: Mapping[str, Any], audited: float | None) -> str:
    """Return the verdict on one release, which is what audits bound, also where a row is about several."""
    times = claim.get("observations", 1)
    return verdict(claim["epsilon"] / times, claim["proved"] / times, audited)


def _status(records: Sequence[Record], done: Sequence[Record]) -> str:
    other = next((record for record in records if record.status != "ok"), None)
    if not done:
        assert other, "a group has at least one record"
        return f"{other.status}: {other.reason}"
    parts = [f"{len(records) - len(done)} of {len(records)} seeds failed: {other.reason}"] if other else []
    caveat = (done[0].claim or {}).get("caveat", "")
    parts += [f"claim: {caveat}"] if caveat else []
    score, left = _mean(done, "attack_score"), _mean(done, "privacy_best_constant")
    if score is not None and left is not None and score <= 1 - left + ROUNDING:
        parts.append(LOST)
    return "; ".join(parts) or "ok"


def fairness(records: Sequence[Record]) -> list[Row]:
    """Return one row a (dataset, victim, variable, group), means over seeds, with the strongest attack's score.

    The p-value over several seeds is twice the mean of the runs' (valid under any dependence: Vovk and Wang 2020,
    Combining p-values via averaging, section 3).
    """
    rows = []
    for group in _grouped([r for r in records if r.status == "ok"], lambda r: (r.dataset, r.victim)):
        one_attack = _grouped(group, lambda r: r.attack)
        shares = [m for m in group[0].metrics if m.name == "share"]
        for share in shares:
            here = (share.variable, share.group)
            once = max(one_attack, key=len)
            p_values = [m.value for r in once if (m := r.value("task_gap_p", *here)) and m.value is not None]
            scores = {a[0].attack: _mean(a, "attack_accuracy", "value", *here) for a in one_attack}
            measured = {attack: score for attack, score in scores.items() if score is not None}
            best = max(measured, key=lambda attack: measured[attack], default=None)
            rows.append(
                {
                    "dataset": group[0].dataset,
                    "victim": group[0].victim,
                    "variable": share.variable,
                    "group": share.group,
                    "n": share.n,
                    "share": share.value,
                    "task_accuracy": _mean(once, "task_accuracy", "value", *here),
                    "gap": _mean(once, "task_gap", "value", *here),
                    "gap_low": _mean(once, "task_gap", "low", *here),
                    "gap_high": _mean(once, "task_gap", "high", *here),
                    "p_value": _combined(p_values),
                    "tpr_gap": _mean(once, "tpr_gap", "value", share.variable),
                    "attack_score": measured.get(best) if best else None,
                    "attack": best,
                }
            )
    return rows


def _combined(p_values: Sequence[float]) -> float | None:
    if not p_values:
        return None
    mean = sum(p_values) / len(p_values)
    return mean if len(p_values) == 1 else min(1.0, 2 * mean)


def _widest_gap(records: Sequence[Record]) -> tuple[float | None, str | None]:
    """Return the largest difference of mean task accuracy between two groups of a secret, and the secret."""
    groups: dict[str, list[float]] = {}
    for metric in records[0].metrics:
        if metric.name == "task_accuracy" and metric.group:
            mean = _mean(records, "task_accuracy", "value", metric.variable, metric.group)
            if mean is not None:
                groups.setdefault(metric.variable, []).append(mean)
    gaps = {variable: max(values) - min(values) for variable, values in groups.items() if len(values) > 1}
    widest = max(gaps, key=lambda variable: gaps[variable], default=None)
    return (gaps[widest], widest) if widest else (None, None)


def _cell_rows(record: Record) -> Iterable[Row]:
    head = _head(record)
    if record.status != "ok":
        yield {**head, "metric": record.status, "status": record.reason}
    for metric in record.metrics:
        row = {"metric": metric.name, **{name: getattr(metric, name) for name in _METRIC_FIELDS}}
        if metric.name == DELTA and metric.value is not None:
            row["value"] = f"{metric.value:.4g}"
        yield {**head, **row, "details": record.details if metric.name == "attack_score" else None}


_METRIC_FIELDS = ("variable", "group", "value", "low", "high", "n", "status")


def _head(record: Record) -> Row:
    return {"dataset": record.dataset, "victim": record.victim, "attack": record.attack, "seed": record.seed}


def _grouped(records: Sequence[Record], key: Any) -> list[list[Record]]:
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return list(groups.values())


def _values(records: Sequence[Record], name: str, part: str, variable: str, group: str) -> list[float]:
    metrics: list[Metric | None] = [record.value(name, variable, group) for record in records]
    return [value for metric in metrics if metric and (value := getattr(metric, part)) is not None]


def _mean(
    records: Sequence[Record], name: str, part: str = "value", variable: str = "", group: str = ""
) -> float | None:
    values = _values(records, name, part, variable, group)
    return sum(values) / len(values) if values else None


def _deviation(records: Sequence[Record], name: str) -> float | None:
    values = pd.Series(_values(records, name, "value", "", ""), dtype=float)
    return float(values.std(ddof=1)) if len(values) > 1 else None
