"""Declare LeakBoard's metrics of ``cells.csv`` once: what each measures, what pages call it, and where it is listed."""

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
    """A metric may be infinite only if the end of its range is."""
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
"""Numbers of releases, canaries or guesses."""
CANARIES, GROUPS, TRIES = (Values(1, most, are_whole=True) for most in (1e6, 1e4, 100))
"""How many canaries there are, how many units one canary has, and how many values of `canary_guesses` were tried.

They are limited, since a bound takes longer the larger they are.
"""


@dataclass(frozen=True)
class MetricEntry:
    """The description of a metric."""

    meaning: str
    """A sentence for the reference: the quantity that the metric measures."""
    title: str = ""
    """What pages call it; its name in words, if left out."""
    since: str = "0.1.0"
    """The first version whose records can have it."""
    listed: Literal["", "page", "board"] = "board"
    """Pages that list it among the measures of a victim: none, the victim's page, or the board's page as well."""
    of: Literal["attack", "victim"] = "attack"
    """Whether it measures an attack, or the victim's vectors whatever the attack."""
    values: Values = SHARES
    """The values that published records may hold."""
    numbered: str = ""
    """If the variable is a number, the text before it, as ``fpr=`` in ``fpr=0.1``; empty: any variable is allowed."""


METRICS: Mapping[str, MetricEntry] = {
    "attack_score": MetricEntry(
        "The attack's headline score; the column `attack_metric` of the leaderboard names its metric.",
        title="attack score",
        listed="",
        values=BOUNDS,
    ),
    "empirical_privacy": MetricEntry(
        "1 - the score of the attack, or of the best constant guess if that is higher.", title="privacy", listed=""
    ),
    "attack_advantage": MetricEntry(
        "What the attack gains over the best constant guess, from 0 (nothing) to 1 (all there is to gain). For secrets "
        "of documents and membership it is 2 `attack_auc` - 1, so it does not depend on how rare a secret is.",
        title="advantage",
        since="0.2.0",
        listed="",
        values=Values(-math.inf, 1),
    ),
    "attack_advantage_p": MetricEntry(
        "P-value of the advantage: the probability of such a gain if the attack knows nothing.",
        title="p-value of the advantage",
        since="0.2.0",
        listed="",
    ),
    "attack_advantage_dev": MetricEntry(
        "`attack_advantage` of the attack's guesses about its own dev texts.",
        title="advantage on dev texts",
        since="0.2.0",
        listed="page",
        values=Values(-math.inf, 1),
    ),
    "uncapped_privacy": MetricEntry(
        "1 - the score of the attack, as the papers define privacy, also where the best constant guess is better.",
        title="privacy as in the papers",
        since="0.2.0",
        listed="page",
    ),
    "attack_score_new": MetricEntry(
        "`attack_score` over the test texts that occur verbatim in no other split.",
        title="attack score on new texts",
        since="0.2.0",
        listed="page",
    ),
    "attack_score_dev": MetricEntry(
        "Score of the attack's guesses about its own dev texts, never about test texts.",
        title="attack score on dev texts",
        since="0.2.0",
        listed="page",
    ),
    "empirical_privacy_new": MetricEntry(
        "`empirical_privacy` over the test texts that occur verbatim in no other split.",
        title="privacy on new texts",
        since="0.2.0",
        listed="page",
    ),
    "privacy_best_constant": MetricEntry(
        "1 - the score of the best constant guess, chosen on test for attributes and entities, on train for words and "
        "texts.",
        title="privacy, best constant guess",
        listed="",
    ),
    "privacy_label": MetricEntry(
        "1 - the score of guesses from the task label alone: the best constant for the train texts of the same label.",
        title="privacy, guess from the task label",
        listed="page",
    ),
    "privacy_text_classifier": MetricEntry(
        "1 - the score of classifiers trained on the texts themselves.",
        title="privacy, classifier on the text",
        listed="page",
    ),
    "privacy_bayes": MetricEntry(
        "1 - the score of the best possible attacker on the texts (generated data).",
        title="privacy, best possible attacker",
        listed="page",
    ),
    "own_texts": MetricEntry(
        "Number of distinct texts of the attacker's own; 0 if it learns from known pairs alone.",
        values=COUNTS,
        listed="",
        since="0.2.0",
    ),
    "known_pairs": MetricEntry(
        "Number of texts whose published vector the attacker is given, with the text and its secrets.",
        values=COUNTS,
        listed="",
        since="0.2.0",
    ),
    "queries": MetricEntry(
        "Number of texts that the attacker sends to the victim's encoder; each repetition counts.",
        values=COUNTS,
        listed="",
        since="0.2.0",
    ),
    "noiseless_queries": MetricEntry(
        "Number of distinct texts whose vectors before the noise the attacker computes with the victim's encoder.",
        values=COUNTS,
        listed="",
        since="0.2.0",
    ),
    "shadow_models": MetricEntry(
        "Number of times that the attacker trains the victim's recipe.", values=COUNTS, listed="", since="0.2.0"
    ),
    "task_accuracy": MetricEntry(
        "Accuracy of the task's classifier on the published vectors, of all texts or of a group.",
        title="task accuracy",
        listed="",
        of="victim",
    ),
    "task_f1_macro": MetricEntry(
        "F1 of each task label, averaged over the labels of the test texts.",
        title="macro F1 of the task",
        since="0.2.0",
        of="victim",
    ),
    "task_balanced_accuracy": MetricEntry(
        "Task accuracy within each label, averaged over the labels of the test texts.",
        title="task accuracy, balanced",
        since="0.2.0",
        of="victim",
    ),
    "retrained_accuracy": MetricEntry(
        "Task accuracy of a logistic regression that is trained on the published vectors of train.",
        title="task accuracy, retrained",
        since="0.2.0",
        listed="",
        of="victim",
    ),
    "retrained_f1_macro": MetricEntry(
        "`task_f1_macro` of the retrained classifier.",
        title="macro F1 of the task, retrained",
        since="0.2.0",
        of="victim",
    ),
    "retrained_balanced_accuracy": MetricEntry(
        "`task_balanced_accuracy` of the retrained classifier.",
        title="task accuracy, retrained and balanced",
        since="0.2.0",
        of="victim",
    ),
    "retrained_calibration_error": MetricEntry(
        "Expected calibration error of the retrained classifier, in 15 bins.",
        title="calibration error, retrained",
        since="0.2.0",
        of="victim",
    ),
    "retrieval_recall@10": MetricEntry(
        "Share of test texts among the ten nearest to a query of half of their words.",
        title="recall@10 of search",
        since="0.2.0",
        listed="",
        of="victim",
    ),
    "retrieval_mrr@10": MetricEntry(
        "1 / rank of the text that a query of half of its words must find; 0 beyond rank 10.",
        title="reciprocal rank of search",
        since="0.2.0",
        of="victim",
    ),
    "retrieval_ndcg@10": MetricEntry(
        "1 / log2(1 + rank) of the text that a query of half of its words must find; 0 beyond rank 10.",
        title="NDCG of search",
        since="0.2.0",
        of="victim",
    ),
    "task_majority": MetricEntry(
        "Accuracy of always guessing the most frequent task label.",
        title="task accuracy of a constant guess",
        listed="",
        of="victim",
    ),
    "attack_accuracy": MetricEntry(
        "Share of the test texts whose secret is guessed right, of all texts or of a group.", title="attack accuracy"
    ),
    "attack_balanced_accuracy": MetricEntry(
        "Share of right guesses among the texts with one value of a secret, averaged over the values.",
        title="attack accuracy, balanced",
    ),
    "attack_f1": MetricEntry("F1 of finding the texts that mention an entity.", title="F1"),
    "attack_f1_macro": MetricEntry("Mean of `attack_f1` over the entities.", title="macro F1"),
    "attack_auc": MetricEntry(
        "Area under the ROC curve: the probability that a text with the value scores above one without; 0.5 is chance. "
        "For membership: that a member scores above another candidate.",
        title="area under the curve",
    ),
    "share": MetricEntry("Share of the test texts that belong to a group.", of="victim"),
    "task_gap": MetricEntry(
        "Task accuracy of a group minus that of the first group.",
        title="gap of task accuracy",
        values=DIFFERENCES,
        of="victim",
    ),
    "task_gap_p": MetricEntry(
        "P-value of `task_gap` (Fisher's exact test).", title="p-value of the gap of task accuracy", of="victim"
    ),
    "fairness_gap": MetricEntry(
        "Widest difference of task accuracy between two groups; its interval holds for all pairs of groups together. "
        "With a lower end below 0, no gap is shown.",
        title="fairness gap",
        since="0.2.0",
        listed="page",
        values=DIFFERENCES,
        of="victim",
    ),
    "tpr_gap": MetricEntry(
        "Widest difference of true positive rates between groups, over the classes of the task; its interval holds for "
        "all pairs of groups and classes together. With a lower end below 0, no gap is shown.",
        title="gap within classes",
        values=DIFFERENCES,
        of="victim",
    ),
    "recall@1": MetricEntry("Share of the words whose first candidate is right."),
    "recall@2": MetricEntry(
        "Share of the words that are among the first two candidates.", since="0.2.0", listed="page"
    ),
    "recall@3": MetricEntry(
        "Share of the words that are among the first three candidates.", since="0.2.0", listed="page"
    ),
    "recall@4": MetricEntry(
        "Share of the words that are among the first four candidates.", since="0.2.0", listed="page"
    ),
    "recall@5": MetricEntry("Share of the words that are among the first five candidates."),
    "mean_reciprocal_rank": MetricEntry("1 / the rank of the right candidate, averaged over words."),
    "known_to_attacker": MetricEntry(
        "Share of the published words that are in the vocabulary of the guesses.", title="words known to the attacker"
    ),
    "sentence_words_right": MetricEntry(
        "Share of the words of running texts that are recovered.", title="words right in running texts"
    ),
    "token_precision": MetricEntry(
        "Share of the words written by the attack that are in the text.", title="precision of words"
    ),
    "token_recall": MetricEntry("Share of the text's words that the attack writes.", title="recall of words"),
    "token_f1": MetricEntry(
        "Harmonic mean of token precision and token recall, pooled over texts.", title="F1 of words"
    ),
    "words_right": MetricEntry("Share of the replaced words that the attack names.", since="0.2.0"),
    "words_kept": MetricEntry("Share of the words that are published unchanged.", since="0.2.0"),
    "context_free_bound": MetricEntry(
        "Share of the words that the best attacker names on average, if it looks at one published word at a time.",
        title="bound for attackers of single words",
        since="0.2.0",
    ),
    "names_right": MetricEntry(
        "The same as `words_right`, for words of people's names.", title="names right", since="0.2.0"
    ),
    "numbers_right": MetricEntry("The same as `words_right`, for words with a digit.", since="0.2.0"),
    "rare_right": MetricEntry(
        "The same as `words_right`, for words that are rare in the attacker's own texts.", since="0.2.0"
    ),
    "sensitive_right": MetricEntry(
        "The same as `words_right`, for names, numbers and rare words.", title="sensitive words right", since="0.2.0"
    ),
    "true_epsilon": MetricEntry(
        "Largest log-ratio between any two words over all outputs of a channel.",
        title="true epsilon",
        values=Values(0, math.inf),
        since="0.2.0",
    ),
    "unused_budget": MetricEntry(
        "Share of the claimed epsilon that no compared pair of words needs; below 0 if the claim is violated.",
        values=ANY,
        since="0.2.0",
    ),
    "character_accuracy": MetricEntry("Share of the characters that are at the right position."),
    "exact_matches": MetricEntry("Share of the texts whose words are all recovered, in order."),
    "set_f1": MetricEntry(
        "F1 over the different words of guess and text, pooled over texts.",
        title="F1 of different words",
        since="0.2.0",
    ),
    "multiset_f1": MetricEntry(
        "F1 over the words of guess and text with their counts, pooled over texts.",
        title="F1 of words with repeats",
        since="0.2.0",
    ),
    "rouge_l": MetricEntry(
        "F1 of the longest common subsequence of words, averaged over texts (ROUGE-L).", title="ROUGE-L", since="0.2.0"
    ),
    "bleu": MetricEntry("BLEU over words, from 0 to 1, of all texts together.", title="BLEU", since="0.2.0"),
    "reencoded_cosine": MetricEntry(
        "Mean cosine between the vectors of guess and text; before the protection, if the encoder is public.",
        title="cosine of the guess's vector",
        since="0.2.0",
        values=DIFFERENCES,
    ),
    "sensitive_recall": MetricEntry(
        "Share of the text's words that matter that the attack writes; the variable names their class.",
        title="recall of sensitive words",
        since="0.2.0",
    ),
    "sensitive_precision": MetricEntry(
        "Share of the written words that matter that are in the text; the variable names their class.",
        title="precision of sensitive words",
        since="0.2.0",
    ),
    "distinctive_recall": MetricEntry(
        "Share of the text's distinctive words that the attack writes; the variable names their class.",
        title="recall of distinctive words",
        since="0.3.0.dev1",
    ),
    "distinctive_precision": MetricEntry(
        "Share of the written distinctive words that are in the text; the variable names their class.",
        title="precision of distinctive words",
        since="0.3.0.dev1",
    ),
    "set_f1_floor": MetricEntry(
        "`set_f1` of the same guesses about other texts.",
        title="F1 of different words, other texts",
        since="0.2.0",
        listed="page",
    ),
    "multiset_f1_floor": MetricEntry(
        "`multiset_f1` of the same guesses about other texts.",
        title="F1 of words with repeats, other texts",
        since="0.2.0",
        listed="page",
    ),
    "rouge_l_floor": MetricEntry(
        "`rouge_l` of the same guesses about other texts.", title="ROUGE-L, other texts", since="0.2.0", listed="page"
    ),
    "bleu_floor": MetricEntry(
        "`bleu` of the same guesses about other texts.", title="BLEU, other texts", since="0.2.0", listed="page"
    ),
    "reencoded_cosine_floor": MetricEntry(
        "`reencoded_cosine` of the same guesses about other texts.",
        title="cosine of the guess's vector, other texts",
        since="0.2.0",
        listed="page",
        values=DIFFERENCES,
    ),
    "sensitive_recall_floor": MetricEntry(
        "`sensitive_recall` of the same guesses about other texts.",
        title="recall of sensitive words, other texts",
        since="0.2.0",
        listed="page",
    ),
    "sensitive_precision_floor": MetricEntry(
        "`sensitive_precision` of the same guesses about other texts.",
        title="precision of sensitive words, other texts",
        since="0.2.0",
        listed="page",
    ),
    "distinctive_recall_floor": MetricEntry(
        "`distinctive_recall` of the same guesses about other texts.",
        title="recall of distinctive words, other texts",
        since="0.3.0.dev1",
        listed="page",
    ),
    "distinctive_precision_floor": MetricEntry(
        "`distinctive_precision` of the same guesses about other texts.",
        title="precision of distinctive words, other texts",
        since="0.3.0.dev1",
        listed="page",
    ),
    "tpr@fpr=0.001": MetricEntry(
        "Share of members that are found if 0.1 % of the other candidates are taken for members.",
        title="found at 0.1 % false alarms",
    ),
    "tpr@fpr=0.01": MetricEntry(
        "Share of members, or of texts with a value of a secret, that are found if 1 % of the others are taken for "
        "them.",
        title="found at 1 % false alarms",
    ),
    "linked_at_1_percent_false_links": MetricEntry(
        "Share of the stored vectors that are linked to their texts, if 1 % of those without a text are linked, too.",
        title="linked at 1 % false links",
        since="0.2.0",
    ),
    "linked_first": MetricEntry(
        "Share of the stored vectors whose first candidate is right.",
        title="linked by the first candidate",
        since="0.2.0",
    ),
    "linked_among_10": MetricEntry(
        "Share of the stored vectors whose right text is among the first ten candidates.",
        title="linked among ten candidates",
        since="0.2.0",
    ),
    "candidate_texts": MetricEntry(
        "Number of texts among which the attacker looks for stored ones.", values=COUNTS, listed="", since="0.2.0"
    ),
    "stolen_vectors": MetricEntry(
        "Number of stored vectors that the attacker has, those of known pairs and those to be linked included.",
        values=COUNTS,
        listed="",
        since="0.2.0",
    ),
    "absent_vectors": MetricEntry(
        "Number of stored vectors whose text is not among the candidates.", values=COUNTS, since="0.2.0"
    ),
    "presence_without_store": MetricEntry(
        "Area under the curve of a classifier that sees the candidate texts alone; above 0.5 if stored texts differ.",
        title="presence, without the store",
        since="0.2.0",
    ),
    "lift": MetricEntry(
        "How many times as frequent a value is among the 1 % most suspected texts (at least ten) as among all texts.",
        since="0.2.0",
        values=NUMBERS,
    ),
    "true_positives": MetricEntry("How often an audit's event held for releases of the first input.", values=COUNTS),
    "false_positives": MetricEntry("How often an audit's event held for releases of the second input.", values=COUNTS),
    "audit_tosses": MetricEntry(
        "Number of rows for which a fair coin chose the input.", title="coin tosses of the audit", values=COUNTS
    ),
    "audit_mu": MetricEntry(
        "Lower bound on mu of Gaussian differential privacy. It holds at 95 % confidence together with `audit_renyi` "
        "and `audit_trade_off`, if the rows of a call are independent.",
        title="bound on mu of Gaussian privacy",
        since="0.2.0",
        values=BOUNDS,
    ),
    "audit_renyi": MetricEntry(
        "Lower bound on the Renyi divergence; the variable names its order.",
        title="bound on Rényi privacy",
        since="0.2.0",
        values=BOUNDS,
        numbered="order=",
    ),
    "audit_trade_off": MetricEntry(
        "A corner of the trade-off curve: upper bound on the least rate of false negatives of a test. The variable "
        "names the rate of false positives of the test.",
        since="0.2.0",
        numbered="fpr=",
    ),
    "audit_delta": MetricEntry("The delta at which the audit's bound holds.", title="delta of the audit", listed=""),
    "audit_distance": MetricEntry(
        "Distance of the audited inputs, if epsilon is claimed for each unit of it. The bound is divided by it.",
        title="distance of the audit",
        since="0.2.0",
        values=BOUNDS,
        listed="",
    ),
    "audit_largest_bound": MetricEntry(
        "The bound on epsilon at 95 % confidence if 90 % of the canaries were guessed, all of them right: no larger "
        "claim can be refuted.",
        title="largest bound of the audit",
        values=BOUNDS,
    ),
    "plug_in_loss": MetricEntry(
        "The point estimate of the privacy loss of Habernal (2022); it is no bound.",
        title="plug-in loss",
        listed="page",
        values=ANY,
    ),
    "canaries": MetricEntry("Number of canaries, or of calls of a mechanism, each with a fair coin.", values=CANARIES),
    "canary_group": MetricEntry(
        "Number of units of the claim in one canary.", title="units in a canary", values=GROUPS
    ),
    "canary_guesses": MetricEntry(
        "Number of canaries about which the attack made a guess.", title="guesses about canaries", values=COUNTS
    ),
    "canary_right": MetricEntry(
        "Number of guesses that were right.", title="right guesses about canaries", values=COUNTS
    ),
    "canary_tried": MetricEntry(
        "How many values of `canary_guesses` were tried; the bound is corrected for them.",
        title="tried numbers of guesses",
        values=TRIES,
    ),
    "map_word": MetricEntry(
        "Agreement of a word's neighbours with its neighbours in a gold model, as Vu et al. (2019) code it.",
        title="MAP-Word",
        values=NUMBERS,
        of="victim",
    ),
    "map_char": MetricEntry("`map_word` by letters instead of words.", title="MAP-Char", values=NUMBERS, of="victim"),
    "average_precision@100": MetricEntry(
        "Average precision of the 100 nearest words against the gold model's.",
        title="average precision at 100",
        of="victim",
    ),
    "map_word_random": MetricEntry(
        "`map_word` of words drawn at random from the table.",
        title="MAP-Word of random words",
        values=NUMBERS,
        of="victim",
    ),
    "map_char_random": MetricEntry(
        "`map_char` of words drawn at random from the table.",
        title="MAP-Char of random words",
        values=NUMBERS,
        of="victim",
    ),
    "average_precision@100_random": MetricEntry(
        "`average_precision@100` of words drawn at random from the table.",
        title="average precision at 100 of random words",
        of="victim",
    ),
    "gold_queries": MetricEntry(
        "Share of the suite's queries that both tables have.", title="queries in both tables", of="victim"
    ),
    "rmse_linear": MetricEntry(
        "Root mean square error of a numeric target by least squares on the mean vectors of users; without users, of "
        "documents or texts.",
        title="error of linear regression",
        values=NUMBERS,
        of="victim",
    ),
    "rmse_svr": MetricEntry(
        "`rmse_linear` by a linear support vector regression instead of least squares.",
        title="error of support vector regression",
        values=NUMBERS,
        of="victim",
    ),
    "rmse_mean": MetricEntry(
        "Root mean square error of guessing the mean of train.", title="error of the mean", values=NUMBERS, of="victim"
    ),
    "cut_texts": MetricEntry(
        "Share of the test texts that are longer than the victim reads.", listed="page", of="victim"
    ),
    "unknown_texts": MetricEntry(
        "Share of the test texts without a word that the victim knows.", listed="page", of="victim"
    ),
    "fresh_noise": MetricEntry(
        "0 if noise is claimed, and yet two publications of the same texts are equal; otherwise left out.",
        values=FLAGS,
        since="0.2.0",
        of="victim",
    ),
    "order_kept": MetricEntry(
        "0, with a warning, if the same texts in another order have other vectors; otherwise left out.",
        values=FLAGS,
        since="0.2.0",
        of="victim",
    ),
    "near_copies": MetricEntry(
        "Share of the test vectors with a near copy among those of train.", listed="page", since="0.2.0", of="victim"
    ),
    "row_match_p": MetricEntry(
        "P-value of a test whether vectors from a file belong to their rows; the variable names the test.",
        title="p-value that rows match",
        of="victim",
    ),
    "rows_match": MetricEntry(
        "1 if a test of `row_match_p` finds that vectors and rows belong together; otherwise 0, with a warning.",
        values=FLAGS,
        of="victim",
    ),
    "row_change_p": MetricEntry(
        "P-value of a test whether vectors fit their rows equally well from the first row to the last.",
        title="p-value that the match changes",
        since="0.2.0",
        of="victim",
    ),
    "rows_match_throughout": MetricEntry(
        "0, with a warning, if a test of `row_change_p` finds rows whose vectors do not fit; otherwise 1.",
        values=FLAGS,
        since="0.2.0",
        of="victim",
    ),
}
"""LeakBoard's metrics of ``cells.csv``, by name; those of threats in plugin files need no entry."""
