"""Estimate how long attacks on own vectors take, before they start.

Nearly all of the time goes into the ensemble of classifiers. Its seconds were measured by `python benchmarks
own_vectors`. Between measured sizes they are interpolated on logarithmic axes. Other attacks are not estimated. Other
machines, and other work on the cores, change the time by a factor of two or more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leakboard.data.readers.vector_databases import source
from leakboard.data.readers.vectors import shape_of
from leakboard.execution.resources import usable_cores

if TYPE_CHECKING:
    from leakboard.suite.suites import Suite

MEASURED = {1_000: 7.0, 5_000: 17.6, 20_000: 35.9, 100_000: 103.0}
"""Rows, and seconds of one ensemble on 2 cores, with 384 dimensions and two secrets."""
CORES, DIMENSIONS = 2, 384
"""Those of the measurement."""
FIXED_SHARE = 0.6
"""Share of these seconds that does not depend on the number of dimensions."""
MOST_CORES = 4
"""Cores that one ensemble uses well."""


@dataclass(frozen=True)
class Estimate:
    """How long the attacks of a suite take, by kind."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds of an attack, by the name of its plugin."""
    size: str = ""
    """Number of vectors and dimensions, in words."""
    cores: int = CORES

    def sentence(self, kinds: Iterable[str]) -> str:
        """Return about how long tasks of these kinds take; empty: none of them is estimated."""
        total = sum(self.seconds.get(kind, 0.0) for kind in kinds)
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        return f"attacks on {self.size}: about {duration(total)} on {cores}" if total else ""


def estimate(suite: Suite) -> Estimate:
    """Return how long the attacks on the vectors of a suite of own vectors take; empty if their size is unknown."""
    victims = {cell.victim.label: cell.victim.plugin for cell in suite.cells()}
    shapes = [shape_of(source(victim.vectors.located)) for victim in victims.values()]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return Estimate()
    rows, dimensions = max(shape[0] for shape in known), max(shape[1] for shape in known)
    table = next(cell.source.corpus.plugin for cell in suite.cells())
    counts = {"attribute": len(table.secrets), "entity": len(table.entities)}
    cores = usable_cores()
    seconds = {}
    for attack in (cell.attack for cell in suite.cells()):
        if getattr(attack.plugin, "portfolio", "") == "ensemble" and counts[attack.plugin.kind]:
            seconds[attack.name] = ensemble_seconds(rows, dimensions, cores)
    return Estimate(seconds, f"{rows:,} vectors of {dimensions:,} numbers", cores)


def ensemble_seconds(rows: int, dimensions: int, cores: int) -> float:
    """Return about how many seconds one ensemble takes."""
    sizes = list(itertools.pairwise(MEASURED.items()))
    (few, least), (many, most) = next((pair for pair in sizes if rows <= pair[1][0]), sizes[-1])
    slope = math.log(most / least) / math.log(many / few)
    seconds = least * max(rows / few, 0.5) ** slope
    width = FIXED_SHARE + (1 - FIXED_SHARE) * dimensions / DIMENSIONS
    return seconds * width * CORES / min(cores, MOST_CORES)


def duration(seconds: float) -> str:
    """Return a duration in words, as rough as an estimate is."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} seconds"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{round(seconds / 3600)} hours"
