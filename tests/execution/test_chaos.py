"""At fifty random moments something is killed, damaged or started twice, or the disk is full. The tables stay the same.

The events are printed (``pytest -s``).
"""

import contextlib
import os
import random
import resource
import shutil
import signal
import time

import pytest
from running import descendants, is_gone, wait_for

from leakboard.pipeline.records import is_altered

MOMENTS = 50
VICTIMS = [{"hashed": {"grid": {"dimensions": [8, 12, 16, 20]}}}]
LATEST = 7.0
"""Latest moment (seconds after the start). A run of all cells takes somewhat longer."""


def wait_for_a_moment(process, bench, rng):
    """Wait for a time or, as often, for a number of finished cells, which a slow machine also reaches."""
    moment, count = time.monotonic() + rng.uniform(0.5, LATEST), rng.randrange(8)
    if rng.random() < 0.5:
        time.sleep(moment - time.monotonic())
    else:
        wait_for(lambda: process.poll() is not None or len(computed(bench)) >= count)


def kill_runner(process, bench, rng):
    process.kill()
    return "the runner is killed"


def kill_worker(process, bench, rng):
    below = descendants(process.pid)
    with contextlib.suppress(ProcessLookupError, IndexError):
        os.kill(victim := rng.choice(below), signal.SIGKILL)
        return f"one of {len(below)} processes below it is killed: {victim}"
    return "no worker to kill"


def interrupt(process, bench, rng):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    return "Ctrl-C"


def flip_a_bit(process, bench, rng):
    """Damage a file, but none that is being written: a run never reads those."""
    files = [path for path in sorted(bench.out.rglob("*")) if path.is_file() and not _is_hidden(path, bench.out)]
    with contextlib.suppress(OSError, IndexError, ValueError):
        path = rng.choice(files)
        content = bytearray(path.read_bytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        return f"bit flipped in {path}"
    return "no file to damage"


def _is_hidden(path, root):
    names = path.relative_to(root).parts
    return any(name.startswith(".") for name in names[1:]) or (names[0] == "tiny" and len(names) == 2)


def start_twice(process, bench, rng):
    """Start a second run in the same folder, which lives as long as the first."""
    bench.second = bench.process("run", "--jobs", 1)
    return "a second run begins in the same folder"


def fill_disk(process, bench, rng):
    """Limit the size of files that the run's processes write, which they see as a full disk."""
    size = rng.choice((0, 1_000, 10_000))
    for _ in range(2):  # a process may start meanwhile
        for pid in (process.pid, *descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    return f"the disk is full: no file grows beyond {size} bytes"


EVENTS = (
    kill_runner, kill_worker, kill_worker, interrupt, flip_a_bit, flip_a_bit, start_twice, fill_disk, fill_disk
)  # fmt: skip


def last_error(process):
    """Wait for a process, and for the processes that it started; return its last line on standard error."""
    errors = process.communicate(timeout=120)[1].splitlines()
    wait_for(lambda: is_gone(process.pid), 20)
    return errors[-1] if errors else ""


def computed(bench):
    """Return the contents of results and when they were written. A cell that is computed again is written again.

    Damaged ones are left out: a run that lives long enough computes them again.
    """
    intact = [path for path in bench.run.glob("cells/*/result.json") if not is_altered(path.parent)]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in intact}


@pytest.mark.slow
def test_fifty_moments_change_no_byte(bench):
    bench.suite(seeds=[0, 1], victims=VICTIMS)
    out, bench.out = bench.out, bench.folder / "undisturbed"
    process = bench.process("run", "--jobs", 1)
    last_error(process)
    assert process.returncode == 0
    expected, bench.out = bench.tables(), out
    rng, runs, known, is_damaged = random.Random(0), 1, {}, False
    for number in range(1, MOMENTS + 1):
        bench.second = None
        process = bench.process("run", "--jobs", 2)
        wait_for_a_moment(process, bench, rng)
        before = computed(bench)
        assert known.items() <= before.items(), "a finished cell was lost or computed again"
        event = rng.choice(EVENTS)
        description = event(process, bench, rng)
        if event is not kill_runner and rng.random() < 0.5:
            process.kill()
            description += ", and then the runner is killed"
        error, *_ = [last_error(run) for run in filter(None, (process, bench.second))]
        status = f"status {process.returncode} {error}"
        print(f"moment {number}: {len(before)} of 8 cells, {description}; {status}", flush=True)
        if event is fill_disk:
            assert (
                process.returncode in (0, -signal.SIGKILL)
                or "finished work is kept" in error
                or "cannot be written" in error
            )
        if event is flip_a_bit:
            known, is_damaged = {}, True
        else:
            now = computed(bench)
            assert before.items() <= now.items(), "a finished cell was lost or changed"
            known = {} if is_damaged else now
        if process.returncode == 0 and event is not flip_a_bit:  # the next run notices the damage
            assert bench.tables() == expected
            shutil.rmtree(bench.out)
            runs, known, is_damaged = runs + 1, {}, False
    process = bench.process("run", "--jobs", 2)
    last_error(process)
    assert process.returncode == 0
    assert bench.tables() == expected
    print(f"{MOMENTS} moments in {runs} runs")
