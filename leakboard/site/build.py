"""Write pages: a site of several boards, one file of one board, and the page next to a suite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

import leakboard
from leakboard.board.schema import Row, columns, threats_of
from leakboard.board.table_layouts import TABLES
from leakboard.pipeline.records import Record
from leakboard.pipeline.runner import Run
from leakboard.site import front, libraries, papers
from leakboard.site.across import judged
from leakboard.site.board_pages import ALONE, board_page, victims
from leakboard.site.charts import Figure
from leakboard.site.claims import claims_page
from leakboard.site.content import Board, make_board, read_board, slug
from leakboard.site.encoders import Grid, encoder_pages
from leakboard.site.needs import attack_seconds, needs_of
from leakboard.site.own_report import Notes, own_report
from leakboard.site.pages import page
from leakboard.site.readme import write_readme
from leakboard.site.sources import source_of
from leakboard.site.utility import UTILITIES
from leakboard.site.views import counted, views
from leakboard.store import write_file
from leakboard.suite.labels import parse
from leakboard.suite.names import natural
from leakboard.suite.registry import Registry
from leakboard.suite.suites import find_suite, home_of
from leakboard.threats.sentence_parts import ROUNDING, why_chance

DOCUMENTATION = "docs/index.html"
"""Where the documentation begins, below the root of a site that has one."""


def build_site(boards: Sequence[Board], out: Path) -> list[Path]:
    """Write a site, and return the paths of its files; earlier files of the same names are replaced.

    Args:
        boards: in the order of the front page.
        out: the folder, created if missing. If the documentation is in it, every page links there.

    Raises:
        StorageError: the folder cannot be written.
    """
    paths = []
    documentation = DOCUMENTATION if (out / DOCUMENTATION).is_file() else ""
    for name, content in _files(boards, documentation):
        write_file(out / name, content)
        paths.append(out / name)
    return paths


def write_page(board: Board, path: Path) -> None:
    """Write a board as one file that needs no other: it contains the libraries, compressed.

    Raises:
        StorageError: the file cannot be written.
    """
    long = page("victims", victims=victims(board, ALONE), alone=True)
    parts = {name: libraries.library(name) for name in libraries.NAMES} | {"every-victim": long}
    _write_alone("board", board_page(board, ALONE), path, parts)


def write_report(board: Board, path: Path, day: str, notes: Notes) -> None:
    """Write the report on a user's own vectors as one file that needs no other.

    Raises:
        StorageError: the file cannot be written.
    """
    content = own_report(board, day, notes)
    needed = [name for name in libraries.NAMES if name != "plotly.min.js" or content["scatters"] or content["drawn"]]
    _write_alone("report", content, path, {name: libraries.library(name) for name in needed})


def _write_alone(template: str, content: dict[str, Any], path: Path, parts: Mapping[str, str]) -> None:
    """Write a page as one file, with its parts compressed."""
    packed = [(name, libraries.packed(text)) for name, text in parts.items()]
    own = {"style": Markup(libraries.own("site.css")), "script": Markup(libraries.own("site.js"))}  # noqa: S704
    shown = {"alone": True, "packed": packed, "root": "", "version": leakboard.__version__}
    write_file(path, page(template, **content, **own, **shown))


def write_run_pages(run: Run, records: Sequence[Record], html: Path | None) -> list[Path]:
    """Write ``README.md`` next to a run's tables and, if a path is given, the board as one HTML file.

    Raises:
        StorageError: a file cannot be written.
    """
    suite, utility = run.suite, UTILITIES[run.suite.file.utility]
    board = make_board(suite.name, suite.file.description, records, run.folder, suite.home, utility)
    paths = write_readme(board, run.folder)
    if html:
        write_page(board, html)
        paths.append(html)
    return paths


def write_published_page(name: str) -> list[Path]:
    """Write ``README.md`` next to a published suite, unless it has one that was written by hand.

    Raises:
        StorageError: the file cannot be written.
    """
    return write_readme(read_board(name), home_of(find_suite(name)))


def _files(boards: Sequence[Board], documentation: str) -> Iterable[tuple[str, str]]:
    """Return the files of a site: paths below its root, and contents."""
    for name in libraries.NAMES:
        yield f"assets/{name}", libraries.library(name)
    for name in ("site.css", "site.js"):
        yield f"assets/{name}", libraries.own(name)
    more = {"documentation": documentation}
    tables = judged({board.name: views(board) for board in boards})
    cards = front.cards(boards, tables)
    parts = {"figure": front.figure(tables), "doors": front.doors(documentation), "boards": cards}
    yield "index.html", _page("index", "", title="LeakBoard", **parts, **more)
    for file, content in encoder_pages(boards).items():
        yield f"encoders/{file}", _listing(documentation, **content)
    yield "claims/index.html", _listing(documentation, **claims_page(boards, documentation))
    summaries = _summaries("victims")
    known = {board.name: {row["victim_options"] for row in board.rows} for board in boards}
    for board in boards:
        home, root = f"boards/{board.name}", "../../"
        cited = sorted({papers.paper_of(row) for row in board.comparison} - {""})
        files = [(name, papers.file_of(name)) for name in cited]
        yield f"{home}/index.html", _page("board", root, **board_page(board, tables=tables), papers=files, **more)
        for victim in victims(board):
            elsewhere = [name for name in known if name != board.name and victim["options"] in known[name]]
            content = {"board": board, "victim": victim, "elsewhere": elsewhere, **more}
            source = source_of("victim", victim["options"])
            summary = (source.about if source else "") or summaries.get(parse(victim["options"])[0], "")
            yield (
                f"{home}/{victim['slug']}.html",
                _page("victim", root, title=victim["name"], summary=summary, **content),
            )
    yield from _attack_pages(boards, documentation)
    yield from _paper_pages(boards, documentation)


def _page(template: str, root: str, **content: object) -> str:
    return page(template, root=root, alone=False, version=leakboard.__version__, **content)


def _attack_pages(boards: Sequence[Board], documentation: str) -> Iterable[tuple[str, str]]:
    """Return a page for each attack, with its scores on every victim of every board, and the list of attacks."""
    attacks: dict[str, list[Row]] = {}
    for board in boards:
        for row in board.rows:
            home = f"../boards/{board.name}"
            place = {
                "seconds": attack_seconds(board, row),
                "board": board.name,
                "board_href": f"{home}/index.html",
                "victim_href": f"{home}/{slug(row['victim_options'])}.html",
                "secrets": counted(row["secrets"]),
            }
            attacks.setdefault(row["attack_options"], []).append({**row, **place})
    summaries = _summaries("attacks")
    listed = []
    for options, found in sorted(attacks.items(), key=lambda item: natural(item[0])):
        rows = sorted(found, key=lambda row: (row["empirical_privacy"] is None, row["empirical_privacy"] or 0.0))
        name, summary = rows[0]["attack"], summaries.get(parse(options)[0], "")
        file = f"{slug(options)}.html"
        count = len({(row["board"], row["victim_options"]) for row in rows})
        entry = {"attack": name, "small": options if options != name else "", "attack_href": file, "victims": count}
        listed.append({**entry, "summary": summary, "boards": ", ".join(dict.fromkeys(row["board"] for row in found))})
        shown = columns("page: everywhere", threats_of(rows))
        layout = TABLES["page: everywhere"]
        listings = [{"caption": f"{name} on every victim", "columns": shown, "rows": rows, "layout": layout}]
        yield (
            f"attacks/{file}",
            _listing(
                documentation,
                "Attack",
                name,
                _introduction(options, summary, count, rows),
                listings,
                True,
                needs_of(rows),
            ),
        )
    listings = [
        {
            "caption": "Attacks by name, and on how many victims they were tried",
            "columns": columns("page: attack list"),
            "rows": sorted(listed, key=lambda entry: natural(entry["attack"].lower())),
        }
    ]
    yield "attacks/index.html", _listing(documentation, "", "Attacks", "", listings)


def _summaries(kind: str) -> dict[str, str]:
    """Return the summaries of installed plugins of a kind, by name."""
    return {listing.name: listing.summary for listing in Registry().listings(kind)}


def _introduction(options: str, summary: str, victims: int, rows: Sequence[Row]) -> str:
    """Return the summary of an attack if it is installed, and how often it beat the best constant guess."""
    text = f"{options}, tried on {victims} victims. {summary}".strip()
    scored = [row for row in rows if row["privacy_best_constant"] is not None and row["empirical_privacy"] is not None]
    better = sum(map(_is_finding, scored))
    return (
        f"{text} It beat the best constant guess beyond chance in {better} of {len(scored)} rows." if scored else text
    )


def _is_finding(row: Row) -> bool:
    """Return whether a row's gain is a finding; on boards older than p-values, whether its interval says so."""
    if row.get("attack_advantage_p") is not None:
        return not why_chance(row)
    high = row["empirical_privacy_high"]
    end = float(row["empirical_privacy"] if high is None else high)
    return end < row["privacy_best_constant"] - ROUNDING


