"""Print a run: the leaderboard as a table, warnings, and the paths of its files."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from leakboard.board.gates import Limit
from leakboard.board.leaderboard import skipped
from leakboard.board.run_meta import environment_differences
from leakboard.board.schema import Row, columns, threats_of
from leakboard.board.summary import corpus_warnings
from leakboard.board.tables import read_table
from leakboard.column import Column
from leakboard.pipeline.records import FAILURE, Record
from leakboard.pipeline.runner import NO_COSTS, Run
from leakboard.site.rendering import cell, filled
from leakboard.store import write_file
from leakboard.suite.names import KINDS, natural
from leakboard.suite.plan import Job


def warn_about_missing(console: Console, run: Run) -> None:
    """Warn if cells have no result, or if results were altered."""
    for job in run.altered:
        console.print(Text(f"warning: {job.folder}: its result does not match its checksum; `run` computes it again"))
    if missing := len(run.unfinished):
        console.print(Text(f"warning: {missing} of {len(run.jobs)} cells have no result or failed; `run` tries them"))


def warn_about_costs(console: Console, run: Run) -> None:
    """Warn about cells whose costs are left out because they were altered."""
    for job in run.without_costs:
        console.print(Text(f"warning: {job.folder}: {NO_COSTS}"))


def warn_about_environments(console: Console, run: Run) -> None:
    """Warn in one line if a board's results come from environments that may give different numbers."""
    costs = ((job.cell.victim.label, run.costs(job)) for job in (*run.jobs, *run.others))
    if mixed := environment_differences(costs):
        console.print(Text(f"warning: computed in different environments: {mixed}"))


VICTIM, ATTACK = "console: victims", "console: attacks"
"""Tables of the schema: the columns in the lines of victims, and of attacks."""
STATUSES = {"ok": "done", "skipped": "skipped", "failed": "failed"}
"""Words for the status of cells, in the order in which they are counted."""
MAX_ROWS_WITH_SECRETS = 100
"""A table of more rows leaves out the rows of single secrets."""
MAX_ROWS = 300
"""Rows of a table that are printed at all; the file has the rest."""
FIRST_WIDTH = 24
"""Least width of a table's first column, which names the rows (characters)."""
MAX_COMPARED = 40
"""Rows of a source that are printed; a longer table is summed up."""


def print_leaderboard(console: Console, run: Run, records: Sequence[Record], labelled: Sequence[Row]) -> None:
    """Print the leaderboard, one table for each dataset, and warnings.

    Args:
        console: prints.
        run: has the names of the suite.
        records: of its cells, in natural order.
        labelled: `leaderboard` of these records.
    """
    names = run.suite.names
    rows = [names.row(row) for row in labelled]
    console.print(f"\n{run.suite.name}: {run.suite.file.description}", markup=False, highlight=False)
    shown_plugins = {str(row[kind]).partition("(")[0] for row in labelled for kind in KINDS}
    for plugin, common in names.common.items():
        if plugin in shown_plugins:
            console.print(Text(f"  options of all {plugin} below: {common}"), style="dim")
    explained: dict[str, Column] = {}
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        of_dataset = [row for row in rows if row["dataset"] == dataset]
        of_victim, of_attack = (filled(columns(name, threats_of(of_dataset)), of_dataset) for name in (VICTIM, ATTACK))
        print_table(console, _leaderboard_table(dataset, of_dataset, of_victim, of_attack))
        _print_remarks(console, of_dataset)
        baselines = _print_without_vectors(console, of_dataset)
        explained |= {column.name: column for column in (*of_victim, *of_attack, *baselines)}
    _print_legend(console, list(explained.values()))
    if left_out := len(skipped(records)):
        combinations, verb = ("combination", "was") if left_out == 1 else ("combinations", "were")
        console.print(Text(f"{left_out} {combinations} of victim and attack {verb} skipped (skipped.csv says why)"))
    _print_claims(console, rows)
    for warning in corpus_warnings(records, names):
        console.print(Text(f"warning: {warning}"))


def print_broken(console: Console, broken: Sequence[str], limits: Sequence[Limit], is_complete: bool) -> None:
    """Print why a run breaks its limits, or that a complete run keeps them; nothing without limits."""
    for line in broken:
        console.print(Text(line), soft_wrap=True)
    if limits and not broken and is_complete:
        console.print("all limits hold" if len(limits) > 1 else "the limit holds")


