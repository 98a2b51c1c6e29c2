"""Programs that are fed lines: one answer for each line, and one clear line about each way to fail."""

import shlex
import sys
import time

import numpy as np
import pytest

from leakboard.api import programs
from leakboard.api.programs import Program
from leakboard.errors import RequestError

RNG = np.random.default_rng(0)
UPPER = "import sys\nfor line in sys.stdin: print(line.strip().upper())"


def command(code):
    return shlex.join([sys.executable, "-c", code])


def released(code, texts=("a", "b"), timeout=20.0):
    with Program(command(code), timeout) as program:
        return program.release(list(texts), RNG)


def test_each_line_is_answered_in_order():
    assert released(UPPER, ["a b", "", "ü"]) == ["A B", "", "Ü"]


def test_the_program_stays_open_and_is_fed_in_batches(monkeypatch):
    monkeypatch.setattr(programs, "BATCH", 2)
    answered = []
    counting = "import sys\nfor i, line in enumerate(sys.stdin): print(i)"
    with Program(command(counting), 20.0, answered.append) as program:
        assert program.release(list("abc"), RNG) == ["0", "1", "2"]
        assert program.release(["d"], RNG) == ["3"]
    assert answered == [2, 3, 4]


def test_large_batches_do_not_block(monkeypatch):
    monkeypatch.setattr(programs, "BATCH", 10_000)
    assert len(released(UPPER, ["x" * 100] * 10_000)) == 10_000


def test_there_is_no_shell():
    code = "import sys\nfor line in sys.stdin: print(sys.argv[1:])"
    with Program(f"{command(code)} '$HOME' '*' ';' ls", 20.0) as program:
        assert program.release(["a"], RNG) == ["['$HOME', '*', ';', 'ls']"]


def test_bytes_that_are_no_text_stay_apart():
    code = r"import sys" "\n" r"for line in sys.stdin: sys.stdout.buffer.write(b'\xff\n'); sys.stdout.flush()"
    assert released(code, ["a"]) == [r"\xff"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "it ended after 0 lines with exit status 0"),
        ("import sys; sys.exit('no\\nmodel')", r"ended after 0 lines with exit status 1 \(its last line .*: model\)"),
        ("print(input())", "ended after 1 lines with exit status 0"),
        ("import sys; sys.stdin.read(); print(1)", r"printed 0 of 2 lines in 0\.3 s; it must print and flush a line"),
        pytest.param(  # five seconds, so that it starts in time beside other work
            "print(input(), flush=True); import time; time.sleep(60)",
            "printed 1 of 2 lines in 5 s",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["nothing", "an error", "too few", "only at the end", "too slow"],
)
def test_a_program_that_fails_is_one_line(code, message):
    start = time.monotonic()
    with pytest.raises(RequestError, match=message) as caught:
        released(code, timeout=0.3 if "in 0" in message else 5.0)
    assert "\n" not in str(caught.value)
    assert time.monotonic() - start < 10


def test_more_lines_than_asked_for_are_refused():
    with Program(command("import sys\nfor line in sys.stdin: print(1); print(2)"), 20.0) as program:
        program.release(["a", "b"], RNG)
        time.sleep(0.2)
        with pytest.raises(
            RequestError, match="printed more than the 2 lines that it was given; allowed: one for each"
        ):
            program.release(["c"], RNG)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--command: empty; allowed: a program and its arguments"),
        ("'open", "--command 'open: No closing quotation"),
        ("no_such_program_at_all", "--command no_such_program_at_all: No such file or directory"),
    ],
)
def test_what_cannot_be_started_is_refused(text, message):
    with pytest.raises(RequestError, match=message):
        Program(text, 1.0)


def test_the_program_ends_with_the_audit():
    with Program(command(UPPER), 20.0) as program:
        program.release(["a"], RNG)
    assert program._process.returncode == 0
    with pytest.raises(ZeroDivisionError), Program(command("import time; time.sleep(600)"), 20.0) as program:
        _ = 1 / 0
    assert program._process.returncode < 0
