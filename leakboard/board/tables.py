"""Write and read the leaderboard CSVs, a pure function of the cell records: same records, same bytes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from leakboard.board.fairness_rows import fairness
from leakboard.board.leaderboard import leaderboard, skipped
from leakboard.board.schema import Row, columns
from leakboard.board.strongest import best_known
from leakboard.column import Column
from leakboard.errors import RequestError, StorageError, one_line
from leakboard.metrics.audits import DELTA
from leakboard.pipeline.records import Record
from leakboard.store import write_file
from leakboard.suite.names import KINDS, Names
from leakboard.threats.threat import threat_named

FORMULA = re.compile(r"[=+@\t\r]|-(?!\d+(\.\d+)?$)")
"""How a text begins that a spreadsheet would compute (OWASP, CSV injection)."""


def write_tables(
    folder: Path,
    records: Sequence[Record],
    costs: Mapping[str, Sequence[Row]],
    comparison: Sequence[Row] = (),
    names: Names = Names(),  # noqa: B008 (it is frozen)
    rows: Sequence[Row] | None = None,
) -> list[Path]:
    """Write all CSVs of a run and return their paths; a reader never sees half a file.

    Args:
        folder: where to write.
        records: one for each cell, in any order.
        costs: of the stages of each cell, by the key of its record.
        comparison: with published numbers; if empty, there is no ``comparison.csv``.
        names: of datasets, victims and attacks.
        rows: `leaderboard` of the records in any order, with labels instead of names; None: computed here.

    Raises:
        StorageError: the folder cannot be written.
    """
    try:
        (folder / "comparison.csv").unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{folder / 'comparison.csv'}: cannot be removed ({error.strerror})") from None
    threats = sorted({record.threat for record in records})
    tables = table_rows(records, costs, comparison, names, rows)
    return [write_table(folder / name, name, rows, threats) for name, rows in tables.items()]


def write_table(path: Path, name: str, rows: Iterable[Row], threats: Iterable[str] = ()) -> Path:
    """Write one CSV and return its path; a reader never sees half of it.

    Args:
        path: of the file.
        name: of the table in the schema.
        rows: to be gone through once.
        threats: whose own columns the table has, too.

    Raises:
        StorageError: the folder cannot be written, or the disk is full.
    """
    known = columns(name, threats)
    content = io.StringIO(newline="")
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(column.name for column in known)
    fields = [(column, column.name) for column in known]
    writer.writerows([csv_field(column, row.get(name), row) for column, name in fields] for row in rows)
    write_file(path, content.getvalue())
    return path


def table_rows(
    records: Sequence[Record],
    costs: Mapping[str, Sequence[Row]],
    comparison: Sequence[Row] = (),
    names: Names = Names(),  # noqa: B008 (it is frozen)
    rows: Sequence[Row] | None = None,
) -> dict[str, Iterable[Row]]:
    """Return the rows of each file, as one-pass iterators; the arguments are those of `write_tables`."""
    ordered = sorted(records, key=lambda r: (r.dataset, r.victim, r.attack, r.seed))
    done = [record for record in ordered if record.status == "ok"]
    key = itemgetter(*KINDS)
    rows = leaderboard(ordered) if rows is None else sorted(rows, key=key)
    tables: dict[str, Iterable[Row]] = {
        "leaderboard.csv": rows,
        "best_known.csv": best_known(rows),
        "skipped.csv": skipped(ordered),
        "cells.csv": (row for record in ordered for row in _cell_rows(record)),
        "fairness.csv": fairness(ordered),
        "costs.csv": ({**_head(record), **cost} for record in done for cost in costs.get(record.key, ())),
        "sentences.csv": [{**_head(record), **row} for record in done for row in record.sentences],
    }
    if comparison:
        tables["comparison.csv"] = list(comparison)
    return {file: map(names.row, rows) for file, rows in tables.items()}


def csv_field(column: Column, value: Any, row: Row) -> str:
    """Return a value of a row as its field in a CSV.

    A text that a spreadsheet would take for a formula begins with an apostrophe. Lower bounds are rounded down.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return _text_field(value)
    if column.kind == "delta":
        return f"{value:.4g}"
    if column.kind == "bound" or (column.kind == "score" and threat_named(row.get("threat", "")).bounds_epsilon):
        exact = Decimal(repr(float(value)))
        return str(exact.quantize(Decimal("0.0001"), ROUND_FLOOR)) if exact.is_finite() else str(value)
    return f"{value:.4f}" if isinstance(value, float) else str(value)


@lru_cache(maxsize=4096)
def _text_field(text: str) -> str:
    return guarded(text).replace("\r", " ")


def guarded(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: one that begins like a formula gets an apostrophe."""
    return f"'{text}" if FORMULA.match(text) else text


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


def read_table(path: Path) -> list[Row]:
    """Return a CSV as rows, numbers as numbers and empty numbers as None; no rows where there is no file.

    Raises:
        RequestError: the file is no table in UTF-8, or a number is none.
    """
    import pandas as pd

    if not path.is_file():
        return []
    numbers = {column.name for column in columns(path.name) if column.is_number} | {"seed"}
    try:
        table = pd.read_csv(path, keep_default_na=False, dtype=str)
        return [
            {str(name): (float(text) if text else None) if name in numbers else text for name, text in row.items()}
            for row in table.to_dict("records")
        ]
    except (ValueError, TypeError) as error:  # of pandas too
        raise RequestError(f"{path}: cannot be read ({one_line(error)})") from None


def published_names(path: Path) -> Names:
    """Return the names of datasets, victims and attacks in a published ``leaderboard.csv``, by their labels."""
    rows = read_table(path)
    return Names(
        {(kind, row[f"{kind}_options"]): row[kind] for row in rows for kind in KINDS if row.get(f"{kind}_options")}
    )
