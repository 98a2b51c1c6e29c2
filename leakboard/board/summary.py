"""Write the sentences about a leaderboard: on the strongest attack on each secret, on audits, and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leakboard.board.schema import Row
from leakboard.board.strongest import comparable, strongest
from leakboard.pipeline.records import Record
from leakboard.suite.names import Names
from leakboard.threats.sentence_parts import is_number
from leakboard.threats.threat import threat_named

MAX_SENTENCES = 30
"""Sentences on guesses that are shown, and as many on audits; the table has the rest."""
CORPUS_CHECKS = {
    "test_copies": "occur verbatim in train",
    "test_users": "have an author in train",
    "test_documents": "have a document in train",
}
"""Checks of a corpus that a reader must know, as shares of its test texts."""
FEW_TEXTS = 200
"""Fewer test texts than these deserve a warning."""
MANY_COPIES = 0.01
"""Smaller shares of near copies change a score by less than this, and deserve no warning."""
KEEP_TOGETHER = (
    "use --document, --user or --text, so that rows that belong together stay in one split "
    "(in Python documents=, users= or texts=, in a suite document:, user: or text:)"
)
"""Advice against near copies. Rows with the same text are never in two splits, if the texts are given."""


def corpus_warnings(records: Sequence[Record], names: Names) -> list[str]:
    """Return a warning for each share of test texts or vectors that train also holds, or whose authors it holds.

    Also warn of few test texts, and if it was not checked whether vectors and rows belong together.

    Warnings name the dataset, and the victim whose vectors they are about, only if there are several.
    """
    several_datasets = len({record.dataset for record in records}) > 1

    def on(dataset: str) -> str:
        return f"{names.name('dataset', dataset)}: " if several_datasets else ""

    checks = {r.dataset: r.checks for r in records if r.checks and not threat_named(r.threat).bounds_epsilon}
    warnings = [
        f"{on(dataset)}{100 * share:.1f} % of the test texts {meaning}"
        for dataset, shares in checks.items()
        for check, meaning in CORPUS_CHECKS.items()
        if (share := shares.get(check))
    ]
    warnings += [
        f"{on(dataset)}{dropped:.0f} of {source:.0f} rows were left out, since they lack a value or are unreadable"
        for dataset, shares in checks.items()
        # a dataset that drops rows by its paper's rule does not count the rows of its source
        if (dropped := shares.get("dropped_rows")) and (source := shares.get("source_rows"))
    ]
    guessing = [r for r in records if r.status == "ok" and not threat_named(r.threat).bounds_epsilon]
    sizes = {r.dataset: r.test_size for r in guessing if threat_named(r.threat).needs == "documents" and r.test_size}
    warnings += [
        f"{on(dataset)}only {size} test texts; intervals are wide, and small gains are not found"
        for dataset, size in sizes.items()
        if size < FEW_TEXTS
    ]
    unchecked = [m.status for r in records for m in r.metrics if m.name == "rows_match" and m.value is None]
    warnings += [f"whether vectors and rows belong together was not checked: {why}" for why in dict.fromkeys(unchecked)]
    copies = {(r.dataset, r.victim): m.value for r in records if (m := r.value("near_copies"))}
    several = len({(r.dataset, r.victim) for r in records}) > 1
    for (dataset, victim), share in copies.items():
        if share and share >= MANY_COPIES:
            victim_on_dataset = f"{names.name('victim', victim)} on {names.name('dataset', dataset)}: "
            warnings.append(
                f"{victim_on_dataset if several else ''}{100 * share:.1f} % of the test vectors have a near copy among "
                f"the training vectors, which may give their secrets away; {KEEP_TOGETHER}"
            )
    return warnings


def summarise(rows: Sequence[Row], warnings: Sequence[str] = ()) -> list[str]:
    """Return the sentences about a leaderboard's rows, then the warnings.

    Args:
        rows: means over secrets, and one row for each secret.
        warnings: warnings about the corpus and the vectors.
    """
    scored = [row for row in rows if is_number(row.get("attack_score"))]
    several = len({_victim(row) for row in scored}) > 1
    guesses = [_sentence(row, several) for row in sentence_rows(scored)]
    bounds = [_sentence(row, several) for row in _audits(scored)]
    return [*_first(guesses), *_first(bounds), *(f"warning: {warning}" for warning in warnings)]


def _first(sentences: Sequence[str]) -> list[str]:
    """Return as many sentences as one reads, and how many more there are."""
    left = len(sentences) - MAX_SENTENCES
    more = [f"{left} more sentences like these: see the table"] if left > 0 else []
    return [*sentences[:MAX_SENTENCES], *more]


def sentence_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the row of the strongest attack on each secret, with what its threat says of all attacks."""
    groups = comparable(rows_of_secrets(rows))
    return [strongest(group) | threat_named(group[0]["threat"]).of_competing(group) for group in groups]


def rows_of_secrets(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of single secrets, and rows that average over several secrets without rows of their own."""
    apart = {
        (*_victim(row), row["attack"])
        for row in rows
        if row.get("secret") and is_number(row.get("privacy_best_constant"))
    }
    guessing = [row for row in rows if not threat_named(row["threat"]).bounds_epsilon]
    return [row for row in guessing if bool(row.get("secret")) == ((*_victim(row), row["attack"]) in apart)]


def _audits(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each claim that was audited: the audited bound is the same in all of them."""
    first: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if threat_named(row["threat"]).bounds_epsilon and is_number(row.get("epsilon_audited")):
            first.setdefault((*_victim(row), row.get("privacy_unit")), row)
    return list(first.values())


def _sentence(row: Row, several: bool) -> str:
    """Return what a row shows, with its victim where rows are about several victims."""
    sentence = threat_named(row["threat"]).sentence(row)
    return f"{row['victim']} on {row['dataset']}: {sentence}" if several else sentence


def _victim(row: Row) -> tuple[str, str]:
    return row["dataset"], row["victim"]
