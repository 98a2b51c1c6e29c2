"""Compare encoders without a defence across boards: which of them leaks least?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.board.schema import Row, columns, threats_of
from leakboard.site.content import Board, slug
from leakboard.site.ranks import overlap, useful
from leakboard.site.rendering import decimals
from leakboard.site.sources import source_of
from leakboard.site.views import View, views
from leakboard.suite.labels import parse
from leakboard.suite.names import natural

QUESTION = "Which encoder leaks least?"
RULE = "In a comparison the least private row of an encoder counts. Encoders tied with the first are counted, too."
"""How the answer counts."""


@dataclass(frozen=True)
class Comparison:
    """The encoders that were attacked for the same secrets of one dataset, on any board."""

    dataset: str
    view: View
    """A table with these secrets, for their title."""
    rows: Sequence[Row]
    """Most privacy first; an encoder of several boards has several rows."""

    @property
    def best(self) -> list[Row]:
        """The row of each encoder that leaves least privacy, most private encoder first."""
        least: dict[str, Row] = {}
        for row in reversed(useful(self.rows)):
            least.setdefault(row["encoder"], row)
        return list(least.values())[::-1]

    @property
    def leaders(self) -> list[str]:
        """The encoders that cannot be told from the one that leaks least; empty if these are all."""
        first, *others = self.best
        tied = [first["encoder"], *self._ties(first, others)]
        return tied if len(tied) <= len(others) else []

    @staticmethod
    def _ties(first: Row, others: Sequence[Row]) -> list[str]:
        return [row["encoder"] for row in others if overlap(row, first)]

    @property
    def sentence(self) -> str:
        """Which encoder leaks least here, and which most; empty with fewer than two encoders of use."""
        if len(self.best) < 2:
            return ""
        first, *others = self.best
        ties = self._ties(first, others)
        constant = "" if self.view.constant is None else f" of at most {decimals(self.view.constant, 2)}"
        where, kept = f"{self.dataset}, {self.view.short_title}", f"privacy {_privacy(first)}{constant}"
        if len(ties) == len(others):
            return f"{where}: no difference is seen between {' and '.join([first['encoder'], *ties])} ({kept})."
        least = " or ".join([first["encoder"], *ties])
        return f"{where}: {least} leaks least ({kept}), {others[-1]['encoder']} most ({_privacy(others[-1])})."


def comparisons(boards: Sequence[Board]) -> list[Comparison]:
    """Return the encoders without a defence on each dataset, for each of its secrets; most encoders first."""
    groups: dict[tuple[str, str, str], list[tuple[View, Row]]] = {}
    for board, view in _scored(boards):
        for row in view.rows:
            if encoder := _encoder(row):
                key = row["dataset_options"], row["threat"], "; ".join(sorted(row["secrets"].split("; ")))
                groups.setdefault(key, []).append((view, _linked(row, board, encoder)))
    names = _dataset_names([row for members in groups.values() for _, row in members])
    made = []
    for members in groups.values():
        rows = sorted((row for _, row in members), key=lambda row: -row["empirical_privacy"])
        made.append(Comparison(names[rows[0]["dataset_options"]], members[0][0], rows))
    return sorted(made, key=lambda one: (-len(one.best), natural(one.dataset), natural(one.view.secrets)))


def _dataset_names(rows: Sequence[Row]) -> dict[str, str]:
    """Return the name of each dataset by its label, with its options if several datasets have the name."""
    names = {row["dataset_options"]: row["dataset"] for row in rows}
    several = Counter(names.values())
    options = {label: ", ".join(f"{key}={value}" for key, value in parse(label)[1].items()) for label in names}
    return {
        label: f"{name} ({options[label]})" if several[name] > 1 and options[label] else name
        for label, name in names.items()
    }


def answer(compared: Sequence[Comparison]) -> str:
    """Return how often each encoder leaks least, in a sentence; empty without comparisons."""
    leading = Counter(encoder for one in compared for encoder in one.leaders)
    if not compared or not leading:
        return ""
    counts = [f"{encoder} in {count}" for encoder, count in leading.most_common()]
    undecided = sum(not one.leaders for one in compared)
    ties = f"; in {undecided} no difference is seen" if undecided else ""
    start = "It depends on the secret. " if max(leading.values()) < len(compared) - undecided else ""
    number = "1 comparison" if len(compared) == 1 else f"{len(compared)} comparisons"
    return f"{start}In {number} these leak least: {', '.join(counts)}{ties}. {RULE}"


def encoder_pages(boards: Sequence[Board]) -> dict[str, Mapping[str, Any]]:
    """Return the content of ``index.html`` and of a page for each encoder, by file name."""
    made = comparisons(boards)
    compared = [one for one in made if len(one.best) > 1]
    pages: dict[str, Mapping[str, Any]] = {
        "index.html": {
            "heading": QUESTION,
            "text": "\n".join([answer(compared), "", *(f"- {one.sentence}" for one in compared)]),
            "listings": [_table(f"{one.dataset}, {one.view.short_title}", one.rows) for one in compared],
        }
    }
    scored = _scored(boards)
    for name in dict.fromkeys(row["encoder"] for one in made for row in one.rows):
        alone = [
            _table(f"{one.dataset}, {one.view.short_title}", rows) for one in made if (rows := _of(one.rows, name))
        ]
        defended = [
            _table(f"Defences of {name}, on the board {board.name}: {view.dataset}, {view.short_title}", rows)
            for board, view in scored
            if (rows := [_linked(row, board, name) for row in view.rows if _defends(row) == name])
        ]
        text = "\n".join(f"- {one.sentence}" for one in compared if _of(one.rows, name))
        pages[file_of(name)] = {"eyebrow": "Encoder", "heading": name, "text": text, "listings": alone + defended}
    return pages


def file_of(encoder: str) -> str:
    """Return the file of an encoder's page."""
    return f"{slug(encoder)}.html"


def _scored(boards: Sequence[Board]) -> list[tuple[Board, View]]:
    return [(board, view) for board in boards for view in views(board) if view.is_scored]


def _encoder(row: Row) -> str:
    source = source_of("victim", row["victim_options"])
    return source.encoder if source else ""


def _defends(row: Row) -> str:
    """Return the encoder that a defence is built on; empty for other victims."""
    encoder = parse(row["victim_options"])[1].get("encoder", "")
    source = source_of("victim", encoder) if encoder and not _encoder(row) else None
    return source.encoder if source else ""


def _linked(row: Row, board: Board, encoder: str) -> Row:
    home = f"../boards/{board.name}"
    return {
        **row,
        "encoder": encoder,
        "encoder_href": file_of(encoder),
        "victim_href": f"{home}/{row['slug']}.html",
        "attack_href": f"../attacks/{row['attack_slug']}.html",
        "board": board.name,
        "board_href": f"{home}/index.html",
    }


def _of(rows: Sequence[Row], encoder: str) -> list[Row]:
    return [row for row in rows if row["encoder"] == encoder]


def _table(caption: str, rows: Sequence[Row]) -> dict[str, Any]:
    return {"caption": caption, "columns": columns("page: encoders", threats_of(rows)), "rows": rows}


def _privacy(row: Row) -> str:
    return decimals(row["empirical_privacy"], 2)
