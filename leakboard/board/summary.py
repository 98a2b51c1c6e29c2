"""What a leaderboard says, in plain sentences: one a victim and secret, of the strongest attack; audits; warnings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from leakboard.board.leaderboard import ROUNDING
from leakboard.board.strongest import headlines
from leakboard.metrics.audits import rounded_down
from leakboard.pipeline.records import Record
from leakboard.suite.names import Names

Row = Mapping[str, Any]

FOUND = {
    "accuracy": "{what} can be guessed in {score} of the texts; without the vectors, {constant}",
    "f1": "{what}: an attack finds who is mentioned with an F1 of {score}; without the vectors, {constant}",
    "recall@5": "{what}: for {score} of the words the right one is among an attack's first five; by chance, {constant}",
    "token_f1": "{what}: an attack recovers the words of texts with an F1 of {score}; without the vectors, {constant}",
    "auc": "{what}: an attack tells who was in the training data with an area under the curve of {score}; "
    "by chance, {constant}",
}
"""By metric, what an attack that beats the best constant guess has shown."""
FAILED = {
    "accuracy": "{what}: no attack did better than guessing the most frequent value, which is right in {constant}",
}
"""By metric, what is said where no attack beats the best constant guess; it is no proof of privacy."""
OTHER_FAILED = "{what}: no attack did better than the best constant guess, whose score is {constant}"
NO_PROOF = "this does not show that there is nothing to find"
CHANCE = "the difference may be chance"
VERDICTS = {
    "violated": "more than the claimed {claimed}: the claim is violated",
    "unproven": "the claimed {claimed} is not proved for what the code does",
    "holds": "no more than the claimed {claimed}: the claim holds as far as this audit sees",
    "": "nothing is claimed",
    "doubtful": "more than the claimed {claimed}, but not at the confidence of a verdict: the claim is not refuted",
}
SHOWN = 30
"""Sentences on guesses that are shown, and as many on audits; the table has the rest."""


NOTES = {"test_copies": "occur verbatim in train", "test_users": "have an author in train"}
"""Checks of a corpus, as shares of its test texts, that a reader must know."""


def corpus_warnings(records: Sequence[Record], names: Names) -> list[str]:
    """Return a sentence for each share of a corpus's test texts that makes attacks easier than they are elsewhere."""
    learned = [record for record in records if record.checks and record.attack_metric != "epsilon"]  # audits read none
    checks = {record.dataset: record.checks for record in learned}
    return [
        f"{names.name('dataset', dataset)}: {100 * share:.1f} % of the test texts {what}"
        for dataset, found in checks.items()
        for check, what in NOTES.items()
        if (share := found.get(check))
    ]


def summarise(rows: Sequence[Row], warnings: Sequence[str] = ()) -> list[str]:
    """Return the sentences about a leaderboard's rows, then the warnings.

    Args:
        rows: of `leakboard.api.report.Report.table`: means over secrets, and one row a secret.
        warnings: what a reader must know besides.
    """
    scored = [row for row in rows if _number(row.get("attack_score"))]
    audits = [row for row in scored if row["attack_metric"] == "epsilon"]
    several = len({(row["dataset"], row["victim"]) for row in scored}) > 1
    guesses = [_with_victim(row, guess(row), several) for row in headlines(_of_secrets(scored))]
    bounds = [_with_victim(row, audit(row), several) for row in _worst_audits(audits)]
    return [*_first(guesses), *_first(bounds), *(f"warning: {warning}" for warning in warnings)]


def _first(sentences: Sequence[str]) -> list[str]:
    """Return as many sentences as one reads, and how many more there are."""
    more = [f"{len(sentences) - SHOWN} more sentences like these: see the table"] if len(sentences) > SHOWN else []
    return [*sentences[:SHOWN], *more]


def _of_secrets(rows: Sequence[Row]) -> list[Row]:
    """Return the rows on secrets: one that averages over several only where they have no rows of their own."""
    apart = {(*_victim(row), row["attack"]) for row in rows if row.get("secret") and _has_constant(row)}
    guessing = [row for row in rows if row["attack_metric"] != "epsilon"]
    return [row for row in guessing if bool(row.get("secret")) == ((*_victim(row), row["attack"]) in apart)]


def guess(row: Row) -> str:
    """Return what the strongest attack on a secret shows, or that it shows nothing."""
    metric, score, left = row["attack_metric"], row["attack_score"], row.get("privacy_best_constant")
    names = str(row["secrets"]).split("; ")
    what = row.get("secret") or ", ".join(names) + (" (on average)" if len(names) > 1 else "")
    if not _number(left):
        return f"{what}: the {metric} of the strongest attack is {percent(score)}"
    told = {"what": what, "score": percent(score), "constant": percent(1 - left)}
    if score <= 1 - left + ROUNDING:
        return f"{FAILED.get(metric, OTHER_FAILED).format(**told)}; {NO_PROOF}"
    high = row.get("empirical_privacy_high")
    doubt = f" ({CHANCE})" if _number(high) and high >= left - ROUNDING else ""
    found = FOUND.get(metric, "{what}: the strongest attack scores {score}; without the vectors, {constant}")
    return found.format(**told) + doubt


def audit(row: Row) -> str:
    """Return what an audit shows about one release, or one training run."""
    claimed = row.get("epsilon_claimed")
    times = row["observations"] if _number(row.get("observations")) else 1
    names = {"claimed": f"{claimed / times:.3g}" if _number(claimed) else ""}
    verdict = str(row.get("verdict") or "")
    if verdict == "holds" and _number(claimed) and row["epsilon_audited"] > claimed / times:
        verdict = "doubtful"
    return audited(row["epsilon_audited"], 0.95, VERDICTS[verdict].format(**names))


def audited(epsilon: float, confidence: float, verdict: str) -> str:
    """Return the sentence about a lower bound on epsilon."""
    return f"epsilon is at least {rounded_down(epsilon)} ({100 * confidence:.0f} % confidence), {verdict}"


def percent(share: float) -> str:
    """Return a share in whole percent; one below 1 % with a digit that is not 0."""
    return f"{100 * share:.1g} %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def _worst_audits(rows: Sequence[Row]) -> list[Row]:
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if _number(row.get("epsilon_audited")):
            best.setdefault((*_victim(row), row.get("privacy_unit")), row)
    return list(best.values())


def _with_victim(row: Row, sentence: str, several: bool) -> str:
    return f"{row['victim']} on {row['dataset']}: {sentence}" if several else sentence


def _victim(row: Row) -> tuple[str, str]:
    return row["dataset"], row["victim"]


def _has_constant(row: Row) -> bool:
    return _number(row.get("privacy_best_constant"))


def _number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not math.isnan(value)
