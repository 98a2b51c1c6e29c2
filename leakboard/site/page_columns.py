"""The tables of the pages as data: which columns, in which groups, which way is better, how a cell is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakboard.metrics.audits import VERDICT_CONFIDENCE
from leakboard.site.content import Row
from leakboard.site.rendering import KINDS, Cell

HIGHER, LOWER = "higher is better", "lower is better"
NEW_TEXTS_NOTE = (
    "privacy from the same attack over the test texts that stand, word by word, in neither train nor dev; "
    "a constant guess leaves other privacy there than over all"
)


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
        return self.kind not in ("text", "name", "verdict", "mark", "metric")


def shown(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns that have something to show in at least one row."""
    return [column for column in columns if any(cell.text or cell.small for cell in map(column.cell, rows))]


def common(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns that one text can stand for above a table of several rows: all have the same."""
    return [
        c
        for c in columns
        if c.kind in ("baseline", "count", "mark") and len(rows) > 1 and len({c.cell(row).text for row in rows}) == 1
    ]


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
        note=f"violated: the audit found more than is claimed, at {VERDICT_CONFIDENCE}; "
        "unproven: less is proved than claimed; else holds",
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
    Column("privacy_new", "on new texts", "number", "Privacy", HIGHER, NEW_TEXTS_NOTE),
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
        "mark",
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
    Column("empirical_privacy_new", "on new texts", "number", better=HIGHER, note=NEW_TEXTS_NOTE),
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
    Column("metric", "metric", "metric"),
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
