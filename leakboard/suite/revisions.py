"""The engine's own revisions: whoever makes other numbers of the same inputs adds one, and all that it touches is new.

They are parts of identities, as are the revisions that plugins and threats declare. What only moves, speeds up or words
code otherwise changes none; `tests/pins.json` tells when one was forgotten.
"""

CORPUS = 1
"""Splits and checks of a loaded dataset, and the texts that victim and attacker have of it."""

FIT = 1
"""Seeds and texts that a victim is trained with."""

PUBLISH = 1
"""Random streams and order of what is published."""

TEXT_CLASSIFIERS = 1
"""The classifiers that are trained on the text itself."""

UTILITY = 1
"""What is measured of every victim, whatever the attack: its task, regressions, neighbours of words."""
