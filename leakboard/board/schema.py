"""Declare every column once, for tables, console, report, pages, README files, gates and the reference.

A new column is one entry of `COLUMNS`, or of the ``columns`` of a threat; a new metric is one entry of
`leakboard.metrics.entries`. `leakboard.board.table_layouts` names the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from leakboard.board.table_layouts import TABLES
from leakboard.column import HIGHER, LOWER, Column
from leakboard.errors import RequestError
from leakboard.metrics.audits import VERDICT_CONFIDENCE
from leakboard.metrics.entries import METRICS
from leakboard.threats.threat import threat_named

if TYPE_CHECKING:
    from leakboard.suite.cells import Cell

Row = dict[str, Any]
"""A row of a table: values by the names of columns."""

SINCE_0_2 = "0.2.0"
"""The first version with columns that records of 0.1.0 may lack."""
SINCE_0_3 = "0.3.0.dev1"
"""The first version with columns that records of 0.2.0 may lack."""

_FILES = (
    *("leaderboard.csv", "best_known.csv", "skipped.csv", "fairness.csv", "comparison.csv", "costs.csv", "cells.csv"),
    *("sentences.csv", "examples.csv", "neighbours.csv", "projections.csv"),
)
_READ = ("sentences.csv", "examples.csv")
_OF_CELLS = ("cells.csv", "costs.csv", *_READ)
_SCORES = ("leaderboard.csv", "best_known.csv", "report")
_ATTACK_PAGES = ("page: attacks", "page: everywhere")
NEW_TEXTS = (
    "privacy over the test texts without a verbatim copy in train or dev, from the same attack; "
    "do not compare it with the best constant guess over all test texts"
)
EPSILONS = ("console: claims", "page: claims", "page: claimed", "page: victims")


def _ends(metric: str, **fields: str) -> tuple[Column, Column]:
    """Return the columns of the lower and the upper end of a metric's interval."""
    low, high = (
        Column(
            f"{metric}_{part}",
            f"{side} end of the 95 % interval of `{metric}`, over test texts and seeds.",
            ("leaderboard.csv", "best_known.csv"),
            kind="number",
            metric=metric,
            part=part,
            per_secret=True,
            gate="attack",
            **fields,
        )
        for part, side in (("low", "Lower"), ("high", "Upper"))
    )
    return low, high


def _of_gap(stem: str) -> tuple[Column, ...]:
    """Return the columns of the interval of a widest gap between groups, and of the number of its texts."""
    gap, files = f"{stem}_gap", ("leaderboard.csv",)
    low = "the gap that is shown, 0 if the interval of no pair of groups excludes 0"
    return (
        Column(
            f"{gap}_low",
            f"Lower end of the 95 % interval of `{gap}` over all pairs of groups: {low}.",
            files,
            kind="gap",
            gate="victim",
            since=SINCE_0_2,
        ),
        Column(
            f"{gap}_high",
            f"Upper end of the 95 % interval of `{gap}` over all pairs of groups.",
            files,
            kind="gap",
            gate="victim",
            since=SINCE_0_2,
        ),
        Column(
            f"{stem}_n",
            f"Number of test texts in the groups that `{gap}` compares.",
            files,
            kind="whole",
            since=SINCE_0_2,
        ),
    )


