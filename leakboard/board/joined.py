"""Join a leaderboard's records with those of its submissions, and refuse what would mislead readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from leakboard.board.submissions import (
    PACKAGE,
    SUBMITTED,
    SUITE,
    first_verified,
    is_submission,
    plugins_of,
    require_own_files,
    submissions,
    verified_records,
)
from leakboard.board.tables import published_names
from leakboard.errors import RequestError
from leakboard.pipeline.records import PUBLISHED, Record, published_records
from leakboard.store import file_checksum
from leakboard.suite.names import KINDS, Names
from leakboard.suite.plan import GOLD
from leakboard.suite.registry import FOLDERS, Registry
from leakboard.suite.yaml_files import read_yaml
from leakboard.threats.threat import threat_named

OF_DATASETS = ("privacy_best_constant", "privacy_text_classifier", "privacy_bayes", "task_majority")
"""Baselines that depend on dataset and seed alone, except those of words."""
ROUNDING = 1e-3
"""Largest accepted difference between two machines. We saw 5e-5, from another version of a library."""
Provenance = Literal["project", "submission"]
"""Who a row is of. The project computed all of its cells, or all of them again."""
_Subject = tuple[str, str, int, frozenset[str]]
"""Key of a baseline: metric, dataset, seed and secrets."""
_Threats = dict[tuple[str, frozenset[str]], set[tuple[str, tuple[str, ...]]]]
"""Threats to the secrets of a dataset, each with the order of the secrets."""
_Table = tuple[str, str, frozenset[str]]
"""Dataset, threat and secrets: rows that are compared."""
_Attack = tuple[str, frozenset[tuple[str, int]]]
"""Label of an attack, and the revisions of its cells (`shared_revisions`)."""
RowKey = tuple[str, str, str]
"""Labels of dataset, victim and attack."""


@dataclass(frozen=True)
class Joined:
    """The records of a leaderboard with its submissions, or of one submission."""

    own: Sequence[Record]
    """Of the leaderboard itself; none of a submission."""
    verified: Sequence[Record]
    """Of submissions: rows that were computed again, and are compared with the leaderboard's own (`_comparable`).

    The records are those computed again.
    """
    apart: Mapping[str, Sequence[Record]]
    """Of submissions, by name: other rows that were computed again."""
    reported: Mapping[str, Sequence[Record]]
    """Of submissions, by name: rows that only their sender computed."""

    @property
    def records(self) -> list[Record]:
        """Those that enter tables, sentences, ranks and pictures."""
        return [*self.own, *self.verified]

    @property
    def provenance(self) -> dict[RowKey, Provenance]:
        """The provenance of every row of `records`."""
        sent: dict[RowKey, Provenance] = {row_of(record): "submission" for record in self.verified}
        return {**sent, **{row_of(record): "project" for record in self.own}}

    @property
    def submitted_victims(self) -> frozenset[str]:
        """Labels of the victims that only submissions have."""
        return frozenset(record.victim for record in self.verified)


@dataclass(frozen=True)
class _Sent:
    """A submission that was not refused."""

    folder: Path
    records: Sequence[Record]
    reported: set[RowKey]
    """Rows with a cell that is not verified."""


def join(home: Path, only: Path | None = None) -> Joined:
    """Return the records of a leaderboard and of its submissions, or of one submission.

    The leaderboard's own records come first, then verified ones, the earliest first. If a source has a row, later
    sources add no cell to it. So its mean is of one source's cells alone.

    Args:
        home: folder of the leaderboard, or of a submission.
        only: the one submission that is refused; others that would be are left out. None: all are.

    Raises:
        RequestError: a submission lacks a file, or its records have a wrong form, failed, contradict the leaderboard's
            on a dataset, or are named as something else is.
    """
    home = home.resolve()
    own = [] if is_submission(home) else published_records(home)
    sent = _not_refused(home, own, only and only.resolve())
    taken = {row_of(record) for record in own}
    verified: list[Record] = []
    apart, reported = dict[str, list[Record]](), dict[str, list[Record]]()
    for source in sorted(sent, key=lambda source: first_verified(source.folder)):
        computed = [record for record in source.records if row_of(record) not in source.reported | taken]
        rows = _comparable(own, computed)
        verified += [record for record in computed if row_of(record) in rows]
        apart[source.folder.name] = [record for record in computed if row_of(record) not in rows]
        taken |= {row_of(record) for record in computed}
    for source in sent:
        reported[source.folder.name] = [r for r in source.records if row_of(r) in source.reported - taken]
    return Joined(own, verified, *({name: rows for name, rows in part.items() if rows} for part in (apart, reported)))


def _comparable(own: Sequence[Record], sent: Sequence[Record]) -> set[RowKey]:
    """Return the rows of a submission that may stand next to the leaderboard's own.

    They are of victims that the leaderboard lacks. On the same secrets, the victim met each attack that any victim of
    the leaderboard met, with all seeds, and the rows are of these attacks. So no victim, of the sender or of the
    leaderboard, looks better or worse because of the attacks that the sender chose. An attack that skipped the victim
    is not excused: a victim can make an attack decline. The same holds for audits: one that the sender weakened would
    confirm any claim. If the revisions of two cells differ (`shared_revisions`), they are of two attacks.

    A victim that claims an epsilon must also have met an audit of the leaderboard. Else its claim is only its sender's.
    """

    def by_victim(records: Sequence[Record]) -> dict[_Table, dict[str, set[_Attack]]]:
        met: dict[_Table, dict[str, set[_Attack]]] = {}
        skipped = {row_of(record) for record in records if record.status != "ok"}
        for record in records:
            if row_of(record) not in skipped:
                table = record.dataset, record.threat, frozenset(record.secrets)
                attack = record.attack, shared_revisions(record)
                met.setdefault(table, {}).setdefault(record.victim, set()).add(attack)
        return met

    expected = {table: set.union(*met.values()) for table, met in by_victim(own).items()}
    known = {record.victim for record in own}
    rows: set[RowKey] = set()
    for table, victims in by_victim(sent).items():
        common = expected.get(table, set())
        for victim, attacks in victims.items():
            if victim not in known and common and common <= attacks:
                rows |= {(table[0], victim, attack) for attack, _ in common}
    claiming = {record.victim for record in sent if record.claim}
    audited = {r.victim for r in sent if row_of(r) in rows and threat_named(r.threat).bounds_epsilon}
    return {row for row in rows if row[1] not in claiming - audited}


def shared_revisions(record: Record) -> frozenset[tuple[str, int]]:
    """Return the revisions that cells of all victims have: those of stages, threat, dataset and attack."""
    return frozenset(entry for entry in record.revisions.items() if not entry[0].startswith(("victims/", GOLD)))


def _not_refused(home: Path, own: Sequence[Record], only: Path | None) -> list[_Sent]:
    """Return the submissions to a leaderboard without the leaderboard's own cells.

    Raises:
        RequestError: one is refused, or the only one that counts.
    """
    known, cells = _baselines(own), {record.key for record in own}
    identities: dict[str, tuple[RowKey, int]] = {}
    threats: _Threats = {}
    for record in own:
        key = record.dataset, frozenset(record.secrets)
        threats.setdefault(key, set()).add((record.threat, tuple(record.secrets)))
    names, plugins = published_names(home / "leaderboard.csv"), dict[str, tuple[Path, str]]()
    folders = [home] if is_submission(home) else submissions(home)
    ours = _own_plugins() if folders else set()

    def checked(folder: Path) -> _Sent:
        require_own_files(folder)
        records, verified = published_records(folder, is_foreign=True), verified_records(folder)
        _refuse_taken_names(folder, records, names)
        _refuse_plugins(folder, records, plugins, ours)
        _refuse_other_seeds(folder, records, own)
        _refuse_other_gold(folder, home)
        _refuse_contradictions(folder, records, known, threats)
        records = [verified.get(record.key, record) for record in records if record.key not in cells]
        for record in records:
            cell = row_of(record), record.seed
            if identities.setdefault(record.key, cell) != cell:
                raise RequestError(f"{folder / PUBLISHED}: {record.key[:8]} is a cell of another submission")
        return _Sent(folder, records, {row_of(record) for record in records if record.key not in verified})

    sent = []
    for folder in sorted(folders, key=lambda folder: folder == only):  # the only one last: what others have is taken
        try:
            sent.append(checked(folder))
        except RequestError:
            if only in (None, folder):
                raise
    return sent


def _own_plugins() -> set[str]:
    """Return the names of the plugins of LeakBoard, as ``victims/dpnr``, without those of installed packages."""
    registry = Registry()
    listings = [listing for kind in FOLDERS for listing in registry.listings(kind) if not listing.attribute]
    return {f"{listing.kind}/{listing.name}" for listing in listings}


def _refuse_plugins(
    folder: Path, records: Sequence[Record], known: dict[str, tuple[Path, str]], ours: set[str]
) -> None:
    """Refuse plugins that a submission does not list, lists elsewhere, or that another submission has with other code.

    Packages of plugins that no record uses are refused, too: they would be installed.

    Labels name a plugin, not its code: results of two plugins of one name would be taken for those of one. ``--plugin``
    names a plugin after its file, so no other file is the plugin's code.

    Args:
        folder: of the submission.
        records: of the submission.
        known: the submission and code of each plugin of the submissions before; those of this one are added.
        ours: names of the plugins of LeakBoard.
    """
    plugins = plugins_of(folder)
    named = {f"{kind}s/{getattr(record, kind).partition('(')[0]}" for record in records for kind in KINDS}
    used = named.union(*(record.code for record in records))
    for name, place in plugins.items():
        file = f"plugins/{name.rpartition('/')[2]}.py"
        code = file_checksum(folder / file) if (folder / file).is_file() else place
        if name.casefold() in ours:
            raise RequestError(f"{folder / SUBMITTED}: {name!r} is a plugin of LeakBoard; rename it")
        if place != file and not PACKAGE.fullmatch(place):
            allowed = f"{file!r}, or a package as 'name==version'"
            raise RequestError(f"{folder / SUBMITTED}: {name!r} is in {place!r}; allowed: {allowed}")
        if place != file and name not in used:
            raise RequestError(f"{folder / SUBMITTED}: plugins: {name}; allowed: packages of plugins of its records")
        other, its_code = known.setdefault(name.casefold(), (folder, code))
        if code != its_code:
            raise RequestError(f"{folder / SUBMITTED}: {name!r} is another plugin of {other.name}; rename it")
    if unlisted := sorted(named - plugins.keys() - ours):
        raise RequestError(f"{folder / SUBMITTED}: {unlisted[0]!r} is neither of LeakBoard nor among its plugins")


def _refuse_taken_names(folder: Path, records: Iterable[Record], names: Names) -> None:
    """Refuse labels that are displayed names of other plugins of the leaderboard.

    A label that is the displayed name of the same plugin with other options is allowed: then pages show the options.
    """
    taken = {(kind, name.casefold()): label for (kind, label), name in names.names.items() if name != label}
    for record in records:
        for kind in KINDS:
            label = getattr(record, kind)
            owner = taken.get((kind, label.casefold()), label)
            if owner.partition("(")[0] != label.partition("(")[0]:
                raise RequestError(f"{folder / PUBLISHED}: {kind}: {label!r} is the leaderboard's name for {owner}")


def _refuse_other_seeds(folder: Path, records: Iterable[Record], own: Iterable[Record]) -> None:
    """Refuse rows with other seeds than the leaderboard's on a dataset: they may be those with the best numbers."""
    allowed: dict[str, list[set[int]]] = {}
    for row, seeds in _seeds(own).items():
        allowed.setdefault(row[0], []).append(seeds)
    for row, seeds in _seeds(records).items():
        if row[0] in allowed and seeds not in allowed[row[0]]:
            raise RequestError(
                f"{folder / PUBLISHED}: {' / '.join(row)}: seeds {sorted(seeds)}; allowed: those of the leaderboard's "
                f"rows on {row[0]}, as {sorted(allowed[row[0]][0])}"
            )


