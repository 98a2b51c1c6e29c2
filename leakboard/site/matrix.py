"""Compare audited mechanisms across datasets, such as dimensions: one row for each mechanism, over all its epsilons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from leakboard.board.schema import Row
from leakboard.site.sources import Paper, source_of
from leakboard.site.views import VERDICTS, View
from leakboard.suite.labels import without
from leakboard.suite.names import natural


@dataclass(frozen=True)
class MatrixCell:
    """The verdicts on a mechanism's claims in one dataset, one for each epsilon."""

    verdict: str
    """The worst of them; empty if the mechanism was not audited there."""
    count: int
    """How many claims have this verdict."""
    of: int
    """How many claims were audited."""
    view: int
    """Number of the table with the epsilons, from 1."""

    @property
    def text(self) -> str:
        """The verdict, with its count unless all claims have it."""
        return self.verdict if self.count == self.of else f"{self.verdict}, {self.count} of {self.of}"


@dataclass(frozen=True)
class Mechanism:
    """A row of the matrix."""

    name: str
    paper: Paper | None
    control: bool
    """Whether it was planted to test audits."""
    cells: Sequence[MatrixCell]

    @property
    def violated(self) -> int:
        """The number of datasets where an audit refutes a claim."""
        return sum(cell.verdict == "violated" for cell in self.cells)

    @property
    def audited(self) -> int:
        """The number of datasets where it was audited."""
        return sum(bool(cell.verdict) for cell in self.cells)


@dataclass(frozen=True)
class Matrix:
    """Mechanisms by datasets, those that fail most often first."""

    datasets: Sequence[str]
    mechanisms: Sequence[Mechanism]

    @property
    def published(self) -> list[Mechanism]:
        """The mechanisms of papers."""
        return [mechanism for mechanism in self.mechanisms if not mechanism.control]

    @property
    def controls(self) -> list[Mechanism]:
        """The mechanisms that were planted."""
        return [mechanism for mechanism in self.mechanisms if mechanism.control]

    @property
    def answer(self) -> str:
        """Which published mechanisms break their claim, in a sentence; empty without mechanisms of papers."""
        if not self.published:
            return ""
        broken = [f"{m.name} ({self._where(m)})" for m in self.published if m.violated]
        sound = [m.name for m in self.published if not m.violated]
        return f"Broken: {'; '.join(broken) or 'none'}. Not refuted: {'; '.join(sound) or 'none'}."

    def _where(self, mechanism: Mechanism) -> str:
        """Return where a broken mechanism fails."""
        pairs = zip(self.datasets, mechanism.cells, strict=True)
        others = [name for name, cell in pairs if cell.verdict and cell.verdict != "violated"]
        return f"except in {', '.join(others)}" if others else "everywhere"


def matrix(views: Sequence[View]) -> Matrix | None:
    """Return the audited mechanisms of several datasets; None if a board has other tables, or only one."""
    if len(views) < 2 or any(view.is_scored for view in views):
        return None
    names = dict.fromkeys(_family(row) for view in views for row in view.rows)
    made = [_mechanism(name, views) for name in names]
    made.sort(key=lambda m: (-m.violated / max(1, m.audited), -_unproven(m), natural(m.name)))
    return Matrix([view.dataset for view in views], made)


def _mechanism(name: str, views: Sequence[View]) -> Mechanism:
    labels = [row["victim_options"] for view in views for row in view.rows if _family(row) == name]
    source = source_of("victim", labels[0])
    cells = [_cell([row for row in view.rows if _family(row) == name], i) for i, view in enumerate(views, start=1)]
    return Mechanism(name, source.paper if source else None, bool(source and source.control), cells)


def _cell(rows: Sequence[Row], view: int) -> MatrixCell:
    verdicts = Counter(row["verdict"] for row in rows if row["verdict"])
    worst = next((verdict for verdict in VERDICTS if verdicts[verdict]), "")
    return MatrixCell(worst, verdicts[worst], sum(verdicts.values()), view)


def _family(row: Row) -> str:
    return without(row["victim"], "epsilon")


def _unproven(mechanism: Mechanism) -> int:
    return sum(cell.verdict == "unproven" for cell in mechanism.cells)
