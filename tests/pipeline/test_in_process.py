"""A run inside this process gives what workers give, and gives the process back as it was."""

import logging
import random
import warnings

import datasets
import numpy as np
import pytest
import threadpoolctl
import torch
import transformers

from leakboard.board.run_files import write_files
from leakboard.errors import StopRun
from leakboard.execution.engines import Here
from leakboard.execution.tasks import Task
from leakboard.logs import PROGRESS, log_progress
from leakboard.pipeline import runner
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite


class Silent:
    """A display that keeps what it is told."""

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

    def end(self, name, seconds, failure):
        self.ended.append((name, failure))


def answer(value, warn):
    return value


def fail(warn):
    raise SystemExit("no")


def stop(warn):
    raise StopRun("the disk is full")


def tell(warn):
    log_progress("epoch 1")
    PROGRESS.warning("look out")
    warn("careful")


def run_all(*tasks):
    heard = []
    return {
        out.task.name: out for out in Here().run(tasks, lambda task: False, lambda *event: heard.append(event))
    }, heard


def test_the_records_are_those_of_workers(finished, bench):
    (bench.folder / "tiny.yaml").write_bytes((finished.folder / "tiny.yaml").read_bytes())
    registry = Registry(bench.files)
    suite = load_suite(str(bench.folder / "tiny.yaml"), registry)
    run = runner.open_run(suite, suite.cells(), bench.out, registry, reuse=False)
    display = Silent()
    runner.execute(run, display, Here(), force=False)
    write_files(run, run.records())
    assert bench.tables() == finished.tables()
    results = {path.parent.name: path.read_bytes() for path in bench.results()}
    assert results == {path.parent.name: path.read_bytes() for path in finished.results()}
    assert len(display.ended) > len(results)
    assert ("progress", "attacking") in display.events


def test_the_order_is_that_of_one_worker_and_failures_stay_alone():
    tasks = [Task("a", answer, (0,)), Task("a1", answer, (0,), after="a"), Task("a11", answer, (1,), after="a1")]
    tasks += [Task("a2", fail, (), after="a"), Task("a21", answer, (0,), after="a2"), Task("b", answer, (2,))]
    outcomes, heard = run_all(*tasks)
    assert list(outcomes) == ["a", "b", "a1", "a11", "a2", "a21"]
    assert [out.value for out in outcomes.values()] == [0, 2, 0, 1, None, None]
    assert outcomes["a21"].failure.reason == outcomes["a2"].failure.reason == "SystemExit: no"
    assert ("a21", "start", "") not in heard


def test_what_a_task_tells_is_heard_under_its_name():
    assert run_all(Task("tells", tell, ()))[1] == [
        ("tells", "start", ""),
        ("tells", "progress", "epoch 1"),
        ("tells", "warning", "look out"),
        ("tells", "warning", "careful"),
    ]


def test_what_stops_a_run_is_raised():
    with pytest.raises(StopRun, match="the disk is full"):
        run_all(Task("stops", stop, ()))


def state():
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
    seen.append(state())


def test_what_a_stage_changes_is_given_back():
    list(Here().run([], print, print))  # which loads what has threads
    datasets.enable_progress_bars()
    transformers.utils.logging.enable_progress_bar()
    torch.set_num_threads(2)
    threadpoolctl.threadpool_limits(2)
    handler = logging.NullHandler()
    PROGRESS.addHandler(handler)
    before, seen = state(), []
    run_all(Task("changes", change_everything, (seen,)))
    assert [name for name in before if seen[0][name] == before[name]] == []
    assert state() == before
    PROGRESS.removeHandler(handler)