COLUMNS: tuple[Column, ...] = (
    Column(
        "dataset",
        "Name of the dataset's entry in the suite.",
        (
            *_FILES,
            "report",
            "page: claims",
            "page: everywhere",
            "page: reported",
            "page: comparison",
            "page: published",
        ),
    ),
    Column(
        "victim",
        "Name of the victim's entry in the suite. A victim makes and publishes the vectors.",
        (
            *_FILES,
            "report",
            "page: encoders",
            "console: claims",
            "page: victims",
            "page: everywhere",
            "page: reported",
            "page: comparison",
            "page: examples",
            "page: claimed",
        ),
        kind="name",
    ),
    Column(
        "attack",
        "Name of the attack's entry in the suite.",
        ("leaderboard.csv", "skipped.csv", *_OF_CELLS, "report", "page: attacks", "page: examples"),
        kind="name",
    ),
    Column(
        "attack",
        "Name of the attack's entry in the suite.",
        ("comparison.csv", "page: secrets", "page: costs", "page: reported", "page: comparison", "page: published"),
    ),
    Column(
        "attack",
        "The strongest attack on the secret; the row has its scores.",
        ("best_known.csv", "page: victims", "page: encoders"),
        title="strongest attack",
        group="Attacker",
        note="the strongest of the attacks that were tried; another attack may be stronger",
    ),
    Column(
        "attacks",
        "Number of attacks on this secret with equally many releases of each text; the strongest was chosen from them.",
        ("best_known.csv", "page: victims"),
        title="attacks tried",
        kind="count",
        group="Attacker",
        note="number of attacks that met the victim; a portfolio of attackers counts as one",
    ),
    Column(
        "chosen_on",
        "Where the strongest attack was chosen: `dev` if all attacks have a score on their own dev texts, else `test`.",
        ("best_known.csv",),
    ),
    Column("seed", "Seed of the run.", (*_OF_CELLS, "projections.csv")),
    Column(
        "secrets",
        "The secrets that the row is about, separated by semicolons.",
        ("leaderboard.csv", "best_known.csv", "console: datasets", *_ATTACK_PAGES, "page: reported"),
    ),
    Column(
        "seeds",
        "How many runs with different seeds the row averages over.",
        ("leaderboard.csv", "page: victims", "page: attacks"),
        kind="whole",
        note="runs that the row averages over; the interval of one run does not show how another training would differ",
    ),
    Column(
        "test_size",
        "Number of test texts, words, candidates or draws that were scored.",
        ("leaderboard.csv",),
        kind="whole",
    ),
    Column(
        "task_accuracy",
        "Task accuracy of a classifier on the published vectors; higher is better.",
        ("leaderboard.csv", "report", "console: victims", "page: victims", "page: reported", "page: encoders"),
        title="task accuracy",
        kind="interval",
        group="Use",
        better=HIGHER,
        note="of a classifier on the vectors; pages show its 95 % interval over texts",
        metric="task_accuracy",
        gate="victim",
    ),
    Column(
        "retrained_accuracy",
        "Task accuracy of a logistic regression that is trained on the published vectors; `task_accuracy` is that of "
        "the victim's own classifier, if it has one.",
        ("leaderboard.csv", "page: victims"),
        title="task accuracy, retrained",
        kind="number",
        group="Use",
        better=HIGHER,
        note="of a logistic regression that is trained on the published vectors",
        metric="retrained_accuracy",
        gate="victim",
        since=SINCE_0_2,
    ),
    Column(
        "retrieval_recall@10",
        "Share of test texts among the ten nearest to a query: the published vector of half of the text's words.",
        ("leaderboard.csv", "page: victims"),
        title="recall@10 of search",
        kind="number",
        group="Use",
        better=HIGHER,
        note="share of test texts among the ten nearest to the published vector of half of their words",
        metric="retrieval_recall@10",
        gate="victim",
        since=SINCE_0_2,
    ),
    Column(
        "task_majority",
        "Task accuracy of guessing the most frequent label for every text.",
        ("leaderboard.csv",),
        kind="number",
        metric="task_majority",
    ),
    Column(
        "attack_metric",
        "The metric of `attack_score`: `accuracy`, `f1`, `recall@5`, `token_f1`, `auc`; for an audit `epsilon`.",
        (*_SCORES, *_ATTACK_PAGES),
        title="score is",
        kind="metric",
    ),
    Column(
        "attack_score",
        "Score of the attack, or for an audit a lower bound on epsilon; lower is better for the victim.",
        (*_SCORES, *_ATTACK_PAGES, "console: attacks", "page: reported"),
        title="attack score",
        kind="score",
        better="lower is better for the victim",
        note="score of the attack, in its own metric",
        metric="attack_score",
        gate="attack",
    ),
    Column(
        "attack_advantage",
        "What the attack gains over the best constant guess, from 0 (nothing) to 1 (all there is to gain). It does not "
        "depend on how rare a secret is. Empty for audits, and on boards older than this column.",
        (*_SCORES, *_ATTACK_PAGES, "console: attacks", "page: victims", "page: reported", "page: encoders"),
        title="advantage",
        kind="interval",
        group="Privacy",
        better=LOWER,
        note="what the attack gains over the best constant guess, of all there is to gain; with its 95 % interval",
        metric="attack_advantage",
        per_secret=True,
        gate="attack",
        since=SINCE_0_2,
    ),
    *_ends("attack_advantage", since=SINCE_0_2),
    Column(
        "attack_advantage_p",
        "Probability of such an advantage if the attack knows nothing. With several seeds: twice the mean of the "
        "seeds' p-values, which is a valid p-value.",
        ("leaderboard.csv", "best_known.csv"),
        kind="number",
        metric="attack_advantage_p",
        part="p",
        per_secret=True,
        since=SINCE_0_2,
    ),
    Column(
        "empirical_privacy",
        "1 - the score of the attack, or of the best constant guess if that is higher; higher is better.",
        (*_SCORES, *_ATTACK_PAGES, "console: attacks", "page: victims", "page: reported", "page: encoders"),
        title="privacy",
        kind="interval",
        group="Privacy",
        better=HIGHER,
        note="1 - the score of the attack, or of the best constant guess if that is higher; with its 95 % interval",
        metric="empirical_privacy",
        per_secret=True,
        gate="attack",
    ),
    *_ends("empirical_privacy"),
    Column(
        "privacy_best_constant",
        "Privacy that the best constant guess leaves: no defence can reach more.",
        ("leaderboard.csv", "best_known.csv", *_ATTACK_PAGES, "console: attacks", "console: datasets", "page: victims"),
        title="best constant",
        kind="baseline",
        group="Attacker",
        better=HIGHER,
        note="privacy that the best constant guess leaves",
        metric="privacy_best_constant",
        per_secret=True,
    ),
    Column(
        "privacy_text_classifier",
        "Privacy that classifiers trained on the texts themselves leave; it is no bound.",
        (*_SCORES, "console: datasets", "page: attacks", "page: victims"),
        title="on the text",
        kind="baseline",
        group="Attacker",
        better=HIGHER,
        note="privacy that a classifier on the text itself leaves",
        metric="privacy_text_classifier",
        per_secret=True,
    ),
    Column(
        "privacy_bayes",
        "Privacy that the best possible attacker on the texts leaves; known only for generated data.",
        ("leaderboard.csv", "best_known.csv", "console: datasets", "page: victims"),
        title="best possible",
        kind="baseline",
        group="Attacker",
        better=HIGHER,
        note="privacy that the best possible attacker on the text leaves",
        metric="privacy_bayes",
        per_secret=True,
    ),
    Column(
        "fairness_gap",
        "Widest difference of task accuracy between two groups of a secret; nearer to 0 is better.",
        ("leaderboard.csv", "console: victims", "page: victims"),
        title="fairness gap",
        kind="gap",
        group="Fairness",
        better=LOWER,
        note="widest difference of task accuracy between two groups of a secret, with the name of that secret; "
        "after ≥ its least value at 95 % confidence",
        gate="victim",
    ),
    Column(
        "fairness_variable",
        "The secret whose groups differ most in task accuracy: its interval has the largest lower end.",
        ("leaderboard.csv",),
    ),
    *_of_gap("fairness"),
    Column(
        "tpr_gap",
        "Widest difference of true positive rates between two groups of a secret, over the classes of the task. A "
        "constant guess has none, whatever classes the groups have.",
        ("leaderboard.csv", "page: victims"),
        title="gap within classes",
        kind="gap",
        group="Fairness",
        better=LOWER,
        note="fairness gap among texts of one class of the task; a constant guess has none",
        gate="victim",
        since=SINCE_0_2,
    ),
    Column(
        "tpr_variable",
        "The secret of `tpr_gap`.",
        ("leaderboard.csv",),
        since=SINCE_0_2,
    ),
    *_of_gap("tpr"),
    Column(
        "epsilon_claimed",
        "Epsilon that the victim's author states; empty if nothing is claimed.",
        ("leaderboard.csv", "report", *EPSILONS),
        title="claimed",
        kind="claim",
        group="Three epsilons",
        note="epsilon that the author or the paper states, true or not",
        gate="release",
    ),
    Column(
        "epsilon_proved",
        "Epsilon that is proved for the code; `inf` if none can be proved.",
        ("leaderboard.csv", "report", *EPSILONS),
        title="proved",
        kind="epsilon",
        group="Three epsilons",
        better=LOWER,
        note="epsilon that is proved for the code",
        gate="release",
    ),
    Column(
        "epsilon_audited",
        "Lower bound on epsilon at 95 % confidence, from all audits of the victim together. If it replaces words "
        "by a known law, the bound is computed, without an error; `inf` if an output excludes an input.",
        ("leaderboard.csv", "report", *EPSILONS),
        title="audited",
        kind="bound",
        group="Three epsilons",
        better=LOWER,
        note="lower bound on epsilon at 95 % confidence, from audits; computed without an error for sanitisers",
        gate="victim",
    ),
    Column("delta", "The delta of the three epsilons.", ("leaderboard.csv", "console: claims"), kind="delta"),
    Column(
        "privacy_unit",
        "The unit in which two neighbouring inputs differ: a word, a document, a user, ...; or the unit of distance "
        "that epsilon is for.",
        ("leaderboard.csv", "console: claims"),
    ),
    Column(
        "verdict",
        "`violated`: the audited epsilon exceeds the claimed one; `unproven`: the proved epsilon exceeds the claimed "
        "one, or the audited one exceeds the proved one; else `holds`, or `holds, not audited`. The audited bounds "
        f"have {VERDICT_CONFIDENCE}.",
        ("leaderboard.csv", "report", *EPSILONS),
        kind="verdict",
        group="Three epsilons",
        note=f"violated: the audited epsilon is larger than the claimed one, at {VERDICT_CONFIDENCE}; "
        "unproven: the proved epsilon is larger than the claimed one, or the audited one larger than the proved one; "
        "else holds, or without an audit: holds, not audited; computed without an error for sanitisers",
    ),
    Column(
        "plug_in_loss",
        "The point estimate of the privacy loss of Habernal (2022); it is no bound.",
        ("page: victims",),
        title="plug-in loss",
        kind="number",
        group="Three epsilons",
        better=LOWER,
        note="a point estimate of the privacy loss (Habernal 2022); it is no bound",
        metric="plug_in_loss",
    ),
    Column(
        "status",
        "`ok`, or a warning about the row.",
        ("leaderboard.csv", "best_known.csv", "report", *_ATTACK_PAGES, "page: secrets", "page: reported"),
        title="remarks",
    ),
    Column(
        "privacy_label",
        "Privacy that a guess from the task label alone leaves.",
        ("leaderboard.csv", "console: datasets"),
        kind="number",
        better=HIGHER,
        note="privacy that a guess from the task label alone leaves",
        metric="privacy_label",
        per_secret=True,
    ),
    Column(
        "task_accuracy_sd",
        "Standard deviation of `task_accuracy` over seeds; empty with one seed.",
        ("leaderboard.csv",),
        kind="number",
        metric="task_accuracy",
        part="sd",
    ),
    Column(
        "empirical_privacy_sd",
        "Standard deviation of `empirical_privacy` over seeds; empty with one seed.",
        ("leaderboard.csv",),
        kind="number",
        metric="empirical_privacy",
        part="sd",
        per_secret=True,
    ),
    Column(
        "test_copies",
        "Share of the test texts that occur verbatim in train.",
        ("leaderboard.csv",),
        kind="number",
    ),
    Column(
        "observations",
        "How many releases of each text the attack sees; the row's claim is for this number of releases.",
        ("leaderboard.csv", "best_known.csv"),
        kind="whole",
    ),
    Column(
        "secret",
        "The one secret that the row is about; empty in the row about all secrets.",
        ("leaderboard.csv", "best_known.csv", "report"),
    ),
    Column(
        "dataset_options",
        "The dataset's plugin with all options that differ from their defaults or are always named.",
        ("leaderboard.csv",),
    ),
    Column(
        "victim_options",
        "The victim's plugin with all options that differ from their defaults or are always named.",
        ("leaderboard.csv",),
    ),
    Column(
        "attack_options",
        "The attack's plugin with all options that differ from their defaults or are always named.",
        ("leaderboard.csv",),
    ),
    Column(
        "attack_score_new",
        "`attack_score` over the test texts that occur in no other split. Empty in three cases: all or none of these "
        "texts occur there; the threat is about neither secrets nor words of texts; the board is older than this "
        "column.",
        ("leaderboard.csv", "best_known.csv"),
        kind="number",
        metric="attack_score_new",
        per_secret=True,
        since=SINCE_0_2,
    ),
    Column(
        "empirical_privacy_new",
        "`empirical_privacy` over the test texts of `attack_score_new`: no attacker can look these texts up.",
        ("leaderboard.csv", "best_known.csv", "page: attacks", "page: victims"),
        title="on new texts",
        kind="number",
        group="Privacy",
        better=HIGHER,
        note=NEW_TEXTS,
        metric="empirical_privacy_new",
        per_secret=True,
        since=SINCE_0_2,
    ),
    Column(
        "attack_score_dev",
        "`attack_score` on the attacker's own dev texts, if the attack gives it. If all attacks give it, it chooses "
        "the strongest.",
        ("leaderboard.csv",),
        kind="number",
        metric="attack_score_dev",
        per_secret=True,
        since=SINCE_0_2,
    ),
    Column(
        "attack_advantage_dev",
        "`attack_advantage` on the attacker's own dev texts, if the attack gives it.",
        ("leaderboard.csv",),
        kind="number",
        metric="attack_advantage_dev",
        per_secret=True,
        since=SINCE_0_2,
    ),
    Column(
        "attack_auc",
        "Area under the ROC curve; 0.5 is chance. For several secrets or values it is the mean.",
        ("leaderboard.csv", "best_known.csv", "page: attacks"),
        title="area under the curve",
        kind="number",
        better="0.5 is chance",
        metric="attack_auc",
        per_secret=True,
        gate="attack",
        since=SINCE_0_2,
    ),
    Column(
        "exposed_value",
        "The value of the secret with the largest lift (`exposed_lift`).",
        ("leaderboard.csv", "best_known.csv", "page: attacks"),
        title="most exposed value",
        since=SINCE_0_2,
    ),
    Column(
        "exposed_found",
        "Share of the texts with `exposed_value` that are found if 1 % of the others are taken for them.",
        ("leaderboard.csv", "best_known.csv", "page: attacks"),
        title="found at 1 % false alarms",
        kind="number",
        better=LOWER,
        note="share of the texts with the most exposed value that are found if 1 % of the others are taken for them",
        gate="attack",
        since=SINCE_0_2,
    ),
    Column(
        "exposed_lift",
        "How many times as frequent `exposed_value` is among the 1 % most suspected texts (at least ten).",
        ("leaderboard.csv", "best_known.csv", "page: attacks"),
        title="lift",
        kind="number",
        better=LOWER,
        note="how many times as frequent the most exposed value is among the 1 % most suspected texts (at least ten)",
        gate="attack",
        since=SINCE_0_2,
    ),
    Column(
        "own_texts",
        "Number of distinct texts of the attacker's own; 0 if it learns from known pairs alone.",
        ("leaderboard.csv", "best_known.csv", "page: attacks"),
        title="own texts",
        kind="whole",
        group="Attacker",
        note="distinct texts of the attacker's own",
        metric="own_texts",
        since=SINCE_0_2,
    ),
    Column(
        "known_pairs",
        "Number of texts whose published vectors the attacker is given, with the texts and their secrets.",
        ("leaderboard.csv", "best_known.csv", "page: attacks"),
        title="known pairs",
        kind="whole",
        group="Attacker",
        note="texts whose published vectors the attacker is given, with the texts and their secrets",
        metric="known_pairs",
        since=SINCE_0_2,
    ),
    Column(
        "queries",
        "Number of texts that the attacker sends to the victim's encoder.",
        ("leaderboard.csv", "best_known.csv", "page: attacks"),
        title="queries",
        kind="whole",
        group="Attacker",
        note="texts that the attacker sends to the victim's encoder",
        metric="queries",
        since=SINCE_0_2,
    ),
    # victims on pages
    Column(
        "rank",
        "Rank of the victim by privacy; empty if it is useless for the task, or met weaker attacks only.",
        ("page: victims",),
        kind="rank",
        note="by privacy; victims whose intervals overlap share a range of ranks, such as 2 to 4. Victims that are "
        "useless for the task (accuracy not above that of a constant guess), or met weaker attacks only, have none",
    ),
    Column(
        "needs",
        "What the attacker had: known pairs, own texts, queries, publications of a text, and time.",
        ("page: victims", "page: attacks"),
        title="attacker had",
        group="Attacker",
        note="what the attacker had: known pairs, own texts, queries to the encoder, publications of a "
        "text, and time for one seed",
    ),
    Column(
        "provenance",
        "Who computed the row.",
        ("page: victims",),
        title="source",
        kind="mark",
        note="project: computed by the project; submission: sent to the project, and computed again by it",
    ),
    Column(
        "seconds",
        "Seconds to fit and to publish, mean over seeds.",
        ("page: victims",),
        kind="seconds",
        group="Cost",
        better=LOWER,
        note="time to fit and to publish, mean over seeds, on the machine of the run",
    ),
    Column("encoder", "The encoder, without a defence or behind it.", ("page: encoders",)),
    Column(
        "board",
        "The board that has the row.",
        ("page: everywhere", "page: comparison", "page: encoders", "page: claimed"),
    ),
    Column(
        "settings",
        "How many of the audited settings have this verdict, the first with these epsilons.",
        ("page: claimed",),
    ),
    Column("source", "The paper of the mechanism.", ("page: claimed",), title="paper"),
    Column("submission", "The submission that has the row.", ("page: reported",), kind="name"),
    Column("attack", "The attack.", ("page: attack list",), kind="name"),
    Column("summary", "What the attack does.", ("page: attack list",), title="what it does"),
    Column("boards", "The boards with its results.", ("page: attack list",)),
    Column("victims", "How many victims the attack was tried on.", ("page: attack list",), kind="whole"),
    # skipped.csv
    Column("reason", "Why this attack does not apply to this victim or dataset.", ("skipped.csv",)),
    # fairness.csv
    Column(
        "variable",
        "The secret whose values make the groups.",
        ("fairness.csv", "page: groups"),
        title="secret",
    ),
    Column("group", "The value of the secret that the texts of this group have.", ("fairness.csv", "page: groups")),
    Column("n", "Number of test texts of the group.", ("fairness.csv",), kind="whole"),
    Column(
        "share", "Share of the test texts that belong to the group.", ("fairness.csv", "page: groups"), kind="share"
    ),
    Column(
        "task_accuracy",
        "Accuracy on the task within the group; higher is better.",
        ("fairness.csv", "page: groups"),
        kind="interval",
        better=HIGHER,
    ),
    Column("task_accuracy_low", "Lower end of the 95 % interval of `task_accuracy`.", ("fairness.csv",), kind="number"),
    Column(
        "task_accuracy_high", "Upper end of the 95 % interval of `task_accuracy`.", ("fairness.csv",), kind="number"
    ),
    Column(
        "gap",
        "Task accuracy of the group minus that of the first group that has test texts.",
        ("fairness.csv", "page: groups"),
        title="gap to the first group",
        kind="interval",
        better="nearer to 0 is better",
    ),
    Column("gap_low", "Lower end of the gap's 95 % interval.", ("fairness.csv",), kind="number"),
    Column("gap_high", "Upper end of the gap's 95 % interval.", ("fairness.csv",), kind="number"),
    Column(
        "p_value",
        "P-value of Fisher's exact test of right and wrong answers against the first group. With several seeds: twice "
        "the mean of the seeds' p-values, which is a valid p-value.",
        ("fairness.csv", "page: groups"),
        title="p-value",
        kind="number",
    ),
    Column(
        "tpr_gap",
        "Widest difference of true positive rates between groups of the secret, over the classes of the task.",
        ("fairness.csv",),
        kind="number",
    ),
    Column(
        "attack_accuracy",
        "Accuracy, within this group, of the attack that guesses the group best.",
        ("fairness.csv", "page: groups"),
        title="strongest attack's accuracy",
        kind="number",
        better=LOWER,
    ),
    Column("attack", "The attack that guesses the group best.", ("fairness.csv",)),
    # cells.csv and comparison.csv
    Column("metric", "Name of the metric.", ("cells.csv",)),
    Column(
        "metric",
        "Name of the metric.",
        ("comparison.csv", "page: comparison", "page: published"),
        kind="metric",
    ),
    Column(
        "variable",
        "The secret that the row is about; empty for all secrets together.",
        ("cells.csv", "comparison.csv", "page: comparison", "page: published"),
        title="secret",
    ),
    Column(
        "group",
        "The value of the secret that the row is about; empty for all texts.",
        ("cells.csv", "comparison.csv", "page: comparison", "page: published"),
    ),
    Column("value", "The measured value; empty if there is none.", ("cells.csv",), kind="number"),
    Column("low", "Lower end of the 95 % interval of `value`, if it has one.", ("cells.csv",), kind="number"),
    Column("high", "Upper end of the 95 % interval of `value`, if it has one.", ("cells.csv",), kind="number"),
    Column(
        "n",
        "Number of texts, words, candidates or releases that the value rests on.",
        ("cells.csv",),
        kind="whole",
    ),
    Column(
        "status",
        "Why there is no value or no interval, or why not to rely on it; empty when all is well.",
        ("cells.csv",),
    ),
    Column(
        "details",
        "How the attack answered: the model that it chose, or the event that an audit found.",
        ("cells.csv",),
    ),
    # costs.csv
    Column("stage", "`fit`, `publish` or `attack`.", ("costs.csv", "page: costs")),
    Column(
        "seconds",
        "Wall-clock seconds of the stage in that run.",
        ("costs.csv", "page: costs"),
        kind="seconds",
        better=LOWER,
    ),
    Column(
        "peak_memory_mib",
        "Largest memory of the process during the stage (MiB).",
        ("costs.csv", "page: costs"),
        title="peak memory, MiB",
        kind="whole",
        better=LOWER,
    ),
    Column("device", "Processor of the stage: `cpu`, or a GPU.", ("costs.csv", "page: costs")),
    Column("threads", "Number of threads of the stage.", ("costs.csv",), kind="whole"),
    # comparison.csv
    Column(
        "source",
        "The paper, and the table or figure of it, that published the number.",
        ("comparison.csv", "page: published"),
        title="published in",
        kind="name",
    ),
    Column("seeds", "How many runs our number averages over.", ("comparison.csv",), kind="whole"),
    Column(
        "ours",
        "Our number; empty if nothing was measured.",
        ("comparison.csv", "page: comparison", "page: published"),
        kind="interval",
    ),
    Column("ours_low", "Lower end of our 95 % interval.", ("comparison.csv",), kind="number"),
    Column("ours_high", "Upper end of our 95 % interval.", ("comparison.csv",), kind="number"),
    Column(
        "theirs",
        "The published number.",
        ("comparison.csv", "page: comparison", "page: published"),
        kind="number",
    ),
    Column(
        "difference",
        "Ours minus theirs.",
        ("comparison.csv", "page: comparison", "page: published"),
        kind="signed",
    ),
    Column(
        "standard_errors",
        "The difference divided by our standard error.",
        ("comparison.csv", "page: comparison", "page: published"),
        title="in standard errors",
        kind="errors",
    ),
    # releases of the same rows
    Column(
        "release",
        "Name of the release: a file of vectors, or a protection of it.",
        ("report: differences", "report: utility"),
        kind="name",
        since=SINCE_0_2,
    ),
    Column("secret", "What the attack guesses.", ("report: differences",), title="what is guessed", since=SINCE_0_2),
    Column(
        "first_advantage",
        "What the strongest attack gains from the first release; the intervals of a table hold together in 95 %.",
        ("report: differences",),
        title="gain before",
        kind="interval",
        since=SINCE_0_2,
    ),
    Column(
        "attack_advantage",
        "What the strongest attack gains from the release.",
        ("report: differences",),
        title="gain after",
        kind="interval",
        since=SINCE_0_2,
    ),
    Column(
        "difference",
        "The gain after minus the gain before, with a paired interval: both attacks guess the same texts.",
        ("report: differences",),
        kind="interval",
        since=SINCE_0_2,
    ),
    Column(
        "gives_away",
        "Whether the release gives away less or more than the first one, or no difference is shown; or why they are "
        "not compared.",
        ("report: differences",),
        title="gives away",
        since=SINCE_0_2,
    ),
    Column(
        "neighbours_kept",
        "Share of the ten nearest vectors of train, by cosine, that are the same as in the first release; over vectors "
        "of test.",
        ("report: utility",),
        title="neighbours kept",
        kind="interval",
        better=HIGHER,
        since=SINCE_0_2,
    ),
    Column(
        "neighbours_kept",
        "Share of the ten nearest vectors of train, by cosine, that are the same as those of the undefended victim; "
        "over vectors of test.",
        ("neighbours.csv", "page: victims"),
        title="neighbours kept",
        kind="interval",
        group="Use",
        better=HIGHER,
        note="share of the ten nearest texts of train that stay the ten nearest under the defence; first seed",
        since=SINCE_0_3,
    ),
    *(
        Column(
            f"neighbours_kept_{end}",
            f"{side} end of the 95 % interval of `neighbours_kept`, over test texts.",
            ("neighbours.csv",),
            kind="number",
            since=SINCE_0_3,
        )
        for end, side in (("low", "Lower"), ("high", "Upper"))
    ),
    Column("undefended", "The victim without a defence.", ("neighbours.csv",), since=SINCE_0_3),
    Column(
        "task_accuracy",
        "Task accuracy of a classifier on the vectors.",
        ("report: utility",),
        kind="interval",
        better=HIGHER,
        since=SINCE_0_2,
    ),
    Column(
        "task_majority",
        "Task accuracy of always guessing the most frequent label.",
        ("report: utility",),
        title="constant guess",
        kind="number",
        since=SINCE_0_2,
    ),
    # projections.csv
    Column(
        "secret",
        "The most balanced secret of the dataset; `value` is the value of this secret.",
        ("projections.csv",),
    ),
    Column("value", "The text's value of the secret.", ("projections.csv",)),
    Column("x", "First coordinate of the text's vector on the map (t-SNE).", ("projections.csv",), kind="number"),
    Column("y", "Second coordinate of the text's vector on the map (t-SNE).", ("projections.csv",), kind="number"),
    # sentences.csv, examples.csv
    Column("text", "A test text.", (*_READ, "page: examples")),
    Column("recovered", "The text that the attack read from its vectors.", (*_READ, "page: examples")),
    Column("words_right", "Number of words of the text that were recovered.", _READ, kind="whole"),
    Column("words", "Number of words of the text.", _READ, kind="whole"),
    Column(
        "similarity",
        "Mean cosine of the vectors and the attack's first candidates; empty for threats that do not measure it.",
        _READ,
        kind="number",
    ),
    Column(
        "similarities",
        "Cosine of the vector and the attack's first candidate, for each word of the text. A word without a vector or "
        "candidate, or that the attacker asked for, is an underscore. Zouhri and Abecidan (2021) call it confidence.",
        ("sentences.csv",),
        since=SINCE_0_3,
    ),
    # secrets and measures of a victim's page
    Column("secret", "A secret.", ("page: secrets",), kind="name"),
    Column(
        "attack_accuracy",
        "Share of the test texts whose secret is guessed right.",
        ("page: secrets",),
        title="attack accuracy",
        kind="interval",
        better="lower is better for the victim",
        metric="attack_accuracy",
    ),
    Column(
        "attack_balanced_accuracy",
        "Balanced accuracy: the recall of each value of the secret, averaged over the values.",
        ("page: secrets",),
        title="balanced",
        kind="number",
        better=LOWER,
        metric="attack_balanced_accuracy",
    ),
    Column(
        "attack_f1",
        "F1 of finding the texts that mention an entity.",
        ("page: secrets",),
        title="F1",
        kind="number",
        better=LOWER,
        metric="attack_f1",
    ),
    Column(
        "attack_auc",
        "Area under the ROC curve.",
        ("page: secrets",),
        title="area under the curve",
        kind="number",
        better="0.5 is chance",
        metric="attack_auc",
    ),
    Column("metric", "The metric.", ("page: measures",), title="measure", kind="name"),
    Column("value", "The measured value.", ("page: measures",), kind="interval"),
    Column(
        "attack",
        "The attacks that the measure belongs to.",
        ("page: measures",),
        title="of the attack",
        note="empty: the measure belongs to the victim, and no attack changes it",
    ),
    # papers
    Column("paper", "The paper.", ("page: paper list",), title="published in", kind="name"),
    Column("numbers", "How many numbers are compared.", ("page: paper list",), title="comparisons", kind="whole"),
    Column(
        "measured",
        "How many of these numbers we measured.",
        ("page: paper list",),
        title="measured by us",
        kind="whole",
    ),
)
"""Every column, in the order of ``leaderboard.csv``; a name occurs once in a table."""


