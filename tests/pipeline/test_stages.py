"""Stages pass to the attack what it needs, and note their costs and the audit's subject."""

import json

import pytest

from leakboard.pipeline.records import read_costs


@pytest.fixture
def record(bench, command_line):
    """Return a function that runs a suite of one cell, and returns its record and the stages with costs."""

    def run(**content):
        bench.suite(**content, text_classifier=False)
        status, out, _ = command_line(*bench.arguments("run"))
        assert status == 0, out
        (path,) = bench.results()
        return json.loads(path.read_text()), [cost["stage"] for cost in read_costs(path.parent)]

    return run


def test_an_attacker_with_another_dataset_leaves_all_training_texts_to_the_victim(record):
    scored, _ = record(
        datasets=[{"generated_reviews": {"users": 30, "auxiliary": "letters"}}],
        victims=[{"word2vec": {"vector_size": 8, "min_count": 1}}],
        attacks=[{"membership_inference": {"candidates": 20, "unit": "document"}}],
    )
    assert scored["status"] == "ok"
    assert scored["attack_metric"] == "auc"


def test_the_costs_of_every_stage_are_noted(record):
    assert record()[1] == ["fit", "publish", "attack"]


def test_neighbours_are_compared_with_those_of_the_gold_words(record):
    words = {"word2vec": {"vector_size": 4, "min_count": 1}}
    scored, _ = record(victims=[words], attacks=["nearest_neighbour"], gold=words, queries=["the"])
    assert "gold_queries" in {metric["name"] for metric in scored["metrics"]}


@pytest.mark.slow
def test_the_subject_of_an_audit_is_noted(record):
    audit = {"dp_audit": {"pairs": "corners", "budget": 100_000}}
    victim = {"mechanism": {"name": "laplace", "epsilon": 1.0}}
    scored, _ = record(datasets=["zeros_and_ones"], victims=[victim], attacks=[audit])
    assert scored["audited"] == {"delta": 0.0, "unit": "vector"}
