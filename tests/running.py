"""Tasks, and helpers to run them and to watch processes."""

import contextlib
import os
import time
from pathlib import Path

from leakboard.errors import DataError


def answer(value, warn):
    return value


def fail(warn):
    raise ValueError("odd data")


def stop(warn):
    raise DataError("datasets: mine: no such file")


def die(code, warn):
    os._exit(code)


def write_and_die(path, warn):
    path.touch()
    os._exit(1)


def run_all(engine, tasks, is_done=lambda task: False):
    """Return outcomes by task, and the events that were reported."""
    events = []
    outcomes = list(engine.run(tasks, is_done, lambda *event: events.append(event)))
    return {outcome.task.name: outcome for outcome in outcomes}, events


def failures(outcomes):
    return {name: outcome.failure.reason for name, outcome in outcomes.items() if outcome.failure}


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def processes():
    """Return state, parent and group of each process, by its number."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process may end meanwhile
            state, parent, group, *_ = path.read_text().rsplit(")", 1)[1].split()
            found[int(path.parent.name)] = state, int(parent), int(group)
    return found


def descendants(pid):
    """Return the processes below a process."""
    children = {child for child, (_, parent, _) in processes().items() if parent == pid}
    return sorted(children.union(*map(descendants, children)))


def is_gone(group):
    """Return whether no process of a group runs."""
    return not any(state != "Z" and of == group for state, _, of in processes().values())
