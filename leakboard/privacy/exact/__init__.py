"""Compute what a channel hides, without drawing from it: its worst pair, its claim, its best attacker.

1. ``scan`` reads the matrix once, in blocks of rows, for any number of readings.
2. Readings: ``extremes`` (worst pair), ``supports`` (infinite ratios), ``bayes`` (best attacker), ``deniability``.
3. ``claims`` compares close pairs with the claim of the mechanism, ``calibration`` finds the option for a true epsilon.

``audit`` does all of it. Ratios per distance are lower bounds: not all combinations of two inputs and an output are
compared.
"""
