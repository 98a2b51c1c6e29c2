"""What people see of a run: the leaderboard as a table, warnings, the paths of its files, and a plugin's options."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakboard.board.leaderboard import leaderboard, skipped
from leakboard.board.provenance import mixture
from leakboard.board.summary import corpus_warnings
from leakboard.metrics.audits import VERDICT_CONFIDENCE, rounded_down
from leakboard.pipeline.records import FAILURE, Record, in_natural_order
from leakboard.pipeline.runner import NO_COSTS, Run
from leakboard.store import write_file
from leakboard.suite.names import KINDS, natural
from leakboard.suite.plan import Job


def warn_about_missing(console: Console, run: Run) -> None:
    """Warn when cells have no result, so that nobody takes a part for the whole, and when results were altered."""
    for job in run.altered:
        console.print(Text(f"warning: {job.folder}: its result does not match its checksum; `run` computes it again"))
    if missing := len(run.unfinished):
        console.print(Text(f"warning: {missing} of {len(run.jobs)} cells have no result or failed; `run` tries them"))


def warn_about_costs(console: Console, run: Run) -> None:
    """Tell which cells' costs are left out because they were altered."""
    for job in run.without_costs:
        console.print(Text(f"warning: {job.folder}: {NO_COSTS}"))


def warn_about_mixture(console: Console, run: Run) -> None:
    """Tell in one line where a board's results come from environments that may give other numbers."""
    costs = ((job.cell.victim.label, run.costs(job)) for job in (*run.jobs, *run.others))
    if mixed := mixture(costs):
        console.print(Text(f"warning: computed in different environments: {mixed}"))


OF_VICTIM = ("task_accuracy", "fairness_gap")
OF_ATTACK = ("attack_score", "empirical_privacy", "privacy_best_constant")
OF_DATASET = ("privacy_best_constant", "privacy_label", "privacy_text_classifier", "privacy_bayes")
LEGEND = {
    "task_accuracy": "higher is better",
    "fairness_gap": "widest gap of task accuracy between groups; lower is better",
    "attack_score": "what the attack reached, in its own metric; lower is better",
    "empirical_privacy": "1 - the better of attack and best constant guess [95 % interval]; higher is better",
    "privacy_best_constant": "what that guess leaves: no attack has shown more privacy than this",
}
COUNTED = {"ok": "done", "skipped": "skipped", "failed": "failed"}
"""What cells of a status are called, in the order in which they are counted."""
LONGEST = 100
"""Rows of a table that are printed with one row a secret; of a longer one only the means are."""
MOST = 300
"""Rows of a table that are printed at all; the file has the rest."""


def print_leaderboard(console: Console, run: Run, records: Sequence[Record]) -> None:
    """Print the leaderboard, one table a dataset, and what a reader must be warned of."""
    ordered = in_natural_order(records)
    names = run.suite.names
    rows = [names.row(row) for row in leaderboard(ordered)]
    console.print(f"\n{run.suite.name}: {run.suite.file.description}", markup=False, highlight=False)
    for plugin, common in names.common.items():
        console.print(Text(f"  every {plugin}: {common}"), style="dim")
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        here = [row for row in rows if row["dataset"] == dataset]
        console.print(_table(dataset, here))
        _print_remarks(console, here)
        _print_without_vectors(console, here)
    for name, meaning in LEGEND.items():
        console.print(f"{name}: {meaning}", style="dim", highlight=False)
    if left_out := len(skipped(ordered)):
        console.print(Text(f"{left_out} combinations of victim and attack do not apply (skipped.csv says why)"))
    _print_claims(console, rows)
    for warning in corpus_warnings(ordered, names):
        console.print(Text(f"warning: {warning}"))


