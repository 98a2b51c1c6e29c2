"""Texts and errors of plugins harm neither the tables, nor the terminal, nor other cells."""

import logging

import numpy as np
import pytest

from leakboard.data.corpora import detached, load_corpus, save_corpus
from leakboard.errors import LONGEST, RequestError, one_line, plain
from leakboard.execution.engines import LogForwarder
from leakboard.interfaces import Secret


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("as it is: ä, 表, 🙂\n\tmore", "as it is: ä, 表, 🙂\n\tmore"),
        ("\x1b[31mred\x07", "\ufffd[31mred\ufffd"),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
        ("\x85\x9b2J", "\ufffd\ufffd2J"),
    ],
)
def test_control_characters_and_lone_surrogates_are_replaced(text, expected):
    assert plain(text) == expected
    assert plain(text).encode()


def test_a_long_message_is_cut_and_its_length_is_shown():
    line = one_line(ValueError("x" * 2_000_000))
    assert len(line) < LONGEST + 100
    assert line.endswith("(1,998,000 more characters)")


def test_lines_that_plugins_log_become_plain():
    events = []
    record = logging.LogRecord("leakboard.progress", logging.WARNING, "", 0, "\x1b[2Jgone", (), None)
    LogForwarder(lambda *event: events.append(event)).emit(record)
    assert events == [("warning", "\ufffd[2Jgone")]


def test_a_plugin_file_that_ends_the_program_is_only_broken(bench, command_line):
    path = bench.folder / "leaves.py"
    path.write_text(
        '"""Leaves."""\nimport sys\nfrom leakboard.suite.options import victim\nsys.exit(0)\n@victim\nclass L: pass\n'
    )
    bench.files.append(path)
    bench.suite(victims=["hashed", "leaves"])
    code, out, _ = command_line(*bench.arguments("run"))
    assert code == 1
    status = bench.leaderboard()["status"]
    assert status["hashed", "ridge"] == "ok"
    assert "SystemExit: 0 (leaves.py:4)" in status["leaves", "ridge"]
    assert "2 cells: 1 done, 1 failed" in out
    assert "1 failed: victim 'leaves'" in out
    assert "traceback of the first: " in out


def test_a_text_that_no_file_could_hold_is_kept_readable(bench, command_line):
    bench.plugin("ridge", "odd", ("return lambda vectors: {name: vectors @ matrix for name, matrix in weights.items()}",
        "from leakboard.threats.secrets import SecretGuesses\n"
        "        return lambda vectors: SecretGuesses("
        "{n: vectors @ m for n, m in weights.items()}, 'half \\ud83d, \\x1b[31mred')"))  # fmt: skip
    bench.suite(attacks=["odd"])
    code, out, err = command_line(*bench.arguments("run"))
    assert code == 0, out + err
    cells = (bench.run / "cells.csv").read_text("utf-8")
    assert "half \ufffd, \ufffd[31mred" in cells


def test_an_attacker_sees_no_file_with_test_secrets(make_corpus, tmp_path):
    splits = {split: {"s": [0, 1], "label": [1, 0]} for split in ("train", "dev", "test")}
    save_corpus(make_corpus(splits, [Secret("s", ("a", "b"), "attribute")]), tmp_path)
    own = load_corpus(tmp_path).only("train", "dev")
    assert own.splits["train"].cache_files
    seen = detached(own)
    assert not any(part.cache_files for part in seen.splits.values())
    assert (seen.column("train", "s") == own.column("train", "s")).all()
    assert seen.values("s") == ("a", "b")
    assert list(seen.texts("dev")) == list(own.texts("dev"))
    thinned = detached(own.with_rows("train", [1]))
    assert thinned.column("train", "s").tolist() == [1]


@pytest.mark.parametrize("codes", [[0, 2], [0.5, 1], [-1, 0], [np.nan, 1]])
def test_codes_that_are_no_classes_are_refused(codes, make_corpus):
    splits = {split: {"s": [0, 1], "label": [1, 0]} for split in ("train", "dev")}
    splits["test"] = {"s": codes, "label": [1, 0]}
    with pytest.raises(RequestError, match=r"made: s of test: .* is not one of the 2 classes, from 0 on"):
        make_corpus(splits, [Secret("s", ("a", "b"), "attribute")])


@pytest.mark.parametrize(
    ("change", "reason"),
    [("1j * vectors @ matrix", "complex"), ("np.ma.masked_less(vectors @ matrix, 9e9)", "masked")],
)
def test_guesses_that_are_no_real_numbers_are_refused(change, reason, bench, command_line):
    bench.plugin("ridge", "odd", ("{name: vectors @ matrix", f"{{name: {change}"))
    bench.suite(attacks=["odd"])
    assert command_line(*bench.arguments("run"))[0] == 1
    status = bench.leaderboard()["status"].iloc[0]
    assert status.startswith("failed: guesses of 'colour' are ")
    assert reason in status
