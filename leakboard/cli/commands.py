"""Define the command line (Typer). Commands import heavy modules when they need them."""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.text import Text

import leakboard
from leakboard.cli.audit import audit
from leakboard.cli.evaluate import evaluate
from leakboard.cli.interrupted import STATUS, end_interrupted
from leakboard.cli.screen import WarningLines, screen
from leakboard.cli.selection import Limits, out_folder, read_only, read_seeds, require_folder
from leakboard.cli.site import site
from leakboard.cli.stale_cells import stale
from leakboard.errors import RequestError, nearest, plain
from leakboard.logs import PROGRESS

app = typer.Typer(
    help="LeakBoard: how much private information does a published text representation give away?",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
)
console = screen()
warning_lines = WarningLines(console)

OutFolder = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--out", help="Folder of runs and of the parts that they share: runs, or that of a kept suite."),
]
PluginFiles = Annotated[Optional[list[Path]], typer.Option("--plugin", help="Load one plugin file; repeatable.")]  # noqa: UP045
Only = Annotated[Optional[list[str]], typer.Option("--only", help="dataset=, victim= or attack= name; repeatable.")]  # noqa: UP045
Device = Annotated[Optional[str], typer.Option(help="auto, cpu or cuda; the suite's if left out.")]  # noqa: UP045
SuiteName = Annotated[str, typer.Argument(help="A name under leaderboards/, or a YAML file.")]

