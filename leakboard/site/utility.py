"""Name the measures of utility that a board may weigh against privacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from leakboard.suite.suite_file import UtilityName


@dataclass(frozen=True)
class Utility:
    """A measure of what published vectors are good for; higher is better."""

    column: str
    """Its column in ``leaderboard.csv``."""
    name: str
    """Its name in sentences."""
    loss: float
    """Allowed loss (points) for the victim that keeps most privacy."""


TASK = Utility("task_accuracy", "task accuracy", 2)
UTILITIES: Mapping[UtilityName, Utility] = {
    "task": TASK,
    "search": Utility("retrieval_recall@10", "recall@10 of search", 10),
}