def columns(table: str, threats: Iterable[str] = ()) -> list[Column]:
    """Return the columns of a table, in order.

    Args:
        table: a name of `TABLES`.
        threats: names of the threats whose own columns the table has, too.
    """
    if of := TABLES[table].of:
        return [column for column in columns(of, threats) if column.name not in TABLES[table].without]
    added = [column for name in dict.fromkeys(threats) for column in _columns_of_threat(name)]
    known = {column.name: column for column in (*COLUMNS, *added) if table in column.tables}
    layout = TABLES[table]
    groups = ("", *layout.groups)
    middle = [name for name in known if name not in (*layout.first, *layout.last)]
    if layout.groups:
        middle.sort(key=lambda name: groups.index(known[name].group) if known[name].group in groups else len(groups))
    order = (*layout.first, *middle, *layout.last)
    return [known[name] for name in order if name in known]


def _columns_of_threat(name: str) -> tuple[Column, ...]:
    """Return the columns that a threat adds.

    Raises:
        RequestError: the schema has a column of the same name.
    """
    added = threat_named(name).columns
    if taken := [column.name for column in added if any(known.name == column.name for known in COLUMNS)]:
        raise RequestError(f"threat {name!r}: column {taken[0]!r}: LeakBoard has a column of this name; choose another")
    return added


