"""Declare the engine's own revisions. A change that gives other numbers for the same inputs adds one.

A revision is part of the identity of every result that it touches, like the revisions of plugins and threats. Moving,
speeding up or rewording code changes none. `tests/pins.json` shows when a revision was forgotten.
"""

CORPUS = 1
"""Splits and checks of a loaded dataset, and the texts of victim and attacker."""

FIT = 1
"""Seeds and texts of a victim's training."""

PUBLISH = 2
"""Random streams and order of publications."""

TEXT_CLASSIFIERS = 1
"""Classifiers that are trained on the text itself."""

UTILITY = 4
"""Measures of every victim for any attack: its task, search, regressions, neighbours of words."""
