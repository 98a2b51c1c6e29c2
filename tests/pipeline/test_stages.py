"""What a cell's stages hand to its attack, and what they note."""

import json

from leakboard.pipeline.records import read_costs


def test_an_attacker_with_another_dataset_leaves_all_training_texts_to_the_victim(bench, command_line):
    bench.suite(
        datasets=[{"generated_reviews": {"users": 30, "auxiliary": "letters"}}],
        victims=[{"word2vec": {"vector_size": 8, "min_count": 1}}],
        attacks=[{"membership_inference": {"candidates": 20, "unit": "document"}}],
        text_classifier=False,
    )
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    (row,) = bench.leaderboard().to_dict("records")
    assert row["attack_metric"] == "auc"  # the cell was scored: how well is not the question here


def test_the_costs_of_every_stage_are_noted(bench, command_line):
    bench.suite()
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    (path,) = bench.results()
    assert [cost["stage"] for cost in read_costs(path.parent)] == ["fit", "publish", "attack"]


def test_neighbours_are_compared_with_those_of_the_gold_words(bench, command_line):
    words = {"word2vec": {"vector_size": 4, "min_count": 1}}
    attacks = ["nearest_neighbour"]
    bench.suite(victims=[words], attacks=attacks, gold=words, queries=["the"], text_classifier=False)
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    (path,) = bench.results()
    assert "gold_queries" in {metric["name"] for metric in json.loads(path.read_text())["metrics"]}


def test_what_an_audit_is_about_is_noted(bench, command_line):
    audit = {"dp_audit": {"pairs": "corners", "budget": 100_000}}
    victim = {"mechanism": {"name": "laplace", "epsilon": 1.0}}
    bench.suite(datasets=["zeros_and_ones"], victims=[victim], attacks=[audit], text_classifier=False)
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    (path,) = bench.results()
    assert json.loads(path.read_text())["audited"] == {"delta": 0.0, "unit": "vector"}
