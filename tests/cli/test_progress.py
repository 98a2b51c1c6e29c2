"""Test progress in a log file: one line per stage, no wider than the console."""

import io
import re

from rich.console import Console

from leakboard.cli.progress import RunProgress


def test_a_skipped_attack_is_not_called_done():
    stream = io.StringIO()
    with RunProgress(Console(file=stream, width=100)).begin({"a": "linking", "b": "probe"}, 1) as display:
        display.end("a", 9.0, "", "no texts")
        display.end("b", 2.0, "")
    assert stream.getvalue().splitlines() == ["[1/2] a: skipped: no texts", "[2/2] b: done in 2.0 s"]


def test_a_log_file_gets_one_line_per_stage():
    stream = io.StringIO()
    progress = RunProgress(Console(file=stream, width=100))
    tasks = {"letters / fit hashed / seed 0": "fit hashed", "x" * 150: "attack", f"data / {'y' * 150} / seed 1": "fit"}
    with progress.begin(tasks, 1) as display:
        for epoch in range(20):
            display.listen("letters / fit hashed / seed 0", "start", "")
            display.listen("letters / fit hashed / seed 0", "progress", f"epoch {epoch}")
        display.end("letters / fit hashed / seed 0", 2.0, "")
        display.end(f"data / {'y' * 150} / seed 1", 2.0, "")
        display.listen("x" * 150, "warning", "careful")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[1/3] letters / fit hashed / seed 0: done in 2.0 s, about 4 s left"
    assert re.fullmatch(r"\[2/3\] data / y+…y+ / seed 1: done in 2.0 s, about 2 s left", lines[1])
    assert len(lines[1]) == 100
    assert "careful" in " ".join(lines[2:])
    assert max(map(len, lines)) <= 100
