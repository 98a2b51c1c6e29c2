"""``evaluate``: attack vectors that are in files, without any YAML; the suite that ran is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from leakboard.cli.interrupted import end_interrupted
from leakboard.cli.screen import screen
from leakboard.cli.selection import Limits, read_seeds, require_folder
from leakboard.errors import RequestError

if TYPE_CHECKING:
    from leakboard.board.schema import Row
    from leakboard.data.readers.vector_databases import Source


def evaluate(
    table: Annotated[str, typer.Argument(help="Rows: a csv, tsv, parquet, arrow or jsonl file, a glob, or a store.")],
    vectors: Annotated[
        list[str],
        typer.Option(
            help="Vectors: an npy, npz, parquet, arrow, csv or jsonl file, or a store. Given several times, as in "
            "before=a.npy and after=b.npy, releases of the same rows are compared."
        ),
    ],
    secrets: Annotated[Optional[str], typer.Option(help="Columns that are secret, as in gender,age.")] = None,  # noqa: UP045
    entities: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Columns of 0 and 1: whether the text mentions somebody, as in alice,bob."),
    ] = None,
    bins: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="Classes of equal size for a secret that is a number, as in age=4; repeatable."),
    ] = None,
    label: Annotated[Optional[str], typer.Option(help="Column of the task's classes.")] = None,  # noqa: UP045
    text: Annotated[Optional[str], typer.Option(help="Column of the texts.")] = None,  # noqa: UP045
    user: Annotated[Optional[str], typer.Option(help="Column that says who wrote each text.")] = None,  # noqa: UP045
    document: Annotated[Optional[str], typer.Option(help="Column of the document that a row is a chunk of.")] = None,  # noqa: UP045
    id: Annotated[Optional[str], typer.Option(help="Column of ids by which rows and vectors are joined.")] = None,  # noqa: UP045
    column: Annotated[Optional[str], typer.Option(help="Column of the vectors, if their file has several.")] = None,  # noqa: UP045
    encoder: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Victim that a thief of the vectors knows as their encoder, as in sentence_encoder."),
    ] = None,
    encoded: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Or a file of what the thief's encoder gives for the same rows."),
    ] = None,
    protection: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            help="Protection to compare with the vectors as stored, as in rotation or 'gaussian: {sigma: 0.05}'; "
            "repeatable."
        ),
    ] = None,
    attacks: Annotated[str, typer.Option(help="Names with commas, or all that apply but search.")] = "all",
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows that lack a value, and count them.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the suite and its results.")] = Path("runs/evaluate"),
    html: Annotated[Optional[Path], typer.Option(help="Also save the report as a page to send.")] = None,  # noqa: UP045
    risk: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="CSV file, for you alone: test rows whose secrets are guessed with most confidence."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the split and the attacks.")] = 0,
    seeds: Annotated[Optional[str], typer.Option(help="Attack with several seeds on one split, as in 0,1,2.")] = None,  # noqa: UP045
    at_most: Limits = None,
    at_least: Limits = None,
) -> None:
    """Attack the vectors of a table's rows, without any YAML; the suite that it ran is printed and kept.

    Exit status 3, with --at-most or --at-least: a row breaks a limit, or vectors seem not to belong to their rows.
    """
    from leakboard.api.own_suites import AS_STORED, as_yaml, require_part, suite_of
    from leakboard.api.own_vectors import run_kept
    from leakboard.api.risk import require_private, require_risk_file
    from leakboard.board.gates import failures, read_limits
    from leakboard.board.leaderboard import leaderboard
    from leakboard.cli.console import print_broken, print_table, rich_table
    from leakboard.data.readers.tabular import expand
    from leakboard.data.readers.vector_databases import source

    require_folder(out)
    require_private(out / "suite.yaml")
    if risk:
        require_risk_file(risk)
    limits = read_limits(at_most or (), at_least or ())
    rows = _located("TABLE", table, expand(table))
    matrices = {name: _located("--vectors", file, [source(file)]) for name, file in _releases(vectors).items()}
    chosen = "all" if attacks == "all" else _names("--attacks", attacks)
    if (encoder or encoded) and not text:
        raise RequestError("--text: missing; --encoder and --encoded need the column of the texts")
    if not (secrets or entities or text):
        allowed = "--entities, or --text, to read texts from vectors, and --encoder besides, to link stored vectors"
        raise RequestError(f"--secrets: missing; allowed without it: {allowed}")
    if risk and not (secrets or entities):
        raise RequestError(f"--risk {risk}: no secret is guessed; allowed: together with --secrets or --entities")
    known: dict[str, Any] = {"encoder": _part("--encoder", encoder)}
    require_part("--encoder", "encoder", known["encoder"])
    protections = [_part("--protection", text) for text in protection or ()]
    for part in protections:
        require_part("--protection", "protection", part)
    if protections and len(matrices) > 1:
        raise RequestError(f"--vectors: {len(matrices)} files are given with --protection; allowed: one file")
    if encoded:
        known["encoded"] = _located("--encoded", encoded, [source(encoded)])
    roles = {"label": label, "text": text, "user": user, "document": document, "id": id, "column": column}
    named = _names("--secrets", secrets) if secrets else []
    suite = suite_of(
        rows,
        matrices if len(matrices) > 1 else matrices[""],
        named,
        entities=_names("--entities", entities) if entities else [],
        bins=_bins(bins or ()),
        **roles,
        **known,
        protection=protections,
        attacks=chosen,
        drop_missing=drop_missing,
        seed=seed,
        seeds=read_seeds(seeds),
    )
    try:
        report = run_kept(suite, out)
    except KeyboardInterrupt:  # reported here: Typer ends silently on it
        raise end_interrupted(out / "suite", ["report", out]) from None
    console = screen()
    console.print(report.summary, markup=False, highlight=False, soft_wrap=True)
    for title, shown, rows_compared in report.comparison_tables():
        print_table(console, rich_table(shown, rows_compared, title))
    shown, results = report.short_table()
    print_table(console, rich_table(shown, _with_means_named(results)))
    console.print(f"\nthe suite, kept in {out / 'suite.yaml'}:\n", markup=False, highlight=False, soft_wrap=True)
    console.print(as_yaml(suite), markup=False, highlight=False, soft_wrap=True)
    if html:
        console.print(str(report.save(html)), markup=False, highlight=False, soft_wrap=True)
    if any(record.sentences for record in report.records):
        read = f"{out / 'suite' / 'sentences.csv'}: tried texts next to what attacks read, for you alone"
        console.print(read, markup=False, highlight=False, soft_wrap=True)
    reference = (AS_STORED,) if protections else ()  # what is tried is the protections
    broken = failures(report.records, leaderboard(report.records), report.names, limits, reference)
    statuses = {record.status for record in report.records}
    print_broken(console, broken, limits, "failed" not in statuses and "ok" in statuses)
    if risk and "ok" in statuses:
        try:
            written = f"{report.save_risk(risk)}: the guess of each test row, for you alone; other rows have no number"
        except RequestError as error:
            written = f"warning: {risk} was not written: {error}"
        console.print(written, markup=False, highlight=False, soft_wrap=True)
    if "failed" in statuses or "ok" not in statuses:
        raise typer.Exit(1)
    if broken:
        raise typer.Exit(3)


def _with_means_named(rows: Sequence[Row]) -> list[Row]:
    """Return rows with ``(mean)`` as the secret of a row that averages over secrets with rows of their own."""

    def attack_of(row: Row) -> tuple[str, ...]:
        return row["dataset"], row["victim"], row["attack"]

    averaged = {attack_of(row) for row in rows if row.get("secret")}
    return [{**row, "secret": row.get("secret") or ("(mean)" if attack_of(row) in averaged else "")} for row in rows]


def _located(option: str, pattern: str, sources: Sequence[Source]) -> str:
    """Return an absolute path or glob, for the kept suite; of a vector store its address, with an absolute folder."""
    first, files = sources[0], [source for source in sources if isinstance(source, Path)]
    if not all(file.is_file() for file in files):
        raise RequestError(f"{option} {pattern}: no such file")
    if isinstance(first, Path):
        return str(Path(pattern).resolve())
    folder = Path(first.location)
    return str(replace(first, location=str(folder.resolve()))) if folder.is_dir() else pattern


def _releases(given: Sequence[str]) -> dict[str, str]:
    """Return the file of each release by its name; a single one has no name."""
    if len(given) == 1:
        return {"": given[0]}
    releases: dict[str, str] = {}
    for entry in given:
        name, _, file = entry.partition("=")
        if not (name.strip() and file):
            raise RequestError(f"--vectors {entry}: several are given; allowed is NAME=FILE, as in before={entry}")
        if name in releases:
            raise RequestError(f"--vectors {entry}: {name!r} is named twice; allowed: a name of its own for each")
        releases[name] = file
    return releases


def _part(option: str, text: str | None) -> Any:
    """Return a name, or a name with options, written as in a suite."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        part = YAML(typ="safe", pure=True).load(text) if text else None
    except YAMLError:
        part = ()
    if part is not None and not isinstance(part, str | dict):
        raise RequestError(f"{option} {text}: allowed is a name, or one with options, as in 'name: {{option: value}}'")
    return part


def _bins(entries: Sequence[str]) -> dict[str, int]:
    """Return the numbers of bins by secret, from entries such as ``age=4``."""
    bins: dict[str, int] = {}
    for entry in entries:
        secret, equals, count = entry.rpartition("=")
        if not (secret and equals and count.isdecimal()):
            raise RequestError(f"--bins {entry}: allowed is SECRET=NUMBER, as in age=4")
        bins[secret] = int(count)
    return bins


def _names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise RequestError(f"{option} {text}: allowed are names with commas, as in a,b")
    return names
