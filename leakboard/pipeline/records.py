"""Write and read the records of cells."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from leakboard.claims import CLAIM_TYPES
from leakboard.errors import RequestError, plain
from leakboard.metrics.measures import Metric
from leakboard.pipeline.record_form import MAX_TEXT, complaint
from leakboard.store import digest, finite, numbers, write_file
from leakboard.suite.names import natural

RESULT, FAILURE, COSTS = "result.json", "failure.json", "costs.json"
GUESSES = "guesses.npz"
"""File of a cell with the guesses of each test row (`leakboard.pipeline.guess_files`)."""
MAX_BYTES = 1 << 29
"""Largest size of a board's records, uncompressed (bytes)."""
PUBLISHED = "records.jsonl.gz"
SUBMISSIONS = "submissions"
"""Folder of a leaderboard for records that other people computed."""


@dataclass(frozen=True)
class Record:
    """The scores of a cell, or the reason why the cell was skipped or failed."""

    dataset: str
    victim: str
    attack: str
    seed: int
    status: str
    """``ok``, ``skipped`` or ``failed``."""
    reason: str = ""
    key: str = ""
    code: Mapping[str, str] = field(default_factory=dict)
    """Digest of each plugin's file, by kind and name."""
    revisions: Mapping[str, int] = field(default_factory=dict)
    """Of the stages, the threat and the plugins; empty before version 0.2."""
    secrets: Sequence[str] = ()
    threat: str = ""
    """Name of the threat."""
    attack_metric: str = ""
    """Measure that ``attack_score`` reports, for example ``accuracy``."""
    test_size: int | None = None
    claim: Mapping[str, Any] | None = None
    audited: Mapping[str, Any] | None = None
    """The unit and the delta of an audit's bound; None for other attacks."""
    details: str = ""
    checks: Mapping[str, float] = field(default_factory=dict)
    metrics: Sequence[Metric] = ()
    sentences: Sequence[Mapping[str, Any]] = ()
    """Texts that the attack recovered, as rows of ``sentences.csv``."""

    def value(self, name: str, variable: str = "", group: str = "") -> Metric | None:
        """Return a metric, or None if the cell has no value of this name."""
        for metric in self.metrics:
            # no tuples: most names differ, and tables ask a million times
            is_it = metric.name == name and metric.variable == variable and metric.group == group
            if is_it and metric.value is not None:
                return metric
        return None


Entry = tuple[Record, list[dict[str, Any]]]
"""A record, and the costs of its cell's stages."""


def in_natural_order(records: Iterable[Record]) -> list[Record]:
    """Sort records by dataset, victim, attack and seed; numbers in names by value."""
    return sorted(records, key=lambda r: (natural(r.dataset), natural(r.victim), natural(r.attack), r.seed))


def write_record(folder: Path, record: Record) -> None:
    """Write ``result.json``, and remove an earlier failure."""
    _write(folder, RESULT, FAILURE, _as_json(record))


def read_record(folder: Path, key: str) -> Record | None:
    """Return the record of a finished or failed cell; None if it is missing, altered, or of another identity."""
    for name in (RESULT, FAILURE):
        record = _read(folder / name)
        if record and record.key == key:
            return record
    return None


def is_finished(folder: Path, key: str, since: float, with_guesses: bool = False) -> bool:
    """Return whether a cell has an intact result of this identity, written at ``since`` or later (seconds).

    With guesses, the cell of an attack that was not skipped also needs the file of its guesses.
    """
    try:
        written = (folder / RESULT).stat().st_mtime
    except OSError:
        return False
    record = read_record(folder, key) if written >= since else None
    if record is None or record.status == "failed":
        return False
    return not with_guesses or record.status == "skipped" or is_zipfile(folder / GUESSES)


def is_altered(folder: Path) -> bool:
    """Return whether a cell has a result that is unreadable or does not match its checksum."""
    return (folder / RESULT).exists() and _read(folder / RESULT) is None


