"""Limits of a leaderboard: which rows break them, and what they are not about."""

import pytest

from leakboard.board.gates import broken_limits, read_limits
from leakboard.errors import RequestError

HEAD = {"dataset": "texts", "victim": "encoder", "task_accuracy": 0.8}
ROWS = [
    {**HEAD, "attack": "guesser", "attack_metric": "accuracy", "attack_score": 0.6, "empirical_privacy": 0.4},
    {**HEAD, "attack": "guesser", "attack_metric": "accuracy", "attack_score": 0.7, "secret": "age"},
    {
        **HEAD,
        "attack": "audit",
        "threat": "releases",
        "attack_metric": "epsilon",
        "attack_score": 9.0,
        "epsilon_audited": 9.0,
    },
]


def broken(at_most=(), at_least=()):
    return broken_limits(ROWS, read_limits(at_most, at_least))


def test_a_bound_itself_is_allowed():
    assert broken(at_most=["attack_score=0.7"], at_least=["task_accuracy=0.8", "empirical_privacy=0.4"]) == []


def test_every_row_beyond_a_bound_is_named():
    """The audit's score is an epsilon, no accuracy."""
    assert broken(at_most=["attack_score=0.65"]) == [
        "texts / encoder / guesser / age: attack_score is 0.7000, at most 0.65 was asked"
    ]
    assert broken(at_most=["epsilon_audited=8"]) == ["texts / encoder: epsilon_audited is 9.0000, at most 8 was asked"]


def test_what_is_about_a_victim_is_told_once():
    assert broken(at_least=["task_accuracy=0.9"]) == [
        "texts / encoder: task_accuracy is 0.8000, at least 0.9 was asked"
    ]


def test_a_limit_that_no_row_is_about_is_broken():
    assert broken(at_most=["fairness_gap=0.1"]) == ["fairness_gap at most 0.1: no row has this column"]


def test_the_worst_row_of_a_victim_counts_whatever_the_order():
    rows = [
        {**HEAD, "attack": "audit", "threat": "releases", "attack_metric": "epsilon", "epsilon_audited": bound}
        for bound in (5.0, 0.5)
    ]
    for order in (rows, rows[::-1]):
        (line,) = broken_limits(order, read_limits(["epsilon_audited=1"], []))
        assert line == "texts / encoder: epsilon_audited is 5.0000, at most 1 was asked"


def test_a_claim_is_about_one_release():
    row = {**HEAD, "attack": "guesser", "attack_metric": "f1", "epsilon_claimed": 16.0, "observations": 16}
    assert broken_limits([row], read_limits(["epsilon_claimed=1"], [])) == []
    assert len(broken_limits([row], read_limits(["epsilon_claimed=0.9"], []))) == 1


def test_what_could_not_be_measured_breaks_a_limit():
    row = {**HEAD, "attack": "guesser", "attack_metric": "f1", "empirical_privacy_low": float("nan")}
    (line,) = broken_limits([row], read_limits([], ["empirical_privacy_low=0.1"]))
    assert "could not be measured" in line


@pytest.mark.parametrize(
    "text", ["attack_scor=0.6", "attack_score", "attack_score=low", "attack_score=nan", "verdict=1"]
)
def test_a_wrong_limit_is_refused(text):
    with pytest.raises(RequestError, match=r"--at-most (attack_scor|verdict)"):
        read_limits([text], [])


def test_a_broken_limit_is_exit_status_3(bench, command_line):
    bench.suite()
    assert command_line(*bench.arguments("run", "--at-most", "attack_score=1"))[0] == 0
    code, out, _ = command_line(*bench.arguments("run", "--at-most", "attack_score=0.1"))
    assert code == 3
    assert "letters / hashed / ridge: attack_score is" in out
    code, _, err = command_line(*bench.arguments("run", "--at-least", "privacy=0.1"))
    assert (code, err.count("\n")) == (2, 1)
