"""``audit``: test the claimed epsilon of a program that prints a line for each line that it reads."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.console import Console

from leakboard.cli.screen import screen
from leakboard.errors import RequestError, plain

if TYPE_CHECKING:
    from leakboard.api.mechanisms import Audit

FIRST_REPORT = 10_000
"""Number of answered lines after which progress is printed where there is no terminal; then at each double number."""
FORM = "two texts separated by a tab, and perhaps a tab and their distance"


def audit(
    command: Annotated[str, typer.Option(help="The program; it prints a line for each line that it reads.")],
    inputs: Annotated[Path, typer.Option(help=f"File of pairs of neighbours; a line has {FORM}.")],
    epsilon: Annotated[float, typer.Option(min=0, help="Claimed, for neighbours or for each unit of their distance.")],
    delta: Annotated[
        float, typer.Option(min=0, max=1, help="Claimed. Above 0, lines must be answered independently.")
    ] = 0.0,
    distance: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="words: epsilon is for each word in which two texts differ."),
    ] = None,
    budget: Annotated[
        int, typer.Option(min=1, help="Lines to choose and test an event; some more are learned from.")
    ] = 200_000,
    confidence: Annotated[float, typer.Option(min=0.5, max=1, help="Of the bound and the verdict.")] = 0.95,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds in which it must answer 1,000 lines.")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the coins that choose the inputs.")] = 0,
) -> None:
    """Audit a program that releases texts: is it as private as it claims to be?

    Exit status 1: the claim is violated. The program is started once, without a shell. It must flush each line.
    """
    from leakboard.api.mechanisms import audit as audit_function
    from leakboard.api.programs import Program

    pairs, distances = read_pairs(inputs)
    if distances and distance:
        raise RequestError(f"--distance {distance}: not allowed, since {inputs} has distances")
    if distance not in (None, "words"):
        raise RequestError(f"--distance {distance}: allowed: words, or a third column of {inputs}")

    def given(first: str, second: str) -> float:
        return distances[first, second]

    with _Progress() as progress, Program(command, timeout, progress.report) as program:
        result = audit_function(
            program.release,
            epsilon,
            delta=delta,
            inputs=pairs,
            distance=given if distances else "words" if distance else None,
            budget=budget,
            confidence=confidence,
            seed=seed,
        )
    console = screen()
    for line in (*result.summary.splitlines(), _intervals(result)):
        console.print(plain(line), markup=False, highlight=False, soft_wrap=True)
    if result.verdict == "violated":
        raise typer.Exit(1)


def read_pairs(path: Path) -> tuple[list[tuple[str, str]], Mapping[tuple[str, str], float]]:
    """Return the pairs of texts in a file, and their distances if it has any.

    Raises:
        RequestError: the file cannot be read, a line has another form, or a pair has two distances.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise RequestError(f"--inputs {path}: {reason}") from None
    rows = [line.removesuffix("\r").split("\t") for line in lines]
    rows = rows[:-1] if rows[-1] == [""] else rows
    if not rows:
        raise RequestError(f"--inputs {path}: empty; allowed: lines of {FORM}")
    pairs, distances = [], dict[tuple[str, str], float]()
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]) or len(row) not in (2, 3):
            allowed = f"{FORM}, the same columns in all lines"
            raise RequestError(f"--inputs {path}: line {number} has {len(row)} columns; allowed: {allowed}")
        pairs.append((row[0], row[1]))
        if len(row) == 3:
            where = f"--inputs {path}: line {number}"
            distance = _number(row[2], where)
            if distances.setdefault((row[0], row[1]), distance) != distance:
                earlier = f"this pair has the distance {distances[row[0], row[1]]:g} in an earlier line"
                raise RequestError(f"{where}: the distance {distance:g} is not allowed: {earlier}")
    return pairs, distances


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise RequestError(f"{where}: the distance {plain(text, 60)!r} is not allowed: a number from 0, not infinite")
    return value


def _intervals(result: Audit) -> str:
    """Return the counts of both inputs' outputs in the event, and their 95 % intervals (Clopper and Pearson 1934)."""
    from leakboard.privacy.auditing.bound import clopper_pearson_high, clopper_pearson_low

    assert result.rows is not None, "audits of texts make no calls"
    sides = []
    for share, rows in zip((result.first, result.second), result.rows, strict=True):
        count = round(share * rows)
        low, high = (bound(count, rows, 0.025) for bound in (clopper_pearson_low, clopper_pearson_high))
        sides.append(f"{count:,} of {rows:,} ({low:.4g} to {high:.4g})")
    caveat = "not corrected for the choice among rounds"
    return f"counts and 95 % intervals of these two shares, {caveat}: {sides[0]}, and {sides[1]}"


class _Progress:
    """Shows the number of answered lines: live on a terminal, else in a line now and then."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, emoji=False)
        self.status = self.console.status("starting the program")
        self.start, self.next_report = time.monotonic(), FIRST_REPORT

    def __enter__(self) -> _Progress:
        if self.console.is_terminal:
            self.status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.status.stop()

    def report(self, answered: int) -> None:
        """Take in the number of answered lines."""
        text = f"{answered:,} lines answered in {time.monotonic() - self.start:.0f} s"
        if self.console.is_terminal:
            self.status.update(text)
        elif answered >= self.next_report:
            self.next_report = 2 * answered
            self.console.print(text, highlight=False)
