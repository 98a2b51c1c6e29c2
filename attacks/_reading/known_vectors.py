"""Standardise the vectors of the texts that the attacker knows."""

from leakboard.attacks._portfolio.vector_inputs import Scaling, standardised
from leakboard.interfaces import Floats
from leakboard.threats.texts import TextsView


def standardised_vectors(view: TextsView) -> tuple[Scaling, Floats, Floats]:
    """Return the scaling, and the scaled vectors of the attacker's train and dev texts, float32 (n, d) each."""
    scaling = standardised(view.train.vectors)
    return scaling, scaling(view.train.vectors), scaling(view.dev.vectors)
