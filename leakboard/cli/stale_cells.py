"""List published cells that the working tree would compute anew (``stale``)."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from leakboard.cli.screen import screen


def stale() -> None:
    """List for each suite how many published cells the working tree would compute anew, and why; nothing is computed.

    Rows name the revision that differs, or else the plugins with other code.
    """
    from leakboard.board.stale import freshness
    from leakboard.data.downloads import without_network

    console = screen()
    table = Table("suite", "published", "computed anew", "what differs", box=None, pad_edge=False)
    with without_network():
        suites = list(freshness())
    for suite in suites:
        causes = "; ".join(f"{cause} ({count})" for cause, count in sorted(suite.causes.items()))
        table.add_row(*(Text(str(value)) for value in (suite.suite, suite.published, suite.stale, causes)))
    console.print(table)
    for suite in suites:
        if suite.problem:
            console.print(Text(f"{suite.suite}: not all cells can be judged: {suite.problem}"))
    published, anew = sum(suite.published for suite in suites), sum(suite.stale for suite in suites)
    console.print(f"{anew:,} of {published:,} published cells would be computed anew")
