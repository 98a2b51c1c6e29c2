"""The rows of ``best_known.csv``: of each victim and secret the strongest attack, and whether dev chose it.

Only attacks that see as many publications of a text compete (`leakboard.board.strongest`).
"""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.board.means import Row
from leakboard.board.strongest import chosen_on_dev, competing, strongest

BEST_KNOWN = (
    "dataset, victim, secret, secrets, observations, attack, attacks, chosen_on, attack_metric, attack_score, "
    "empirical_privacy, empirical_privacy_low, empirical_privacy_high, privacy_best_constant, "
    "privacy_text_classifier, privacy_bayes, attack_score_new, empirical_privacy_new, status"
)


def best_known(rows: Sequence[Row]) -> list[Row]:
    """Return of a leaderboard's rows those of the strongest attacks, each with how many competed.

    Args:
        rows: as `leakboard.board.leaderboard.leaderboard` gives them.
    """
    groups = competing([row for row in rows if row.get("empirical_privacy") is not None])
    return [
        {**strongest(group), "attacks": len(group), "chosen_on": "dev" if chosen_on_dev(group) else "test"}
        for group in groups
    ]
