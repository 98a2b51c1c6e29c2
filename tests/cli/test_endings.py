"""Signals, narrow terminals and limits of the system end a command in one line, with what was finished kept."""

import os
import signal
import subprocess
import sys
import time

import pytest
from bench import CHECKOUT

FIT = "        bare = FittedHashed"
SLOW = f"""        import time
        (Path(__file__).parent / 'begun').touch()
        time.sleep(60)
{FIT}"""


@pytest.fixture
def started(bench):
    """Return a run whose victim takes a minute, in a process of its own, once the victim has begun."""
    path = bench.plugin(
        "hashed", "slow", ("import numpy as np\n", "from pathlib import Path\n\nimport numpy as np\n"), (FIT, SLOW)
    )
    bench.suite(victims=["slow"])
    command = [sys.executable, CHECKOUT / "run_benchmark.py", *bench.arguments("run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if path.with_name("begun").exists():
            break
        time.sleep(0.1)
    yield process
    process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_an_interruption(started, number):
    started.send_signal(number)
    _, error = started.communicate(timeout=30)
    assert started.returncode == 130
    assert error.splitlines() == ["interrupted: finished cells are kept; the same command goes on from here"]


@pytest.mark.slow
def test_files_of_the_current_folder_are_no_libraries_of_workers(bench):
    (bench.folder / "random.py").write_text("raise ImportError('not the library')\n")
    command = [sys.executable, CHECKOUT / "run_benchmark.py", *bench.arguments("run")]
    bench.suite(attacks=["ridge"])
    done = subprocess.run(command, cwd=bench.folder, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, "not the library" in done.stderr) == (0, False), done.stderr


@pytest.mark.slow
def test_a_second_signal_ends_at_once_without_a_traceback(started):
    started.send_signal(signal.SIGINT)
    time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    _, error = started.communicate(timeout=10)
    assert started.returncode == 130
    assert "Traceback" not in error


@pytest.mark.slow
def test_a_terminal_without_the_letters_gets_others(bench, output_of):
    bench.suite()
    command = [sys.executable, CHECKOUT / "run_benchmark.py", *bench.arguments("run")]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 cells: 1 done" in done.stdout


@pytest.mark.parametrize(("limit", "status"), [("-v 1048576", 2), pytest.param("-n 40", 0, marks=pytest.mark.slow)])
def test_limits_of_the_system_are_one_line_or_lifted(bench, limit, status):
    """1 GiB of address space is too little for torch; 40 open files are a soft limit."""
    bench.suite()
    arguments = " ".join(map(str, bench.arguments("run")))
    program = f"{sys.executable} {CHECKOUT / 'run_benchmark.py'}"
    command = ["bash", "-c", f"ulimit -S {limit}; {program} {arguments}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr
    if status:
        assert done.stderr.splitlines() == [
            "error: the address space is limited to 1.0 GiB (ulimit -v); allowed: 4 GiB or more"
        ]
