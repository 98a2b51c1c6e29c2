"""Fifty random moments: something is killed, damaged, started twice, or the disk is full. The tables stay the same.

What is done is printed (``pytest -s``). Nothing of this is in the product: processes are found by their parents.
"""

import contextlib
import os
import random
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest

from leakboard.pipeline.records import is_altered

MOMENTS = 50
VICTIMS = [{"hashed": {"grid": {"dimensions": [8, 12, 16, 20]}}}]
LATEST = 7.0
"""Latest moment (seconds after the start): a run of all cells takes somewhat longer."""


def descendants(pid):
    """Return the processes below a process."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            parents[int(path.parent.name)] = int(fields[1])
    found, grown = {pid}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in found} - found
        grown = bool(more)
        found |= more
    return sorted(found - {pid})


def wait_for_a_moment(process, bench, rng):
    """Wait for some time or, as often, for some finished cells: a slow machine is not among them for long."""
    time_of, count = time.monotonic() + rng.uniform(0.5, LATEST), rng.randrange(8)
    if rng.random() < 0.5:
        time.sleep(time_of - time.monotonic())
    else:
        while process.poll() is None and len(computed(bench)) < count:
            time.sleep(0.01)


def kill_runner(process, bench, rng):
    process.kill()
    return "the runner is killed"


def kill_worker(process, bench, rng):
    below = descendants(process.pid)
    if not below:
        return "no worker to kill"
    with contextlib.suppress(ProcessLookupError):
        os.kill(victim := rng.choice(below), signal.SIGKILL)
        return f"one of {len(below)} processes below it is killed: {victim}"
    return "a worker ended by itself"


def interrupt(process, bench, rng):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    return "Ctrl-C"


def flip_a_bit(process, bench, rng):
    """Damage a file; those that are being written are left alone, since nobody reads them."""
    files = [path for path in sorted(bench.out.rglob("*")) if path.is_file() and not _hidden(path, bench.out)]
    with contextlib.suppress(OSError, IndexError, ValueError):
        path = rng.choice(files)
        content = bytearray(path.read_bytes())
        place = rng.randrange(len(content))
        content[place] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        return f"bit flipped in {path}"
    return "no file to damage"


def _hidden(path, root):
    names = path.relative_to(root).parts
    return any(name.startswith(".") for name in names[1:]) or (names[0] == "tiny" and len(names) == 2)


def start_twice(process, bench, rng):
    """Start a second run in the same folder, and let it live as long as the first."""
    bench.second = bench.process("run", "--jobs", 1)
    return "a second run begins in the same folder"


def fill_disk(process, bench, rng):
    """Let no process of the run write beyond some size of a file: what it sees is what a full disk shows it."""
    size = rng.choice((0, 1_000, 10_000))
    for _ in range(2):  # one may be born meanwhile
        for pid in (process.pid, *descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    return f"the disk is full: no file grows beyond {size} bytes"


HAPPENINGS = (
    kill_runner, kill_worker, kill_worker, interrupt, flip_a_bit, flip_a_bit, start_twice, fill_disk, fill_disk
)  # fmt: skip


def is_gone(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            states.append(path.read_text().rsplit(")", 1)[1].split())
    return not any(int(state[2]) == group and state[0] != "Z" for state in states)


def ended(process):
    """Wait for a process, and for what it started; return its last line on standard error."""
    errors = process.communicate(timeout=120)[1].splitlines()
    end = time.monotonic() + 20
    while not is_gone(process.pid):
        assert time.monotonic() < end, "something is left running"
        time.sleep(0.05)
    return errors[-1] if errors else ""


def computed(bench):
    """Return what results say and when they were written: a cell that is computed again is written again.

    Damaged ones are left out: a run that lives long enough computes them again.
    """
    intact = [path for path in bench.run.glob("cells/*/result.json") if not is_altered(path.parent)]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in intact}


@pytest.mark.slow
def test_fifty_moments_change_no_byte(bench):
    bench.suite(seeds=[0, 1], victims=VICTIMS)
    whole, bench.out = bench.out, bench.folder / "whole"
    process = bench.process("run", "--jobs", 1)
    ended(process)
    assert process.returncode == 0
    expected, bench.out = bench.tables(), whole
    rng, lives, known, is_damaged = random.Random(0), 1, {}, False
    for number in range(1, MOMENTS + 1):
        bench.second = None
        process = bench.process("run", "--jobs", 2)
        wait_for_a_moment(process, bench, rng)
        before = computed(bench)
        assert known.items() <= before.items(), "a finished cell was lost or computed again"
        happening = rng.choice(HAPPENINGS)
        done = happening(process, bench, rng)
        if happening is not kill_runner and rng.random() < 0.5:
            process.kill()
            done += ", and then the runner is killed"
        error, *_ = [ended(run) for run in filter(None, (process, bench.second))]
        print(f"moment {number}: {len(before)} of 8 cells, {done}; status {process.returncode} {error}", flush=True)
        if happening is fill_disk:
            assert (
                process.returncode in (0, -signal.SIGKILL)
                or "what was finished before is kept" in error
                or "cannot be written" in error
            )
        if happening is flip_a_bit:
            known, is_damaged = {}, True
        else:
            now = computed(bench)
            assert before.items() <= now.items(), "a finished cell was lost or changed"
            known = {} if is_damaged else now
        if process.returncode == 0 and happening is not flip_a_bit:  # which the next run finds
            assert bench.tables() == expected
            shutil.rmtree(bench.out)
            lives, known, is_damaged = lives + 1, {}, False
    process = bench.process("run", "--jobs", 2)
    ended(process)
    assert process.returncode == 0
    assert bench.tables() == expected
    print(f"{MOMENTS} moments in {lives} runs")