def _seeds(records: Iterable[Record]) -> dict[RowKey, set[int]]:
    seeds: dict[RowKey, set[int]] = {}
    for record in records:
        seeds.setdefault(row_of(record), set()).add(record.seed)
    return seeds


def _refuse_other_gold(folder: Path, home: Path) -> None:
    """Refuse another gold model or other queries than the leaderboard's: scores depend on them, but labels do not."""
    suites = [path for path in (home / SUITE, home.with_name(f"{home.name}.yaml")) if path.is_file()]
    ours, theirs = (read_yaml(path) for path in (*suites[:1], folder / SUITE)) if suites else ({}, {})
    if not isinstance(theirs, dict):
        raise RequestError(f"{folder / SUITE}: no mapping; allowed: a suite, as `publish --submit` writes it")
    for key in ("gold", "queries"):
        if (given := theirs.get(key)) != (allowed := ours.get(key)):
            raise RequestError(f"{folder / SUITE}: {key}: {given}; allowed: {allowed}, as in the leaderboard's suite")


def _baselines(records: Iterable[Record]) -> dict[_Subject, float]:
    """Return what records say of their datasets, whatever the victim: scores of guesses without the vectors.

    The best constant guess of a word depends on the victim's vocabulary, so threats of words have no part in it.
    """
    baselines: dict[_Subject, float] = {}
    for record in records:
        for metric in record.metrics if threat_named(record.threat).beside_text_classifiers else ():
            if metric.name in OF_DATASETS and not metric.group and metric.value is not None:
                secrets = frozenset([metric.variable] if metric.variable else record.secrets)
                baselines[metric.name, record.dataset, record.seed, secrets] = metric.value
    return baselines


