"""Test the printed leaderboard: its width, its legend, and the options and rows that it names."""

import dataclasses
import io
from types import SimpleNamespace

import pytest
from made_records import record, scored, with_metrics, without_result
from rich.console import Console

from leakboard.board.leaderboard import leaderboard
from leakboard.cli.console import print_leaderboard, print_table, rich_table
from leakboard.cli.evaluate import _with_means_named
from leakboard.column import Column
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import in_natural_order
from leakboard.suite.names import Names

VICTIMS = ("TF-IDF", "Word2Vec (vector_size=16)", "DPNR, as released, after training (epsilon=0.05)")


def printed(records, width=400, names=None):
    """Return what is printed of a run in a terminal of this width."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    suite = SimpleNamespace(name="made", names=names or Names(), file=SimpleNamespace(description=""))
    ordered = in_natural_order(records)
    print_leaderboard(console, SimpleNamespace(suite=suite), ordered, leaderboard(ordered))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 400])
def test_every_name_is_seen_and_no_number_is_cut(width):
    """Names may be wrapped at blanks; the first column has at least 24 characters."""
    gap = [Metric("task_accuracy", share, "gender", group, n=20) for share, group in ((0.6, "female"), (0.9, "male"))]
    gap.append(Metric("task_gap", 0.3, "gender", "male", 0.1, 0.5, 20))
    gap += [Metric(name, 0.3, "gender", "", 0.1, 0.5, 40) for name in ("fairness_gap", "tpr_gap")]
    records = [with_metrics(scored(seed, 0.7, victim=victim), *gap) for victim in VICTIMS for seed in (0, 1)]
    out = printed(records, width)
    assert max(map(len, out.splitlines())) <= width
    first_column = " ".join(line[:26].strip() for line in out.splitlines()) if width == 80 else out
    assert [victim for victim in VICTIMS if victim not in first_column] == []
    assert all(number in out for number in ("0.700", "0.300", "0.850", "0.100"))
    assert "\N{HORIZONTAL ELLIPSIS}" not in out


NAMES = ["attack_score", "linked_at_1_percent_false_links", "privacy_text_classifier", "linked_first"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_headings_in_a_pipe_have_whole_words(is_terminal):
    """A narrow terminal must break them, since longer lines would wrap anywhere."""
    console = Console(file=io.StringIO(), width=40, force_terminal=is_terminal, color_system=None)
    numbers = [Column(name, "", (), kind="interval") for name in NAMES]
    row = {"attack": "linking", **dict.fromkeys(NAMES, 0.5), "linked_first_low": 0.4, "linked_first_high": 0.6}
    print_table(console, rich_table([Column("attack", "", ()), *numbers], [row]))
    lines = console.file.getvalue().splitlines()
    words = {word for line in lines[: next(i for i, line in enumerate(lines) if "─" in line)] for word in line.split()}
    parts = {f"{part}_" for name in NAMES for part in name.split("_")[:-1]} | {name.split("_")[-1] for name in NAMES}
    assert (words == parts | {"attack"}) == (not is_terminal)
    assert (max(map(len, lines)) <= 40) == is_terminal
    assert console.width == 40


@pytest.mark.parametrize("is_terminal", [True, False])
def test_names_in_a_pipe_are_whole(is_terminal):
    console = Console(file=io.StringIO(), width=40, force_terminal=is_terminal, color_system=None)
    shown = [Column(name, "", ()) for name in ("victim", "attack", "secret")]
    row = {"victim": "a store of vectors", "attack": "attribute_inference", "secret": "no difference that is shown"}
    print_table(console, rich_table(shown, [row]))
    out = console.file.getvalue()
    assert all(word in out for word in [row["attack"], *row["secret"].split()]) == (not is_terminal)


def test_the_legend_explains_each_printed_column_once():
    out = printed([scored(0, 0.7), dataclasses.replace(scored(0, 0.7), dataset="others", key="others")])
    legend = [line.partition(":")[0] for line in out.splitlines()]
    assert legend.count("privacy_best_constant") == legend.count("privacy_text_classifier") == 1
    assert "privacy_bayes" not in out


def test_options_are_listed_only_of_plugins_with_a_row():
    names = Names(common={"guesser": "portfolio=ensemble", "absent": "portfolio=mlp"})
    skipped = without_result("skipped", "no words", attack="absent")
    out = printed([record("encoder", "guesser(k=3)"), skipped], names=names)
    assert "options of all guesser below: portfolio=ensemble" in out
    assert "options of all absent" not in out
    assert "1 combination of victim and attack was skipped" in out


def test_the_row_of_a_mean_is_named_in_the_table_of_evaluate():
    key = {"dataset": "data", "victim": "encoder"}
    rows = [{**key, "attack": "guesser", "secret": secret} for secret in ("", "gender", "age")]
    rows.append({**key, "attack": "words", "secret": ""})
    assert [row["secret"] for row in _with_means_named(rows)] == ["(mean)", "gender", "age", ""]
