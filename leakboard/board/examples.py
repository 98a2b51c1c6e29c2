"""Choose texts to publish next to what attacks read from their vectors: only texts that a program invented."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.board.schema import Row, columns
from leakboard.board.tables import read_table
from leakboard.errors import RequestError
from leakboard.pipeline.records import Record
from leakboard.pipeline.runner import Run
from leakboard.suite.cells import Source
from leakboard.suite.names import KINDS

EXAMPLES_FILE = "examples.csv"
TEXTS = 3
"""Number of texts of each attack."""


def examples(run: Run, records: Sequence[Record]) -> list[Row]:
    """Return rows of `EXAMPLES_FILE`: the first texts that each attack read, if all its texts are invented.

    Attackers may answer with texts of their own, so these must be invented, too. Published records hold no texts. If a
    record was taken over, its published rows are kept.

    Raises:
        RequestError: the published file lacks a column.
    """
    invented = {job.key for job in (*run.jobs, *run.others) if not job.problem and _is_invented(job.cell.source)}
    kept: dict[tuple[str, ...], list[Row]] = {}
    for row in read_table(path := run.suite.home / EXAMPLES_FILE):
        if missing := [column.name for column in columns(EXAMPLES_FILE) if column.name not in row]:
            raise RequestError(f"{path}: column {missing[0]!r} is missing; `publish` writes the file anew without it")
        kept.setdefault(tuple(row[kind] for kind in KINDS), []).append(row)
    rows: list[Row] = []
    seen = set()
    for record in sorted(records, key=lambda r: (r.dataset, r.victim, r.attack, r.seed)):
        head = run.suite.names.row({kind: getattr(record, kind) for kind in KINDS})
        key = tuple(head[kind] for kind in KINDS)
        if record.key in invented and record.status == "ok" and key not in seen:
            seen.add(key)
            read = [{**head, "seed": record.seed, **row} for row in record.sentences[:TEXTS]]
            rows += read or kept.get(key, [])
    return rows


def _is_invented(source: Source) -> bool:
    """Return whether a program wrote the texts of the dataset and those of the attacker."""
    datasets = [source.corpus.plugin, *([source.other.plugin] if source.other else [])]
    return all(dataset is not None and dataset.texts_are_invented for dataset in datasets)
