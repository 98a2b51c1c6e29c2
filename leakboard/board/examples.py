"""Choose texts to publish next to what attacks read from their vectors: only texts that nobody wrote."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.board.schema import Row
from leakboard.board.tables import read_table
from leakboard.pipeline.records import Record
from leakboard.pipeline.runner import Run
from leakboard.suite.names import KINDS
from leakboard.suite.registry import Registry

EXAMPLES_FILE = "examples.csv"
TEXTS = 3
"""Number of texts of each attack."""


def examples(run: Run, records: Sequence[Record]) -> list[Row]:
    """Return rows of `EXAMPLES_FILE`: the first texts that each attack read, on datasets whose texts are invented.

    Published records hold no texts. If a record was taken over, its published rows are kept.
    """
    invented = {
        job.cell.source.label: job
        for job in (*run.jobs, *run.others)
        if job.cell.source.corpus.build(Registry()).texts_are_invented
    }
    kept: dict[tuple[str, ...], list[Row]] = {}
    for row in read_table(run.suite.home / EXAMPLES_FILE):
        kept.setdefault(tuple(row[kind] for kind in KINDS), []).append(row)
    rows: list[Row] = []
    seen = set()
    for record in sorted(records, key=lambda r: (r.dataset, r.victim, r.attack, r.seed)):
        head = run.suite.names.row({kind: getattr(record, kind) for kind in KINDS})
        key = tuple(head[kind] for kind in KINDS)
        if record.dataset in invented and record.status == "ok" and key not in seen:
            seen.add(key)
            read = [{**head, "seed": record.seed, **row} for row in record.sentences[:TEXTS]]
            rows += read or kept.get(key, [])
    return rows
