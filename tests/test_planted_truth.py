"""What is planted in generated reviews is found, and where nothing is planted nothing is."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

ATTACKS = ["attribute_inference", "entity_presence"]
WORD2VEC = {"word2vec": {"min_count": 2, "vector_size": 300, "epochs": 20}}


@pytest.fixture
def scores(bench, command_line):
    """Return how to attack a victim of generated reviews: the attack's score, its interval, and what bounds it."""

    def run(victim, leak, users):
        bench.files = []
        bench.suite(
            datasets=[{"generated_reviews": {"leak": leak, "users": users}}],
            victims=[victim],
            attacks=ATTACKS,
            text_classifier=False,
        )
        code, out, _ = command_line(*bench.arguments("run"))
        assert code == 0, out
        cells = pd.read_csv(bench.run / "cells.csv", keep_default_na=False)
        cells = cells[(cells["variable"] == "") & (cells["value"] != "")].set_index(["attack", "metric"])
        return cells[["value", "low", "high"]].apply(pd.to_numeric)

    return run


@pytest.mark.parametrize("leak", [pytest.param(0.0, marks=pytest.mark.slow), 1.0])
def test_the_attack_is_at_the_majority_rate_without_a_leak_and_above_it_with_one(scores, leak):
    small = {"word2vec": WORD2VEC["word2vec"] | {"vector_size": 50, "epochs": 5}}
    found = scores(small, leak=leak, users=100)
    for attack in ATTACKS:
        score, constant = found.loc[(attack, "attack_score")], 1 - found.loc[(attack, "privacy_best_constant"), "value"]
        assert constant < score["low"] if leak else score["low"] <= constant <= score["high"]


@pytest.mark.slow
def test_with_a_full_leak_the_attack_reaches_the_bayes_rate(scores):
    found = scores(WORD2VEC, leak=1.0, users=1500)
    for attack in ATTACKS:
        bayes = 1 - found.loc[(attack, "privacy_bayes"), "value"]
        assert found.loc[(attack, "attack_score"), "value"] >= 0.95 * bayes
        assert bayes > 0.9


LSTM = {"lstm": {"dimension": 32, "epochs": 12, "learning_rate": 0.003}}
DEFENCES = {"multidetasking": 0.3, "gradient_reversal": 0.3, "declustering": 0.1, "erasure": None}
"""Those that know the secrets, with weights that leave the task alone: 7 secrets add up in the first two."""


@pytest.mark.slow
def test_defences_that_know_the_secrets_hide_them_from_the_papers_attacker(bench, command_line):
    """Coavoux et al.'s attacker, one MLP on the vectors as they come; the loss of accuracy is bounded.

    The defended and the undefended are attacked on the same texts, so that taking their errors for independent makes
    the test too strict rather than too lax.
    """
    weights = {method: {} if beta is None else {"beta": beta} for method, beta in DEFENCES.items()}
    bench.files = []
    bench.suite(
        datasets=[{"generated_reviews": {"leak": 1.0, "users": 1000}}],
        victims=[LSTM, *({"adversarial": {"method": m, "encoder": LSTM, **w}} for m, w in weights.items())],
        attacks=[{"attribute_inference": {"portfolio": "mlp", "inputs": "raw"}}],
        text_classifier=False,
    )
    code, out, _ = command_line(*bench.arguments("run"))
    assert code == 0, out
    table = pd.read_csv(bench.run / "leaderboard.csv")
    error = (table["empirical_privacy_high"] - table["empirical_privacy_low"]) / (2 * stats.norm.ppf(0.975))
    plain = table.index[table["victim"].str.startswith("lstm")][0]
    for method in DEFENCES:
        defended = table.index[table["victim"].str.contains(f"method={method}")][0]
        gain, loss = (
            table.loc[defended, "empirical_privacy"] - table.loc[plain, "empirical_privacy"],
            table.loc[plain, "task_accuracy"] - table.loc[defended, "task_accuracy"],
        )
        assert gain / np.hypot(error[plain], error[defended]) > stats.norm.ppf(0.975), method
        assert loss < 0.1, method
