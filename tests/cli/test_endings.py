"""Signals, narrow terminals and limits of the system end a command in one line, with what was finished kept."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench import CHECKOUT

from leakboard.cli.interrupted import end_interrupted

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
def test_a_signal_is_an_interruption(started, number, bench):
    started.send_signal(number)
    _, error = started.communicate(timeout=30)
    assert started.returncode == 130
    (line,) = error.splitlines()
    assert line.startswith("interrupted: no cell is finished; `python ")
    assert line.endswith(f"/run_benchmark.py {shlex.join(map(str, bench.arguments('run')))}` starts again")


@pytest.mark.parametrize("finished", [0, 2])
def test_the_message_names_what_is_kept_and_both_commands(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run_benchmark.py", "evaluate", "my rows.csv"])
    for cell in range(finished):
        (tmp_path / "cells" / str(cell)).mkdir(parents=True)
        (tmp_path / "cells" / str(cell) / "result.json").touch()
    assert end_interrupted(tmp_path, ["report", Path("out")]).exit_code == 130
    kept = f"2 finished cells are kept in {tmp_path}; `python run_benchmark.py report out` shows them"
    line = f"interrupted: {kept if finished else 'no cell is finished'}"
    then = "goes on" if finished else "starts again"
    assert capsys.readouterr().err == f"{line}; `python run_benchmark.py evaluate 'my rows.csv'` {then}\n"


def test_a_command_without_cells_promises_none(command_line, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("leakboard.cli.commands.app", interrupt)
    assert command_line("list") == (130, "", "interrupted\n")


def test_evaluate_goes_on_after_an_interruption(tmp_path, command_line, monkeypatch):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "v.npy", rng.normal(size=(100, 3)))
    genders = {"gender": rng.choice(["f", "m"], 100), "text": [f"text {row}" for row in range(100)]}
    pd.DataFrame(genders).to_csv(tmp_path / "rows.csv")
    arguments = ["evaluate", tmp_path / "rows.csv", "--vectors", tmp_path / "v.npy", "--secrets", "gender"]
    arguments += ["--text", "text", "--attacks", "linking,attribute_inference", "--out", tmp_path / "out"]

    def interrupt(attack, *_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("leakboard.attacks.attribute_inference.AttributeInference.fit", interrupt)
        code, out, err = command_line(*arguments)
    assert (code, out) == (130, "")
    kept = f"1 finished cell is kept in {tmp_path}/out/suite; `python run_benchmark.py report {tmp_path}/out` shows it"
    again = f"`python {shlex.join(['run_benchmark.py', *map(str, arguments)])}` goes on"
    assert err.splitlines()[-1] == f"interrupted: {kept}; {again}"
    assert command_line("report", tmp_path / "out")[0] == 0
    code, out, err = command_line(*arguments)
    assert (code, "linking" in err, "[1/1]" in err) == (0, False, True)


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
    assert "1 cell: 1 done" in done.stdout


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
