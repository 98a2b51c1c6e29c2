"""Test the choice of the strongest attack: on dev where all attacks report it, and never across observations."""

import pytest
from made_records import on_dev, scored, with_metrics

from leakboard.metrics.measures import Metric


def test_dev_decides_if_all_attacks_report_it(rows):
    lucky, better = scored(0, 0.8, attack="lucky"), scored(0, 0.75, attack="better")
    for first, expected in (
        (on_dev(lucky, 0.6), ["better", "0.7500", "2", "dev"]),
        (lucky, ["lucky", "0.8000", "2", "test"]),
    ):
        (row,) = rows([first, on_dev(better, 0.7)], "best_known")
        assert [row[name] for name in ("attack", "attack_score", "attacks", "chosen_on")] == expected


def test_an_attack_that_learned_dev_by_heart_does_not_hide_a_stronger_one(rows):
    """The advantage is 0, and its interval 0.4 wide: 0.8 on dev is just believed, 0.81 is not."""
    strong = on_dev(scored(0, 0.55, attack="strong", test_size=100), 0.7)
    for dev, expected in ((0.8, ["weak", "dev"]), (0.81, ["strong", "test"]), (1.0, ["strong", "test"])):
        (row,) = rows([on_dev(scored(0, 0.5, attack="weak", test_size=100), dev), strong], "best_known")
        assert [row[name] for name in ("attack", "chosen_on")] == expected


@pytest.mark.parametrize(("score", "expected"), [(0.61, ["weak", "dev"]), (0.59, ["strong", "test"])])
def test_dev_does_not_choose_an_attack_that_is_surely_weaker_on_test(rows, score, expected):
    """The interval of the strong attack's score of 0.7 begins at 0.6."""
    strong, weak = on_dev(scored(0, 0.7, attack="strong"), 0.7), on_dev(scored(0, score, attack="weak"), 0.8)
    (row,) = rows([weak, strong], "best_known")
    assert [row[name] for name in ("attack", "chosen_on")] == expected


def test_each_secret_has_its_own_strongest_attack(rows):
    def attack(name, score, age, gender):
        metrics = [
            Metric(metric, value, secret, low=0.0, high=1.0)
            for secret, value in (("age", age), ("gender", gender))
            for metric in ("empirical_privacy", "attack_accuracy")
        ]
        return on_dev(with_metrics(scored(0, 0.7, attack=name), *metrics), score, age=age, gender=gender)

    best = rows([attack("first", 0.7, 0.8, 0.6), attack("second", 0.75, 0.6, 0.9)], "best_known")
    assert {row["secret"]: row["attack"] for row in best} == {"": "second", "age": "first", "gender": "second"}


def test_attacks_that_see_more_publications_compete_separately(rows):
    claim = {"epsilon": 1.0, "proved": 1.0, "delta": 0.0, "unit": "document"}
    once = scored(0, 0.6, attack="once", claim={**claim, "observations": 1})
    often = scored(0, 0.9, attack="often", claim={**claim, "observations": 16})
    best = rows([once, often], "best_known")
    assert {row["observations"]: row["attack"] for row in best} == {"1": "once", "16": "often"}


def test_means_over_seeds_decide(rows):
    steady = [on_dev(scored(seed, 0.7, attack="steady"), 0.7) for seed in (0, 1)]
    odd = [on_dev(scored(seed, 0.7, attack="odd"), 0.9 - 0.8 * seed) for seed in (0, 1)]
    assert [row["attack"] for row in rows([*steady, *odd], "best_known")] == ["steady"]