def _read(path: Path) -> Record | None:
    try:
        content = json.loads(path.read_text("utf-8"))
        if content.pop("checksum") != digest(content):
            return None
        content.pop("traceback", None)
        return _record(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _record(content: Mapping[str, Any]) -> Record:
    metrics = [
        Metric(**{key: _interned(value) for key, value in numbers(m, Metric).items()}) for m in content["metrics"]
    ]
    claim = content.get("claim") and numbers(content["claim"], CLAIM_TYPES[content["claim"]["about"]])
    threat = (
        content["threat"] if "threat" in content else _threat_of_old_record(content.get("attack_metric", ""), claim)
    )
    return Record(**{**content, "metrics": metrics, "claim": claim, "threat": threat})


_THREAT_OF_HEADLINE = {
    "accuracy": "attributes",
    "f1": "entities",
    "recall@5": "words",
    "token_f1": "texts",
    "auc": "membership",
}
"""Records of version 0.1 name their headline, but not their threat."""


def _threat_of_old_record(headline: str, claim: Mapping[str, Any] | None) -> str:
    if headline in _THREAT_OF_HEADLINE or not headline:
        return _THREAT_OF_HEADLINE.get(headline, "")
    # audits of both kinds have the same headline
    return "releases" if claim and claim["about"] == "release" else "canaries"


def _interned(value: Any) -> Any:
    # saves memory: records share the names of metrics
    return sys.intern(value) if type(value) is str else value


def write_costs(folder: Path, costs: Sequence[Mapping[str, Any]]) -> None:
    """Write the costs of stages to ``costs.json``: time, memory and environment."""
    content: dict[str, Any] = {"costs": [dict(cost) for cost in costs]}
    content["checksum"] = digest(content)
    write_file(folder / COSTS, json.dumps(content, sort_keys=True) + "\n")


def read_costs(folder: Path) -> list[dict[str, Any]]:
    """Return the costs in the folder of a cell or an artefact; empty if they were altered or not written."""
    return checked_costs(folder) or []


def checked_costs(folder: Path) -> list[dict[str, Any]] | None:
    """Return the costs in the folder of a cell or an artefact; empty if not written, None if altered."""
    try:
        content = json.loads((folder / COSTS).read_text("utf-8"))
        if isinstance(content, dict):  # earlier versions wrote a list without a checksum
            if content.pop("checksum") != digest(content):
                return None
            content = content["costs"]
        return [dict(cost) for cost in content]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_failure(folder: Path, record: Record, traceback: str) -> None:
    """Write the reason and traceback of a failed cell to ``failure.json``, and remove an earlier result."""
    _write(folder, FAILURE, RESULT, _as_json(record) | {"traceback": traceback})


def _as_json(record: Record) -> dict[str, Any]:
    # `asdict` is slow: it copies every value
    metrics = [{name: getattr(metric, name) for name in _METRIC_FIELDS} for metric in record.metrics]
    return dict(finite(vars(record) | {"metrics": metrics}))


_METRIC_FIELDS = tuple(entry.name for entry in fields(Metric))


def _write(folder: Path, name: str, other: str, content: dict[str, Any]) -> None:
    content = _cleaned(content)
    content["checksum"] = digest(content)
    write_file(folder / name, json.dumps(content, sort_keys=True) + "\n")
    (folder / other).unlink(missing_ok=True)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value, MAX_TEXT)
    if isinstance(value, float):
        return value
    if isinstance(value, dict | Mapping):  # the check for `Mapping` alone is slow
        return {key: _cleaned(entry) for key, entry in value.items()}
    return [_cleaned(entry) for entry in value] if isinstance(value, list | tuple) else value


