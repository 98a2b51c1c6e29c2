"""A folder with a suite of tiny plugins: what tests of whole runs work with."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pandas as pd
from ruamel.yaml import YAML

CHECKOUT = Path(__file__).resolve().parent.parent


def _hear_interrupts():
    """Undo what a background shell passes on: a process that ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Bench:
    """A folder with a suite of tiny plugins, and the command line over it."""

    plugins: ClassVar = [CHECKOUT / "tests" / "tiny" / f"{name}.py" for name in ("letters", "hashed", "ridge")]

    def __init__(self, folder):
        self.folder, self.out = folder, folder / "out"
        self.files = list(self.plugins)

    def copy(self, folder):
        """Return a copy in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Bench(folder)

    @property
    def run(self):
        """Where the tables are."""
        return self.out / "tiny"

    def suite(self, **content):
        """Write the suite and return its path."""
        usual = {"seeds": [0], "threads": 1, "datasets": ["letters"], "victims": ["hashed"], "attacks": ["ridge"]}
        path = self.folder / "tiny.yaml"
        given = {key: value for key, value in (usual | content).items() if value is not None}
        YAML().dump(given, path)
        return path

    def plugin(self, source, name, *replacements):
        """Write a variant of a tiny plugin, one that is being written: each replacement is an (old, new) text."""
        text = (CHECKOUT / "tests" / "tiny" / f"{source}.py").read_text().replace("(revision=1)\n", "\n")
        for old, new in replacements:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = self.folder / f"{name}.py"
        path.write_text(text)
        if path not in self.files:
            self.files.append(path)
        return path

    def arguments(self, command, *more):
        """Return the command line of a command on the suite."""
        plugins = [text for path in self.files for text in ("--plugin", str(path))]
        out = [] if command == "verify" else ["--out", str(self.out)]
        return [command, str(self.folder / "tiny.yaml"), *out, *plugins, *map(str, more)]

    def process(self, command, *more, **environment):
        """Start the command in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "run_benchmark.py", *self.arguments(command, *more)],
            cwd=CHECKOUT,
            env=os.environ | environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_hear_interrupts,
        )

    def tables(self):
        """Return the bytes of the tables that must not differ from run to run."""
        return {name: (self.run / name).read_bytes() for name in ("leaderboard.csv", "cells.csv", "fairness.csv")}

    def leaderboard(self):
        """Return the leaderboard by victim and attack, fields as text."""
        frame = pd.read_csv(self.run / "leaderboard.csv", dtype=str, keep_default_na=False)
        return frame.set_index(["victim", "attack"])

    def results(self):
        """Return the records with the time of their last change."""
        return {path: path.stat().st_mtime_ns for path in self.run.glob("cells/*/result.json")}
