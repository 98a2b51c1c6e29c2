"""Write published leaderboards as pages to browse (``site``)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer


def site(
    out: Annotated[Path, typer.Option("--out", help="Folder to write into.")],
    suites: Annotated[Optional[list[str]], typer.Argument(help="Published suites; all when left out.")] = None,  # noqa: UP045
) -> None:
    """Write published leaderboards as a static site, which opens from disk and from any web server."""
    from leakboard.site.build import build_site
    from leakboard.site.content import published_boards

    paths = build_site(published_boards(suites or ()), out)
    typer.echo(f"{len(paths)} files; open {out / 'index.html'}")
