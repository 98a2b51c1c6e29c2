"""Describe where the numbers of a run come from, in ``meta.json`` next to its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from leakboard.errors import RequestError, one_line
from leakboard.pipeline.record_form import EnvironmentForm
from leakboard.pipeline.records import Record
from leakboard.store import SCHEMA, write_file
from leakboard.suite.options import explain
from leakboard.suite.plan import Job
from leakboard.suite.suites import Suite


def describe(
    suite: Suite, jobs: Iterable[Job], records: Iterable[Record], costs: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the suite, its datasets with their checks, and every environment that computed a part of it."""
    done, jobs = list(records), list(jobs)
    environments = {json.dumps(cost["environment"], sort_keys=True) for cost in costs if "environment" in cost}
    datasets = {job.cell.source.label: job.fingerprint for job in jobs}
    datasets |= {job.cell.source.other.label: job.other_fingerprint for job in jobs if job.cell.source.other}
    return {
        "suite": suite.name,
        "suite_sha256": suite.checksum,
        "schema": SCHEMA,
        "threads": suite.file.threads,
        "datasets": datasets,
        "checks": {record.dataset: dict(record.checks) for record in done if record.checks},
        "cells": sorted(record.key for record in done),
        "environments": [json.loads(text) for text in sorted(environments)],
    }


DECISIVE = ("faiss-cpu", "gensim", "numba", "numpy", "scikit-learn", "scipy", "torch", "transformers")
"""Packages whose version may move numbers."""


def environment_differences(costs: Iterable[tuple[str, Iterable[Mapping[str, Any]]]]) -> str:
    """Return the differences between the environments of a board that may change numbers; empty if there are none.

    Args:
        costs: of each cell, with its victim's label. All stages of one victim should run on one device.
    """
    values_of: dict[str, set[str]] = {}
    for victim, stages in costs:
        for cost in stages:
            environment = cost.get("environment", {})
            packages = environment.get("packages", {})
            values = {name: packages.get(name) for name in DECISIVE}
            values["processor"] = environment.get("machine", {}).get("processor")
            values["precision"] = cost.get("auto_precision")
            values[f"{cost.get('stage')} of {victim}"] = cost.get("device")
            for name, value in values.items():
                if value:
                    values_of.setdefault(name, set()).add(str(value))
    return "; ".join(f"{name}: {', '.join(sorted(values))}" for name, values in values_of.items() if len(values) > 1)


def read_meta(path: Path) -> dict[str, Any]:
    """Return the content of ``meta.json``; empty where there is no file.

    Raises:
        RequestError: it is no object of JSON, or an environment has a wrong form.
    """
    try:
        meta = json.loads(path.read_text("utf-8"))
        environments = meta.get("environments", [])
        TypeAdapter(list[EnvironmentForm]).validate_python(environments, strict=True)
    except FileNotFoundError:
        return {}
    except ValidationError as error:
        raise RequestError(explain(error, f"{path}: environments", EnvironmentForm.model_fields)) from None
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise RequestError(f"{path}: cannot be read ({one_line(error)})") from None
    return dict(meta)


def write_meta(path: Path, meta: dict[str, Any]) -> None:
    """Write ``meta.json``."""
    write_file(path, json.dumps(meta, indent=1, sort_keys=True) + "\n")
