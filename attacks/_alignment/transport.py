"""Refine a rotation by optimal transport between the stolen vectors and the attacker's own.

This is Wasserstein Procrustes (Grave, Joulin and Berthet 2019, arXiv 1805.11222). Each round has two steps:

1. A plan says how much of each own vector stands for each stored vector. It is entropic: smooth, and fast to find.
2. Procrustes fits the rotation to the stored vectors and the plan's mean own vectors.

Means of nearest neighbours do the same (`leakboard.attacks._alignment.rotation`). But all stored vectors may choose the
same few own ones, and few neighbours are mostly wrong. In a plan all own vectors have the same weight.
"""

from dataclasses import replace

import numpy as np

from leakboard.attacks._alignment.alignment import Alignment
from leakboard.attacks._alignment.rotation import procrustes
from leakboard.interfaces import Floats
from leakboard.models.search import normalised

TEMPERATURE = 0.2
"""Entropic regularisation, in units of the cosine about the means."""
ROUNDS, ROWS, SCALINGS = 60, 2_000, 20
"""Rounds, vectors of each cloud that are drawn for a round, and scalings of its plan."""


def transported(found: Alignment, own: Floats, stored: Floats, seed: int) -> Alignment:
    """Return an alignment by rotation, refined.

    Args:
        found: an alignment whose matrix is a rotation times a factor.
        own: float32 (m, d).
        stored: float32 (n, d).
        seed: draws the vectors of each round.
    """
    rng, factor = np.random.default_rng(seed), np.linalg.norm(found.matrix, 2)
    own, stored = own - own.mean(0), stored - stored.mean(0)
    rotation = found.matrix / factor
    for _ in range(ROUNDS):
        some, others = (_drawn(cloud, rng) for cloud in (stored, own))
        plan = transport_plan(normalised(some @ rotation) @ normalised(others).T, TEMPERATURE)
        fitted = procrustes(some, plan @ others)
        rotation = fitted @ (rotation.T @ fitted)  # twice the step: as good as twice the rounds
    return replace(found, matrix=rotation * factor, details=f"{found.details}; refined by optimal transport")


def transport_plan(cosines: Floats, temperature: float) -> Floats:
    """Return the entropic plan, float32 (n, m): each row sums to 1, and all columns have about equal sums.

    Sinkhorn's algorithm scales exp(cosine / temperature) (Cuturi 2013, arXiv 1306.0895).

    Args:
        cosines: float32 (n, m).
        temperature: small: each row chooses its nearest column; large: all columns are equal.
    """
    rows, columns = cosines.shape
    kernel, row = np.exp((cosines - 1) / np.float32(temperature)), np.ones(rows, np.float32)
    for _ in range(SCALINGS):
        column = np.float32(rows / columns) / (row @ kernel)
        row = 1 / (kernel @ column)
    plan: Floats = row[:, None] * kernel * column
    return plan


def _drawn(cloud: Floats, rng: np.random.Generator) -> Floats:
    return cloud if len(cloud) <= ROWS else cloud[rng.choice(len(cloud), ROWS, replace=False)]
