"""A column of a published table, as one entry of the schema or of a threat declares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HIGHER, LOWER = "higher is better", "lower is better"


@dataclass(frozen=True)
class Column:
    """A column: its meaning, the form of its values, and the tables that have it."""

    name: str
    """Its name in every file, row and table."""
    meaning: str
    """A sentence for the reference about the content of the column."""
    tables: tuple[str, ...]
    """Files and tables of pages that have it, by their names in `leakboard.board.table_layouts.TABLES`."""
    title: str = ""
    """Heading on pages; if left out, the name with spaces."""
    kind: str = "text"
    """Form of a value in tables: one of `KINDS`."""
    group: str = ""
    """Heading above neighbouring columns of a page's table."""
    better: str = ""
    """The direction that is better for the victim, as `HIGHER` or `LOWER` say."""
    note: str = ""
    """A short explanation for the legend below a table."""
    metric: str = ""
    """The metric whose mean over seeds it holds; empty where code works it out."""
    variable: str = ""
    """The variable of the metric, for example a class of words; empty: that of the row."""
    part: str = "value"
    """The part of the metric: ``value``, ``low``, ``high``, ``sd`` (standard deviation over seeds), or ``p``.

    ``p`` is for p-values: it combines those of the seeds.
    """
    per_secret: bool = False
    """Whether a row about one secret has the mean for this secret; otherwise it repeats that of all secrets.

    ``attack_score`` is always that of the secret.
    """
    gate: Literal["", "attack", "victim", "release"] = ""
    """Which values ``run --at-most`` and ``--at-least`` may limit; empty: none.

    - ``attack``: that of each attack and secret; audits are left out.
    - ``victim``: that of each victim, in the worst of its rows.
    - ``release``: the same, divided by the number of publications of a text.
    """
    since: str = "0.1.0"
    """The first version whose records can have it."""

    @property
    def heading(self) -> str:
        """Return the heading on pages."""
        return self.title or self.name.replace("_", " ")

    @property
    def is_number(self) -> bool:
        """Return whether its cells hold numbers; tables set them to the right."""
        return self.kind not in TEXT_KINDS


TEXT_KINDS = frozenset(("text", "name", "verdict", "mark", "metric"))
KINDS = TEXT_KINDS | {
    *("number", "score", "delta", "baseline", "interval", "epsilon", "claim", "bound", "rank", "gap", "seconds"),
    *("share", "whole", "count", "signed", "errors"),
}
"""The forms of values; `leakboard.site.rendering.RENDERERS` writes each of them."""
LEADERBOARD_TABLES = (
    *("leaderboard.csv", "best_known.csv", "report", "console: victims", "console: attacks"),
    *("page: victims", "page: attacks", "page: everywhere"),
)
"""The file `leaderboard.csv` and the tables that show its rows: a threat's columns can be in these."""
