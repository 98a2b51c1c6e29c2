"""Compare encoders without a defence across boards: which of them leaks least?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.board.figures import finite
from leakboard.board.schema import Row, columns, threats_of
from leakboard.site.content import Board, slug
from leakboard.site.ranks import overlap, useful
from leakboard.site.rendering import decimals
from leakboard.site.sources import source_of
from leakboard.site.views import View, views
from leakboard.suite.labels import parse
from leakboard.suite.names import natural

QUESTION = "Which encoder leaks least?"
RULE = "In a comparison the least private row of an encoder counts. Encoders tie if their intervals of privacy overlap."
"""How the answer counts."""
NEARLY_ALL = 0.9
"""The advantage from which an encoder gives nearly all away."""


@dataclass(frozen=True)
class GridCell:
    """What an encoder gives away in a comparison."""

    advantage: float
    """Advantage of the strongest attack on the encoder's least private row: at most 1; below 0, worse than a guess."""
    leads: bool
    """Whether the encoder leaks least, or ties with the one that does."""

    @property
    def text(self) -> str:
        """The advantage, with two decimals."""
        return decimals(self.advantage, 2)


@dataclass(frozen=True)
class GridPart:
    """The comparisons about one kind of secret."""

    title: str
    comparisons: Sequence[tuple[str, Sequence[GridCell | None]]]
    """Datasets, each with a cell for each encoder; None: the encoder was not attacked there."""


@dataclass(frozen=True)
class Grid:
    """What all encoders give away, at a glance."""

    encoders: Sequence[tuple[str, str]]
    """Names and files of their pages, those of most comparisons first."""
    parts: Sequence[GridPart]


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
    """Return the name of each dataset by its label, with a board that uses it if several datasets have the name."""
    named = {row["dataset_options"]: (row["dataset"], row["board"]) for row in reversed(rows)}
    several = Counter(name for name, _ in named.values())  # on one board each name is of one dataset
    return {label: f"{name} ({board})" if several[name] > 1 else name for label, (name, board) in named.items()}


def grid(compared: Sequence[Comparison]) -> Grid:
    """Return the advantage of the strongest attack for each comparison and encoder."""
    counts = Counter(row["encoder"] for one in compared for row in one.best)
    encoders = sorted(counts, key=lambda name: (-counts[name], natural(name)))
    parts: dict[str, list[tuple[str, Sequence[GridCell | None]]]] = {}
    for one in compared:
        leaders = one.leaders
        known = {row["encoder"]: row for row in one.best if finite(row["attack_advantage"])}
        cells = [
            GridCell(known[name]["attack_advantage"], name in leaders) if name in known else None for name in encoders
        ]
        parts.setdefault(one.view.short_title, []).append((one.dataset, cells))
    return Grid([(name, file_of(name)) for name in encoders], [GridPart(*part) for part in parts.items()])


def answer(compared: Sequence[Comparison]) -> str:
    """Return in how many comparisons one encoder leaks least, several tie, or none differ; empty if none ever differ.

    Each comparison is counted once.
    """
    leading = Counter(" and ".join(one.leaders) for one in compared if len(one.leaders) == 1)
    tied = Counter(" and ".join(one.leaders) for one in compared if len(one.leaders) > 1)
    if not leading and not tied:
        return ""
    undecided = len(compared) - leading.total() - tied.total()
    parts = [f"one encoder leaks least in {leading.total()} ({_times(leading)})"] if leading else []
    parts += [f"several tie for the least in {tied.total()} ({_times(tied)})"] if tied else []
    parts += [f"no difference is seen in {undecided}"] if undecided else []
    most = Counter(encoder for one in compared for encoder in one.leaders)
    start = "It depends on the secret. " if max(most.values()) < len(compared) - undecided else ""
    number = "1 comparison" if len(compared) == 1 else f"{len(compared)} comparisons"
    return f"{start}Of {number}: {'; '.join(parts)}. {RULE}"


def _times(counts: Counter[str]) -> str:
    return ", ".join(f"{encoders} in {count}" for encoders, count in counts.most_common())


def about_people(compared: Sequence[Comparison]) -> str:
    """Say where every encoder gives away nearly all about the people mentioned, and how much elsewhere.

    Empty if no comparison shows it.
    """
    gains = []
    for one in compared:
        known: list[Any] = [row.get("attack_advantage") for row in one.best]
        if one.view.threat.name == "entities" and all(map(finite, known)):
            gains.append((one.dataset, min(known), max(known)))
    nearly = [dataset for dataset, low, _ in gains if low >= NEARLY_ALL]
    if not nearly:
        return ""
    shown = [f"{dataset}: {decimals(low, 2)} to {decimals(high, 2)}" for dataset, low, high in gains]
    return (
        f"On {' and on '.join(nearly)} every encoder gives away nearly all about who is mentioned. "
        f"The advantage of the strongest attack, by encoder, on {'; on '.join(shown)}."
    )


def _about_texts(scored: Sequence[tuple[Board, View]]) -> str:
    """Return links to the boards whose first table is about reading texts; empty without such boards."""
    first = {board.name: (board, view) for board, view in reversed(scored)}
    boards = [board for board, view in first.values() if view.threat.name == "texts"]
    links = [f"[{board.question}](../boards/{board.name}/index.html)" for board in boards]
    return f"For whole texts see: {', '.join(links)}" if links else ""


def encoder_pages(boards: Sequence[Board]) -> dict[str, Mapping[str, Any]]:
    """Return the content of ``index.html`` and of a page for each encoder, by file name."""
    made = comparisons(boards)
    compared = [one for one in made if len(one.best) > 1]
    scored = _scored(boards)
    first = filter(None, (answer(compared), about_people(compared), _about_texts(scored)))
    pages: dict[str, Mapping[str, Any]] = {
        "index.html": {
            "heading": QUESTION,
            "text": "\n\n".join(first),
            "grid": grid(compared) if compared else None,
            "listings": [_table(f"{one.dataset}, {one.view.short_title}", one.rows) for one in compared],
        }
    }
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