def print_counts(console: Console, run: Run) -> None:
    """Print how many cells are done, skipped and failed, and the path of the first traceback of each reason."""
    records = [(job, record) for job in run.jobs if (record := run.record(job))]
    counts = Counter(record.status for _, record in records)
    parts = [f"{counts[status]} {word}" for status, word in STATUSES.items() if counts[status]]
    cells = "1 cell" if len(run.jobs) == 1 else f"{len(run.jobs)} cells"
    console.print(Text(f"\n{cells}: {', '.join(parts) or 'none tried'}"))
    reasons: dict[str, list[Job]] = {}
    for job, record in records:
        if record.status == "failed":
            reasons.setdefault(record.reason, []).append(job)
    for reason, jobs in sorted(reasons.items(), key=lambda entry: (-len(entry[1]), natural(entry[0]))):
        path = run.cells / jobs[0].folder / FAILURE
        console.print(Text(f"  {len(jobs)} failed: {reason}; traceback of the first: {path}"), soft_wrap=True)


def print_sentences(console: Console, run: Run) -> None:
    """Print, for each attack on words or texts, the test text that it recovered best, next to the recovered text."""
    table = pd.read_csv(run.folder / "sentences.csv", keep_default_na=False)
    if table.empty:
        return
    table["share"] = table["words_right"] / table["words"].clip(lower=1)
    best = table.loc[table.groupby([*KINDS], sort=False)["share"].idxmax()]
    title = "recovered sentences: the most complete of each attack (all in sentences.csv); [known to the attacker]"
    console.print(Text(f"\n{title}"), style="bold")
    for row in sorted(best.to_dict("records"), key=lambda row: [natural(str(row[kind])) for kind in KINDS]):
        head = f"{row['dataset']} / {row['victim']} / {row['attack']}: {row['words_right']} of {row['words']} words"
        console.print(head, markup=False, highlight=False)
        for name in ("text", "recovered"):
            console.print(Text(f"  {name:9} {' '.join(str(row[name]).split())}"), no_wrap=True, overflow="ellipsis")


def save_picture(path: Path, run: Run, records: Sequence[Record], labelled: Sequence[Row]) -> None:
    """Save what `print_leaderboard` prints as an SVG picture.

    Raises:
        StorageError: the picture cannot be written.
    """
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, emoji=False, width=100, file=nowhere, force_terminal=True)
        print_leaderboard(console, run, records, labelled)
        write_file(path, console.export_svg(title=f"leakboard run {run.suite.name}"))


def print_table(console: Console, table: Table) -> None:
    """Print a table; if the console is narrow, its first column shrinks to `FIRST_WIDTH`, then the others wrap.

    Words are whole in a file or a pipe: lines are then longer than the console is wide.
    """
    unlimited = console.options.update(max_width=10_000)
    width = console.width
    excess = console.measure(table, options=unlimited).maximum - width
    if excess > 0:
        first, *others = table.columns
        natural = max(console.measure(content, options=unlimited).maximum for content in (first.header, *first.cells))
        first.width = max(min(natural, FIRST_WIDTH), natural - excess)
        if first.width > natural - excess:
            for column in others:
                column.no_wrap, column.overflow = False, "fold"
                if not console.is_terminal:
                    words = [console.measure(shown, options=unlimited).minimum for shown in column.cells]
                    column.min_width = max(console.measure(column.header, options=unlimited).maximum, *words)
            if not console.is_terminal:
                while (needed := _rendered_width(console, table)) > console.width:  # rich shrinks below least widths
                    console.width = needed
    console.print(table)
    console.width = width


def _rendered_width(console: Console, table: Table) -> int:
    """Return the length of the longest line (characters), which a console of this width would cut."""
    return max(map(Segment.get_line_length, Segment.split_lines(console.render(table))))


def rich_table(shown: Sequence[Column], rows: Sequence[Row], title: str = "") -> Table:
    """Return rows as a table of the terminal, without the columns that have nothing to show."""
    kept = filled(shown, rows)
    table = _new_table(title)
    for column in kept:
        number = column.is_number
        table.add_column(_head(column), overflow="fold", no_wrap=number, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(_cell(column, row) for column in kept))
    return table


