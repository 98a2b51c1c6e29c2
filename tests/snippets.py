"""Run the commands and the Python that pages show, as a reader of the pages would."""

from __future__ import annotations

import ast
import io
import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from leakboard.cli import commands

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
STATUS = re.compile(r"exit status (\d)")
NOT_RUN = ("make ", "pip install ", "python3 -m venv .venv", ". .venv/bin/activate")
"""Commands that are checked, not run."""


def blocks(page: str, language: str = "") -> list[tuple[str, str]]:
    """Return language and content of a page's blocks of code, in order."""
    return [(name, text) for name, text in BLOCK.findall(page) if language in ("", name)]


def command_lines(text: str) -> Iterator[tuple[str, str]]:
    """Return the commands of a block, each with its comment."""
    for line in text.replace("\\\n", " ").splitlines():
        command, _, comment = line.partition(" #")
        if command.strip():
            yield command.strip(), comment


@dataclass
class Reader:
    """A reader who follows a page block by block, in the working folder."""

    names: dict[str, Any] = field(default_factory=dict)
    """Names that the Python of the pages has defined."""
    output: str = ""
    """Output of the last block of commands or Python."""
    allowed: float = 2.0
    """Difference between a number that is shown and one that is printed; a tenth of the number is allowed, too."""
    printed: dict[str, str] = field(default_factory=dict)
    """Output by block of Python: a block that several pages show is run once."""

    def read(self, page: str) -> None:
        """Run a page's blocks in order; a block of ``text`` must be the output of the block before it."""
        for language, text in blocks(page):
            getattr(self, f"read_{language}")(text)

    def read_yaml(self, text: str) -> None:
        """Keep a suite under the name in its first line."""
        name = re.match(r"# (\S+\.yaml)", text)
        assert name, f"a YAML example without its file's name: {text[:60]}"
        Path(name[1]).write_text(text, "utf-8")

    def read_toml(self, text: str) -> None:
        """Check that the block is TOML."""
        assert tomllib.loads(text)

    def read_sh(self, text: str) -> None:
        """Run the commands of LeakBoard, and check the rest."""
        self.output = ""
        for command, comment in command_lines(text):
            if command.startswith(NOT_RUN):
                check_command(command)
                continue
            program, script, *words = shlex.split(command)
            assert (program, script) == ("python", "run_benchmark.py"), command
            result = CliRunner().invoke(commands.app, words)
            expected = int(status[1]) if (status := STATUS.search(comment)) else 0
            assert result.exit_code == expected, f"{command}\n{result.output[-2000:]}\n{result.exception!r}"
            self.output += result.output

    def read_python(self, text: str) -> None:
        """Run a block and print its last expression; keep it as a file if its first line names one."""
        if name := re.match(r"# (\S+\.py)\n", text):
            Path(name[1]).write_text(text.removeprefix(name[0]), "utf-8")
            return
        if text.lstrip().startswith(("@", "<")):  # a class that `new` writes
            return
        if text in self.printed:
            self.output = self.printed[text]
            return
        module = ast.parse(text)
        last = ast.Expression(module.body.pop().value) if isinstance(module.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(module, "page", "exec"), self.names)
            value = eval(compile(last, "page", "eval"), self.names) if last else None
        self.output = self.printed[text] = printed.getvalue() + ("" if value is None else repr(value))

    def read_text(self, text: str) -> None:
        """Compare with the output: the same words, and numbers as close as those of two machines."""
        lines = self.output.splitlines()
        for line in text.splitlines():
            assert any(_agree(line, printed, self.allowed) for printed in lines), f"{line}\nis not in\n{self.output}"


def _agree(shown: str, printed: str, allowed: float) -> bool:
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(*(map(float, NUMBER.findall(line)) for line in (shown, printed)), strict=True)
    return all(abs(a - b) <= max(allowed, 0.1 * abs(a)) for a, b in pairs)


def check_command(command: str) -> None:
    """Check that targets of make and extras of the package exist, and that versions are pinned ones."""
    program, *words = shlex.split(command)
    pinned = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert {word for word in words if "==" in word} <= set(pinned), command
    if program == "make":
        assert set(words) <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)), command
    else:
        known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
        for extras in re.findall(r"\[([\w,]+)\]", command):
            assert set(extras.split(",")) <= set(known), command