def _paper_pages(boards: Sequence[Board], documentation: str) -> Iterable[tuple[str, str]]:
    """Return a page for each paper, with its numbers next to ours in tables, and the list of papers."""
    published: dict[str, list[Row]] = {}
    for board in boards:
        known = {row["victim"]: slug(row["victim_options"]) for row in board.rows}
        for row in board.comparison:
            here = known.get(row["victim"])
            href = f"../boards/{board.name}/{here}.html" if here else ""
            place = {"victim_href": href, "board": board.name, "board_href": f"../boards/{board.name}/index.html"}
            if name := papers.paper_of(row):
                published.setdefault(name, []).append({**row, **place})
    explanations = papers.explanations()
    listed = []
    for name, rows in sorted(published.items()):
        listings = [
            {
                "caption": source,
                "columns": columns("page: comparison"),
                "layout": TABLES["page: comparison"],
                "rows": [row for row in rows if row["source"] == source],
            }
            for source in dict.fromkeys(row["source"] for row in rows)
        ]
        file, measured = papers.file_of(name), sum(row["ours"] is not None for row in rows)
        listed.append({"paper": name, "paper_href": file, "numbers": len(rows), "measured": measured})
        explained = explanations.get(name, "")
        yield (
            f"papers/{file}",
            _listing(
                documentation,
                "Published numbers next to ours",
                name,
                papers.nearness(rows),
                listings,
                text=explained,
                charts=papers.figures(name),
            ),
        )
    listings = [{"caption": "Papers with published numbers", "columns": columns("page: paper list"), "rows": listed}]
    yield "papers/index.html", _listing(documentation, "", "Papers", "", listings)


def _listing(
    documentation: str,
    eyebrow: str = "",
    heading: str = "",
    intro: str = "",
    listings: Sequence[object] = (),
    label: bool = False,
    facts: Sequence[tuple[str, str]] = (),
    text: str = "",
    charts: Sequence[tuple[str, Figure]] = (),
    grid: Grid | None = None,
) -> str:
    more = {"eyebrow": eyebrow, "heading": heading, "intro": intro, "listings": listings, "label": label, "text": text}
    more |= {"facts": facts, "charts": charts, "grid": grid}
    return _page("listing", "../", title=heading, documentation=documentation, **more)
