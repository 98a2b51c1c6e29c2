"""What a task prints is shown, but not more than a reader wants to see."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from leakboard.execution.output import bounded_output

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


def test_without_any_output_a_task_runs():
    program = "import os; os.close(1); os.close(2)\nfrom leakboard.execution.output import bounded_output\n"
    program += "with bounded_output():\n    done = True\nos._exit(7 if done else 1)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 7
