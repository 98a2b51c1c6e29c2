"""Name the files and the tables of pages, and the order of their columns if it differs from that of the schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A file, or a table of a page."""

    meaning: str
    """What a row is."""
    first: tuple[str, ...] = ()
    """Columns that come first."""
    last: tuple[str, ...] = ()
    """Columns that come last."""
    groups: tuple[str, ...] = ()
    """Order of the groups of columns; columns without a group come before them."""
    of: str = ""
    """Another table whose columns it has; if left out, it has columns of its own."""
    without: tuple[str, ...] = ()
    """Columns of the table ``of`` that it leaves out."""
    in_sight: tuple[str, ...] = ()
    """Columns that a page shows in every row, if not all are; the others unfold."""
    on_wide: tuple[str, ...] = ()
    """Columns that wide screens show in every row, too."""


ADDED = (
    *("attack_advantage", "attack_advantage_low", "attack_advantage_high", "attack_advantage_p"),
    *("attack_advantage_dev", "attack_auc", "exposed_value", "exposed_found", "exposed_lift"),
    *("own_texts", "known_pairs", "queries", "retrained_accuracy", "retrieval_recall@10"),
)
"""Columns that scripts of version 0.1.0 do not know: files have them at the end."""
ADDED_WITHOUT_BEST = ("attack_advantage_dev", "retrained_accuracy", "retrieval_recall@10")
"""Those of `ADDED` that ``best_known.csv`` has not."""
ADDED_OF_GROUPS = (
    *("fairness_gap_low", "fairness_gap_high", "fairness_n"),
    *("tpr_gap", "tpr_gap_low", "tpr_gap_high", "tpr_n", "tpr_variable"),
)
"""Those that compare groups; only ``leaderboard.csv`` has them."""

TABLES: Mapping[str, Table] = {
    "leaderboard.csv": Table(
        "One row for each dataset, victim and attack; if it has several secrets, one more for each.",
        last=(*ADDED, *ADDED_OF_GROUPS),
    ),
    "best_known.csv": Table(
        "One row for each dataset, victim and secret: the strongest attack on the secret.",
        ("dataset", "victim", "secret", "secrets", "observations", "attack", "attacks", "chosen_on"),
        ("status", *(name for name in ADDED if name not in ADDED_WITHOUT_BEST)),
    ),
    "skipped.csv": Table("Datasets, victims and attacks that do not go together, each with the reason."),
    "fairness.csv": Table(
        "One row for each dataset, victim, secret and group.",
        last=("attack", "task_accuracy_low", "task_accuracy_high"),
    ),
    "comparison.csv": Table("One row for each published number of a paper, next to ours.", ("source",)),
    "costs.csv": Table("One row for each cell and stage; the numbers differ from run to run."),
    "cells.csv": Table(
        "One row for each cell and metric: all measured numbers. `report` writes this file.", last=("status", "details")
    ),
    "sentences.csv": Table("Test texts next to the texts that attacks recovered, for people to look at."),
    "examples.csv": Table("The same for invented texts: `publish` copies this file."),
    "neighbours.csv": Table(
        "One row for each dataset and defended victim: the share of neighbours that it keeps of the undefended victim "
        "above it in the suite."
    ),
    "projections.csv": Table("One row for each drawn text of the victims that the suite lists in `projected`."),
    "console: victims": Table("The lines of victims in a terminal."),
    "console: attacks": Table("The lines of attacks in a terminal."),
    "console: datasets": Table(
        "The privacy that guessers without the vectors leave, for secrets that text classifiers guess, in a terminal.",
        ("secrets",),
    ),
    "console: claims": Table("The three epsilons of one release, in a terminal.", ("victim",)),
    "report": Table(
        "The table of a report in a notebook, and of the command `evaluate`.",
        ("dataset", "victim", "attack", "secret"),
        ("task_accuracy", "epsilon_claimed", "epsilon_proved", "epsilon_audited", "verdict", "status"),
    ),
    "report: differences": Table(
        "What releases of the same vectors give away, compared with the first release.",
        ("secret", "release", "first_advantage", "attack_advantage", "difference", "gives_away"),
    ),
    "report: utility": Table(
        "What releases of the same vectors are good for.",
        ("release", "neighbours_kept", "task_accuracy", "task_majority"),
    ),
    "page: victims": Table(
        "The victims of a board, each with its strongest attack.",
        ("rank", "victim"),
        ("seeds", "provenance", "seconds"),
        ("Privacy", "Use", "Three epsilons", "Attacker", "Fairness", "Cost"),
        in_sight=("rank", "victim", "empirical_privacy", "task_accuracy", "verdict", "attack", "needs"),
        on_wide=("empirical_privacy_new", "epsilon_claimed", "epsilon_proved", "epsilon_audited"),
    ),
    "page: searched victims": Table(
        "The victims of a board that weighs search against privacy.",
        of="page: victims",
        in_sight=("rank", "victim", "empirical_privacy", "linked_first", "retrieval_recall@10", "verdict", "attack"),
        on_wide=("needs",),
    ),
    "page: audited victims": Table(
        "The victims of a board that only audits attacked.",
        of="page: victims",
        in_sight=("victim", "epsilon_claimed", "epsilon_proved", "epsilon_audited", "verdict", "plug_in_loss", "needs"),
    ),
    "README": Table("The victims of a board.", of="page: victims", without=("provenance", "seconds", "needs")),
    "page: claims": Table("The three epsilons of a victim.", groups=("Three epsilons",)),
    "page: attacks": Table(
        "Every attack on a victim.",
        ("attack", "secrets"),
        ("seeds", "status"),
        in_sight=("attack", "secrets", "attack_metric", "attack_score", "empirical_privacy", "needs"),
        on_wide=("attack_advantage", "privacy_best_constant"),
    ),
    "page: encoders": Table(
        "An encoder without a defence, or a defence of it, on a board.",
        ("victim", "encoder", "empirical_privacy", "attack_advantage", "task_accuracy", "attack", "board"),
    ),
    "page: everywhere": Table(
        "An attack on every victim.",
        ("victim", "empirical_privacy", "attack_score", "attack_metric", "secrets", "dataset", "board"),
        ("status",),
        in_sight=("victim", "empirical_privacy", "attack_score", "attack_metric", "secrets", "dataset", "board"),
    ),
    "page: secrets": Table("Every secret of a victim, by each attack.", ("secret", "attack"), ("status",)),
    "page: measures": Table("Other measures of a victim.", last=("attack",)),
    "page: groups": Table("The groups of a victim's secrets."),
    "page: costs": Table("Time and memory of the stages of a victim.", ("stage",)),
    "page: comparison": Table(
        "Published numbers next to ours.",
        ("victim",),
        ("attack", "dataset", "board"),
        in_sight=("victim", "metric", "variable", "ours", "theirs", "difference", "attack", "board"),
        on_wide=("group", "dataset"),
    ),
    "page: claimed": Table(
        "An audited mechanism of a paper on a board, with its worst verdict.",
        ("victim", "source", "board", "settings", "verdict", "epsilon_claimed", "epsilon_audited", "epsilon_proved"),
    ),
    "page: examples": Table("Invented texts next to what attacks read.", ("victim", "attack")),
    "page: published": Table("Published numbers next to those of a victim.", ("source",), ("attack", "dataset")),
    "page: attack list": Table("The attacks of all boards.", ("attack",)),
    "page: reported": Table(
        "Rows of submissions that the project did not compute again.", ("submission",), last=("status",)
    ),
    "page: paper list": Table("The papers whose numbers are in comparisons."),
}
"""Files and tables of pages by name."""
