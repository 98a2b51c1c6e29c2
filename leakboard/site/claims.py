"""Compare published claims of privacy across boards: which mechanisms break theirs?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leakboard.board.schema import Row, columns
from leakboard.site.content import Board
from leakboard.site.sources import Paper, Source, source_of
from leakboard.site.views import VERDICTS, three_epsilons
from leakboard.suite.names import natural

QUESTION = "Which published claims are broken?"
AUDITED = VERDICTS[:3]
"""The verdicts of audits, failures first."""
RULE = (
    "A setting is a dataset and a choice of the mechanism's options. The column settings counts those with the row's "
    "verdict, of all; the row shows the one with the smallest claim. Mechanisms that LeakBoard planted or repaired are "
    "left out."
)


def claims_page(boards: Sequence[Board], documentation: str) -> Mapping[str, Any]:
    """Return the content of the page: a row for each audited mechanism of a paper on a board, failures first.

    Args:
        boards: of the site.
        documentation: address of the documentation's front page; empty: there is none.
    """
    rows = [row for board in boards for row in _rows(board)]
    rows.sort(key=lambda row: (VERDICTS.index(row["verdict"]), natural(row["victim"])))
    broken = [row for row in rows if row["verdict"] == VERDICTS[0]]
    names = dict.fromkeys(row["victim"] for row in broken)
    count = f"{len(names)} of {len(dict.fromkeys(row['victim'] for row in rows))} audited mechanisms of papers"
    text = f"{count} break their claim in at least one setting: {'; '.join(names)}. {RULE}" if broken else RULE
    if documentation:
        page = documentation.replace("index.html", "released_sanitisers.html")
        text += f"\n\nReleased packages of sanitisers: [which of them keep their claim](../{page})."
    table = {"caption": "Audited mechanisms of papers", "columns": columns("page: claimed"), "rows": rows}
    return {"heading": QUESTION, "text": text, "listings": [table]}


def _rows(board: Board) -> Iterator[Row]:
    """Yield the rows of a board's mechanisms, each with its worst verdict."""
    groups: dict[tuple[str, Paper], list[Row]] = {}
    for dataset, victim, source, paper in _published(board):
        claim = three_epsilons(board, dataset, victim)
        if claim["verdict"] in AUDITED and claim["epsilon_audited"] is not None:
            name = source.name or victim.partition(",")[0].partition(" (")[0]
            groups.setdefault((name, paper), []).append(claim)
    for (name, paper), claims in groups.items():
        worst = min((claim["verdict"] for claim in claims), key=VERDICTS.index)
        of_worst = [claim for claim in claims if claim["verdict"] == worst]
        shown = min(of_worst, key=lambda claim: claim["epsilon_claimed"])
        yield {
            **shown,
            "victim": name,
            "settings": f"{len(of_worst)} of {len(claims)}",
            "source": paper.title,
            "source_href": paper.url,
            "board": board.name,
            "board_href": f"../boards/{board.name}/index.html",
        }


def _published(board: Board) -> Iterator[tuple[str, str, Source, Paper]]:
    """Yield dataset, victim, source and paper of each victim that comes from a paper."""
    for row in {(row["dataset"], row["victim"]): row for row in board.rows}.values():
        source = source_of("victim", row["victim_options"])
        if source and source.paper and not (source.control or source.repaired):
            yield row["dataset"], row["victim"], source, source.paper
