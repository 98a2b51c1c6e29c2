"""Test that a new threat is one file: tables, sentences, console, pages and gates show it without other changes."""

import re

import pandas as pd
import pytest

import leakboard
from leakboard.errors import RequestError
from leakboard.threats import threat

TOY = '''"""Infer the length of a text: the attacker knows the lengths of some texts and guesses a number of words."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakboard.interfaces import Attack, Floats, Integers
from leakboard.metrics.measures import Metric, Ratio, advantage, remaining_privacy
from leakboard.suite.options import attack
from leakboard.column import Column
from leakboard.threats.threat import AttackResult, Threat, VictimSide, observe, shuffled


def lengths(texts):
    return np.array([len(text.split()) for text in texts])


@dataclass(frozen=True)
class LengthsView:
    vectors: Floats
    lengths: Integers


class LengthsThreat(Threat["LengthsAttack"]):
    name: ClassVar = "lengths"
    title: ClassVar = "lengths: how many words has the text?"
    headline: ClassVar = "length_accuracy"
    headline_title: ClassVar = "share of right lengths"
    found: ClassVar = "counts the words of {score} of the texts, of {constant} without the vectors"
    needs: ClassVar = "documents"
    revision: ClassVar = 1
    columns: ClassVar = (
        Column(
            "words_off",
            "Mean number of words by which a guess is wrong.",
            ("leaderboard.csv", "console: attacks", "report", "page: attacks", "page: victims"),
            title="words off",
            kind="number",
            better="higher is better",  # for the victim
            note="how many words a guess is wrong by, on average",
            metric="words_off",
            gate="attack",
        ),
    )

    def why_not_applicable(self, attack, corpus, published):
        return "all texts are empty" if not lengths(corpus.texts("train")).any() else ""

    def evaluate(self, attack, side: VictimSide) -> AttackResult:
        known = lengths(side.corpus.texts("train"))
        view = LengthsView(side.published.documents["train"].copy(), known)
        guess = attack.fit(view, side.streams.seed_for("attack"))
        vectors, order = shuffled(observe(side, 1), side.streams.stream("shuffle"))
        truth = lengths(side.corpus.texts("test"))[order]
        every = np.ones(len(truth))
        constant = np.bincount(known).argmax()
        guesses = guess(vectors)
        hits, constant_hits = (Ratio((guessed == truth).astype(float), every) for guessed in (guesses, constant))
        metrics = [hits.metric("attack_score"), remaining_privacy(hits, constant_hits), *advantage(hits, constant_hits)]
        metrics += [Metric("privacy_best_constant", 1 - constant_hits.value, n=len(truth))]
        metrics += [Metric("words_off", float(np.abs(guesses - truth).mean()), n=len(truth))]
        return AttackResult(("length",), len(truth), metrics)


class LengthsAttack(Attack):
    threat: ClassVar = LengthsThreat()

    @abstractmethod
    def fit(self, view: LengthsView, seed: int) -> Callable[[Floats], Integers]: ...


@attack
class NearestLength(LengthsAttack):
    def fit(self, view, seed):
        return lambda vectors: view.lengths[((vectors[:, None] - view.vectors[None]) ** 2).sum(2).argmin(1)]
'''


@pytest.fixture
def lengths(bench, monkeypatch):
    """Return a suite with an attack on the toy threat, which the process forgets afterwards."""
    monkeypatch.setattr(threat, "_THREATS", dict(threat._THREATS))
    path = bench.folder / "nearest_length.py"
    path.write_text(TOY)
    bench.files.append(path)
    bench.suite(attacks=["ridge", "nearest_length"])
    return bench


