"""Check the form of published records."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Annotated, Any, Literal

from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from leakboard.claims import CLAIM_TYPES
from leakboard.errors import plain
from leakboard.metrics.audits import BOUND, DELTA, DISTANCE, contradiction
from leakboard.metrics.entries import METRICS, SHARES
from leakboard.metrics.measures import Metric
from leakboard.store import is_later, numbers
from leakboard.suite.options import explain

MAX_TEXT = 100_000
"""Largest length of a text in a record (characters)."""


# These messages say what is allowed: `explain` puts "VALUE is not allowed" before them.


def _plain(text: str) -> str:
    if plain(text, MAX_TEXT + 100) != text:  # a cut text ends with a remark of less than 100 characters
        raise ValueError(f"no control characters, no lone surrogates, at most {MAX_TEXT:,} characters")
    return text


def _number(value: float) -> float:
    if math.isnan(value):
        raise ValueError("a number")
    return value


def _version(text: str) -> str:
    try:
        Version(text)
    except InvalidVersion:
        raise ValueError("a version, as 0.2.0") from None
    return text


_CHECKED_CLAIMS = {
    about: dataclass(claim_type, frozen=True, config=ConfigDict(strict=True, extra="forbid"))
    for about, claim_type in CLAIM_TYPES.items()
}


def _claim(value: dict[str, Any]) -> dict[str, Any]:
    about = value.get("about")
    if not isinstance(about, str) or about not in CLAIM_TYPES:
        raise ValueError(f"about: one of {', '.join(CLAIM_TYPES)}")
    given = numbers({name: entry for name, entry in value.items() if name != "about"}, CLAIM_TYPES[about])
    required = [entry.name for entry in fields(CLAIM_TYPES[about]) if not is_later(entry)]
    if missing := [name for name in required if name not in given]:
        raise ValueError(f"{missing[0]} is missing")
    for text in (entry for entry in given.values() if isinstance(entry, str)):
        _plain(text)
    _CHECKED_CLAIMS[about](**given)
    return value


Text = Annotated[str, AfterValidator(_plain)]
Label = Annotated[Text, Field(min_length=1, pattern=r"^\S(.*\S)?$")]


def _legible(value: str) -> str:
    if not value.isprintable() or " ".join(value.split()) != value:
        raise ValueError("a label without invisible letters and double spaces")
    return value


PluginLabel = Annotated[Text, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\(.*\))?$"), AfterValidator(_legible)]
"""A plugin's name, with its options in brackets if there are any."""
Number = Annotated[float, AfterValidator(_number)]
Size = Annotated[int, Field(ge=0, lt=2**63)]
Scalar = Text | int | float | bool | None


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class MetricForm(_Form):
    """The form of a `Metric`."""

    name: Label
    value: Number | None
    variable: Text = ""
    group: Text = ""
    low: Number | None = None
    high: Number | None = None
    n: Size | None = None
    status: Text = ""

    @model_validator(mode="after")
    def _ordered(self) -> MetricForm:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low is {self.low} and high {self.high}; allowed: low at most high")
        return self


class EnvironmentForm(_Form):
    """The form of the environment of a stage."""

    commit: Annotated[str, Field(pattern=r"^([0-9a-f]{7,64}\+?)?$")] = ""
    leakboard: Annotated[str, AfterValidator(_version)] = "0"
    machine: dict[Text, Scalar] = Field(default_factory=dict)
    packages: dict[Text, Text] = Field(default_factory=dict)
    python: Text = ""


class CostForm(_Form):
    """The form of the costs of a stage."""

    stage: Label
    seconds: Annotated[Number, Field(ge=0)] | None = None
    peak_memory_mib: Annotated[Number, Field(ge=0)] | None = None
    device: Text = ""
    threads: Size | None = None
    auto_precision: Text = ""
    environment: EnvironmentForm | None = None


class AuditedForm(_Form):
    """The form of `Record.audited`."""

    unit: Label
    delta: Annotated[Number, Field(ge=0, lt=1)]


class RecordForm(_Form):
    """The form of a published `leakboard.pipeline.records.Record` with its costs."""

    dataset: PluginLabel
    victim: PluginLabel
    attack: PluginLabel
    seed: Size
    status: Literal["ok", "skipped", "failed"]
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    metrics: list[MetricForm]
    costs: list[CostForm]
    reason: Text = ""
    code: dict[Text, Text] = Field(default_factory=dict)
    revisions: dict[Text, Size] = Field(default_factory=dict)
    secrets: list[Label] = Field(default_factory=list)
    threat: Text = ""
    attack_metric: Text = ""
    test_size: Size | None = None
    claim: Annotated[dict[str, Any], AfterValidator(_claim)] | None = None
    audited: AuditedForm | None = None
    details: Text = ""
    checks: dict[Text, Number] = Field(default_factory=dict)
    sentences: list[dict[str, Any]] = Field(default_factory=list, max_length=0)

    @model_validator(mode="after")
    def _complete(self) -> RecordForm:
        if self.status == "ok" and not self.attack_metric:
            raise ValueError("attack_metric is empty; allowed with status ok: the name of the score")
        subjects = [(metric.name, metric.variable, metric.group) for metric in self.metrics]
        if twice := next((subject for subject in subjects if subjects.count(subject) > 1), None):
            raise ValueError(f"metrics: {' '.join(filter(None, twice))} is given twice")
        for metric in self.metrics:
            if wrong := _out_of_range(metric, self.audited is not None):
                raise ValueError(f"metrics: {wrong}")
        measured = [Metric(m.name, m.value, m.variable, m.group, m.low, m.high, m.n) for m in self.metrics]
        if wrong := contradiction(measured):
            raise ValueError(f"metrics: {wrong}; allowed: right guesses <= guesses <= canaries; hits <= rows")
        if any(metric.name == DISTANCE for metric in self.metrics) and not (self.claim or {}).get("distance"):
            raise ValueError(f"metrics: {DISTANCE} is given; allowed with a distance in the claim")
        deltas = [metric.value for metric in self.metrics if metric.name == DELTA]
        if self.audited and deltas != [self.audited.delta]:
            raise ValueError(f"metrics: {DELTA} is {deltas}; allowed: {self.audited.delta}, as in audited")
        return self


def _out_of_range(metric: MetricForm, is_audit: bool) -> str:
    """Return in one line which value of a metric is not allowed; else empty."""
    if (entry := METRICS.get(metric.name)) is None:
        return ""
    values = SHARES if metric.name == BOUND and not is_audit else entry.values
    if wrong := [end for end in (metric.value, metric.low, metric.high) if end is not None and end not in values]:
        return f"{metric.name} is {wrong[0]}; allowed: {values}"
    number = metric.variable.removeprefix(entry.numbered)
    if entry.numbered and not (metric.variable.startswith(entry.numbered) and _is_finite(number)):
        return f"the variable of {metric.name} is {metric.variable!r}; allowed: {entry.numbered} and a number"
    return ""


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def complaint(content: dict[str, Any], location: str) -> str:
    """Return the first fault in the form of a published record, in one line; empty if there is none."""
    metrics = content.get("metrics")
    if isinstance(metrics, list) and all(isinstance(metric, dict) for metric in metrics):
        content = content | {"metrics": [numbers(metric, Metric) for metric in metrics]}
    try:
        RecordForm.model_validate(content)
    except ValidationError as error:
        return plain(explain(error, location, RecordForm.model_fields))
    return ""
