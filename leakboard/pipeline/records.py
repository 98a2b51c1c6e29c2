"""Cell records: ``result.json`` is written last and means done; a failure stands beside it and is never a result."""

from __future__ import annotations

import dataclasses
import gzip
import json
import sys
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from leakboard.errors import plain
from leakboard.metrics.measures import Metric
from leakboard.store import digest, finite, numbers, write_file
from leakboard.suite.names import natural

RESULT, FAILURE, COSTS = "result.json", "failure.json", "costs.json"
LONGEST = 100_000
"""Characters of a text in a record, as of a traceback."""
PUBLISHED = "records.jsonl.gz"
SUBMISSIONS = "submissions"
"""Folder in a leaderboard's of records that others computed."""


@dataclass(frozen=True)
class Record:
    """What is known of a cell: its scores, why it was skipped, or why it failed."""

    dataset: str
    victim: str
    attack: str
    seed: int
    status: str
    """``ok``, ``skipped`` or ``failed``."""
    reason: str = ""
    key: str = ""
    code: Mapping[str, str] = field(default_factory=dict)
    """Digest of the file of each plugin that computed it, by kind and name: provenance, no identity."""
    secrets: Sequence[str] = ()
    threat: str = ""
    """Name of the threat: what was attacked."""
    attack_metric: str = ""
    """What ``attack_score`` is, as in ``accuracy``."""
    test_size: int | None = None
    claim: Mapping[str, Any] | None = None
    audited: Mapping[str, Any] | None = None
    """Of an audit: the unit and the delta that its bound is about."""
    details: str = ""
    checks: Mapping[str, float] = field(default_factory=dict)
    metrics: Sequence[Metric] = ()
    sentences: Sequence[Mapping[str, Any]] = ()
    """Texts that an attack on words recovered, as rows of ``sentences.csv``."""

    def value(self, name: str, variable: str = "", group: str = "") -> Metric | None:
        """Return a metric, or None where the cell has none of this name with a value."""
        for metric in self.metrics:
            if (metric.name, metric.variable, metric.group) == (name, variable, group) and metric.value is not None:
                return metric
        return None


def in_natural_order(records: Iterable[Record]) -> list[Record]:
    """Return records as people read them: by dataset, victim and attack, numbers in these by value, and by seed."""
    return sorted(records, key=lambda r: (natural(r.dataset), natural(r.victim), natural(r.attack), r.seed))


def write_record(folder: Path, record: Record) -> None:
    """Write ``result.json``; an earlier failure is removed."""
    _write(folder, RESULT, FAILURE, finite(asdict(record)))


def read_record(folder: Path, key: str) -> Record | None:
    """Return a finished or failed cell's record.

    None where there is none, it belongs to another identity, or its bytes were altered (`is_altered`).
    """
    for name in (RESULT, FAILURE):
        record = _read(folder / name)
        if record and record.key == key:
            return record
    return None


def is_finished(folder: Path, key: str, since: float) -> bool:
    """Return whether a cell has an intact result of this identity, written at this time or later (seconds)."""
    try:
        written = (folder / RESULT).stat().st_mtime
    except OSError:
        return False
    record = read_record(folder, key) if written >= since else None
    return record is not None and record.status != "failed"


def is_altered(folder: Path) -> bool:
    """Return whether a cell's result is there but its checksum does not match, or it cannot be read."""
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
    metrics = [Metric(**{key: _interned(value) for key, value in numbers(m).items()}) for m in content["metrics"]]
    claim = numbers(content["claim"]) if content["claim"] else None
    threat = content["threat"] if "threat" in content else _threat_before(content["attack_metric"], claim)
    return Record(**{**content, "metrics": metrics, "claim": claim, "threat": threat})


_THREATS_BEFORE = {
    "accuracy": "attributes",
    "f1": "entities",
    "recall@5": "words",
    "token_f1": "texts",
    "auc": "membership",
}
"""The threat by the headline, for records of version 0.1, which do not name it."""


def _threat_before(headline: str, claim: Mapping[str, Any] | None) -> str:
    """Return the threat of a record of version 0.1: audits of releases had a claim about them."""
    if headline in _THREATS_BEFORE or not headline:
        return _THREATS_BEFORE.get(headline, "")
    return "releases" if claim and claim["about"] == "release" else "canaries"