def print_counts(console: Console, run: Run) -> None:
    """Print how many cells are done, skipped and failed, and where the first traceback of each reason stands."""
    records = [(job, record) for job in run.jobs if (record := run.record(job))]
    counts = Counter(record.status for _, record in records)
    parts = [f"{counts[status]} {word}" for status, word in COUNTED.items() if counts[status]]
    console.print(Text(f"\n{len(run.jobs)} cells: {', '.join(parts) or 'none tried'}"))
    reasons: dict[str, list[Job]] = {}
    for job, record in records:
        if record.status == "failed":
            reasons.setdefault(record.reason, []).append(job)
    for reason, jobs in sorted(reasons.items(), key=lambda entry: (-len(entry[1]), natural(entry[0]))):
        path = run.cells / jobs[0].folder / FAILURE
        console.print(Text(f"  {len(jobs)} failed: {reason}; traceback of the first: {path}"), soft_wrap=True)


def print_sentences(console: Console, run: Run) -> None:
    """Print one test text a word attack beside what the attacker read: the one of which it got most words right."""
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


def save_picture(path: Path, run: Run, records: Sequence[Record]) -> None:
    """Save the leaderboard as people see it on a terminal, as an SVG picture.

    Raises:
        StorageError: the picture cannot be written.
    """
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=100, file=nowhere, force_terminal=True)
        print_leaderboard(console, run, records)
        write_file(path, console.export_svg(title=f"leakboard run {run.suite.name}"))


