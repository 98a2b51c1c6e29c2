"""Declare every metric of ``cells.csv`` once: what it measures, what pages call it, and where it is listed."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Values:
    """The values that a metric can have, and the ends of its intervals."""

    low: float
    high: float
    """Infinity is allowed if it is the end."""
    are_whole: bool = False
    """Whether only whole numbers are allowed."""

    def __contains__(self, value: float) -> bool:
        """Return whether a metric can have this value."""
        return self.low <= value <= self.high and (not self.are_whole or float(value).is_integer())

    def __str__(self) -> str:
        """Return the values in words."""
        return f"{'whole numbers ' if self.are_whole else ''}from {self.low:g} to {self.high:g}"


SHARES, FLAGS, DIFFERENCES = Values(0, 1), Values(0, 1, are_whole=True), Values(-1, 1)
NUMBERS, BOUNDS, ANY = Values(0, sys.float_info.max), Values(0, 1e6), Values(-math.inf, math.inf)
COUNTS = Values(0, 1e15, are_whole=True)
"""Numbers of releases."""
CANARIES, GROUPS, TRIES = (Values(1, most, are_whole=True) for most in (1e6, 1e4, 100))
"""Numbers of canaries, of units in one, and of tried numbers of guesses. The time of a bound grows with them."""


@dataclass(frozen=True)
class MetricEntry:
    """What is said about a metric."""

    meaning: str
    """What it measures, a sentence for the reference."""
    title: str = ""
    """What pages call it; its name, if left out."""
    since: str = "0.1.0"
    """The first version whose records can have it."""
    listed: Literal["", "page", "board"] = "board"
    """Where the measures of a victim list it: nowhere, on the victim's page, or on the board's page as well."""
    values: Values = SHARES
    """What published records may hold."""
    numbered: str = ""
    """What its variable has before a number, as in ``fpr=0.1``; empty for any variable."""


METRICS: Mapping[str, MetricEntry] = {
    "attack_score": MetricEntry(
        "The attack's headline; `attack_metric` of the leaderboard says what it is.", listed="", values=BOUNDS
    ),
    "empirical_privacy": MetricEntry(
        "1 - the better of the attack's score and the best constant guess.", title="privacy", listed=""
    ),
    "attack_score_new": MetricEntry(
        "`attack_score` over the test texts that occur verbatim in no other split.", since="0.2.0", listed="page"
    ),
    "attack_score_dev": MetricEntry(
        "What the attack's guesses of its own dev texts score; never on test texts.", since="0.2.0", listed="page"
    ),
    "empirical_privacy_new": MetricEntry(
        "`empirical_privacy` over the test texts that occur verbatim in no other split.", since="0.2.0", listed="page"
    ),
    "privacy_best_constant": MetricEntry(
        "1 - the score of the best constant guess, chosen on test for attributes and entities, on train for words and "
        "texts.",
        title="privacy, best constant guess",
        listed="",
    ),
    "privacy_label": MetricEntry("1 - the score of the best constant guess of each task label.", listed="page"),
    "privacy_text_classifier": MetricEntry(
        "1 - the score of classifiers trained on the texts themselves.", listed="page"
    ),
    "privacy_bayes": MetricEntry(
        "1 - the score of the best possible attacker on the texts (generated data).", listed="page"
    ),
    "task_accuracy": MetricEntry(
        "Accuracy of the task's classifier on the published vectors, of all texts or of a group.",
        title="task accuracy",
        listed="",
    ),
    "task_majority": MetricEntry(
        "Accuracy of always guessing the most frequent task label.",
        title="task accuracy of a constant guess",
        listed="",
    ),
    "attack_accuracy": MetricEntry(
        "Share of the test texts whose secret is guessed right, of all texts or of a group.", title="attack accuracy"
    ),
    "attack_balanced_accuracy": MetricEntry(
        "Mean over the values of a secret of the share of them that is guessed right."
    ),
    "attack_f1": MetricEntry("F1 of finding the texts that mention an entity."),
    "attack_f1_macro": MetricEntry("Mean of `attack_f1` over the entities."),
    "attack_auc": MetricEntry(
        "Area under the ROC curve: the probability that a text with the value scores above one without; 0.5 is chance."
    ),
    "share": MetricEntry("Share of the test texts that belong to a group."),
    "task_gap": MetricEntry(
        "Task accuracy of a group minus that of the first group.", title="gap of task accuracy", values=DIFFERENCES
    ),
    "task_gap_p": MetricEntry("P-value of that difference (Fisher's exact test)."),
    "tpr_gap": MetricEntry("Widest difference of true positive rates between groups, over the classes of the task."),
    "recall@1": MetricEntry("Share of the words whose first candidate is right."),
    "recall@5": MetricEntry("Share of the words that stand among the first five candidates."),
    "mean_reciprocal_rank": MetricEntry("Mean over words of 1 / the rank of the right candidate."),
    "known_to_attacker": MetricEntry("Share of the published words that the attacker's own texts contain."),
    "sentence_words_right": MetricEntry("Share of the words of running texts that are recovered."),
    "token_precision": MetricEntry("Share of the words that the attack writes that stand in the text."),
    "token_recall": MetricEntry("Share of the text's words that the attack writes."),
    "token_f1": MetricEntry("Harmonic mean of token precision and token recall, pooled over texts."),
    "character_accuracy": MetricEntry("Share of the characters that stand at their own place."),
    "exact_matches": MetricEntry("Share of the texts that are recovered word by word."),
    "tpr@fpr=0.001": MetricEntry("Share of members found where 0.1 % of the others are taken for members."),
    "tpr@fpr=0.01": MetricEntry("Share of members found where 1 % of the others are taken for members."),
    "true_positives": MetricEntry("How often an audit's event held for releases of the first input.", values=COUNTS),
    "false_positives": MetricEntry("How often an audit's event held for releases of the second input.", values=COUNTS),
    "audit_tosses": MetricEntry("Fair coins that decided of rows which input they are.", values=COUNTS),
    "audit_mu": MetricEntry(
        "Lower bound on mu of Gaussian differential privacy; like the next two at 95 % confidence by itself, "
        "where the rows of a call are independent.",
        since="0.2.0",
        values=BOUNDS,
    ),
    "audit_renyi": MetricEntry(
        "Lower bound on the Renyi divergence, of the order that the variable names.",
        since="0.2.0",
        values=BOUNDS,
        numbered="order=",
    ),
    "audit_trade_off": MetricEntry(
        "Upper bound on the least rate of false negatives that a test can have whose rate of false "
        "positives the variable names: a corner of the curve.",
        since="0.2.0",
        numbered="fpr=",
    ),
    "audit_delta": MetricEntry("The delta at which the audit's bound holds.", listed=""),
    "audit_largest_bound": MetricEntry(
        "The bound on epsilon at 95 % confidence if 90 % of the canaries were guessed, all of them right: no larger "
        "claim can be refuted.",
        values=BOUNDS,
    ),
    "plug_in_loss": MetricEntry(
        "The point estimate of the privacy loss of Habernal (2022); it is no bound.",
        title="plug-in loss",
        listed="page",
        values=ANY,
    ),
    "canaries": MetricEntry("Canaries, or calls of a mechanism, for which a coin was tossed.", values=CANARIES),
    "canary_group": MetricEntry("Units of the claim that one canary is made of.", values=GROUPS),
    "canary_guesses": MetricEntry("Canaries for which the attack made a guess.", values=COUNTS),
    "canary_right": MetricEntry("Guesses that were right.", values=COUNTS),
    "canary_tried": MetricEntry("Numbers of guesses that were tried, for which the bound is corrected.", values=TRIES),
    "map_word": MetricEntry(
        "Agreement of neighbours with the gold model's, by words, as Vu et al. (2019) compute it.",
        title="MAP-Word",
        values=NUMBERS,
    ),
    "map_char": MetricEntry("The same, by letters.", title="MAP-Char", values=NUMBERS),
    "average_precision@100": MetricEntry("Average precision of the 100 nearest words against the gold model's."),
    "map_word_random": MetricEntry("`map_word` of words drawn at random from the table.", values=NUMBERS),
    "map_char_random": MetricEntry("`map_char` of words drawn at random from the table.", values=NUMBERS),
    "average_precision@100_random": MetricEntry("`average_precision@100` of words drawn at random from the table."),
    "gold_queries": MetricEntry("Share of the suite's queries that both tables have."),
    "rmse_linear": MetricEntry(
        "Root mean square error of a numeric target by least squares on a user's mean vector.", values=NUMBERS
    ),
    "rmse_svr": MetricEntry("The same by a linear support vector regression.", values=NUMBERS),
    "rmse_mean": MetricEntry("The same by guessing the mean of train.", values=NUMBERS),
    "cut_texts": MetricEntry("Share of the test texts that the victim cuts.", listed="page"),
    "unknown_texts": MetricEntry("Share of the test texts of which the victim knows no word.", listed="page"),
    "fresh_noise": MetricEntry(
        "0 where noise is claimed, and two publications of the same texts are equal, else left out.", values=FLAGS
    ),
    "near_copies": MetricEntry("Share of the test vectors with a near copy among those of train.", listed="page"),
    "row_match_p": MetricEntry(
        "P-value of a test of whether own vectors belong to their rows; the variable names the test."
    ),
    "rows_match": MetricEntry(
        "1 where such a test finds that they belong together, else 0, with a warning.", values=FLAGS
    ),
    "row_change_p": MetricEntry("P-value of a test of whether vectors fit their rows equally well along the table."),
    "rows_match_throughout": MetricEntry(
        "0 where such a test finds a part without a fit, with a warning, else 1.", values=FLAGS
    ),
}
"""Every metric of ``cells.csv``, by name."""
