"""A new threat is a new file: this one lives here, and runs through the command line like any other."""

import pandas as pd

TOY = '''"""How long was the text? The attacker knows the lengths of some texts, and names a number of words."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakboard.interfaces import Attack, Floats, Integers
from leakboard.metrics.measures import Ratio, remaining_privacy
from leakboard.suite.options import attack
from leakboard.threats.threat import AttackResult, Threat, VictimSide, observe, shuffled


def lengths(texts):
    return np.array([len(text.split()) for text in texts])


@dataclass(frozen=True)
class LengthsView:
    vectors: Floats
    lengths: Integers


class LengthsThreat(Threat["LengthsAttack"]):
    name: ClassVar = "lengths"
    needs: ClassVar = "documents"
    revision: ClassVar = 1

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
        hits, constant_hits = (Ratio((guessed == truth).astype(float), every) for guessed in (guess(vectors), constant))
        metrics = [hits.metric("attack_score"), remaining_privacy(hits, constant_hits)]
        return AttackResult(("length",), "length_accuracy", len(truth), metrics)


class LengthsAttack(Attack):
    threat: ClassVar = LengthsThreat()

    @abstractmethod
    def fit(self, view: LengthsView, seed: int) -> Callable[[Floats], Integers]: ...


@attack
class NearestLength(LengthsAttack):
    def fit(self, view, seed):
        return lambda vectors: view.lengths[((vectors[:, None] - view.vectors[None]) ** 2).sum(2).argmin(1)]
'''


def test_a_threat_of_its_own_runs_from_the_command_line_to_the_leaderboard(bench, command_line):
    path = bench.folder / "nearest_length.py"
    path.write_text(TOY)
    bench.files.append(path)
    bench.suite(attacks=["ridge", "nearest_length"])
    code, out, err = command_line(*bench.arguments("run"))
    assert code == 0, out[-3000:] + err
    rows = pd.read_csv(bench.run / "leaderboard.csv").set_index("attack")
    row = rows.loc["nearest_length"]
    assert (row["attack_metric"], row["secrets"], row["status"]) == ("length_accuracy", "length", "ok")
    assert row["attack_score"] > 0.4  # texts have six to nine words, and a mean of fewer vectors is longer
    assert row["task_accuracy"] == rows.loc["ridge", "task_accuracy"]


def test_a_threat_says_itself_where_it_does_not_apply(bench, command_line):
    path = bench.folder / "nearest_length.py"
    path.write_text(TOY.replace('"all texts are empty" if not lengths(corpus.texts("train")).any() else ""', '"no"'))
    bench.files.append(path)
    bench.suite(attacks=["nearest_length"])
    assert command_line(*bench.arguments("run"))[0] == 0
    assert pd.read_csv(bench.run / "skipped.csv")["reason"].tolist() == ["no"]
