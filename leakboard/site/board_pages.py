"""Put together what the pages of a board and of its victims show."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import leakboard
from leakboard.board.schema import Row, columns, metric_title, threats_of
from leakboard.board.summary import summarise
from leakboard.board.table_layouts import TABLES
from leakboard.site import charts
from leakboard.site.across import Views, chosen_elsewhere, judged
from leakboard.site.choices import keeps_most
from leakboard.site.claim_notes import dropout_note, notes
from leakboard.site.content import Board, slug
from leakboard.site.matrix import matrix
from leakboard.site.needs import attack_seconds, needs
from leakboard.site.pages import table_data
from leakboard.site.ranks import is_useless
from leakboard.site.rendering import cell, decimals, same_in_all
from leakboard.site.sources import source_of
from leakboard.site.utility import TASK, Utility
from leakboard.site.views import (
    View,
    attack_rows,
    counted,
    measure_rows,
    secret_rows,
    three_epsilons,
    views,
)
from leakboard.threats.threat import threat_named

Links = Mapping[str, str]
"""Formats of links to a ``victim`` and to an ``attack``, each with a place for a slug."""
SITE: Links = {"victim": "{}.html", "attack": "../../attacks/{}.html"}
ALONE: Links = {"victim": "#{}", "attack": ""}


def board_page(board: Board, links: Links = SITE, tables: Views | None = None) -> dict[str, Any]:
    """Return what the template ``board`` shows.

    Args:
        board: the leaderboard.
        links: formats of links.
        tables: of all boards of the site; None if the board stands alone.
    """
    tables = judged({board.name: views(board)}) if tables is None else tables
    panels, pictures = charts.plug_in_losses(board), charts.projections(board)
    return {
        "title": board.question,
        "board": board,
        "facts": facts(board),
        "matrix": matrix(tables[board.name]),
        "lengths": charts.lengths(tables[board.name]),
        "sections": _sections(board, links, tables),
        "panels": panels,
        "panel_key": charts.key(panels),
        "projections": pictures,
        "projection_key": charts.key(pictures),
        "projected": max((len(rows) for rows in board.projections.values()), default=0),
        "loss": f"{board.utility.loss:g}",
        "data": table_data([*board.rows, *board.secrets]),
    }


def size(board: Board) -> str:
    """Return the size of a board in words."""
    counts = {kind: len({row[kind] for row in board.rows}) for kind in ("dataset", "victim", "attack")}
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items())


def facts(board: Board) -> list[tuple[str, str]]:
    """Return the provenance of the numbers, as pairs of a name and a sentence."""
    days: dict[str, list[str]] = {}
    for commit in sorted({str(e.get("commit", "")) for e in board.meta.get("environments", ())} - {""}):
        days.setdefault(_day(commit), []).append(commit[:10])
    seeds = sorted({record.seed for record in board.records})
    return [
        ("size", size(board)),
        ("cells", f"{len(board.records)} with a result, seeds {', '.join(map(str, seeds))}"),
        (
            "computed by commits",
            "; ".join(f"{', '.join(days[day])}{day and f' of {_in_words(day)}'}" for day in sorted(days)),
        ),
        ("rows", _computed(Counter(board.provenance.values()))),
    ]


def _computed(rows: Mapping[str, int]) -> str:
    """Return who computed how many rows."""
    if not rows:
        return "a run of its own, not published"
    again = f", and {count} of submissions again" if (count := rows.get("submission", 0)) else ""
    return f"the project computed {rows.get('project', 0)}{again}"


def _in_words(day: str) -> str:
    """Return a day such as 2026-11-27 in words, which no line breaks inside."""
    return f"{date.fromisoformat(day):%-d %B %Y}".replace(" ", "\N{NO-BREAK SPACE}")


def _day(commit: str) -> str:
    """Return the day of a commit, as in 2026-11-27, if this checkout has it; of other texts, nothing."""
    if not re.fullmatch(r"[0-9a-f]{7,64}\+?", commit):  # another text might be an option of git
        return ""
    root = Path(leakboard.__file__).parent.parent
    command = ["git", "-C", str(root), "show", "-s", "--format=%cs", commit.rstrip("+")]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _sections(board: Board, links: Links, tables: Views) -> list[dict[str, Any]]:
    sections, anchored, linked = [], set(), _linked_first(tables[board.name])
    for number, view in enumerate(tables[board.name], start=1):
        rows, candidates = [], {row["slug"] for row in view.comparable}
        choice = keeps_most(view)
        for row in view.rows:
            anchor = f"victim-{row['slug']}"
            rows.append(
                {
                    **row,
                    "needs": needs(row, attack_seconds(board, row)),
                    "attack_small": "; ".join(filter(None, (f"of {row['attacks']} tried", row["repeated"]))),
                    "paper": source.paper if (source := source_of("victim", row["victim_options"])) else None,
                    "row_class": "useless" if is_useless(row) else "",
                    "row_id": anchor if anchor not in anchored else f"{anchor}-{number}",
                    "victim_href": links["victim"].format(row["slug"]),
                    "attack_href": links["attack"].format(row["attack_slug"]),
                    "data": _numbers(row, view.utility, row["slug"] in candidates),
                }
            )
            anchored.add(anchor)
        shown = columns("page: victims", threats_of(rows))
        same = same_in_all(shown, rows)
        sections.append(
            {
                "id": f"view-{number}",
                "view": view,
                "layout": TABLES[_table(view)],
                "rows": rows,
                "columns": [column for column in shown if column not in same],
                "same": [(column, text) for column in same if (text := cell(column, rows[0]).text)],
                "claim_notes": notes(board, rows),
                "choice": choice,
                "needs": needs(choice.best, attack_seconds(board, choice.best)) if choice else "",
                "linked_first": linked.get((view.dataset, choice.best["slug"])) if choice else None,
                "elsewhere": chosen_elsewhere(view, tables),
                "scatter": charts.scatter(view) if view.is_scored else None,
                "curves": charts.curves(view) if view.is_scored else [],
            }
        )
    return sections


def _linked_first(tables: Sequence[View]) -> dict[tuple[str, str], float]:
    """Return the largest share of right first candidates of linking attacks, by dataset and victim."""
    shares: dict[tuple[str, str], float] = {}
    for view in (view for view in tables if view.links):
        for row in (row for row in view.rows if row["linked_first"] is not None):
            key = view.dataset, row["slug"]
            shares[key] = max(row["linked_first"], shares.get(key, 0.0))
    return shares


def _table(view: View) -> str:
    """Return the name of a view's table."""
    if not view.is_scored:
        return "page: audited victims"
    return "page: victims" if view.utility is TASK else "page: searched victims"


