"""Fixtures that several test files share."""

import contextlib
import functools
import importlib.metadata
import io
import os
import secrets
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench import CHECKOUT, Bench

from leakboard.data.corpora import build_corpus
from leakboard.interfaces import Secret

os.environ["COLUMNS"] = "400"
"""What is printed stays on the lines that tests look for."""
os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Tests run side by side; threads that wait for each other on shared cores are slower than one."""


def pytest_collection_modifyitems(items):
    """Run first the tests that share a Ray cluster or plugins' results.

    Near the end, idle processes take over tests of others: they would start the cluster and compute the results again.
    """
    first = ("test_nodes.py", "test_conformance.py")
    items.sort(key=lambda item: first.index(item.path.name) if item.path.name in first else len(first))


@pytest.fixture(scope="session", autouse=True)
def _quick_files():
    """Do not wait for the disk, and read the entry points of the installed packages once for each search path."""
    read = importlib.metadata.entry_points

    @functools.cache
    def points(path):
        return read()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: None)
        patch.setattr(importlib.metadata, "entry_points", lambda **wanted: points(tuple(sys.path)).select(**wanted))
        yield


@pytest.fixture(autouse=True)
def one_salt(monkeypatch):
    """Draw the same salts in every run.

    With one salt in sixty, an attack that foresees the order of test rows scores within the interval by luck.
    """
    monkeypatch.setattr(secrets, "token_hex", lambda nbytes=32: "5a" * nbytes)


@pytest.fixture(scope="session")
def real_data():
    """Return the folder of the published files, or skip."""
    folder = Path(os.environ.get("LEAKBOARD_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is missing (set LEAKBOARD_DATA)")
    return folder


@pytest.fixture(scope="session")
def browser():
    """Return Debian's Chromium, driven by Playwright, or skip."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: the test extra has it")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if not path:
        pytest.skip("no chromium on the PATH (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


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


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Return an empty bench; its runs look for published results in none of LeakBoard's leaderboards."""
    from leakboard.pipeline import results

    monkeypatch.setattr(results, "suite_folder", lambda: tmp_path / "no boards")
    return Bench(tmp_path)


@pytest.fixture
def command_line(monkeypatch, capsys):
    """Return a function that calls the command line in this process: exit status, standard output, standard error."""
    from leakboard.cli import commands
    from leakboard.execution import devices, local
    from leakboard.pipeline import stages

    def call(*arguments):
        stages.registry_of.cache_clear()
        monkeypatch.setattr(sys, "argv", ["run_benchmark.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            commands.main()
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    monkeypatch.setattr(local.Local, "run", _run_in_process)
    monkeypatch.setattr(devices, "_in_force", "cpu")  # and again after the test
    monkeypatch.chdir(CHECKOUT)
    return call


@pytest.fixture
def output_of(command_line):
    """Return a function that calls the command line, checks the exit status and returns the standard output."""

    def call(*arguments, status=0):
        code, out, err = command_line(*arguments)
        assert code == status, out + err
        return out

    return call


@pytest.fixture
def refusal(command_line):
    """Return a function that calls a wrong command line, checks for exit status 2 and returns its one-line error."""

    def call(*arguments):
        code, _, err = command_line(*arguments)
        assert (code, err.count("\n")) == (2, 1), err
        return err

    return call


def _run_in_process(engine, tasks, is_done, listen):
    """Stand in for the local engine: the same tasks, one after the other, without the seconds that a process costs."""
    from leakboard.execution import engines

    return engines.drive(engines.DirectCalls(listen), tasks, 1, 1, 0.0, is_done, listen)


@pytest.fixture(scope="session")
def call_once():
    """Return a function that calls the command line in this process, for fixtures that several tests share."""
    from leakboard.cli import commands
    from leakboard.execution import devices, local
    from leakboard.pipeline import stages

    def call(*arguments):
        stages.registry_of.cache_clear()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
            patch.setattr(sys, "argv", ["run_benchmark.py", *map(str, arguments)])
            patch.setattr(local.Local, "run", _run_in_process)
            patch.setattr(devices, "_in_force", "cpu")
            patch.chdir(CHECKOUT)
            with pytest.raises(SystemExit) as ended:
                commands.main()
        assert ended.value.code == 0, out.getvalue()

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory, call_once):
    """Return a bench whose run is done."""
    bench = Bench(tmp_path_factory.mktemp("finished"))
    bench.suite(seeds=[0, 1], victims=["hashed", {"hashed": {"noise": 0.05}}], attacks=["ridge", "nearest_neighbour"])
    call_once(*bench.arguments("run"))
    return bench


@pytest.fixture
def copied(finished, tmp_path):
    """Return a copy of the finished bench, to change."""
    return finished.copy(tmp_path)


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
