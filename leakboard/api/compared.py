"""Compare releases of the same rows: which of them gives away less of each secret.

A difference is stated only if its paired interval excludes 0 (`leakboard.metrics.paired`). All comparisons share an
error of 5 % (Bonferroni). An attack that was chosen on test counts as one comparison with each that it was chosen from.

With one seed, chance in training is not counted. So the intervals of the two gains must be apart, too. Threats without
guesses of rows have no paired interval; there the two intervals alone decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from leakboard.board.schema import Row
from leakboard.board.strongest import headlines
from leakboard.board.summary import rows_of_secrets
from leakboard.metrics.paired import Difference, advantage_difference
from leakboard.metrics.row_guesses import RowGuesses
from leakboard.metrics.secret_scores import rankings_of
from leakboard.threats.sentence_parts import is_number, secrets_of
from leakboard.threats.threat import threat_named

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ERROR = 0.05
"""Probability that any comparison states a difference that is none."""
Guessed = Callable[[Row], Sequence[RowGuesses]]
"""Returns the guesses of the attack of a row, for each seed; empty: there are none."""
COLUMNS = (
    "secret",
    "release",
    "compared_with",
    *(
        f"{name}{end}"
        for name in ("attack_advantage", "first_advantage", "difference")
        for end in ("", "_low", "_high")
    ),
    "seeds",
    "comparisons",
    "gives_away",
)
"""Columns of `Report.differences`."""


@dataclass(frozen=True)
class Comparison:
    """What the strongest attacks on one secret gain from a release, and from the first one."""

    first: Row
    other: Row
    difference: Difference | None
    """Of the advantages, with a paired interval; None: unknown."""
    comparisons: int
    """Number of comparisons that share the error."""

    @property
    def secret(self) -> str:
        """The secret, or what else the attack guesses."""
        return _guessed(self.first)

    @property
    def gains(self) -> list[tuple[float, float, float]]:
        """The advantages from both releases, each with its interval, widened to share the error."""
        level = NormalDist().inv_cdf(1 - ERROR / 2 / self.comparisons)
        return [_gain(row, level / NormalDist().inv_cdf(1 - ERROR / 2)) for row in (self.first, self.other)]

    @property
    def gives_away(self) -> str:
        """``less`` or ``more`` than the first release; empty: no difference is shown."""
        (old, *_), (new, *_) = self.gains
        is_apart = self._are_apart and (self.difference is None or self._excludes_zero)
        is_shown = self._excludes_zero if self._seeds > 1 and self.difference else is_apart
        return ("less" if new < old else "more") if is_shown and not self.why_not_compared else ""

    @property
    def why_not_compared(self) -> str:
        """The reason why the gains are not compared; empty: they are."""
        ends = [end for gain in self.gains for end in gain]
        return self._too_few or ("" if all(map(is_number, ends)) else "an interval is missing")

    @property
    def sentence(self) -> str:
        """The comparison in words."""
        names = [f"'{row['victim']}'" for row in (self.first, self.other)]
        shown = [f"{gain:.2f} ({low:.2f} to {high:.2f})" for gain, low, high in self.gains]
        if self.why_not_compared:
            return f"{self.secret}: {names[1]} is not compared with {names[0]}: {self.why_not_compared}"
        if self.gives_away:
            start = f"{self.secret}: {names[1]} gives away {self.gives_away} than {names[0]}"
            return f"{start}: an attacker gains {shown[1]}, not {shown[0]}{self._difference_in_words}"
        why = self._difference_in_words if self._seeds > 1 else ""
        if not self._are_apart and not why:
            why = "; the intervals overlap"
            if self._excludes_zero:
                why += f"{self._difference_in_words}, but with one seed it may be chance in training"
        return (
            f"{self.secret}: no difference between {' and '.join(names)} is shown: "
            f"an attacker gains {' and '.join(shown)}{why}"
        )

    @property
    def row(self) -> Row:
        """The comparison as a row with `COLUMNS`."""
        first, other = self.gains
        measured = [*other, *first, *(self.difference or (None, None, None))]
        numbers = [number if is_number(number) and not self._too_few else None for number in measured]
        names = [self.secret, self.other["victim"], self.first["victim"]]
        shown = self.gives_away or self.why_not_compared or "no difference shown"
        return dict(zip(COLUMNS, [*names, *numbers, self._seeds, self.comparisons, shown], strict=True))

    @property
    def _seeds(self) -> int:
        return int(self.first.get("seeds") or 1)

    @property
    def _are_apart(self) -> bool:
        (_, old_low, old_high), (_, new_low, new_high) = self.gains
        return new_low > old_high or old_low > new_high

    @property
    def _excludes_zero(self) -> bool:
        return self.difference is not None and (self.difference.low > 0 or self.difference.high < 0)

    @property
    def _too_few(self) -> str:
        """Why the test is too small to compare scores, in the words of the sentence about one of them; else empty."""
        doubts = (threat_named(row["threat"]).doubt(row) for row in (self.first, self.other))
        return next((doubt.why for doubt in doubts if doubt.is_too_few), "")

    @property
    def _difference_in_words(self) -> str:
        if self.difference is None:
            return ""
        shown = [round(number, 2) + 0.0 for number in self.difference]  # no minus before 0.00
        return "; the difference is {:.2f} ({:.2f} to {:.2f})".format(*shown)


def comparisons(rows: Sequence[Row], releases: Sequence[str], guessed: Guessed = lambda row: ()) -> list[Comparison]:
    """Compare each release with the first, for each secret.

    Args:
        rows: of a leaderboard; its victims are the releases.
        releases: their names.
        guessed: returns guesses of test rows.
    """
    pairs = [
        (of_secret[releases[0]], of_secret[release])
        for of_secret in _by_secret(rows).values()
        for release in releases[1:]
        if releases[0] in of_secret and release in of_secret
    ]
    count = sum(_tried(first) * _tried(other) for first, other in pairs)
    confidence = 1 - ERROR / max(1, count)
    return [Comparison(first, other, _paired(first, other, guessed, confidence), count) for first, other in pairs]


def _tried(row: Row) -> int:
    """Return from how many attacks the strongest was chosen on test."""
    return int(row.get("attacks") or 1) if row.get("chosen_on") == "test" else 1


def _paired(first: Row, other: Row, guessed: Guessed, confidence: float) -> Difference | None:
    """Return the difference of the advantages; None if rows or seeds of the guesses are unknown, or differ."""
    secret = first.get("secret") or first["secrets"]
    of_first, of_other = ([cell for cell in guessed(row) if secret in cell.secrets] for row in (first, other))
    if not of_first or len(of_first) != len(of_other):
        return None
    cells = [*of_first, *of_other]
    rows, truth = cells[0].rows, cells[0].secrets[secret].truth
    for cell in cells:
        if not (np.array_equal(cell.rows, rows) and np.array_equal(cell.secrets[secret].truth, truth)):
            return None
    before, after = (
        [rankings_of(cell.secrets[secret], cell.units) for cell in attack] for attack in (of_first, of_other)
    )
    if not all([*before, *after]):
        return None
    return advantage_difference(before, after, truth, cells[0].units, confidence)


def draw_releases(rows: Sequence[Row], releases: Sequence[str], column: str) -> Figure:
    """Return a column of the table for each release, one line a secret, with 95 % intervals where they are known."""
    import plotly.graph_objects as go

    from leakboard.board.figures import COLOURS, SYMBOLS, escape, layout

    figure = go.Figure(layout=layout("release", column.replace("_", " ")))
    for i, of_secret in enumerate(_by_secret(rows).values()):
        shown = [of_secret[name] for name in releases if name in of_secret and is_number(of_secret[name].get(column))]
        ends = {
            sign: [abs(end - row[column]) if is_number(end := row.get(f"{column}_{sign}")) else 0 for row in shown]
            for sign in ("low", "high")
        }
        figure.add_scatter(
            x=[escape(row["victim"]) for row in shown],
            y=[row[column] for row in shown],
            error_y={"type": "data", "array": ends["high"], "arrayminus": ends["low"]},
            mode="lines+markers",
            marker={"color": COLOURS[i % len(COLOURS)], "symbol": SYMBOLS[i % len(SYMBOLS)], "size": 10},
            name=escape(_guessed(next(iter(of_secret.values())))),
        )
    return figure


def _by_secret(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, Row]]:
    """Return the row of the strongest attack on each release, by threat and secret."""
    scored = [row for row in rows if is_number(row.get("empirical_privacy"))]
    result: dict[tuple[str, str], dict[str, Row]] = {}
    for row in headlines(rows_of_secrets(scored)):
        result.setdefault((row["threat"], secrets_of(row)), {})[row["victim"]] = row
    return result


def _guessed(row: Row) -> str:
    return threat_named(row["threat"]).guessed or secrets_of(row)


def _gain(row: Row, widening: float) -> tuple[float, float, float]:
    """Return the advantage of the strongest attack, and the ends of its widened 95 % interval, at most 1."""
    known = [row.get(f"attack_advantage{end}") for end in ("", "_low", "_high")]
    gain, low, high = (value if is_number(value) else math.nan for value in known)
    return gain, gain - widening * (gain - low), min(gain + widening * (high - gain), 1.0)  # NaN stays
