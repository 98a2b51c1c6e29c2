"""Show a finished run or a published leaderboard in Python: frames, plain sentences, a plot, a page."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd

from leakboard.api import compared, utility
from leakboard.api.arguments import FilePath, require
from leakboard.board.doubts import with_doubts
from leakboard.board.leaderboard import join_warnings, leaderboard
from leakboard.board.published_numbers import compare
from leakboard.board.schema import Row, column_names, columns
from leakboard.board.summary import corpus_warnings, summarise
from leakboard.board.tables import table_rows, write_tables
from leakboard.column import Column
from leakboard.errors import RequestError, nearest
from leakboard.pipeline.records import Record
from leakboard.store import write_file
from leakboard.suite.names import KINDS, Names

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from leakboard.metrics.row_guesses import RowGuesses
    from leakboard.site.own_report import Notes as OwnNotes

_MARKUP, _BACKSLASHED = re.compile(r"([^\w\s])"), r"\\\1"


@dataclass(frozen=True, repr=False)
class Report:
    """The results of a suite. A notebook shows its sentences and its table.

    ``table`` has the leaderboard's rows: one a dataset, victim and attack, averaged over secrets (``secret`` is empty
    there), and one for each secret. All scores are shares in [0, 1]; higher privacy is better.
    """

    name: str
    description: str
    suite: Mapping[str, Any]
    """The suite, as its YAML has it; empty where it is unknown."""
    records: Sequence[Record]
    stage_costs: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """By a record's key, the costs of each stage of its cell."""
    reference: Sequence[dict[str, Any]] = ()
    """Published numbers to compare with (`leakboard.board.published_numbers`)."""
    names: Names = Names()  # noqa: RUF009 (it is frozen)
    """Names of datasets, victims and attacks."""
    notes: tuple[str, ...] = ()
    """Warnings of the run."""
    home: Path | None = None
    """Folder of a published leaderboard, with the pages written about it."""
    releases: Sequence[str] = ()
    """Names of releases of the same rows that are compared; each is a victim."""
    kept: Sequence[Row] = ()
    """The share of the neighbours in the first release that each other release keeps."""
    day: str = ""
    """Day on which own vectors were evaluated, as in 2026-11-27; empty for suites and published leaderboards."""
    guesses: Mapping[str, RowGuesses] = field(default_factory=dict)
    """By a record's key, the guesses of each test row; of `leakboard.evaluate` alone, and in no page or table."""

    @cached_property
    def table(self) -> pd.DataFrame:
        """The leaderboard: one row a dataset, victim and attack, and one for each of its secrets."""
        return self._frame("leaderboard.csv")

    @property
    def fairness(self) -> pd.DataFrame:
        """One row per dataset, victim, variable and group."""
        return self._frame("fairness.csv")

    @property
    def cells(self) -> pd.DataFrame:
        """One row per cell and metric: everything that was measured."""
        return self._frame("cells.csv")

    @property
    def costs(self) -> pd.DataFrame:
        """One row per cell and stage: seconds, peak memory (MiB), device, threads."""
        return self._frame("costs.csv")

    @property
    def comparison(self) -> pd.DataFrame:
        """One row per published number, with ours next to it; empty where the suite has none."""
        rows = [self.names.row(row) for row in self._compared]
        return pd.DataFrame(rows, columns=column_names("comparison.csv"))

    @property
    def differences(self) -> pd.DataFrame:
        """One row per secret and release but the first: the gain from it minus that from the first release.

        The interval holds with all others in 95 % (`leakboard.api.compared`). ``gives_away`` is ``less``, ``more``,
        ``no difference shown``, or the reason why nothing is compared.
        """
        return pd.DataFrame([comparison.row for comparison in self._comparisons], columns=[*compared.COLUMNS])

    @property
    def utility(self) -> pd.DataFrame:
        """One row per release: the neighbours that it keeps of the first release, and the accuracy of the task.

        Shares in [0, 1], with 95 % intervals over test texts (`leakboard.metrics.kept_neighbours`); empty without
        releases.
        """
        return pd.DataFrame(self._utility, columns=[*utility.COLUMNS])

    @property
    def sentences(self) -> list[str]:
        """The results, a sentence each: vectors that seem to miss their rows, then results, then other warnings."""
        rows = self._tables["leaderboard.csv"]
        differences = [comparison.sentence for comparison in self._comparisons]
        results = [*differences, *summarise(rows, [*self._warnings(), *self.notes])]
        return [*(f"warning: {warning}" for warning in self._joins()), *results]

    @property
    def summary(self) -> str:
        """The sentences, one a line."""
        return "\n".join(self.sentences) or "no results"

    def plot(self, x: str = "task_accuracy", y: str = "empirical_privacy") -> Figure:
        """Return one column of the table against another, one point a victim.

        With ``x="release"``, and for releases without a task, ``y`` is drawn for each release and secret.

        Raises:
            RequestError: a name is no column of the table.
        """
        by_release = bool(self.releases) and x == "release"
        self._require_columns("plot", (y,) if by_release else (x, y))
        if by_release or (self.releases and x == "task_accuracy" and self.table[x].isna().all()):
            return compared.draw_releases(self._tables["leaderboard.csv"], self.releases, y)
        from leakboard.board.figures import privacy_utility

        return privacy_utility(self._over_secrets(), x, y)

    def curves(self, option: str = "epsilon", column: str = "empirical_privacy") -> Figure:
        """Return a column of the table against a numeric option of the victims, at their strongest attacks.

        Victims that differ only in the option are a line; at least three values make one.

        Raises:
            RequestError: the column is no column of the table, or no three victims differ only in the option.
        """
        from leakboard.board.curves import option_curves, option_families
        from leakboard.board.strongest import headlines

        self._require_columns("curves", (column,))
        rows = headlines([row for row in self._tables["leaderboard.csv"] if not row.get("secret")])
        datasets = list(dict.fromkeys(row["dataset"] for row in rows))
        families = {
            f"{name}, {dataset}" if len(datasets) > 1 else name: points
            for dataset in datasets
            for name, points in option_families(
                [row for row in rows if row["dataset"] == dataset], option, column
            ).items()
        }
        if not families:
            raise RequestError(f"curves: no three victims differ only in {option!r}; allowed: an option of a grid")
        return option_curves(families, option, column.replace("_", " "))

    def latex(
        self,
        names: Sequence[str] = ("dataset", "victim", "attack", "task_accuracy", "empirical_privacy"),
        caption: str = "",
        label: str = "",
    ) -> str:
        """Return columns of the table over all secrets as a LaTeX table (booktabs), with 95 % intervals.

        Raises:
            RequestError: a name is no column of the table.
        """
        from leakboard.api.paper import latex

        self._require_columns("latex", names)
        return latex(self._over_secrets(), names, self._headings(), caption, label)

    def cite(self) -> str:
        """Return an entry of BibTeX for these results."""
        from leakboard.api.paper import bibtex

        return bibtex(self.name, self.description, self.records)

    @property
    def risk(self) -> pd.DataFrame:
        """One row per secret and test row, the most confident guess first (`leakboard.api.risk`): for you alone.

        Raises:
            RequestError: the report is not one of `leakboard.evaluate`, or no attack on a secret has scores on dev.
        """
        from leakboard.api.risk import risk_table

        return risk_table(self.records, self.guesses, self.names, len(self.releases) > 1)

    def save_risk(self, path: str | Path) -> Path:
        """Write `risk` as a CSV file that only you can read, and return its path.

        Raises:
            RequestError: as for `risk`; or the path is in a folder of published results.
            StorageError: it cannot be written.
        """
        require(FilePath, path=path)
        from leakboard.api.risk import write_risk

        return write_risk(self.risk, Path(path))

    def save(self, path: str | Path) -> Path:
        """Write one self-contained HTML file and return its path.

        Raises:
            StorageError: it cannot be written.
        """
        require(FilePath, path=path)
        from leakboard.site.build import write_page, write_report
        from leakboard.site.content import make_board
        from leakboard.site.sections import FINDINGS, write_sections

        with TemporaryDirectory(prefix="leakboard-") as folder:
            tables = Path(folder)
            write_tables(tables, self.records, self._costs, self._compared, self.names)
            if self.day:
                board = make_board(self.name, self.description, self.records, tables, tables)
                write_report(board, Path(path), self.day, self._page_notes())
                return Path(path)
            answer, *details = [*self.sentences, ""]
            listed = "\n".join(f"- {_MARKUP.sub(_BACKSLASHED, text)}" for text in details if text)
            write_file(tables / FINDINGS, write_sections(self.description, [answer, listed]))
            write_page(make_board(self.name, self.description, self.records, tables, self.home or tables), Path(path))
        return Path(path)

    def _page_notes(self) -> OwnNotes:
        from leakboard.site.own_report import Notes

        warnings = [*self._warnings(), *self.notes]
        if not (differences := self._comparisons):
            return Notes(self._joins(), warnings=warnings)
        return Notes(
            self._joins(),
            [comparison.sentence for comparison in differences],
            warnings,
            self.comparison_tables(),
            self.plot("release", "attack_advantage"),
            self.releases,
        )

    def __repr__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        from leakboard.site.pages import table_html

        return _sentences(self.sentences) + table_html("", *self.short_table())

    def short_table(self) -> tuple[list[Column], list[Row]]:
        """Return the columns and rows that a notebook or a terminal shows."""
        rows = self._tables["leaderboard.csv"]
        constant = [name for name in ("dataset", "victim") if len({row[name] for row in rows}) == 1]
        shown = [column for column in columns("report", self._threats) if column.name not in constant]
        return shown, with_doubts(rows)

    def comparison_tables(self) -> list[tuple[str, list[Column], list[Row]]]:
        """Return title, columns and rows of the tables that compare releases; empty without a comparison."""
        if not self._comparisons:
            return []
        differences = [comparison.row for comparison in self._comparisons]
        return [
            (
                f"What the strongest attack gains, compared with {self.releases[0]!r}",
                columns("report: differences"),
                differences,
            ),
            ("What it costs", columns("report: utility"), self._utility),
        ]

    @property
    def _utility(self) -> list[Row]:
        return utility.utility_rows(self._tables["leaderboard.csv"], self.releases, self.kept, self._records_of)

    def _over_secrets(self) -> pd.DataFrame:
        """Return the rows over all secrets."""
        return self.table[self.table["secret"].fillna("") == ""]

    def _headings(self) -> dict[str, str]:
        return {column.name: column.heading for column in columns("leaderboard.csv", self._threats)}

    def _require_columns(self, method: str, asked: Sequence[str]) -> None:
        names = list(map(str, self.table))
        for name in asked:
            if name not in names:
                raise RequestError(
                    f"{method}: {name!r} is no column (there are: {', '.join(names)}){nearest(name, names)}"
                )

    @cached_property
    def _tables(self) -> dict[str, list[Row]]:
        tables = {file: list(rows) for file, rows in table_rows(self.records, self._costs, (), self.names).items()}
        order = {release: place for place, release in enumerate(self.releases)}
        tables["leaderboard.csv"].sort(key=lambda row: order.get(row["victim"], 0))
        return tables

    @cached_property
    def _comparisons(self) -> list[compared.Comparison]:
        return compared.comparisons(self._tables["leaderboard.csv"], self.releases, self._guessed)

    def _guessed(self, row: Row) -> list[RowGuesses]:
        """Return the guesses of the attack of a row, for each of its seeds."""
        records = sorted(self._records_of(row), key=lambda record: record.seed)
        return [self.guesses[record.key] for record in records if record.key in self.guesses]

    def _records_of(self, row: Row) -> list[Record]:
        """Return the records of the dataset, victim and attack of a row; none if the row is empty."""
        wanted = [row.get(kind) for kind in KINDS]
        return [
            record
            for record in self.records
            if [self.names.name(kind, getattr(record, kind)) for kind in KINDS] == wanted
        ]

    @property
    def _threats(self) -> list[str]:
        return sorted({record.threat for record in self.records})

    @property
    def _costs(self) -> dict[str, list[dict[str, Any]]]:
        return {key: [dict(cost) for cost in costs] for key, costs in self.stage_costs.items()}

    @property
    def _compared(self) -> list[dict[str, Any]]:
        return compare(self.records, self.reference)

    def _frame(self, file: str) -> pd.DataFrame:
        return pd.DataFrame(self._tables[file], columns=column_names(file, self._threats))

    def _joins(self) -> list[str]:
        """Return the warnings about vectors that seem not to belong to their rows."""
        found = join_warnings(self.records, leaderboard(self.records))
        several = len({(record.dataset, record.victim) for record in self.records}) > 1
        name = self.names.name
        return [
            f"{name('victim', victim)} on {name('dataset', dataset)}: {warning}" if several else warning
            for (dataset, victim), warning in found.items()
        ]

    def _warnings(self) -> list[str]:
        failed = [record for record in self.records if record.status == "failed"]
        warnings = [f"{len(failed)} of {len(self.records)} cells failed: {failed[0].reason}"] if failed else []
        if not any(record.status == "ok" for record in self.records):
            skipped = [f"{record.attack}: {record.reason}" for record in self.records if record.status == "skipped"]
            warnings += [f"no results: {reason}" for reason in dict.fromkeys(skipped)]
        return [*warnings, *corpus_warnings(self.records, self.names)]


def _sentences(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)