@pytest.mark.slow
def test_a_new_threat_is_in_every_table_sentence_page_and_gate(lengths, output_of):
    out = output_of(*lengths.arguments("run", "--at-most", "words_off=0.001"), status=3)
    rows = pd.read_csv(lengths.run / "leaderboard.csv").set_index("attack")
    row = rows.loc["nearest_length"]
    assert (row["attack_metric"], row["secrets"], row["status"]) == ("length_accuracy", "length", "ok")
    assert row["attack_score"] > 0.4  # the fewer words a text has, the longer is the mean of their random vectors
    assert row["task_accuracy"] == rows.loc["ridge", "task_accuracy"]
    assert row["words_off"] > 0
    assert "words_off: how many words a guess is wrong by, on average; higher is better" in out
    assert re.search(r"nearest_length: words_off is \d\.\d+, at most 0\.001 was asked", out)
    page = lengths.folder / "page.html"
    output_of(*lengths.arguments("report", "--html", str(page)))
    text, readme = page.read_text("utf-8"), (lengths.run / "README.md").read_text("utf-8")
    assert "lengths: how many words has the text?" in text
    assert "Privacy is 1 minus the share of right lengths of the strongest attack" in text
    heads = text[text.index("Victims on") :]
    assert "words off" in heads
    assert "words off (higher is better)" in readme
    suite = str(lengths.folder / "tiny.yaml")
    report = leakboard.run(suite, out=lengths.out, plugins=lengths.files)
    constant = 1 - row["privacy_best_constant"]
    shares = f"{100 * row['attack_score']:.0f} % of the texts, of {100 * constant:.0f} %"
    assert any(text.endswith(f"counts the words of {shares} without the vectors") for text in report.sentences)
    assert "words off" in report._repr_html_()


def test_a_threat_gives_the_reason_why_it_does_not_apply(lengths, output_of):
    path = lengths.folder / "nearest_length.py"
    path.write_text(TOY.replace('"all texts are empty" if not lengths(corpus.texts("train")).any() else ""', '"no"'))
    lengths.suite(attacks=["nearest_length"])
    output_of(*lengths.arguments("run"))
    assert pd.read_csv(lengths.run / "skipped.csv")["reason"].tolist() == ["no"]


def test_a_column_that_no_table_can_show_fails_its_attack_and_no_other(lengths, command_line):
    (lengths.folder / "nearest_length.py").write_text(TOY.replace('kind="number"', 'kind="numbr"'))
    code, out, _ = command_line(*lengths.arguments("run"))
    assert code == 1
    assert "LengthsThreat: column 'words_off': kind 'numbr' is not one of baseline, bound" in out
    assert pd.read_csv(lengths.run / "leaderboard.csv").set_index("attack").loc["ridge", "status"] == "ok"


def test_a_column_with_the_name_of_one_of_leakboards_is_refused_before_a_cell_is_computed(lengths, command_line):
    path = lengths.folder / "nearest_length.py"
    path.write_text(TOY.replace('"words_off",\n            "Mean', '"delta",\n            "Mean'))
    code, _, err = command_line(*lengths.arguments("run"))
    assert (code, err.count("\n")) == (2, 1)
    assert "column 'delta': LeakBoard has a column of this name" in err
    assert not lengths.results()
    with pytest.raises(RequestError, match="column 'delta': LeakBoard has a column of this name"):
        leakboard.run(lengths.folder / "tiny.yaml", out=lengths.out, plugins=lengths.files)
    code, out, _ = command_line("check", "--plugin", path)
    assert code == 1
    assert "its threat adds the column 'delta', which LeakBoard has (nearest_length.py:" in out


@pytest.mark.parametrize(
    ("metric", "right", "wrong"),
    [
        ("attack_score", 'hits.metric("attack_score")', 'hits.metric("length_accuracy")'),
        ("empirical_privacy", ", remaining_privacy(hits, constant_hits),", ","),
        ("privacy_best_constant", '"privacy_best_constant"', '"privacy_constant"'),
    ],
)
def test_a_threat_without_a_metric_of_every_row_fails_its_cell_in_one_line(lengths, command_line, metric, right, wrong):
    path = lengths.folder / "nearest_length.py"
    path.write_text(TOY.replace(right, wrong))
    lengths.suite(attacks=["nearest_length"])
    code, out, _ = command_line(*lengths.arguments("run"))
    assert code == 1
    assert f"LengthsThreat.evaluate: the result has no metric '{metric}'" in out
