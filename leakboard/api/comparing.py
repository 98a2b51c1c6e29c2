"""Compare evaluations of the same rows, for instance before and after a defence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from leakboard.errors import RequestError
from leakboard.suite.names import Names

if TYPE_CHECKING:
    from leakboard.api.report import Report
    from leakboard.metrics.row_guesses import RowGuesses

SAME = "evaluate both with the same rows, secrets, seed and seeds"


def compare(reports: Mapping[str, Report]) -> Report:
    """Return one report that compares evaluations of the same rows with the first.

    ``leakboard.evaluate({"before": a, "after": b}, ...)`` does the same in one call.

    Args:
        reports: at least two of `leakboard.evaluate`, of one release each, by the name of the release.

    Raises:
        RequestError: a report is another one, or its test rows, secrets or seeds are not those of the first.
    """
    from leakboard.api.report import Report

    allowed = "allowed: names of at least two reports of `leakboard.evaluate`"
    if not isinstance(reports, Mapping) or len(reports) < 2:
        raise RequestError(f"compare: {allowed}")
    parts = []
    for name, report in reports.items():
        if not (isinstance(name, str) and name and name.isprintable() and name == name.strip()):
            raise RequestError(f"compare: {name!r} is not allowed as a name: a line of text without blanks around it")
        if not (isinstance(report, Report) and report.guesses):
            raise RequestError(f"compare: {name!r} has no guesses of rows; {allowed}")
        if len({record.victim for record in report.records}) > 1:
            raise RequestError(f"compare: {name!r} has several releases; allowed: reports of one release each")
        parts.append(_renamed(report, name))
    first, *others = parts
    for name, other in zip(list(reports)[1:], others, strict=True):
        if different := _difference(first, other):
            raise RequestError(f"compare: {different} of {name!r} differ from those of {next(iter(reports))!r}; {SAME}")
    return dataclasses.replace(
        first,
        suite={},
        records=[record for part in parts for record in part.records],
        stage_costs={key: costs for part in parts for key, costs in part.stage_costs.items()},
        names=Names(),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        releases=tuple(reports),
        guesses={key: guesses for part in parts for key, guesses in part.guesses.items()},
        day=max(part.day for part in parts),
    )


def _renamed(report: Report, name: str) -> Report:
    """Return a report whose victim has this name, also in the keys of its cells: equal vectors have equal keys."""

    def key(given: str) -> str:
        return f"{name} {given}"

    return dataclasses.replace(
        report,
        records=[dataclasses.replace(record, victim=name, key=key(record.key)) for record in report.records],
        stage_costs={key(given): costs for given, costs in report.stage_costs.items()},
        guesses={key(given): guesses for given, guesses in report.guesses.items()},
    )


def _difference(first: Report, other: Report) -> str:
    """Return what differs between the rows that two reports are about; empty if nothing does."""
    seeds = [{record.seed for record in report.records} for report in (first, other)]
    if seeds[0] != seeds[1]:
        return "the seeds"
    rows, secrets = zip(*(_rows(report) for report in (first, other)), strict=True)
    if secrets[0].keys() != secrets[1].keys():
        return "the secrets"
    same_secrets = all(np.array_equal(truth, secrets[1][name]) for name, truth in secrets[0].items())
    return "" if rows[0] == rows[1] and same_secrets else "the test rows"


def _rows(report: Report) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of the test rows, and each secret's values of them."""
    cells: list[RowGuesses] = list(report.guesses.values())
    secrets = {name: scores for cell in cells for name, scores in cell.secrets.items()}
    named = next((cell for cell in cells if cell.secrets), cells[0])
    return named.names(), {name: np.array(s.secret.values, object)[s.truth] for name, s in secrets.items()}
