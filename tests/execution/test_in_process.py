"""A run inside the current process gives the results of workers, and restores the process's settings."""

import logging
import random
import warnings
from contextlib import contextmanager

import datasets
import numpy as np
import pytest
import threadpoolctl
import torch
import transformers
from running import run_all

from leakboard.board.run_files import write_files
from leakboard.execution.engines import InProcess
from leakboard.execution.resources import limit_threads
from leakboard.execution.tasks import Task
from leakboard.logs import PROGRESS
from leakboard.pipeline import cell, runner
from leakboard.pipeline.records import read_costs
from leakboard.pipeline.stages import Stages
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite


class Display:
    """A display that only keeps what it should show."""

    def __init__(self):
        self.events, self.ended = [], []

    def begin(self, kinds, processes):
        assert processes == 1
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def print(self, line):
        pass

    def listen(self, name, event, text):
        self.events.append((event, text))

    def end(self, name, seconds, failure, skipped=""):
        self.ended.append((name, failure))


@pytest.fixture
def execute(bench):
    """Return a function that runs the bench's suite in this process: the run, and what its display was told."""

    def execute():
        registry = Registry(bench.files)
        suite = load_suite(str(bench.folder / "tiny.yaml"), registry)
        run = runner.open_run(suite, suite.cells(), bench.out, registry, reuse=False)
        display = Display()
        runner.execute(run, display, InProcess(), force=False)
        return run, display

    return execute


@pytest.mark.slow
def test_the_records_are_those_of_workers(finished, bench, execute):
    (bench.folder / "tiny.yaml").write_bytes((finished.folder / "tiny.yaml").read_bytes())
    run, display = execute()
    write_files(run, run.records())
    assert bench.tables() == finished.tables()
    results = {path.parent.name: path.read_bytes() for path in bench.results()}
    assert results == {path.parent.name: path.read_bytes() for path in finished.results()}
    assert len(display.ended) > len(results)
    assert ("progress", "attacking") in display.events


def test_no_attack_is_charged_for_the_metrics_of_the_victim(bench, execute, monkeypatch):
    in_stage, victim_metrics, stages, seen = Stages.in_stage, cell.victim_metrics, [], []

    @contextmanager
    def noted(self, name, needs):
        with in_stage(self, name, needs) as cost:
            stages.append(name)
            yield cost
            stages.pop()

    def computed(side, gold):
        seen.append(list(stages))
        return victim_metrics(side, gold)

    monkeypatch.setattr(Stages, "in_stage", noted)
    monkeypatch.setattr(cell, "victim_metrics", computed)
    bench.suite(text_classifier=False)
    execute()
    assert seen == [[]]
    (path,) = bench.results()
    assert [cost["stage"] for cost in read_costs(path.parent)] == ["fit", "publish", "attack"]


def settings():
    return {
        "torch threads": torch.get_num_threads(),
        "threads": [pool["num_threads"] for pool in threadpoolctl.threadpool_info()],
        "random": random.getstate(),
        "numpy": str(np.random.get_state()),
        "torch": torch.get_rng_state().tolist(),
        "bars": (datasets.are_progress_bars_disabled(), transformers.utils.logging.is_progress_bar_enabled()),
        "filters": list(warnings.filters),
        "handlers": list(PROGRESS.handlers),
    }


def change_everything(seen, warn):
    torch.set_num_threads(1)
    threadpoolctl.threadpool_limits(1)
    random.random()
    np.random.random()
    torch.rand(1)
    datasets.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("error")
    seen.append(settings())


def test_settings_that_a_stage_changes_are_restored():
    run_all(InProcess(), [])  # imports the libraries that have threads
    datasets.enable_progress_bars()
    transformers.utils.logging.enable_progress_bar()
    torch.set_num_threads(2)
    threadpoolctl.threadpool_limits(2)
    handler = logging.NullHandler()
    PROGRESS.addHandler(handler)
    before, seen = settings(), []
    run_all(InProcess(), [Task("changes", change_everything, (seen,))])
    assert [name for name in before if seen[0][name] == before[name]] == []
    assert settings() == before
    PROGRESS.removeHandler(handler)


def defaults():
    return torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()


def provide(seen, warn):
    """Do what every stage does first."""
    limit_threads(1)
    seen.append(defaults())


@pytest.mark.parametrize("device", [None, "meta"])
def test_torchs_defaults_of_the_user_are_restored(device):
    torch.set_default_dtype(torch.float64)
    torch.set_default_device(device)
    torch.set_grad_enabled(False)
    try:
        before, seen = defaults(), []
        run_all(InProcess(), [Task("provides", provide, (seen,))])
        assert seen == [(torch.float32, torch.device("cpu"), True)]
        assert defaults() == before
    finally:
        limit_threads(1)
