"""The engine's own revisions: whoever makes other numbers of the same inputs adds one, and all that it touches is new.

They are parts of identities, as are the revisions that plugins declare. What only moves, speeds up or words code
otherwise changes none; `tests/pins.json` tells when one was forgotten.
"""

from __future__ import annotations

from typing import Any

CORPUS = 1
"""Splits and checks of a loaded dataset, and the texts that victim and attacker have of it."""

FIT = 1
"""Seeds and texts that a victim is trained with."""

PUBLISH = 1
"""Random streams and order of what is published."""

SCORING = {"attribute": 1, "entity": 1, "words": 1, "text": 1, "membership": 1, "claim": 1, "canaries": 1}
"""Of each threat: what the attacker sees, and how its answers are scored."""

TEXT_CLASSIFIERS = 1
"""The classifiers that are trained on the text itself."""

UTILITY = 1
"""What is measured of every victim, whatever the attack: its task, regressions, neighbours of words."""

WITH_TEXT_CLASSIFIERS = ("attribute", "entity")
"""Threats whose scores stand beside those of classifiers on the text."""


def threat(attack: Any) -> str:
    """Return which threat an attack is.

    Raises:
        ValueError: none that there is.
    """
    name = "canaries" if getattr(attack, "audits", "") == "training" else attack.target
    if name not in SCORING:
        raise ValueError(f"target: {name!r} is not one of {', '.join(SCORING)}")
    return str(name)