def _interned(value: Any) -> Any:
    """Return a value; of equal texts one object: names of metrics stand in every record."""
    return sys.intern(value) if type(value) is str else value


def write_costs(folder: Path, costs: Sequence[Mapping[str, Any]]) -> None:
    """Write ``costs.json``: what each stage took, and where; beside the result, as it differs from run to run."""
    content: dict[str, Any] = {"costs": [dict(cost) for cost in costs]}
    content["checksum"] = digest(content)
    write_file(folder / COSTS, json.dumps(content, indent=1, sort_keys=True) + "\n")


def read_costs(folder: Path) -> list[dict[str, Any]]:
    """Return what each stage of a cell took; empty where that was altered or not written."""
    return checked_costs(folder) or []


def checked_costs(folder: Path) -> list[dict[str, Any]] | None:
    """Return what each stage of a cell took, empty where that was not written; None where it was altered.

    Costs of earlier versions are a list without a checksum.
    """
    try:
        content = json.loads((folder / COSTS).read_text("utf-8"))
        if isinstance(content, dict):
            if content.pop("checksum") != digest(content):
                return None
            content = content["costs"]
        return [dict(cost) for cost in content]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_failure(folder: Path, record: Record, traceback: str) -> None:
    """Write ``failure.json``: why a cell failed, with the traceback; an earlier result is removed."""
    _write(folder, FAILURE, RESULT, finite(asdict(record)) | {"traceback": traceback})


def _write(folder: Path, name: str, other: str, content: dict[str, Any]) -> None:
    content = _cleaned(content)
    content["checksum"] = digest(content)
    write_file(folder / name, json.dumps(content, indent=1, sort_keys=True) + "\n")
    (folder / other).unlink(missing_ok=True)


def _cleaned(value: Any) -> Any:
    """Return what is written, with every text as a file can hold it and a terminal can show it."""
    if isinstance(value, str):
        return plain(value, LONGEST)
    if isinstance(value, Mapping):
        return {key: _cleaned(entry) for key, entry in value.items()}
    return [_cleaned(entry) for entry in value] if isinstance(value, list | tuple) else value


def pack(entries: Iterable[tuple[Record, Sequence[Mapping[str, Any]]]]) -> bytes:
    """Return records with their costs as compressed lines of JSON: the same records, the same bytes."""
    lines = sorted(_packed(record, costs) for record, costs in entries)
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def _packed(record: Record, costs: Sequence[Mapping[str, Any]]) -> str:
    """Return a record and its costs as one line, without recovered sentences: they are other people's texts."""
    content = finite(asdict(dataclasses.replace(record, sentences=())))
    content |= {"costs": [dict(cost) for cost in costs]}
    return json.dumps({**content, "checksum": digest(content)}, sort_keys=True, separators=(",", ":"))


def read_published(folder: Path, wanted: Collection[str]) -> dict[str, tuple[Record, list[dict[str, Any]]]]:
    """Return those of a leaderboard's published records, with costs, whose identity is wanted; no altered ones."""
    entries = [_unpack(line) for line in _lines(folder) if _key(line) in wanted]
    return {entry[0].key: entry for entry in entries if entry and entry[0].key in wanted}


def published_records(folder: Path) -> list[Record]:
    """Return all records that a leaderboard was published with; altered ones are left out."""
    return [record for record, _ in published_entries(folder)]


def published_entries(folder: Path) -> list[tuple[Record, list[dict[str, Any]]]]:
    """Return all records that a leaderboard was published with, each with its costs; altered ones are left out."""
    return [entry for line in _lines(folder) if (entry := _unpack(line))]


def _lines(folder: Path) -> list[bytes]:
    try:
        return gzip.decompress((folder / PUBLISHED).read_bytes()).splitlines()
    except (OSError, ValueError, EOFError, zlib.error):
        return []


def _key(line: bytes) -> str:
    """Return the identity that a line names, without parsing it: most lines are not wanted."""
    start = line.find(_KEY) + len(_KEY)
    return line[start : start + 64].decode(errors="replace")


_KEY = b'"key":"'


def _unpack(line: bytes) -> tuple[Record, list[dict[str, Any]]] | None:
    """Return what `pack` wrote; None where it was altered."""
    try:
        content = json.loads(line)
        if content.pop("checksum") != digest(content):
            return None
        costs = content.pop("costs")
        return _record(content), costs
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
