"""Fixtures that several test files share."""

import functools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

from leakboard.data.corpora import build_corpus
from leakboard.interfaces import Secret

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Tests run side by side; threads that wait for each other on shared cores are slower than one."""

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def real_data():
    """Return the folder of the published files, or skip."""
    folder = Path(os.environ.get("LEAKBOARD_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is missing (set LEAKBOARD_DATA)")
    return folder


@pytest.fixture(scope="session")
def make_corpus():
    """Build a small corpus whose columns are given, split by split."""

    def make(splits, secrets, labels=("no", "yes")):
        frames, row = {}, 0
        for name, columns in splits.items():
            n = len(next(iter(columns.values())))
            known = {"text": [f"text {row + i}" for i in range(n)], "row": np.arange(row, row + n)}
            frames[name] = pd.DataFrame(known | {key: list(value) for key, value in columns.items()})
            row += n
        has_labels = "label" in splits["train"]
        kinds = [secret if isinstance(secret, Secret) else Secret(*secret) for secret in secrets]
        return build_corpus("made", frames, kinds, labels if has_labels else None)

    return make


@pytest.fixture(scope="session")
def reviews():
    """Return 300 generated reviews of 60 users that show their secrets as strongly as they can."""
    from leakboard.datasets.generated_reviews import GeneratedReviews

    return GeneratedReviews(users=60, leak=1.0).load()


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory, reviews):
    """Write a random BERT of two layers whose vocabulary splits words of more than six letters into pieces."""
    from leakboard.models.tiny_bert import write_tiny_bert

    return write_tiny_bert(tmp_path_factory.mktemp("tiny_bert"), reviews.texts("train"))


class Bench:
    """A folder with a suite of tiny plugins, and the command line over it."""

    plugins: ClassVar = [CHECKOUT / "tests" / "tiny" / f"{name}.py" for name in ("letters", "hashed", "ridge")]

    def __init__(self, folder):
        self.folder, self.out = folder, folder / "out"
        self.files = list(self.plugins)

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


def _hear_interrupts():
    """Undo what a background shell passes on: a process that ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def bench(tmp_path):
    """Return an empty bench."""
    return Bench(tmp_path)


@pytest.fixture
def command_line(monkeypatch, capsys):
    """Return a function that calls the command line in this process: exit status, standard output, standard error."""
    from leakboard.cli import commands
    from leakboard.pipeline import engines, stages

    def call(*arguments):
        stages.registry_of.cache_clear()
        monkeypatch.setattr(sys, "argv", ["run_benchmark.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            commands.main()
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    monkeypatch.setattr(engines, "run_local", _run_here)
    monkeypatch.chdir(CHECKOUT)
    return call


def _run_here(tasks, jobs, listen):
    """Stand in for the local engine: the same tasks, one after the other, without the seconds that a process costs."""
    from leakboard.pipeline.engines import Outcome, TaskFailed, attempt

    failures = {}
    for task in tasks:
        value, failure = None, failures.get(task.after)
        if failure is None:
            try:
                value = attempt(task, functools.partial(listen, task.name, "warning"))
            except TaskFailed as raised:
                failure = raised
        if failure:
            failures[task.name] = failure
        yield Outcome(task, value, failure)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Return a bench whose run is done, by the program itself, in one process at a time."""
    bench = Bench(tmp_path_factory.mktemp("finished"))
    bench.suite(seeds=[0, 1], victims=["hashed", {"hashed": {"noise": 0.05}}], attacks=["ridge", "nearest_neighbour"])
    process = bench.process("run", PYTHONHASHSEED="1")
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, out + err
    return bench


@pytest.fixture
def copied(finished, tmp_path):
    """Return a copy of the finished bench, to change."""
    shutil.copytree(finished.folder, tmp_path, dirs_exist_ok=True)
    return Bench(tmp_path)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Return an empty folder for published files, with a cache of its own; nothing leaves the machine."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("LEAKBOARD_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder
