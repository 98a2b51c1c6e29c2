"""Average word tables that the attacker trains, to reduce the noise of single trainings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._words.lengths import log_lengths
from leakboard.errors import NotApplicable
from leakboard.interfaces import Floats, PublishedWords
from leakboard.models.search import normalised


@dataclass(frozen=True)
class Training:
    """One table of the attacker: as it is known exactly, and as the victim would publish it."""

    exact: PublishedWords
    published: PublishedWords


@dataclass(frozen=True)
class OwnTable:
    """The mean of the attacker's trainings; one training is its own mean."""

    words: list[str]
    vectors: Floats
    """float32 (m, d), of length 1 if they are aligned."""
    log_lengths: Floats
    """Mean logarithms of the lengths of the tables' vectors, around their median, float32 (m,)."""
    differences: NDArray[np.float64] | None = None
    """Covariance of a published vector around the mean of the other trainings, float64 (d, d); None: one training.

    Noise of the release is in the differences. Noise of private training is not: own tables are trained without it.
    """


def averaged(trainings: Sequence[Training], *, aligned: bool) -> OwnTable:
    """Average the tables' vectors of the words that all tables have.

    Args:
        trainings: tables of one recipe.
        aligned: whether to centre each table, and to rotate it to the first; else all tables share a space.

    Raises:
        NotApplicable: no word is in all tables.
    """
    shared = set.intersection(*(set(training.exact.words) for training in trainings))
    words = [word for word in trainings[0].exact.words if word in shared]
    if not words:
        raise NotApplicable("nearest_neighbour: the attacker's own tables share no word")
    lengths = np.mean([log_lengths(_rows(t.exact, words)) for t in trainings], 0)
    exact = [_rows(t.exact, words) for t in trainings]
    published = [_rows(t.published, words) for t in trainings]
    if aligned:
        exact, published = [centred(table) for table in exact], [centred(table) for table in published]
        rotations = [procrustes(table, exact[0]) for table in exact[1:]]
        exact[1:] = [table @ rotation for table, rotation in zip(exact[1:], rotations, strict=True)]
        published[1:] = [table @ rotation for table, rotation in zip(published[1:], rotations, strict=True)]
    total = np.sum(exact, 0)
    differences = None
    if len(trainings) > 1:
        differences = np.zeros((total.shape[1],) * 2)
        for known, noisy in zip(exact, published, strict=True):
            apart = (noisy - (total - known) / (len(trainings) - 1)).astype(np.float64)
            differences += apart.T @ apart / (len(trainings) * len(words))
    mean = total / len(trainings)
    around = lengths - np.median(lengths)
    return OwnTable(words, normalised(mean) if aligned else mean, around.astype(np.float32), differences)


def centred(vectors: Floats) -> Floats:
    """Return rows of length 1, centred, and of length 1 again (Artetxe, Labaka and Agirre 2018, step 1)."""
    unit = normalised(vectors)
    return normalised(unit - unit.mean(0))


def procrustes(source: Floats, target: Floats) -> Floats:
    """Return the orthogonal R that minimises ||source R - target|| (Schoenemann 1966), float32 (d, d)."""
    from scipy.linalg import orthogonal_procrustes

    return orthogonal_procrustes(source.astype(np.float64), target.astype(np.float64))[0].astype(np.float32)


def _rows(table: PublishedWords, words: list[str]) -> Floats:
    if table.words == words:
        return table.vectors
    rows = {word: row for row, word in enumerate(table.words)}
    return table.vectors[[rows[word] for word in words]]
