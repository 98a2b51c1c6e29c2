"""What a task prints is shown, but not more than a reader wants to see."""

import os
import subprocess
import sys
import threading

import pytest

from leakboard.execution import printed

PROGRAM = """
import os, sys
from leakboard.execution.printed import bounded_output

print("before")
with bounded_output():
    print("a" * {count})
    os.write(1, b"b")  # as a library in C does
    sys.stderr.write("c")
print("after")
sys.stderr.write("the end")
"""


@pytest.mark.parametrize(("count", "is_cut"), [(100, False), (9_990, False), (50_000, True), (20_000_000, True)])
def test_output_is_shown_up_to_a_limit(count, is_cut):
    command = [sys.executable, "-c", PROGRAM.format(count=count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "before\nafter\n"
    assert done.stderr.count("a") == min(count, 10_000) + done.stderr.count("task")  # one in the remark
    assert ("more output of this task is not shown" in done.stderr) is is_cut
    assert ("b" in done.stderr) is not is_cut
    assert done.stderr.endswith("the end")


@pytest.mark.parametrize("more", ["", "b"])
def test_output_that_reaches_the_limit_is_cut_only_if_more_follows(more, tmp_path, monkeypatch):
    monkeypatch.setattr(printed, "LIMIT", 100)
    reading, writing = os.pipe()
    shown = os.open(tmp_path / "shown", os.O_CREAT | os.O_WRONLY)
    os.write(writing, b"a" * 100)
    thread = threading.Thread(target=printed._pass_on, args=(reading, shown))
    thread.start()
    while (tmp_path / "shown").stat().st_size < 100:  # so that the rest comes in another piece
        pass
    os.write(writing, more.encode())
    os.close(writing)
    thread.join()
    text = (tmp_path / "shown").read_text()
    assert text.startswith("a" * 100)
    assert ("more output of this task is not shown" in text) is bool(more)


def test_without_any_output_a_task_runs():
    program = "import os; os.close(1); os.close(2)\nfrom leakboard.execution.printed import bounded_output\n"
    program += "with bounded_output():\n    done = True\nos._exit(7 if done else 1)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 7
