"""``evaluate``: attack vectors that are in files, without any YAML; the suite that ran is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from leakboard.cli.screen import screen
from leakboard.cli.selection import require_folder
from leakboard.errors import RequestError

if TYPE_CHECKING:
    from leakboard.board.schema import Row
    from leakboard.data.readers.vector_databases import Source


def evaluate(
    table: Annotated[str, typer.Argument(help="Rows: a csv, tsv, parquet, arrow or jsonl file, a glob, or a store.")],
    vectors: Annotated[str, typer.Option(help="Vectors: an npy, npz, parquet, arrow, csv or jsonl file, or a store.")],
    secrets: Annotated[str, typer.Option(help="Columns of the table that are secret, as in gender,age.")],
    label: Annotated[Optional[str], typer.Option(help="Column of the task's classes.")] = None,  # noqa: UP045
    text: Annotated[Optional[str], typer.Option(help="Column of the texts.")] = None,  # noqa: UP045
    user: Annotated[Optional[str], typer.Option(help="Column that says who wrote each text.")] = None,  # noqa: UP045
    document: Annotated[Optional[str], typer.Option(help="Column of the document that a row is a chunk of.")] = None,  # noqa: UP045
    id: Annotated[Optional[str], typer.Option(help="Column of ids by which rows and vectors are joined.")] = None,  # noqa: UP045
    column: Annotated[Optional[str], typer.Option(help="Column of the vectors, if their file has several.")] = None,  # noqa: UP045
    attacks: Annotated[str, typer.Option(help="Names with commas, or all that apply.")] = "all",
    out: Annotated[Path, typer.Option(help="Folder for the suite and its results.")] = Path("runs/evaluate"),
    seed: Annotated[int, typer.Option(min=0, help="Of the split and the attacks.")] = 0,
) -> None:
    """Attack the vectors of a table's rows, without any YAML; the suite that it ran is printed and kept."""
    from leakboard.api.own_vectors import as_yaml, run_kept, suite_of
    from leakboard.cli.console import print_table, rich_table
    from leakboard.data.readers.tabular import expand
    from leakboard.data.readers.vector_databases import source

    require_folder(out)
    rows = _located("TABLE", table, expand(table))
    matrix = _located("--vectors", vectors, [source(vectors)])
    chosen = "all" if attacks == "all" else _names("--attacks", attacks)
    roles = {"label": label, "text": text, "user": user, "document": document, "id": id, "column": column}
    suite = suite_of(rows, matrix, _names("--secrets", secrets), **roles, attacks=chosen, seed=seed)
    report = run_kept(suite, out)
    console = screen()
    console.print(report.summary, markup=False, highlight=False, soft_wrap=True)
    shown, results = report.short_table()
    print_table(console, rich_table(shown, _with_means_named(results)))
    console.print(f"\nthe suite, kept in {out / 'suite.yaml'}:\n", markup=False, highlight=False, soft_wrap=True)
    console.print(as_yaml(suite), markup=False, highlight=False, soft_wrap=True)
    statuses = {record.status for record in report.records}
    if "failed" in statuses or "ok" not in statuses:
        raise typer.Exit(1)


def _with_means_named(rows: Sequence[Row]) -> list[Row]:
    """Return rows with ``(mean)`` as the secret of a row that averages over secrets with rows of their own."""

    def attack_of(row: Row) -> tuple[str, ...]:
        return row["dataset"], row["victim"], row["attack"]

    averaged = {attack_of(row) for row in rows if row.get("secret")}
    return [{**row, "secret": row.get("secret") or ("(mean)" if attack_of(row) in averaged else "")} for row in rows]


def _located(option: str, pattern: str, sources: Sequence[Source]) -> str:
    """Return an absolute path or glob, for the kept suite, and the address of a vector store as it is."""
    files = [source for source in sources if isinstance(source, Path)]
    if not all(file.is_file() for file in files):
        raise RequestError(f"{option} {pattern}: no such file")
    return str(Path(pattern).resolve()) if files else pattern


def _names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise RequestError(f"{option} {text}: allowed are names with commas, as in a,b")
    return names
