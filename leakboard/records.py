"""Cell records: ``result.json`` is written last and means done; a failure stands beside it and is never a result."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from leakboard.referee.measures import Metric
from leakboard.store import digest, write_file

RESULT, FAILURE, COSTS, SENTENCES = "result.json", "failure.json", "costs.json", "sentences.json"


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
    secrets: Sequence[str] = ()
    attack_metric: str = ""
    test_size: int | None = None
    claim: Mapping[str, Any] | None = None
    note: str = ""
    checks: Mapping[str, float] = field(default_factory=dict)
    fingerprint: str = ""
    metrics: Sequence[Metric] = ()

    def value(self, name: str, variable: str = "", group: str = "") -> Metric | None:
        """Return a metric, or None where the cell has none of this name with a value."""
        for metric in self.metrics:
            if (metric.name, metric.variable, metric.group) == (name, variable, group) and metric.value is not None:
                return metric
        return None


def write_record(folder: Path, record: Record) -> None:
    """Write ``result.json``; an earlier failure is removed."""
    _write(folder, RESULT, FAILURE, _finite(asdict(record)))


def read_record(folder: Path, key: str) -> Record | None:
    """Return a finished or failed cell's record.

    None where there is none, it belongs to another identity, or its bytes were altered.
    """
    for name in (RESULT, FAILURE):
        try:
            content = json.loads((folder / name).read_text("utf-8"))
            if content.pop("checksum") != digest(content):
                continue
            content.pop("traceback", None)
            record = Record(**{**content, "metrics": [Metric(**metric) for metric in content["metrics"]]})
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if record.key == key:
            return record
    return None


def write_failure(folder: Path, record: Record, traceback: str) -> None:
    """Write ``failure.json``: why a cell failed, with the traceback; an earlier result is removed."""
    _write(folder, FAILURE, RESULT, _finite(asdict(record)) | {"traceback": traceback})


def _write(folder: Path, name: str, other: str, content: dict[str, Any]) -> None:
    content["checksum"] = digest(content)
    write_file(folder / name, json.dumps(content, indent=1, sort_keys=True) + "\n")
    (folder / other).unlink(missing_ok=True)


def _finite(value: Any) -> Any:
    """Replace NaN and infinity, which strict JSON has not, by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value
