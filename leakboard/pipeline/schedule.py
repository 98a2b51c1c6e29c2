"""Make the tasks of a run; cells that need the same artefact share a task."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from leakboard.errors import RequestError
from leakboard.execution.devices import DeviceKind
from leakboard.execution.engines import Engine
from leakboard.execution.reservations import Reservation
from leakboard.execution.resources import Needs
from leakboard.execution.tasks import Task
from leakboard.pipeline.stages import RunFolders
from leakboard.pipeline.task_functions import fit_victim, load_dataset, publish_victim, run_cell
from leakboard.store import folder_name
from leakboard.suite.cells import Choice
from leakboard.suite.code import is_foreign
from leakboard.suite.options import parts
from leakboard.suite.plan import Job
from leakboard.suite.suite_file import Device
from leakboard.suite.suites import Suite


@dataclass
class Schedule:
    """The tasks of a run's cells."""

    suite: Suite
    folders: RunFolders
    job_of_task: dict[str, Job] = field(default_factory=dict)
    """The job of each attack, by the name of its task."""
    _loading: list[Task] = field(default_factory=list)
    _later: list[Task] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    """Name of the task that makes an artefact, by the artefact's identity."""
    _users: dict[str, list[Job]] = field(default_factory=dict)
    """Jobs of the cells that need an artefact, by its identity."""
    _run: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def tasks(self) -> list[Task]:
        """All tasks; tasks that load datasets come first."""
        return [*self._loading, *self._later]

    def add(self, job: Job) -> None:
        """Add the task of a cell's attack, and all tasks before it."""
        source, victim, attack, gold = job.cell.source, job.cell.victim, job.cell.attack, job.gold
        if source.other:
            self._load(job, source.other, job.other_key)
        published = self._publish(job, job)
        plugins, needs = [victim, attack], [job.attack_needs, job.engine_needs]
        if gold:
            plugins, needs = [*plugins, gold.cell.victim], [*needs, gold.needs]
        name = f"{published} / {self.suite.names.name('attack', attack.label)}"
        reserved = self._reservation(f"{self.suite.name} {job.victim_slug} {attack.name}", job.key)
        options = {"after": published, "kind": attack.name, "reservation": reserved, **self._uses(plugins, needs)}
        self._later.append(Task(name, run_cell, (job, self.folders), **options))
        self.job_of_task[name] = job

    def _load(self, job: Job, choice: Choice, key: str) -> str:
        """Add the task that loads a dataset, unless it was added; return its name."""
        if key not in self._names:
            name = self._names[key] = f"load {choice.label}"
            reserved = self._reservation(f"load {choice.name}", key)
            options = {"kind": name, "reservation": reserved, **self._uses([choice], [job.engine_needs])}
            self._loading.append(Task(name, load_dataset, (job, self.folders, choice, key), **options))
        return self._names[key]

    def _publish(self, job: Job, user: Job) -> str:
        """Add the tasks that fit and publish for a job, unless they were added; return the name of the last.

        The user is the job of the cell that needs the publications.
        """
        cell, gold, names = job.cell, job.gold, self.suite.names
        dataset, victim = names.name("dataset", cell.source.label), names.name("victim", cell.victim.label)
        stages = [
            (job.fit_key, "fit", f"{dataset} / fit {victim} / seed {cell.seed}", fit_victim, job.fit_label),
            (job.victim_key, "publish", f"{dataset} / {victim} / seed {cell.seed}", publish_victim, cell.victim.label),
        ]
        after = self._load(job, cell.source.corpus, job.corpus_key)
        # the attack also reads what the model of the suite's `gold` publishes, but `Task.after` names one task,
        # so the chain is publish gold, fit, publish, attack
        if gold and gold.victim_key != job.victim_key:
            after = self._publish(gold, user)
            if gold.fit_key == job.fit_key:
                stages = stages[1:]  # both victims share the fit
        for key, verb, name, call, label in stages:
            self._users.setdefault(key, []).append(user)
            if key not in self._names:
                self._names[key] = name
                reserved = self._reservation(f"{verb} {job.victim_slug}", key)
                uses = self._uses([cell.victim], [job.needs])
                options = {"after": after, "kind": f"{verb} {label}", "reservation": reserved, **uses}
                self._later.append(Task(name, call, (job, self._users[key], self.folders), **options))
            after = self._names[key]
        return after

    def _reservation(self, readable: str, key: str) -> Reservation:
        return Reservation(self.folders.store / "reservations" / folder_name(readable, key), self._run)

    def _uses(self, plugins: Sequence[Choice], needs: Sequence[Needs]) -> dict[str, Any]:
        return {
            "plugins": _foreign_plugins(*plugins),
            "timeout": self.suite.file.timeout,
            "threads": max(need.threads for need in needs),
            "gpus": int(self.folders.device == "cuda" and any(need.uses_gpu for need in needs)),
        }


def chosen_device(asked: Device, jobs: Sequence[Job], engine: Engine) -> DeviceKind:
    """Return the device of the stages that may use a GPU.

    Raises:
        RequestError: the suite asks for a GPU, and the engine has none.
    """
    if asked == "cpu" or (asked == "auto" and not (any(map(_uses_gpu, jobs)) and engine.gpus)):
        return "cpu"
    if engine.gpus == 0:
        raise RequestError("device: cuda is not allowed here: there is no CUDA device (allowed: auto, cpu)")
    return "cuda"


def _uses_gpu(job: Job) -> bool:
    return job.needs.uses_gpu or job.attack_needs.uses_gpu or bool(job.gold and job.gold.needs.uses_gpu)


def _foreign_plugins(*choices: Choice) -> tuple[str, ...]:
    names: set[str] = set()
    waiting = [(choice.name, choice.plugin) for choice in choices]
    while waiting:
        name, plugin = waiting.pop()
        if is_foreign(type(plugin)):
            names.add(f"{plugin.__leakboard_kind__}/{name}")
        waiting += parts(plugin).values()
    return tuple(sorted(names))
