"""Write the files of a run: its tables, the comparison with published numbers, and ``meta.json``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from leakboard.board.examples import EXAMPLES_FILE, examples
from leakboard.board.kept_neighbours import NEIGHBOURS_FILE, kept_neighbours
from leakboard.board.projections import PROJECTIONS_FILE, projections
from leakboard.board.published_numbers import compare, read_reference
from leakboard.board.run_meta import describe, write_meta
from leakboard.board.schema import Row
from leakboard.board.tables import write_table, write_tables
from leakboard.pipeline.records import Record
from leakboard.pipeline.runner import Run


class Costs(Mapping[str, Sequence[Row]]):
    """Costs of each stage of a run's cells, by the keys of the cells; read on demand."""

    def __init__(self, run: Run):
        self.run = run
        self.jobs = {job.key: job for job in (*run.jobs, *run.others)}

    def __getitem__(self, key: str) -> Sequence[Row]:
        return self.run.costs(self.jobs[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)


def write_files(run: Run, records: Sequence[Record], rows: Sequence[Row] | None = None) -> list[Path]:
    """Write a run's tables, those that its suite asks for, and ``meta.json``; return their paths.

    Args:
        run: the run.
        records: of its cells.
        rows: `leaderboard` of the records, in any order; None: computed here.
    """
    jobs = [*run.jobs, *run.others]
    costs = Costs(run)
    compared = compare(records, read_reference(run.suite.home))
    paths = write_tables(run.folder, records, costs, compared, run.suite.names, rows)
    if run.suite.file.undefended:
        kept = kept_neighbours(run, run.suite.file.undefended)
        paths.append(write_table(run.folder / NEIGHBOURS_FILE, NEIGHBOURS_FILE, kept))
    if run.suite.file.projected:
        paths.append(write_table(run.folder / PROJECTIONS_FILE, PROJECTIONS_FILE, projections(run)))
    read = examples(run, records)
    if read or (run.suite.home / EXAMPLES_FILE).is_file():
        paths.append(write_table(run.folder / EXAMPLES_FILE, EXAMPLES_FILE, read))
    write_meta(
        run.folder / "meta.json", describe(run.suite, jobs, records, itertools.chain.from_iterable(costs.values()))
    )
    return [*paths, run.folder / "meta.json"]
