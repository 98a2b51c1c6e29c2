"""The README's examples work as written: its YAML files and its commands, run in order in an empty folder."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakboard.datasets.generated_reviews import GeneratedReviews

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def commands() -> list[str]:
    lines = [line.partition("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("python run_benchmark.py ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A reader's folder: reviews.csv, one vector a row in vectors.npy, and the README's YAML files."""
    folder = tmp_path_factory.mktemp("reader")
    corpus = GeneratedReviews(users=50).load()
    frame = pd.concat([corpus.splits[split].to_pandas() for split in ("train", "dev", "test")], ignore_index=True)
    for name in ("gender", "age"):
        frame[name] = frame[name].map(dict(enumerate(corpus.values(name))))
    frame["sentiment"] = frame["label"].map(dict(enumerate(corpus.values("label"))))
    frame[["text", "sentiment", "gender", "age", "user"]].to_csv(folder / "reviews.csv", index=False)
    np.save(folder / "vectors.npy", np.random.default_rng(0).standard_normal((len(frame), 16)).astype(np.float32))
    for block in blocks("yaml"):
        name = re.match(r"# (\S+\.yaml)", block)
        assert name, f"a YAML example without its file's name: {block[:60]}"
        (folder / name[1]).write_text(block, encoding="utf-8")
    return folder


def test_the_readme_shows_every_kind_of_command():
    assert {shlex.split(line)[2] for line in commands()} == {"list", "show", "run", "new"}


def test_its_commands_work_in_order(folder):
    for line in commands():
        words = shlex.split(line)
        call = [sys.executable, str(ROOT / "run_benchmark.py"), *words[2:]]
        ended = subprocess.run(call, cwd=folder, capture_output=True, text=True)
        assert ended.returncode == 0, f"{line}\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"
    generated = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "mine/tests"]
    assert subprocess.run(generated, cwd=folder).returncode == 0, "the test that `new` writes"
    for name in ("mine", "store", "with_mine"):
        table = pd.read_csv(folder / "runs" / name / "leaderboard.csv")
        assert not table["status"].str.contains("fail(?!ed: no better)|skipped", regex=True).any()


def test_its_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"^make ([a-z-]+)", README, re.M)) <= targets