def require_new_names(cells: Iterable[Cell]) -> None:
    """Refuse, before cells are computed, a threat whose column has the name of one of LeakBoard's columns.

    Raises:
        RequestError: the schema has a column of the same name.
    """
    attacks = (cell.attack.plugin for cell in cells)
    for name in {attack.threat.name for attack in attacks if attack is not None}:
        _columns_of_threat(name)


def mean_columns(table: str, threats: Iterable[str] = (), secret: bool = False) -> list[Column]:
    """Return the columns of a table that are means of a metric; with ``secret``, only those of one secret's row."""
    return [column for column in columns(table, threats) if column.metric and (column.per_secret or not secret)]


def column_names(table: str, threats: Iterable[str] = ()) -> list[str]:
    """Return the names of a table's columns, in order."""
    return [column.name for column in columns(table, threats)]


def threats_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the threats of rows, each once."""
    return list(dict.fromkeys(str(row["threat"]) for row in rows if row.get("threat")))


def metric_title(name: str, threats: Iterable[str] = ()) -> str:
    """Return what pages call a metric, or the headline of one of these threats."""
    titles = {threat_named(threat).headline: threat_named(threat).headline_title for threat in threats}
    return titles.get(name) or (METRICS[name].title if name in METRICS else "") or name.replace("_", " ")