def pack(entries: Iterable[tuple[Record, Sequence[Mapping[str, Any]]]], place: str = "") -> bytes:
    """Return records with their costs as compressed lines of JSON; the same records give the same bytes.

    Args:
        entries: records, each with its costs.
        place: location of the records for error messages; if empty, forms are not checked.

    Raises:
        RequestError: a record has a wrong form, and ``place`` is given.
    """
    lines = sorted(_packed(record, costs) for record, costs in entries)
    for line in lines if place else ():
        _unpack(line.encode(), place)
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def _packed(record: Record, costs: Sequence[Mapping[str, Any]]) -> str:
    # recovered sentences are texts of other people
    content = _as_json(dataclasses.replace(record, sentences=())) | {"costs": [dict(cost) for cost in costs]}
    return json.dumps({**content, "checksum": digest(content)}, sort_keys=True, separators=(",", ":"))


def read_published(folder: Path, wanted: Collection[str]) -> dict[str, Entry]:
    """Return the published records of a leaderboard with these identities, each with its costs.

    Altered records and records of a wrong form are left out.
    """
    entries = [_unpack(line) for line in _lines(folder / PUBLISHED) if not _possible_keys(line).isdisjoint(wanted)]
    return {entry[0].key: entry for entry in entries if entry and entry[0].key in wanted}


def published_records(folder: Path, is_foreign: bool = False) -> list[Record]:
    """Return all published records of a leaderboard, without their costs (see `read_entries`)."""
    return [record for record, _ in published_entries(folder, is_foreign)]


def published_labels(folder: Path) -> set[tuple[Any, ...]]:
    """Return dataset, victim, attack and seed of each published record, without checking the record."""
    labels = set()
    for line in _lines(folder / PUBLISHED):
        with suppress(ValueError, KeyError, TypeError):
            content = json.loads(line)
            labels.add(tuple(content[name] for name in ("dataset", "victim", "attack", "seed")))
    return labels


def published_entries(folder: Path, is_foreign: bool = False) -> list[Entry]:
    """Return all published records of a leaderboard with their costs (see `read_entries`)."""
    return read_entries(folder / PUBLISHED, is_foreign)


def read_entries(path: Path, is_foreign: bool = False) -> list[Entry]:
    """Return the packed records of a file, each with its costs. Altered records are left out.

    Args:
        path: the file.
        is_foreign: whether other people computed the records. Then altered records are refused.

    Raises:
        RequestError: a record has a wrong form, a cell has two records, or the file is too large. With ``is_foreign``,
            also: a record was altered, or the file has no records.
    """
    entries: dict[str, Entry] = {}
    lines = _lines(path)
    if is_foreign and not lines:
        raise RequestError(f"{path}: no records, or damaged")
    for number, line in enumerate(lines, 1):
        place = f"{path}: line {number}"
        if entry := _unpack(line, f"{place}: record"):
            if entry[0].key in entries:
                raise RequestError(f"{place}: a second record of the cell {entry[0].key[:8]}; allowed: one")
            entries[entry[0].key] = entry
        elif is_foreign:
            raise RequestError(f"{place}: no record, or one that was altered")
    return list(entries.values())


def _lines(path: Path) -> list[bytes]:
    reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # the format of gzip
    try:
        content = reader.decompress(path.read_bytes(), MAX_BYTES + 1)
    except (OSError, zlib.error):
        return []
    if len(content) > MAX_BYTES:  # a small compressed file might fill the memory
        raise RequestError(f"{path}: more than {MAX_BYTES >> 20} MiB uncompressed")
    return content.splitlines() if reader.eof and not reader.unused_data else []


def _possible_keys(line: bytes) -> set[str]:
    # without parsing: most lines are not wanted
    return {key.decode() for key in _KEY.findall(line)}


_KEY = re.compile(rb'"key":\s*"([0-9a-f]{64})"')


def _unpack(line: bytes, place: str = "") -> Entry | None:
    """Return the record and costs of a line of `pack`; None if altered or malformed."""
    try:
        content = json.loads(line, parse_constant=_refuse, object_pairs_hook=_no_doubles if place else None)
        if content.pop("checksum") != digest(content):
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if wrong := complaint(content, place):
        if place:
            raise RequestError(wrong)
        return None
    costs = content.pop("costs")
    return _record(content), costs


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; refuse one with two values of a name: readers differ in which they take."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name occurs twice")
    return content


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
