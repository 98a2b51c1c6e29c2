"""What the columns of the published tables mean, a sentence each; `leakboard.board.tables` says which stand where."""

from __future__ import annotations

from collections.abc import Mapping

from leakboard.metrics.audits import VERDICT_CONFIDENCE

COMMON: Mapping[str, str] = {
    "dataset": "Name of the dataset's entry in the suite.",
    "victim": "Name of the victim's entry in the suite: what makes and publishes the vectors.",
    "attack": "Name of the attack's entry in the suite.",
    "seed": "Seed of the run.",
    "metric": "Name of what was measured.",
    "variable": "The secret that the row is about; empty for all together.",
    "group": "The value of the secret that the row is about; empty for all texts.",
    "share": "Share of the test texts that belong to the group.",
    "gap": "Task accuracy of the group minus that of the first group that has test texts.",
    "status": "`ok`, or what a reader must know before relying on the row.",
}
"""Columns that mean the same in every file that has them, unless the file says otherwise."""
LEADERBOARD: Mapping[str, str] = {
    "secrets": "The secrets that the row is about, separated by semicolons.",
    "seeds": "How many runs with different seeds the row averages over.",
    "test_size": "Number of test texts.",
    "task_accuracy": "Accuracy on the task of a classifier on the published vectors; higher is better.",
    "task_majority": "Accuracy on the task of always guessing the most frequent label.",
    "attack_metric": "Of `attack_score`: `accuracy`, `f1`, `recall@5`, `token_f1`, `auc`, or, of an audit, `epsilon`.",
    "attack_score": "What the attack reached, of an audit a lower bound on epsilon; lower is better for the victim.",
    "empirical_privacy": "1 - the better of the attack's score and the best constant guess; higher is better.",
    "empirical_privacy_low": "Lower end of its 95 % interval over test texts, averaged over seeds.",
    "empirical_privacy_high": "Upper end of its 95 % interval over test texts, averaged over seeds.",
    "privacy_best_constant": "Privacy that the best constant guess leaves: no defence can reach more.",
    "privacy_text_classifier": "Privacy that classifiers trained on the texts themselves leave; it is no bound.",
    "privacy_bayes": "Privacy that the best possible attacker on the texts leaves; known for generated data alone.",
    "fairness_gap": "Widest difference of task accuracy between two groups of a secret; nearer to 0 is better.",
    "fairness_variable": "The secret whose groups differ most in task accuracy.",
    "epsilon_claimed": "Epsilon that the victim's author states; empty where nothing is claimed.",
    "epsilon_proved": "Epsilon that follows from what the code does; `inf` where none can be proved.",
    "epsilon_audited": "Lower bound on epsilon at 95 % confidence, from all audits of the victim together.",
    "delta": "The delta of the three epsilons.",
    "privacy_unit": "What two neighbouring inputs differ in: a word, a document, a user, ...",
    "verdict": "`violated`: the audit found more than is claimed; `unproven`: less is proved than claimed, or an audit "
    f"found more than is proved; else `holds`. By bounds at {VERDICT_CONFIDENCE}.",
    "privacy_label": "Privacy that a guess from the task label alone leaves.",
    "task_accuracy_sd": "Standard deviation of `task_accuracy` over seeds; empty with one seed.",
    "empirical_privacy_sd": "Standard deviation of `empirical_privacy` over seeds; empty with one seed.",
    "test_copies": "Share of the test texts that occur verbatim in train.",
    "observations": "How many releases of each text the attack sees; the claim in the row is that of so many.",
    "secret": "The one secret that the row is about; empty in the row that averages over all.",
    "dataset_options": "The dataset's plugin with all options that differ from their defaults or are always named.",
    "victim_options": "The victim's plugin with all options that differ from their defaults or are always named.",
    "attack_options": "The attack's plugin with all options that differ from their defaults or are always named.",
    "attack_score_new": "`attack_score` over the test texts that occur in no other split; empty where all or none do, "
    "where no secrets of texts are attacked, and on boards that were computed before it was measured.",
    "empirical_privacy_new": "`empirical_privacy` over these texts: what no attacker can look up.",
    "attack_score_dev": "`attack_score` on the attacker's own dev texts, where the attack tells it; where all do, this "
    "chooses the strongest.",
}
SHARED = (
    *("secret", "secrets", "observations", "attack_metric", "attack_score", "empirical_privacy"),
    *("empirical_privacy_low", "empirical_privacy_high", "privacy_best_constant", "privacy_text_classifier"),
    *("privacy_bayes", "attack_score_new", "empirical_privacy_new"),
)
"""Columns of `LEADERBOARD` that ``best_known.csv`` has, too."""
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "leaderboard.csv": LEADERBOARD,
    "best_known.csv": {
        **{name: LEADERBOARD[name] for name in SHARED},
        "attack": "The strongest attack on the secret; its scores stand in the row.",
        "attacks": "How many attacks on the secret, with as many publications of a text, it was chosen from.",
        "chosen_on": "`dev` where all of them say what they scored on their own dev texts, else `test`.",
    },
    "skipped.csv": {"reason": "Why this attack does not apply to this victim or dataset."},
    "fairness.csv": {
        "variable": "The secret whose values make the groups.",
        "group": "The value of the secret that the texts of this group have.",
        "n": "Number of test texts of the group.",
        "task_accuracy": "Accuracy on the task within the group; higher is better.",
        "gap_low": "Lower end of the gap's 95 % interval.",
        "gap_high": "Upper end of the gap's 95 % interval.",
        "p_value": "Fisher's exact test of right and wrong answers against the first group.",
        "tpr_gap": "Widest difference of true positive rates between groups, over the classes of the task.",
        "attack_score": "Accuracy within the group of the attack that guesses it best.",
        "attack": "The attack that guesses the group best.",
    },
    "cells.csv": {
        "value": "The measured value; empty where there is none.",
        "low": "Lower end of its 95 % interval, where it has one.",
        "high": "Upper end of its 95 % interval, where it has one.",
        "n": "Number of texts, words, candidates or releases that the value rests on.",
        "status": "Why there is no value or no interval, or why not to rely on it; empty when all is well.",
        "details": "What the attack did: its chosen model, or the event that an audit found.",
    },
    "costs.csv": {
        "stage": "`fit`, `publish` or `attack`.",
        "seconds": "Wall-clock seconds of the stage in that run.",
        "peak_memory_mib": "Largest memory of the process during the stage (MiB).",
        "device": "What computed: `cpu`, or a GPU.",
        "threads": "Threads of the stage.",
    },
    "comparison.csv": {
        "source": "The paper, and the table or figure of it, that published the number.",
        "seeds": "How many runs our number averages over.",
        "ours": "What we measured; empty where nothing was measured.",
        "low": "Lower end of our 95 % interval.",
        "high": "Upper end of our 95 % interval.",
        "theirs": "The published number.",
        "difference": "Ours minus theirs.",
        "standard_errors": "The difference in our standard errors.",
    },
    "projections.csv": {
        "secret": "The secret that the row's value is of: the one whose most frequent value is least frequent.",
        "value": "The text's value of the secret.",
        "x": "Where the text's vector lies (t-SNE).",
        "y": "Where the text's vector lies (t-SNE).",
    },
    "sentences.csv": {
        "text": "A test text.",
        "recovered": "What the attack read from its vectors.",
        "words_right": "Words of the text that were recovered.",
        "words": "Words of the text.",
        "similarity": "Cosine of the text and what was recovered, where the attack's threat measures it.",
    },
}
"""By file, its own columns; those that it shares with others are in `COMMON`."""
METRICS: Mapping[str, str] = {
    "task_accuracy": "task accuracy",
    "task_majority": "task accuracy of a constant guess",
    "task_gap": "gap of task accuracy",
    "attack_accuracy": "attack accuracy",
    "empirical_privacy": "privacy",
    "privacy_best_constant": "privacy, best constant guess",
    "plug_in_loss": "plug-in loss",
    "map_word": "MAP-Word",
    "map_char": "MAP-Char",
    "f1": "F1",
    "token_f1": "F1 over words",
    "auc": "area under the curve",
    "recall@5": "share found among five candidates",
}
"""Metrics and scores of attacks in words; others go by their own names."""


def meaning(file: str, column: str) -> str:
    """Return the sentence about a column of a file.

    Raises:
        KeyError: nothing is said about it.
    """
    own = COLUMNS[file]
    return own[column] if column in own else COMMON[column]
