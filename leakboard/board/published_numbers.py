"""Compare published numbers, the ``reference.csv`` of a suite, with ours.

A row of ``reference.csv`` is a number: ``dataset``, ``victim`` and ``attack`` as in the suite's tables, ``metric``,
``variable`` and ``group`` as in ``cells.csv``, the published ``value`` (``inf`` if infinite) and its ``source``. An
empty ``attack`` is for metrics that do not depend on the attack.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from leakboard.board.means import NORMAL, interval
from leakboard.board.schema import Row
from leakboard.errors import RequestError, one_line
from leakboard.pipeline.records import Record

FILE = "reference.csv"
KEYS = ("dataset", "victim", "attack", "metric", "variable", "group")


def read_reference(folder: Path) -> list[Row]:
    """Return the published numbers of a suite, in order; none if it has no such file.

    Raises:
        RequestError: the file is malformed; one line names the row.
    """
    path = folder / FILE
    if not path.is_file():
        return []
    try:
        table = pd.read_csv(path, keep_default_na=False, dtype=str)
    except (OSError, ValueError) as error:
        raise RequestError(f"{path}: cannot be read ({one_line(error)})") from None
    wanted = [*KEYS, "value", "source"]
    if list(table.columns) != wanted:
        raise RequestError(f"{path}: columns {', '.join(table.columns)}; allowed: {', '.join(wanted)}")
    rows: list[Row] = []
    for number, row in enumerate(table.to_dict("records"), start=2):
        try:
            value = float(row["value"])
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise RequestError(f"{path}: line {number}: value {row['value']!r} is not a number (inf where infinite)")
        rows.append({**{name: row[name] for name in wanted}, "value": value})
    return rows


def compare(records: Sequence[Record], reference: Sequence[Row]) -> list[Row]:
    """Return one row a published number: ours (mean over seeds, with its interval), theirs, and the difference.

    ``standard_errors`` is the difference over the standard error that our interval implies, if we have one. It leaves
    out the error of the published estimate. A number without a finished cell has a row without ours. A number that does
    not depend on the attack is that of the attack with most seeds, of several the last by name.
    """
    done = [record for record in records if record.status == "ok"]
    return [_compared(entry, done) for entry in reference]


def _compared(entry: Row, records: Sequence[Record]) -> Row:
    matching = [
        (record, metric)
        for record in records
        if (record.dataset, record.victim) == (entry["dataset"], entry["victim"])
        and entry["attack"] in ("", record.attack)
        and (metric := record.value(entry["metric"], entry["variable"], entry["group"]))
    ]
    if matching and not entry["attack"]:  # every attack's record has the number: count each seed once
        seeds = Counter(record.attack for record, _ in matching)
        attack = max(seeds, key=lambda name: (seeds[name], name))
        matching = [(record, metric) for record, metric in matching if record.attack == attack]
    metrics = [metric for _, metric in matching]
    row = {**{key: entry[key] for key in (*KEYS, "source")}, "seeds": len(metrics), "theirs": entry["value"]}
    if not metrics:
        return row
    ours = sum(m.value for m in metrics if m.value is not None) / len(metrics)
    row |= {"ours": ours, "difference": 0.0 if ours == entry["value"] else ours - entry["value"]}
    low, high = interval([record for record, _ in matching], entry["metric"], entry["variable"], entry["group"])
    if low is not None and high is not None:
        row["ours_low"], row["ours_high"] = low, high
        error = (high - low) / (2 * NORMAL)
        if error > 0 and math.isfinite(row["difference"]):
            row["standard_errors"] = row["difference"] / error
    return row
