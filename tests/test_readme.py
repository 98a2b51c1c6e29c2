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


def test_its_three_epsilons_are_the_published_ones():
    """A row of the table is a victim of the demo; the numbers stand as published, rounded to three digits."""
    published = pd.read_csv(ROOT / "leaderboards" / "demo" / "leaderboard.csv").query("victim.str.startswith('dpnr')")
    table = README.partition("<!-- three epsilons")[2].partition("\n\n")[0]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[3:]]
    told = {"the paper": "", "released code": "sampling=shared", "true sensitivity": "calibration=l1"}
    assert len(shown) == len(told) == published["victim"].nunique()
    for name, *numbers in shown:
        option = next(option for words, option in told.items() if words in name)
        others = [other for other in told.values() if other and other != option]
        asked = published["victim"].str.contains(option, regex=False)
        for other in others:
            asked &= ~published["victim"].str.contains(other, regex=False)
        row = published[asked].iloc[0]
        expected = [f"{row[f'epsilon_{kind}']:.3g}" for kind in ("claimed", "proved", "audited")]
        assert [number.removeprefix("at least ") for number in numbers] == [
            *(e.replace("inf", "none") for e in expected),
            row["verdict"],
        ]


def test_its_table_of_dpnr_is_the_published_one():
    """A row is a victim of the leaderboard at epsilon 0.05; two digits of accuracy and privacy, three of the audit."""
    published = pd.read_csv(ROOT / "leaderboards" / "dpnr" / "leaderboard.csv").set_index(["victim", "attack"])
    encoder = "encoder=bert(epochs=3, learning_rate=0.001, train_layers=1), epsilon=0.05"
    victims = {
        "no defence": "bert(epochs=3, learning_rate=0.001, train_layers=1)",
        "as in the paper": f"dpnr({encoder})",
        "as released": f"dpnr({encoder}, sampling=shared)",
        "calibrated": f"dpnr(calibration=l1, {encoder}, training=standard)",
    }
    table = README.partition("<!-- dpnr")[2].partition("\n\n")[0]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[3:]]
    assert [name for name, *_ in shown] == list(victims)
    for name, *told in shown:
        papers, centres = (
            published.loc[(victims[name], f"entity_presence({options}portfolio=mlp)")]
            for options in ("", "inputs=centred, ")
        )
        audited = papers["epsilon_audited"]
        assert told == [
            f"{papers['task_accuracy']:.2f}",
            f"{papers['empirical_privacy']:.2f}",
            f"{centres['empirical_privacy']:.2f}",
            "" if pd.isna(audited) else f"at least {audited:.3g}",
            "" if pd.isna(audited) else papers["verdict"],
        ]


CORPORA = {
    "AG": "ag(duplicates=keep)",
    "Trustpilot English": "trustpilot",
    "Trustpilot English, +DEMO": "trustpilot(show_secrets=true)",
    "Trustpilot German": "trustpilot(language=german)",
    "Trustpilot German, +DEMO": "trustpilot(language=german, show_secrets=true)",
}
METHODS = ("multidetasking", "generation", "declustering", "gradient_reversal", "erasure")


def rows_of_defences(table, attacker):
    """Return a line a corpus: accuracy and privacy of the LSTM, what each defence adds, and what bounds them (%)."""

    def percent(row, names=("task_accuracy", "empirical_privacy"), less=None):
        return [f"{100 * (row[n] - (0 if less is None else less[n])):{'' if less is None else '+'}.1f}" for n in names]

    for corpus, dataset in CORPORA.items():
        kind = "entity_presence" if corpus == "AG" else "attribute_inference"
        rows = table[(table["dataset"] == dataset) & (table["attack"] == kind + attacker)]
        plain = rows[rows["victim"].str.startswith("lstm")].iloc[0]
        defended = [rows[rows["victim"].str.contains(f"method={method}")].iloc[0] for method in METHODS]
        cells = [*percent(plain), *(" ".join(percent(row, less=plain)) for row in defended)]
        bounds = percent(plain, ("task_majority", "privacy_majority", "privacy_floor"))
        yield "| " + " | ".join([corpus, *cells, *bounds]) + " |"


@pytest.mark.parametrize(("heading", "attacker"), [("the paper's", "(portfolio=mlp)"), ("the portfolio", "")])
def test_the_tables_of_defences_are_the_published_ones(heading, attacker):
    folder = ROOT / "leaderboards" / "defences"
    page = (
        (folder / "README.md").read_text(encoding="utf-8").partition(f"Attacker: {heading}")[2].partition("\n\n## ")[0]
    )
    expected = list(rows_of_defences(pd.read_csv(folder / "leaderboard.csv"), attacker))
    assert [line for line in page.splitlines() if line.startswith(("| AG", "| Trustpilot"))] == expected
