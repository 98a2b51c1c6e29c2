"""Test the limits of a leaderboard: which rows break them, and which rows they do not apply to."""

import pytest

from leakboard.board import schema
from leakboard.board.gates import broken_limits, read_limits
from leakboard.column import Column
from leakboard.errors import RequestError

HEAD = {"dataset": "texts", "victim": "encoder", "task_accuracy": 0.8}
GUESSER = {**HEAD, "attack": "guesser", "attack_metric": "accuracy"}
AUDIT = {**HEAD, "attack": "audit", "threat": "releases", "attack_metric": "epsilon", "epsilon_audited": 9.0}
ROWS = [
    {**GUESSER, "attack_score": 0.6, "empirical_privacy": 0.4},
    {**GUESSER, "attack_score": 0.7, "secret": "age"},
    {**AUDIT, "attack_score": 9.0},
]


def broken(at_most=(), at_least=(), rows=ROWS):
    return broken_limits(rows, read_limits(at_most, at_least))


def test_a_value_equal_to_the_limit_is_allowed():
    assert broken(at_most=["attack_score=0.7"], at_least=["task_accuracy=0.8", "empirical_privacy=0.4"]) == []


@pytest.mark.parametrize(
    ("at_most", "at_least", "line"),
    [
        # The audit's score is an epsilon, not an accuracy.
        (["attack_score=0.65"], [], "texts / encoder / guesser / age: attack_score is 0.7000, at most 0.65 was asked"),
        # A value of the victim is reported once, not for each of its rows.
        (["epsilon_audited=8"], [], "texts / encoder: epsilon_audited is 9.0000, at most 8 was asked"),
        ([], ["task_accuracy=0.9"], "texts / encoder: task_accuracy is 0.8000, at least 0.9 was asked"),
        (["fairness_gap=0.1"], [], "fairness_gap at most 0.1: no row has this column"),
    ],
)
def test_a_broken_limit_is_one_line(at_most, at_least, line):
    assert broken(at_most, at_least) == [line]


def test_the_worst_row_of_a_victim_counts_in_any_order():
    rows = [{**AUDIT, "epsilon_audited": bound} for bound in (5.0, 0.5)]
    for order in (rows, rows[::-1]):
        (line,) = broken(["epsilon_audited=1"], rows=order)
        assert line == "texts / encoder: epsilon_audited is 5.0000, at most 1 was asked"


def test_the_limit_of_a_claim_applies_to_one_release():
    row = {**GUESSER, "epsilon_claimed": 16.0, "observations": 16}
    assert broken(["epsilon_claimed=1"], rows=[row]) == []
    assert len(broken(["epsilon_claimed=0.9"], rows=[row])) == 1


def test_an_unmeasured_value_breaks_a_limit():
    (line,) = broken(at_least=["empirical_privacy_low=0.1"], rows=[{**GUESSER, "empirical_privacy_low": float("nan")}])
    assert "cannot be told" in line


def test_a_score_from_too_small_a_test_breaks_a_limit():
    row = {**GUESSER, "threat": "linking", "attack_score": 0.0, "linked_first": 0.9, "is_too_few": True}
    (line,) = broken(["attack_score=0.5"], rows=[row])
    assert line == "texts / encoder / guesser: attack_score cannot be told, at most 0.5 was asked"
    assert broken(["linked_first=0.95"], rows=[row]) == []


def test_only_a_limit_of_a_share_is_between_0_and_1(monkeypatch):
    words = Column("words_off", "Words.", ("leaderboard.csv",), kind="number", metric="words_off", gate="victim")
    monkeypatch.setattr(schema, "COLUMNS", (*schema.COLUMNS, words))
    assert broken(at_most=["words_off=3"], rows=[{**HEAD, "words_off": 3.0}]) == []
    for column in ("task_accuracy", "empirical_privacy_low", "fairness_gap"):
        with pytest.raises(RequestError, match=f"{column} is a share; allowed: 0 to 1"):
            read_limits([f"{column}=3"], [])


@pytest.mark.parametrize(
    "text",
    ["attack_scor=0.6", "attack_score", "attack_score=low", "attack_score=nan", "attack_score=60", "verdict=1"],
)
def test_a_malformed_limit_is_refused(text):  # 60: percent
    with pytest.raises(RequestError, match=r"--at-most (attack_scor|verdict)"):
        read_limits([text], [])


def test_a_broken_limit_gives_exit_status_3(bench, output_of, refusal):
    bench.suite()
    output_of(*bench.arguments("run", "--at-most", "attack_score=1"))
    out = output_of(*bench.arguments("run", "--at-most", "attack_score=0.1"), status=3)
    assert "letters / hashed / ridge: attack_score is" in out
    refusal(*bench.arguments("run", "--at-least", "privacy=0.1"))
