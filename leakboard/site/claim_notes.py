"""Explain claims that a number leaves unclear: with word dropout, of rules that replace words, or not refuted."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.board.schema import Row
from leakboard.privacy.mechanisms.textbook import WordDropout
from leakboard.site.content import Board
from leakboard.suite.labels import number, parse

DROPOUT = (
    "Word dropout hides each word with the probability mu. Theorem 2 of Lyu, He and Li (2020) lowers the claim for it, "
    "from epsilon to ln((1 - mu) exp(epsilon) + mu)"
)
OF_WORDS = (
    "A verdict on a rule that replaces words is about the words of this board, and about the rule as its name says: as "
    "in the paper, or as in a released package."
)
UNPROVEN_WORDS = "Not refuted here means that no compared pair of these words refutes the claim; other words may."
UNPROVEN = "Not refuted here means that less is proved than claimed, and that no audit refuted the claim; another may."
NOT_REFUTED = "not refuted here"
"""Remark below the verdict ``unproven``."""
SAME = 1e-6
"""Largest difference of a claim from the formula of word dropout."""


def dropout_note(label: str, claimed: float | None) -> str:
    """Return how word dropout made a victim's claim, with its numbers; empty if it did not.

    Args:
        label: of the victim, with its options ``epsilon`` and ``mu``.
        claimed: epsilon of one release.
    """
    epsilon, mu = number(label, "epsilon"), number(label, "mu")
    if "dropout" in parse(label)[1]:  # the theorem is about independent words, the default
        return ""
    if not claimed or not epsilon or not mu or abs(WordDropout(mu).amplified(epsilon) - claimed) > SAME:
        return ""
    return f"{DROPOUT}: epsilon {epsilon:g} and mu {mu:g} give {claimed:.3f}."


def notes(board: Board, rows: Sequence[Row]) -> list[str]:
    """Return the sentences below a table of victims that explain claims."""
    victims = {row["victim"] for row in rows}
    claims = [record.claim for record in board.records if record.victim in victims and record.claim]
    has_dropout = any(dropout_note(row["victim_options"], row["epsilon_claimed"]) for row in rows)
    are_of_words = any(claim.get("exact") is not None for claim in claims)
    found = [f"{DROPOUT}."] if has_dropout else []
    if are_of_words:
        found.append(OF_WORDS)
    if any(row["verdict"] == "unproven" for row in rows):
        found.append(UNPROVEN_WORDS if are_of_words else UNPROVEN)
    return found