def _new_table(title: str) -> Table:
    heading = Text(title) if title else None
    return Table(title=heading, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _head(column: Column) -> str:
    return column.name.replace("_", "_\n")


def _cell(column: Column, row: Row) -> Text:
    """Return a cell in one line; an interval or a remark comes after it in brackets."""
    shown = cell(column, row)
    return Text(f"{shown.text} [{shown.small}]" if shown.text and shown.small else shown.text)


def _leaderboard_table(
    dataset: str, rows: Sequence[Row], of_victim: Sequence[Column], of_attack: Sequence[Column]
) -> Table:
    """Return one dataset's rows beneath their victims; columns about the victim are in the victim's line."""
    table = _new_table(dataset)
    table.add_column("victim\n  attack (attack_metric)\n    secret", overflow="fold")
    for column in (*of_victim, *of_attack):
        table.add_column(_head(column), no_wrap=True, justify="right")
    means = [row for row in rows if not row.get("secret")]
    printed = rows if len(rows) <= MAX_ROWS_WITH_SECRETS else means[:MAX_ROWS]
    if len(means) > MAX_ROWS:
        table.caption = Text(f"{len(means) - MAX_ROWS} more rows are in leaderboard.csv")
    for victim in dict.fromkeys(row["victim"] for row in printed):
        members = [row for row in printed if row["victim"] == victim]
        table.add_row(Text(victim), *(_cell(column, members[0]) for column in of_victim))
        for row in members:
            table.add_row(Text(_row_head(row)), *("" for _ in of_victim), *(_cell(column, row) for column in of_attack))
    return table


def _row_head(row: Row) -> str:
    """Return what a row is about: its attack, or one secret beneath it; a star where not all is well."""
    star = "" if row["status"] == "ok" else " *"
    if row.get("secret"):
        return f"    {row['secret']}{star}"
    metric = f" ({row['attack_metric']})" if row.get("attack_metric") else ""
    return f"  {row['attack']}{metric}{star}"


def _print_legend(console: Console, shown: Sequence[Column]) -> None:
    for column in shown:
        meaning = "; ".join(filter(None, (column.note, column.better)))
        console.print(f"{column.name}: {meaning}", style="dim", highlight=False)


def _print_remarks(console: Console, rows: Sequence[Row]) -> None:
    """Print the remarks behind the stars, each once with the number of its rows."""
    remarks = Counter(row["status"] for row in rows if row["status"] != "ok")
    for remark, count in remarks.items():
        console.print(Text(f"* {remark} ({count} {'row' if count == 1 else 'rows'})"))


def _print_without_vectors(console: Console, rows: Sequence[Row]) -> list[Column]:
    """Print the privacy that guessers without the vectors leave, and return the printed columns of numbers.

    It is the same for all victims of a dataset.
    """
    known = list({row["secrets"]: row for row in rows if row.get("privacy_text_classifier") is not None}.values())
    if not known:
        return []
    shown = columns("console: datasets")
    print_table(console, rich_table(shown, known, "without the vectors"))
    return filled(shown[1:], known)


def _print_claims(console: Console, rows: Sequence[Row]) -> None:
    """Print the three epsilons of every victim that claims one or was audited, for a single release."""
    claims: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if row.get("verdict") or row.get("epsilon_audited") is not None:
            of_one = _of_one_release(row)
            claims[row["dataset"], row["victim"], row["privacy_unit"], f"{of_one['delta']:.4g}"] = of_one
    if not claims:
        return
    if len({dataset for dataset, *_ in claims}) > 1:
        claims = {key: {**row, "victim": f"{row['dataset']} / {row['victim']}"} for key, row in claims.items()}
    shown = columns("console: claims")
    print_table(console, rich_table(shown, list(claims.values()), "three epsilons of one release"))
    _print_legend(console, [column for column in shown if column.note])


def _of_one_release(row: Row) -> Row:
    """Return a row with the epsilons and the delta of one release, where its attack sees several."""
    observations = row.get("observations") or 1
    divided = {
        name: row[name] / observations
        for name in ("epsilon_claimed", "epsilon_proved", "delta")
        if row.get(name) is not None
    }
    return {**row, **divided, "verdict": row.get("verdict") or "nothing claimed"}


def print_comparison(console: Console, run: Run) -> None:
    """Print our number, the published number and the difference, in one table for each source."""
    path = run.folder / "comparison.csv"
    by_source: dict[str, list[Row]] = {}
    for row in read_table(path):
        by_source.setdefault(row["source"], []).append(row)
    for source, rows in by_source.items():
        measured = [row for row in rows if row["ours"] is not None]
        console.print(Text(f"\n{source}: {len(measured)} of {len(rows)} numbers measured"), style="bold")
        if len(measured) > MAX_COMPARED:
            console.print(Text(_summed_up(measured)))
        else:
            print_table(console, rich_table(columns("page: comparison"), measured))
    if by_source:
        console.print(Text(f"\nall differences from published numbers: {path}"), style="dim")


def _summed_up(rows: Sequence[Row]) -> str:
    both = [row for row in rows if math.isfinite(row["ours"]) and math.isfinite(row["theirs"])]
    infinite = sum(math.isinf(row["ours"]) and math.isinf(row["theirs"]) for row in rows)
    errors = [abs(row["standard_errors"]) for row in both if row["standard_errors"] is not None]
    return (
        f"  both finite: {len(both)}, widest difference {max([abs(row['difference']) for row in both] or [0]):.4f}; "
        f"{sum(error < 2 for error in errors)} of {len(errors)} within 2 standard errors, "
        f"widest {max(errors, default=0):.1f}; "
        f"both infinite: {infinite}; one infinite: {len(rows) - len(both) - infinite}"
    )


def print_paths(console: Console, paths: Sequence[Path]) -> None:
    """Print the paths of files."""
    for path in paths:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)