def _refuse_contradictions(
    folder: Path, records: Sequence[Record], known: Mapping[_Subject, float], threats: _Threats
) -> None:
    """Refuse other baselines of a dataset than the leaderboard's, another threat to its secrets, and failed cells."""
    for subject, value in _baselines(records).items():
        if abs(known.get(subject, value) - value) > ROUNDING:
            raise RequestError(
                f"{folder / PUBLISHED}: {subject[0]} of {subject[1]} is {value:g}, but {known[subject]:g} on the board"
            )
    for record in records:
        given = record.threat, tuple(record.secrets)
        allowed = threats.get((record.dataset, frozenset(record.secrets)), {given})
        if record.secrets and given not in allowed:
            shown, *others = [f"{threat} of {', '.join(secrets)}" for threat, secrets in (given, *sorted(allowed))]
            raise RequestError(f"{folder / PUBLISHED}: {shown}; allowed: {' or '.join(others)}, as on the board")
    if failed := [record for record in records if record.status == "failed"]:
        raise RequestError(f"{folder / PUBLISHED}: {len(failed)} cells failed, as {' / '.join(row_of(failed[0]))}")


def row_of(record: Record) -> RowKey:
    """Return the labels of a record's dataset, victim and attack."""
    return record.dataset, record.victim, record.attack