def _numbers(row: Row, utility: Utility, is_candidate: bool) -> dict[str, Any]:
    """Return the values of a row that the page's script needs to find the victim that keeps most privacy."""
    if not is_candidate:
        return {"slug": row["slug"]}
    names = {
        "utility": utility.column,
        "privacy": "empirical_privacy",
        "low": "empirical_privacy_low",
        "high": "empirical_privacy_high",
        "first": "linked_first",
    }
    values = {key: row[name] for key, name in names.items() if row.get(name) is not None}
    return {"victim": row["victim"], "slug": row["slug"], "verdict": row["verdict"], **values}


def victims(board: Board, links: Links = SITE) -> list[dict[str, Any]]:
    """Return what the template ``victim`` shows, for each victim of a board."""
    return [_victim(board, name, links) for name in dict.fromkeys(row["victim"] for row in board.rows)]


def _victim(board: Board, name: str, links: Links) -> dict[str, Any]:
    datasets = list(dict.fromkeys(row["dataset"] for row in board.rows if row["victim"] == name))
    claims = [{"dataset": dataset, **three_epsilons(board, dataset, name)} for dataset in datasets]
    label = board.label("victim", name)
    return {
        "name": name,
        "options": label,
        "slug": slug(label),
        "paper": source.paper if (source := source_of("victim", label)) else None,
        "claims": [claim for claim in claims if claim["verdict"] or claim["epsilon_audited"] is not None],
        "claim_texts": [
            *_claim_texts([r for r in board.records if r.victim == name and r.claim]),
            *dict.fromkeys(filter(None, (dropout_note(label, claim["epsilon_claimed"]) for claim in claims))),
        ],
        "parts": [_part(board, dataset, name, links) for dataset in datasets],
        "comparison": [row for row in board.comparison if row["victim"] == name],
    }


def _claim_texts(records: Sequence[Any]) -> list[str]:
    """Return the descriptions of claims in their authors' words, each once."""
    parts = ("mechanism", "sensitivity", "sampling", "vocabulary", "caveat", "details")
    texts = (
        "; ".join(f"{name}: {record.claim[name]}" for name in parts if record.claim.get(name)) for record in records
    )
    return [f"{text}." for text in dict.fromkeys(filter(None, texts))]


def _part(board: Board, dataset: str, victim: str, links: Links) -> dict[str, Any]:
    attacks = attack_rows(board, dataset, victim)
    audits = [
        record
        for record in board.records
        if (record.dataset, record.victim) == (dataset, victim) and threat_named(record.threat).bounds_epsilon
    ]
    claimed = three_epsilons(board, dataset, victim)["epsilon_claimed"]
    first = attacks[0]
    return {
        "dataset": dataset,
        "facts": [
            ("task accuracy", decimals(first.get("task_accuracy"))),
            ("constant guess of the task", decimals(first.get("task_majority"))),
            (f"test {threat_named(first['threat']).things}", f"{first['test_size']:,}"),
        ],
        "sentences": summarise([row for row in [*attacks, *board.secrets] if _is_of(row, dataset, victim)]),
        "attacks": [linked(row, links) | {"needs": needs(row, attack_seconds(board, row))} for row in attacks],
        "threats": threats_of(attacks),
        "layout": TABLES["page: attacks"],
        "trade_off": charts.trade_off(audits, claimed),
        "secrets": secret_rows(board, dataset, victim),
        "measures": [row | {"metric": metric_title(row["metric"])} for row in measure_rows(board, dataset, victim)],
        "groups": [row for row in board.groups if _is_of(row, dataset, victim)],
        "costs": _costs([row for row in board.costs if _is_of(row, dataset, victim)]),
    }


def _is_of(row: Row, dataset: str, victim: str) -> bool:
    return (row["dataset"], row["victim"]) == (dataset, victim)


def linked(row: Row, links: Links) -> Row:
    """Return a row of the leaderboard with a link to its attack's page, and many secrets counted."""
    is_audit = threat_named(row["threat"]).bounds_epsilon and row["status"] == "ok"
    return {
        **row,
        "secrets": counted(row["secrets"]),
        "status": "by itself; the audited epsilon allows for all audits" if is_audit else row["status"],
        "attack_href": links["attack"].format(slug(row["attack_options"])),
    }


def _costs(rows: Sequence[Row]) -> list[Row]:
    """Return the costs of each stage, mean over seeds; fitting and publishing are the same for every attack."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        attack = row["attack"] if row["stage"] == "attack" else ""
        groups.setdefault((row["stage"], attack), []).append(row)
    return [
        {
            "stage": stage,
            "attack": attack,
            "device": members[0]["device"],
            **{name: _mean([row[name] for row in members]) for name in ("seconds", "peak_memory_mib")},
        }
        for (stage, attack), members in groups.items()
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
