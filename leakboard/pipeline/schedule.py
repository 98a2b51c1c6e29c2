"""The tasks of a run: load, fit, publish, attack. What several cells need is one task, whichever asks for it first."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leakboard.errors import RequestError
from leakboard.execution.devices import Kind
from leakboard.execution.engines import Engine
from leakboard.execution.reservations import Reservation
from leakboard.execution.resources import Needs
from leakboard.execution.tasks import Task
from leakboard.pipeline.stages import RunFolders
from leakboard.pipeline.worker import fit_victim, load_dataset, publish_victim, run_cell
from leakboard.store import folder_name
from leakboard.suite.cells import Choice
from leakboard.suite.code import is_foreign
from leakboard.suite.keys import Device
from leakboard.suite.options import parts
from leakboard.suite.plan import Job
from leakboard.suite.suites import Suite


@dataclass
class Schedule:
    """The tasks of the cells that are added, each with a name, a kind, and what it waits for."""

    suite: Suite
    folders: RunFolders
    cells: dict[str, Job] = field(default_factory=dict)
    """The job of each attack, by its task's name."""
    _loading: list[Task] = field(default_factory=list)
    _others: list[Task] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    """By what a task makes, its name."""
    _run: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def tasks(self) -> list[Task]:
        """All tasks: those that load come first."""
        return [*self._loading, *self._others]

    def add(self, job: Job) -> None:
        """Add a cell's attack, and whatever it waits for."""
        source, victim, attack, gold = job.cell.source, job.cell.victim, job.cell.attack, job.gold
        if source.other:
            self._load(job, source.other, job.other_key, of_attacker=True)
        published = self._published(job)
        name = f"{published} / {self.suite.names.name('attack', attack.label)}"
        needs = self._given(job.attack_needs, job.own_needs, *([gold.needs] if gold else []))
        plugins = _foreign(victim, attack, *([gold.cell.victim] if gold else []))
        reserved = self._reserved(f"{self.suite.name} {job.victim_slug} {attack.name}", job.key)
        task = partial(Task, name, run_cell, (job, self.folders), plugins=plugins, reservation=reserved, **needs)
        self._others.append(task(after=published, kind=attack.name))
        self.cells[name] = job

    def _load(self, job: Job, choice: Choice, key: str, of_attacker: bool) -> str:
        """Return the name of the task that loads a dataset."""
        if key not in self._names:
            name = self._names[key] = f"load {choice.label}"
            task = partial(Task, name, load_dataset, (job, self.folders, of_attacker), **self._given(job.own_needs))
            reserved = self._reserved(f"load {choice.name}", key)
            self._loading.append(task(kind=name, plugins=_foreign(choice), reservation=reserved))
        return self._names[key]

    def _published(self, job: Job) -> str:
        """Return the name of the task that publishes for a job; it waits for a fit.

        A fit whose words are compared with others' waits for those.
        """
        cell, gold = job.cell, job.gold
        called = self.suite.names.name
        dataset, encoder = called("dataset", cell.source.label), called("victim", cell.victim.label)
        task = partial(Task, plugins=_foreign(cell.victim), **self._given(job.needs))
        after = self._load(job, cell.source.corpus, job.corpus_key, of_attacker=False)
        if gold and gold.fit_key != job.fit_key:
            after = self._published(gold)
        for key, readable, name, call, label in (
            (job.fit_key, "fit", f"{dataset} / fit {encoder} / seed {cell.seed}", fit_victim, job.fit_label),
            (job.victim_key, "publish", f"{dataset} / {encoder} / seed {cell.seed}", publish_victim, cell.victim.label),
        ):
            if key not in self._names:
                self._names[key] = name
                reserved = self._reserved(f"{readable} {job.victim_slug}", key)
                arguments, kind = (job, self.folders), f"{readable} {label}"
                added = task(name=name, call=call, arguments=arguments, after=after, kind=kind, reservation=reserved)
                self._others.append(added)
            after = self._names[key]
        return after

    def _reserved(self, readable: str, key: str) -> Reservation:
        return Reservation(self.folders.store / "reservations" / folder_name(readable, key), self._run)

    def _given(self, *needs: Needs) -> dict[str, Any]:
        """Return what a task is given whose stages need this, one inside another."""
        gpus = int(self.folders.device == "cuda" and any(need.uses_gpu for need in needs))
        return {"timeout": self.suite.file.timeout, "threads": max(need.threads for need in needs), "gpus": gpus}


def chosen_device(asked: Device, jobs: Sequence[Job], engine: Engine) -> Kind:
    """Return where the stages of jobs compute that may use a GPU.

    Raises:
        RequestError: a GPU is asked for, and the engine has none.
    """
    if asked == "cpu" or (asked == "auto" and not (any(map(_uses_gpu, jobs)) and engine.gpus)):
        return "cpu"
    if engine.gpus == 0:
        raise RequestError("device: cuda is not allowed here: torch sees no CUDA device (allowed: auto, cpu)")
    return "cuda"


def _uses_gpu(job: Job) -> bool:
    return job.needs.uses_gpu or job.attack_needs.uses_gpu or bool(job.gold and job.gold.needs.uses_gpu)


def _foreign(*choices: Choice) -> tuple[str, ...]:
    """Return those of these plugins, and of what they are made of, that are not LeakBoard's own."""
    found: set[str] = set()
    waiting = [(choice.name, choice.plugin) for choice in choices]
    while waiting:
        name, plugin = waiting.pop()
        found |= {f"{plugin.__leakboard_kind__}/{name}"} if is_foreign(type(plugin)) else set()
        waiting += parts(plugin).values()
    return tuple(sorted(found))