def _table(dataset: str, rows: Sequence[dict[str, Any]]) -> Table:
    """Return one dataset's rows beneath their victims; what is about the victim stands in the victim's line."""
    table = Table(title=Text(dataset), title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("victim\n  attack (attack_metric)\n    secret", overflow="fold")
    shown = [name for name in (*OF_VICTIM, *OF_ATTACK) if any(row.get(name) is not None for row in rows)]
    for name in shown:
        table.add_column(name.replace("_", "_\n"), no_wrap=True, justify="right")
    means = [row for row in rows if not row.get("secret")]
    printed = rows if len(rows) <= LONGEST else means[:MOST]
    if len(means) > MOST:
        table.caption = Text(f"{len(means) - MOST} more rows stand in leaderboard.csv")
    for victim in dict.fromkeys(row["victim"] for row in printed):
        of_victim = [row for row in printed if row["victim"] == victim]
        table.add_row(Text(victim), *(_cell(of_victim[0], name) if name in OF_VICTIM else "" for name in shown))
        for row in of_victim:
            table.add_row(Text(_head(row)), *(_cell(row, name) if name in OF_ATTACK else "" for name in shown))
    return table


def _head(row: dict[str, Any]) -> str:
    """Return what a row is about: its attack, or one secret beneath it; a star where not all is well."""
    star = "" if row["status"] == "ok" else " *"
    if row.get("secret"):
        return f"    {row['secret']}{star}"
    metric = f" ({row['attack_metric']})" if row.get("attack_metric") else ""
    return f"  {row['attack']}{metric}{star}"


def _cell(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if name == "empirical_privacy" and row.get("empirical_privacy_low") is not None:
        return f"{value:.3f} [{row['empirical_privacy_low']:.2f}, {row['empirical_privacy_high']:.2f}]"
    return f"{value:.3f}"


def _print_remarks(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """Print what the stars stand for, each remark once with the number of its rows."""
    remarks = Counter(row["status"] for row in rows if row["status"] != "ok")
    for remark, count in remarks.items():
        console.print(Text(f"* {remark} ({count} {'row' if count == 1 else 'rows'})"))


def _print_without_vectors(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """Print what guessers leave who see no vector of a dataset: the same for all of its victims."""
    known = {row["secrets"]: row for row in rows if row.get("privacy_text_classifier") is not None}
    shown = [name for name in OF_DATASET if any(row.get(name) is not None for row in known.values())]
    if not known:
        return
    table = Table(title="without the vectors", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("secrets", overflow="fold")
    for name in shown:
        table.add_column(name.replace("_", "_\n"), no_wrap=True, justify="right")
    for secrets, row in known.items():
        table.add_row(Text(secrets), *(_cell(row, name) for name in shown))
    console.print(table)
    console.print(
        "what a constant guess, the task label, a classifier on the text itself and, where the data are generated, the "
        "best possible attacker leave",
        style="dim",
        highlight=False,
    )


def _print_claims(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """Print the three epsilons of every victim that claims one or was audited, for a single release."""
    stated = [row for row in rows if row.get("verdict") or row.get("epsilon_audited") is not None]
    claims = {
        (row["dataset"], row["victim"], row["privacy_unit"], f"{row['delta'] / row.get('observations', 1):.4g}"): row
        for row in stated
    }
    if not claims:
        return
    table = Table(title="three epsilons of one release", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for name in ("victim", "epsilon_claimed", "delta", "privacy_unit", "epsilon_proved", "epsilon_audited", "verdict"):
        justify: Any = "right" if name.startswith(("epsilon", "delta")) else "left"
        table.add_column(name.replace("_", "_\n"), justify=justify)
    several = len({dataset for dataset, *_ in claims}) > 1
    for (dataset, victim, unit, delta), row in claims.items():
        audited, times, claimed = row["epsilon_audited"], row.get("observations", 1), row.get("verdict")
        numbers = [f"{row[f'epsilon_{kind}'] / times:.4g}" if claimed else "" for kind in ("claimed", "proved")]
        table.add_row(
            Text(f"{dataset} / {victim}" if several else victim),
            numbers[0],
            delta,
            unit,
            numbers[1],
            "" if audited is None else f">= {rounded_down(audited, 4)}",
            claimed or "nothing claimed",
        )
    console.print(table)
    console.print(
        "epsilon_claimed: what the authors state; epsilon_proved: what follows from what the code does; "
        "epsilon_audited: a lower bound at 95 % confidence from attacking it; "
        f"verdict: by bounds at {VERDICT_CONFIDENCE}",
        style="dim",
        highlight=False,
    )


COMPARED = 40
"""Rows of a source that are printed; a longer table is summed up."""


def print_comparison(console: Console, run: Run) -> None:
    """Print ours, theirs and the difference for every published number of the suite, one table a source."""
    path = run.folder / "comparison.csv"
    if not path.is_file():
        return
    table = pd.read_csv(path, keep_default_na=False, na_values={"ours": [""], "difference": [""]})
    for source, rows in table.groupby("source", sort=False):
        answered = rows[rows["ours"].notna()]
        console.print(Text(f"\nbeside {source}: {len(answered)} of {len(rows)} numbers measured"), style="bold")
        if len(answered) > COMPARED:
            console.print(Text(_summed_up(answered)))
            continue
        shown = Table("victim", "metric", "ours", "theirs", "difference", box=SIMPLE_HEAD, pad_edge=False)
        for row in answered.to_dict("records"):
            location = " ".join(str(row[key]) for key in ("metric", "variable", "group", "attack") if row[key])
            numbers = (f"{row['ours']:.4f}", f"{row['theirs']:.4f}", f"{row['difference']:+.4f}")
            shown.add_row(Text(str(row["victim"])), Text(location), *numbers)
        console.print(shown)
    console.print(Text(f"\nall differences from published numbers: {path}"), style="dim")


def _summed_up(rows: pd.DataFrame) -> str:
    both = rows[np.isfinite(rows["ours"]) & np.isfinite(rows["theirs"])]
    infinite = int((np.isinf(rows["ours"]) & np.isinf(rows["theirs"])).sum())
    errors = pd.to_numeric(both["standard_errors"], errors="coerce").abs()
    estimated, near = int(errors.notna().sum()), int((errors < 2).sum())
    return (
        f"  both finite: {len(both)}, widest difference {both['difference'].abs().max():.4f}; "
        f"{near} of {estimated} within 2 standard errors, widest {errors.max():.1f}; "
        f"both infinite: {infinite}; one infinite: {len(rows) - len(both) - infinite}"
    )


def print_paths(console: Console, paths: Sequence[Path]) -> None:
    """Print where files are."""
    for path in paths:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)
