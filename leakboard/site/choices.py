"""Choose the victim that keeps most privacy at an allowed loss of utility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakboard.board.schema import Row
from leakboard.site.ranks import above, overlap
from leakboard.site.views import View


@dataclass(frozen=True)
class Choice:
    """The victim that keeps most privacy at an allowed loss of utility."""

    best: Row
    ties: Sequence[Row]
    """Other victims within the loss whose intervals overlap that of the best."""
    no_better: bool
    """Whether no allowed victim keeps measurably more than the encoder without a defence."""
    linked_first: float | None
    """If vectors are linked to texts: the least share of vectors whose first candidate is right, of all allowed."""
    saw_fewer: bool
    """Whether attackers of another victim saw more publications of a text than any of the best victim's."""

    @property
    def hides_nothing(self) -> bool:
        """Whether most vectors of each allowed victim have their text as first candidate.

        Then a small share of links with few false ones only says that the attacker is not sure of each link.
        """
        return self.linked_first is not None and self.linked_first > 0.5

    @property
    def caveat(self) -> str:
        """What readers must know of the best victim's privacy; empty if there is nothing."""
        return "Its attackers saw fewer publications of a text than those of other victims." if self.saw_fewer else ""

    @property
    def is_kept(self) -> bool:
        """Whether the best victim may be recommended."""
        return not self.no_better and not self.hides_nothing


def keeps_most(view: View, loss: float | None = None) -> Choice | None:
    """Return the victim that keeps most privacy and loses at most ``loss`` points of utility.

    None if a table has no such victim, or only one victim to choose from. None if vectors of words are attacked: task
    accuracy is of texts.

    Args:
        view: the table.
        loss: points of utility, 1 for 0.01; None: what the utility allows.
    """
    if view.reference is None or not view.is_scored or view.threat.needs == "words" or len(view.rows) < 2:
        return None
    used, allowed_loss = view.utility.column, view.utility.loss if loss is None else loss
    least = view.reference[used] - allowed_loss / 100 - 1e-9
    allowed = [row for row in view.comparable if row[used] >= least]
    if not allowed:
        return None
    best = max(allowed, key=lambda row: row["empirical_privacy"])
    ties = [row for row in allowed if row is not best and overlap(row, best)]
    no_better = view.undefended and not any(above(row, view.reference) for row in allowed)
    firsts = [row["linked_first"] for row in allowed] if view.links else []
    linked_first = min(firsts) if firsts and None not in firsts else None
    saw_fewer = best["most_observations"] < max(row["most_observations"] for row in view.rows)
    return Choice(best, ties, no_better, linked_first, saw_fewer)
