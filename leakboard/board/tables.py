"""The leaderboard CSVs: a pure function of the cell records. Same records, same bytes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from leakboard.board.best_known import BEST_KNOWN, best_known
from leakboard.board.groups import fairness
from leakboard.board.leaderboard import leaderboard, skipped
from leakboard.board.means import Row
from leakboard.board.reference import COMPARISON
from leakboard.errors import StorageError
from leakboard.metrics.audits import DELTA
from leakboard.pipeline.records import Record
from leakboard.store import write_file
from leakboard.suite.names import Names

FORMULA = re.compile(r"[=+@\t\r]|-(?!\d+(\.\d+)?$)")
"""How a text begins that a spreadsheet computes; an apostrophe before it keeps it a text (OWASP, CSV injection)."""
LEADERBOARD = (
    "dataset, victim, attack, secrets, seeds, test_size, task_accuracy, task_majority, attack_metric, attack_score, "
    "empirical_privacy, empirical_privacy_low, empirical_privacy_high, privacy_best_constant, "
    "privacy_text_classifier, privacy_bayes, fairness_gap, fairness_variable, epsilon_claimed, epsilon_proved, "
    "epsilon_audited, delta, privacy_unit, verdict, status, privacy_label, task_accuracy_sd, empirical_privacy_sd, "
    "test_copies, observations, secret, dataset_options, victim_options, attack_options, "
    "attack_score_new, empirical_privacy_new, attack_score_dev"
)
SKIPPED = "dataset, victim, attack, reason"
CELLS = "dataset, victim, attack, seed, metric, variable, group, value, low, high, n, status, details"
FAIRNESS = (
    "dataset, victim, variable, group, n, share, task_accuracy, gap, gap_low, gap_high, p_value, tpr_gap, "
    "attack_score, attack"
)
COST = "dataset, victim, attack, seed, stage, seconds, peak_memory_mib, device, threads"
SENTENCE = "dataset, victim, attack, seed, text, recovered, words_right, words, similarity"


def write_tables(
    folder: Path,
    records: Sequence[Record],
    costs: Mapping[str, Sequence[Row]],
    comparison: Sequence[Row] = (),
    names: Names = Names(),  # noqa: B008 (it is frozen)
) -> list[Path]:
    """Write all CSVs of a run, whole, and return their paths.

    Args:
        folder: where to write.
        records: one a cell, in any order.
        costs: by a record's key, what each stage of its cell took.
        comparison: with published numbers; without, there is no ``comparison.csv``.
        names: what datasets, victims and attacks are called.

    Raises:
        RequestError: the folder cannot be written.
    """
    try:
        (folder / "comparison.csv").unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{folder / 'comparison.csv'}: cannot be removed ({error.strerror})") from None
    paths = []
    for name, (columns, rows) in table_rows(records, costs, comparison, names).items():
        paths.append(write_table(folder / name, columns, rows))
    return paths


def write_table(path: Path, columns: str, rows: Iterable[Row]) -> Path:
    """Write one CSV, whole, and return its path.

    Raises:
        StorageError: the folder cannot be written, or the disk is full.
    """
    content = io.StringIO(newline="")
    writer = csv.DictWriter(content, columns.split(", "), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _text(name, value, row) for name, value in row.items()} for row in rows)
    write_file(path, content.getvalue())
    return path


def table_rows(
    records: Sequence[Record],
    costs: Mapping[str, Sequence[Row]],
    comparison: Sequence[Row] = (),
    names: Names = Names(),  # noqa: B008 (it is frozen)
) -> dict[str, tuple[str, Iterable[Row]]]:
    """Return by file the names of a table's columns and its rows, to be gone through once; else as `write_tables`."""
    ordered = sorted(records, key=lambda r: (r.dataset, r.victim, r.attack, r.seed))
    done = [record for record in ordered if record.status == "ok"]
    rows = leaderboard(ordered)
    tables: dict[str, tuple[str, Iterable[Row]]] = {
        "leaderboard.csv": (LEADERBOARD, rows),
        "best_known.csv": (BEST_KNOWN, best_known(rows)),
        "skipped.csv": (SKIPPED, skipped(ordered)),
        "cells.csv": (CELLS, (row for record in ordered for row in _cell_rows(record))),
        "fairness.csv": (FAIRNESS, fairness(ordered)),
        "costs.csv": (COST, ({**_head(record), **cost} for record in done for cost in costs.get(record.key, ()))),
        "sentences.csv": (SENTENCE, [{**_head(record), **row} for record in done for row in record.sentences]),
    }
    if comparison:
        tables["comparison.csv"] = (COMPARISON, list(comparison))
    return {file: (columns, map(names.row, rows)) for file, (columns, rows) in tables.items()}


def _text(column: str, value: Any, row: Row) -> str:
    """Return a value of a row as its field in a CSV; it depends on no other row, as a column's common type would."""
    if value is None or value != value:
        return ""
    if column == "delta":
        return f"{value:.4g}"
    if column == "epsilon_audited" or (column == "attack_score" and row.get("attack_metric") == "epsilon"):
        # a lower bound: never more than was proved
        return str(Decimal(repr(float(value))).quantize(Decimal("0.0001"), ROUND_FLOOR))
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else str(value).replace("\r", " ")


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