INTERRUPTIONS = [number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP")]
"""Signals that end a command and keep what is finished; Windows lacks the last."""


def main() -> None:
    """Run the command line; a wrong request is one line on standard error and exit status 2.

    SIGTERM and SIGHUP end it as Ctrl-C does. A second signal ends it at once. A terminal that lacks a letter shows
    another one.
    """
    for number in INTERRUPTIONS:
        signal.signal(number, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name=_program(Path(sys.argv[0])))
    except RequestError as error:
        Console(stderr=True, emoji=False).print(
            f"error: {plain(str(error))}", markup=False, highlight=False, soft_wrap=True
        )
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(STATUS)


def _interrupt(number: int, frame: object) -> None:
    for other in INTERRUPTIONS:
        signal.signal(other, lambda *_: os._exit(130))
    raise KeyboardInterrupt


def _program(path: Path) -> str:
    """Return the program's name as the user called it."""
    return {"run_benchmark.py": path.name, "__main__.py": "python -m leakboard"}.get(path.name, "leakboard")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        console.print(f"leakboard {leakboard.__version__}", highlight=False)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def default(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run the demo leaderboard when no command is given."""
    PROGRESS.addHandler(warning_lines)
    if context.invoked_subcommand is None:
        run("demo")


@app.command()
def run(
    suite: SuiteName = "demo",
    out: OutFolder = None,
    only: Only = None,
    seeds: Annotated[Optional[str], typer.Option(help="Instead of the suite's, as in 0,1,2.")] = None,  # noqa: UP045
    jobs: Annotated[Optional[int], typer.Option(min=1, help="Cells at once; as many as cores if left out.")] = None,  # noqa: UP045
    engine: Annotated[str, typer.Option(help="local, ray or slurm.")] = "local",
    address: Annotated[str, typer.Option(help="Of a Ray cluster that is running.")] = "",
    device: Device = None,
    plugin: PluginFiles = None,
    force: Annotated[bool, typer.Option("--force", help="Compute finished cells again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the cells and their cached parts.")] = False,
    at_most: Limits = None,
    at_least: Limits = None,
) -> None:
    """Compute a leaderboard; finished cells are kept.

    Exit status 3, with --at-most or --at-least: a row breaks a limit, or own vectors seem not to belong to their rows.
    """
    from leakboard.board.gates import failures, read_limits

    if dry_run:
        from leakboard.cli.dry_run import print_plan
        from leakboard.data.downloads import without_network

        with without_network():
            opened = _open(suite, out, only, seeds, plugin, not force, device)
            read_limits(at_most or (), at_least or ())
            print_plan(console, opened)
        return
    from leakboard.board.leaderboard import leaderboard
    from leakboard.board.run_files import write_files
    from leakboard.cli import console as output
    from leakboard.cli.engine_choice import chosen_engine
    from leakboard.cli.progress import RunProgress
    from leakboard.pipeline import runner
    from leakboard.pipeline.records import in_natural_order

    shown: list[str | Path] = ["report", suite]
    shown += ["--out", out] if out else []
    for file in plugin or ():
        shown += ["--plugin", file]
    out, opened = out_folder(out, suite), None
    chosen = chosen_engine(console, engine, jobs, address, out)
    try:
        opened = _open(suite, out, only, seeds, plugin, not force, device)
        limits = read_limits(at_most or (), at_least or ())  # now, since the suite has loaded the threats of plugins
        runner.execute(opened, RunProgress(console), chosen, force)
    except KeyboardInterrupt:  # reported here: Typer ends silently on it
        raise end_interrupted(opened.folder if opened else None, shown) from None
    records = in_natural_order(opened.records())
    rows = leaderboard(records)
    paths = write_files(opened, records, rows)
    output.print_leaderboard(console, opened, records, rows)
    output.print_sentences(console, opened)
    output.print_comparison(console, opened)
    output.print_paths(console, paths)
    output.print_counts(console, opened)
    broken = failures(records, rows, opened.suite.names, limits)
    output.print_broken(console, broken, limits, not opened.unfinished)
    if opened.unfinished:
        raise typer.Exit(1)
    if broken:
        raise typer.Exit(3)


app.command()(evaluate)
app.command()(audit)


@app.command()
def report(
    suite: SuiteName,
    out: OutFolder = None,
    plugin: PluginFiles = None,
    svg: Annotated[Optional[Path], typer.Option(help="Also save the printed leaderboard as a picture.")] = None,  # noqa: UP045
    html: Annotated[Optional[Path], typer.Option(help="Also save a self-contained page to browse.")] = None,  # noqa: UP045
) -> None:
    """Write the tables and pages again from the cell records, without computing anything."""
    from leakboard.board.leaderboard import leaderboard
    from leakboard.board.run_files import write_files
    from leakboard.cli import console as output
    from leakboard.data.downloads import without_network
    from leakboard.pipeline.records import in_natural_order
    from leakboard.site.build import write_run_pages

    for option, path in (("--svg", svg), ("--html", html)):
        if path is not None and path.is_dir():
            raise RequestError(f"{option} {path}: a folder; allowed: a file")
    with without_network():
        opened = _open(suite, out, None, None, plugin)
    records = in_natural_order(opened.records())
    if not records:
        raise RequestError(f"{opened.folder}: no finished cells; `run {suite}` computes them")
    rows = leaderboard(records)
    paths = write_files(opened, records, rows)
    output.print_leaderboard(console, opened, records, rows)
    output.print_sentences(console, opened)
    output.print_comparison(console, opened)
    output.warn_about_missing(console, opened)
    output.warn_about_costs(console, opened)
    output.warn_about_environments(console, opened)
    if svg:
        output.save_picture(svg, opened, records, rows)
        paths.append(svg)
    paths += write_run_pages(opened, records, html)
    output.print_paths(console, paths)


app.command()(site)
app.command()(stale)


@app.command()
def publish(
    suite: SuiteName,
    out: OutFolder = None,
    only: Only = None,
    seeds: Annotated[Optional[str], typer.Option(help="Publish as soon as these are finished, as in 0,1.")] = None,  # noqa: UP045
    plugin: PluginFiles = None,
    submit: Annotated[Optional[Path], typer.Option(help="Write a submission into this new folder instead.")] = None,  # noqa: UP045
) -> None:
    """Copy a finished run's tables and records into the suite's folder, or write them as a submission."""
    from leakboard.board import publishing, submissions
    from leakboard.cli import console as output
    from leakboard.site.build import write_published_page
    from leakboard.suite.registry import Registry

    opened = _open(suite, out, only, seeds, plugin)
    if submit:
        paths = submissions.submit(opened, Registry(plugin or ()), submit)
        for label in submissions.own_data(opened.jobs):
            console.print(
                Text(f"warning: the files of {label} are not in the submission: say where reviewers get them")
            )
    else:
        paths = [*publishing.publish(opened), *write_published_page(suite)]
    output.warn_about_costs(console, opened)
    output.print_paths(console, paths)


@app.command()
def verify(
    suite: SuiteName,
    cells: Annotated[int, typer.Option(min=1, help="Published cells to compute again, at random.")] = 2,
    tolerance: Annotated[float, typer.Option(min=0, help="Largest difference of a metric that passes.")] = 0.0001,
    seed: Annotated[Optional[int], typer.Option(min=0, help="Draws the cells; if left out, new each time.")] = None,  # noqa: UP045
    device: Device = None,
    plugin: PluginFiles = None,
) -> None:
    """Compute some published cells again from nothing and compare them; of other devices, the headlines alone."""
    from leakboard.board import publishing
    from leakboard.cli.progress import RunProgress

    opened = _open(suite, Path("runs"), None, None, plugin, device=device)
    if not publishing.verify(opened, RunProgress(console), cells, tolerance, seed):
        raise typer.Exit(1)


@app.command("list")
def list_(
    kind: Annotated[str, typer.Argument(help="datasets, victims, attacks or suites; all when left out.")] = "",
    plugin: PluginFiles = None,
) -> None:
    """List plugins and suites, whether they can be used, and which attacks apply to which victims."""
    from leakboard.cli.listing import print_list, print_meetings
    from leakboard.suite.registry import FOLDERS, Registry

    kinds = (*FOLDERS, "suites")
    if kind and kind not in kinds:
        raise RequestError(f"list: {kind!r} is not one of {', '.join(kinds)}{nearest(kind, kinds)}")
    registry = Registry(plugin or ())
    for chosen in [kind] if kind else kinds:
        print_list(console, registry, chosen)
    if not kind:
        print_meetings(console, registry)


@app.command()
def show(
    kind: Annotated[str, typer.Argument(help="dataset, victim or attack.")],
    name: Annotated[str, typer.Argument(help="Its name.")],
    plugin: PluginFiles = None,
) -> None:
    """Show a plugin: its description, its paper, its options with ranges and defaults."""
    from leakboard.cli.listing import print_plugin, what_meets
    from leakboard.suite.registry import FOLDERS, BrokenPlugin, Registry

    singular = [k[:-1] for k in FOLDERS]
    if kind not in singular:
        raise RequestError(f"show: {kind!r} is not one of {', '.join(singular)}{nearest(kind, singular)}")
    registry = Registry(plugin or ())
    try:
        print_plugin(console, name, registry.load(f"{kind}s", name, "show"))
    except BrokenPlugin as error:
        raise RequestError(str(error)) from None
    if kind != "dataset":
        console.print(Text(f"\n{what_meets(registry, f'{kind}s', name)}"))


@app.command()
def check(
    kind: Annotated[str, typer.Argument(help="dataset, victim or attack; left out with --plugin.")] = "",
    name: Annotated[str, typer.Argument(help="Its name.")] = "",
    plugin: PluginFiles = None,
) -> None:
    """Check that a plugin keeps the contract: an installed one by name, or the files of --plugin."""
    from leakboard.cli.check import check_plugins, chosen_plugins
    from leakboard.suite.registry import Registry

    registry = Registry(plugin or ())
    if not check_plugins(console, registry, chosen_plugins(registry, kind, name)):
        raise typer.Exit(1)


@app.command()
def new(
    kind: Annotated[str, typer.Argument(help="dataset, victim or attack.")],
    name: Annotated[str, typer.Argument(help="A new name, in lower case with underscores.")],
    folder: Annotated[Path, typer.Option(help="Checkout to write into.")] = Path(),
) -> None:
    """Write a working plugin and its test, to fill in."""
    from leakboard.cli.new import write_plugin

    for path in write_plugin(kind, name, folder):
        console.print(f"wrote {path}", markup=False, highlight=False)


def _open(suite, out, only, seeds, plugin, reuse=True, device=None):  # type: ignore[no-untyped-def]
    from leakboard.board.schema import require_new_names
    from leakboard.pipeline.runner import open_run
    from leakboard.suite.registry import Registry
    from leakboard.suite.suites import load_suite

    out = out_folder(out, suite)
    require_folder(out)
    registry = Registry(plugin or ())
    loaded = load_suite(suite, registry).on(device)
    require_new_names(loaded.cells())
    return open_run(loaded, loaded.cells(read_seeds(seeds), read_only(only)), out, registry, reuse)
