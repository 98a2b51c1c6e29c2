"""The tables of the pages as data: which columns, in which groups, which way is better, how a cell is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.site.content import Row

HIGHER, LOWER = "higher is better", "lower is better"


@dataclass(frozen=True)
class Cell:
    """A cell as it is shown; every text is escaped by the template."""

    text: str
    order: float | str = ""
    """What the table is sorted by."""
    small: str = ""
    """A second line: an interval, options, where a gap is."""
    chip: str = ""
    """The class of a coloured label."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    key: str
    title: str
    kind: str = "text"
    group: str = ""
    better: str = ""
    note: str = ""
    """A sentence for the legend below the table."""

    def cell(self, row: Row) -> Cell:
        """Return the column's cell of a row."""
        return KINDS[self.kind](row, self.key)

    @property
    def is_number(self) -> bool:
        """Whether cells are set to the right."""
        return self.kind not in ("text", "name", "verdict")


def shown(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns that have something to show in at least one row."""
    return [column for column in columns if any(column.cell(row).text for row in rows)]


def common(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns of baselines and counts with one value in all of several rows: it stands above the table."""
    return [
        c
        for c in columns
        if c.kind in ("baseline", "count") and len(rows) > 1 and len({c.cell(row).text for row in rows}) == 1
    ]


def decimals(value: Any, digits: int = 3) -> str:
    """Return a number with a fixed number of decimals; infinity as a word; nothing where there is none."""
    if value is None or value != value:
        return ""
    return f"{value:.{digits}f}" if math.isfinite(value) else "infinite"


def _text(row: Row, key: str) -> Cell:
    value = "" if row.get(key) is None else str(row[key])
    return Cell(value, value)


def _number(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell(decimals(value), _order(value))


def _interval(row: Row, key: str) -> Cell:
    """Show the 95 % interval below the number, or the standard deviation over seeds where there is no interval."""
    value, low, high, spread = (row.get(name) for name in (key, f"{key}_low", f"{key}_high", f"{key}_sd"))
    parts = [f"{decimals(low)} to {decimals(high)}"] if low is not None and high is not None else []
    parts += [f"sd {decimals(spread)}"] if spread is not None and not parts else []
    return Cell(decimals(value), _order(value), " ".join(parts))


def _epsilon(row: Row, key: str) -> Cell:
    value = row.get(key)
    if value is None:
        return Cell("", math.inf)
    return Cell(f"{value:.3g}" if math.isfinite(value) else "none", min(value, 1e300))


def _claim(row: Row, key: str) -> Cell:
    """Show below a claim what it is about: two inputs that differ in one of these."""
    cell = _epsilon(row, key)
    return Cell(cell.text, cell.order, f"per {row['unit']}" if cell.text and row.get("unit") else "")


def _bound(row: Row, key: str) -> Cell:
    cell = _epsilon(row, key)
    return Cell(f"≥ {cell.text}" if cell.text else "", cell.order)


def _rank(row: Row, key: str) -> Cell:
    """Show the ranks that the intervals leave open: tied victims share a range."""
    if not row.get(key):
        return Cell("")
    first, last = row[key], row["last_rank"]
    return Cell(str(first) if first == last else f"{first} to {last}", first + last / 1e6)


def _name(row: Row, key: str) -> Cell:
    return Cell(str(row[key]), str(row[key]), row.get("small", ""))


def _verdict(row: Row, key: str) -> Cell:
    verdict = row.get(key) or ""
    return Cell(verdict, verdict, chip=verdict)


def _gap(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell(decimals(value), _order(value), row.get("gap_variable") or "" if value is not None else "")


def _seconds(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}", _order(value))


def _share(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None else f"{100 * value:.0f} %", _order(value))


def _whole(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None else f"{value:,.0f}", _order(value))


def _signed(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None or value != value else f"{value:+.3f}", _order(value))


def _errors(row: Row, key: str) -> Cell:
    value = row.get(key)
    return Cell("" if value is None or value != value else f"{value:+.1f}", _order(value))


def _order(value: Any) -> float:
    """Return what a number is sorted by: what is missing comes last where the smallest comes first."""
    return math.inf if value is None or value != value else float(value)


KINDS: dict[str, Callable[[Row, str], Cell]] = {
    "text": _text,
    "number": _number,
    "baseline": _number,
    "interval": _interval,
    "epsilon": _epsilon,
    "claim": _claim,
    "bound": _bound,
    "rank": _rank,
    "name": _name,
    "verdict": _verdict,
    "gap": _gap,
    "seconds": _seconds,
    "share": _share,
    "whole": _whole,
    "count": _whole,
    "signed": _signed,
    "errors": _errors,
}

EPSILONS = (
    Column("claimed", "claimed", "claim", "Three epsilons", LOWER, "what the author or the paper states"),
    Column("proved", "proved", "epsilon", "Three epsilons", LOWER, "what follows from what the code does"),
    Column(
        "audited", "audited", "bound", "Three epsilons", LOWER, "a lower bound at 95 % confidence from attacking it"
    ),
    Column(
        "verdict",
        "verdict",
        "verdict",
        "Three epsilons",
        note="violated: the audit found more than is claimed; unproven: less is proved than claimed; else holds",
    ),
)
VICTIMS = (
    Column(
        "rank",
        "rank",
        "rank",
        note="by privacy; where intervals overlap victims tie, and have the ranks that remain open",
    ),
    Column("victim", "victim", "name"),
    Column(
        "privacy",
        "privacy",
        "interval",
        "Privacy",
        HIGHER,
        "1 - the better of the strongest attack here and of the best constant guess, 95 % interval",
    ),
    Column(
        "accuracy",
        "task accuracy",
        "interval",
        "Use",
        HIGHER,
        "of a classifier on the vectors, 95 % interval over texts",
    ),
    *EPSILONS,
    Column("plug_in", "plug-in loss", "number", "Three epsilons", LOWER, "the point estimate of Habernal (2022)"),
    Column("attack", "strongest attack", "text", "Attacker", note="of those that were tried; a better one may come"),
    Column(
        "attacks",
        "attacks tried",
        "count",
        "Attacker",
        note="how many met the victim; a portfolio of attackers counts as one",
    ),
    Column("constant", "best constant", "baseline", "Attacker", HIGHER, "privacy that the best constant guess leaves"),
    Column(
        "text_classifier", "on the text", "baseline", "Attacker", HIGHER, "what a classifier on the text itself leaves"
    ),
    Column(
        "bayes", "best possible", "baseline", "Attacker", HIGHER, "what the best possible attacker on the text leaves"
    ),
    Column("gap", "fairness gap", "gap", "Fairness", LOWER, "widest difference of task accuracy between two groups"),
    Column(
        "provenance",
        "computed",
        "text",
        note="verified: by the project, or again by it; self-reported: by whoever sent it",
    ),
    Column("seconds", "seconds", "seconds", "Cost", LOWER, "to fit and to publish, mean over seeds, on that machine"),
)
ATTACKS = (
    Column("attack", "attack", "name"),
    Column("secrets", "secrets"),
    Column("attack_metric", "score is"),
    Column("attack_score", "attack score", "number", better="lower is better for the victim"),
    Column("empirical_privacy", "privacy", "interval", better=HIGHER),
    Column("privacy_best_constant", "best constant", "number", better=HIGHER),
    Column("privacy_text_classifier", "on the text", "number", better=HIGHER),
    Column("seeds", "seeds", "whole"),
    Column("status", "remarks"),
)
EVERYWHERE = (
    Column("victim", "victim", "name"),
    Column("empirical_privacy", "privacy", "interval", better=HIGHER),
    Column("attack_score", "attack score", "number", better="lower is better for the victim"),
    Column("attack_metric", "score is"),
    Column("secrets", "secrets"),
    Column("dataset", "dataset"),
    Column("board", "board"),
    Column("privacy_best_constant", "best constant", "number", better=HIGHER),
    Column("status", "remarks"),
)
SECRETS = (
    Column("secret", "secret", "name"),
    Column("attack", "attack"),
    Column("accuracy", "attack accuracy", "interval", better="lower is better for the victim"),
    Column("balanced_accuracy", "balanced", "number", better=LOWER),
    Column("f1", "F1", "number", better=LOWER),
    Column("auc", "area under the curve", "number", better="0.5 is chance"),
)
MEASURES = (
    Column("metric", "measure", "name"),
    Column("value", "value", "interval"),
    Column("attack", "of the attack", note="empty: of the victim, whatever the attack"),
)
GROUPS = (
    Column("variable", "secret"),
    Column("group", "group"),
    Column("share", "share", "share"),
    Column("task_accuracy", "task accuracy", "number", better=HIGHER),
    Column("gap", "gap to the first group", "interval", better="nearer to 0 is better"),
    Column("p_value", "p-value", "number"),
    Column("attack_score", "strongest attack's accuracy", "number", better=LOWER),
)
COSTS = (
    Column("stage", "stage"),
    Column("attack", "attack"),
    Column("seconds", "seconds", "seconds", better=LOWER),
    Column("peak_memory_mib", "peak memory, MiB", "whole", better=LOWER),
    Column("device", "device"),
)
COMPARISON = (
    Column("victim", "victim", "name"),
    Column("metric", "metric"),
    Column("variable", "secret"),
    Column("group", "group"),
    Column("ours", "ours", "interval"),
    Column("theirs", "theirs", "number"),
    Column("difference", "difference", "signed"),
    Column("standard_errors", "in standard errors", "errors"),
    Column("attack", "attack"),
    Column("dataset", "dataset"),
)
BESIDE = (Column("source", "published in", "name"), *COMPARISON[1:])
