"""Test the scores of linking: by hand, on both sides of chance, and with malformed links."""

import numpy as np
import pytest

from leakboard.errors import RequestError
from leakboard.metrics.link_scores import HEADLINE, Links, link_metrics


def metrics_of(candidates, scores, truth, count):
    links = Links(np.asarray(candidates, np.int64), np.asarray(scores, np.float32))
    return {metric.name: metric for metric in link_metrics(links, np.asarray(truth, np.int64), count)}


def test_by_hand():
    # vectors 0 to 3 have a right candidate, 100 others have none; one of the others may be linked: score 7, not 6
    absent = [*np.linspace(0, 6, 99).tolist(), 7.0]
    first = [0, 1, 9, 3, *[5] * 100]
    second = [8, 8, 2, 8, *[6] * 100]
    scores = [9.0, 6.5, 9.0, 5.0, *absent]
    links = np.stack([first, second], axis=1), np.stack([scores, np.zeros(104)], axis=1)
    metrics = metrics_of(*links, [0, 1, 2, 3, *[-1] * 100], 10)
    assert metrics[HEADLINE].value == 0.5  # vectors 0 and 1; 2 is linked to a wrong text, 3 is not sure enough
    assert metrics["attack_score"] == metrics[HEADLINE].__class__("attack_score", *list_of(metrics[HEADLINE])[1:])
    assert metrics["linked_first"].value == 0.75
    assert metrics["linked_among_10"].value == 1
    assert metrics["privacy_best_constant"].value == pytest.approx(1 - 0.0025)
    assert metrics["empirical_privacy"].value == 0.5
    assert metrics["attack_advantage"].value == pytest.approx((0.5 - 0.0025) / 0.9975)
    assert metrics["attack_advantage_p"].value == pytest.approx(4 * 0.25**3 * 0.75 + 0.25**4)
    assert (metrics["candidate_texts"].value, metrics["absent_vectors"].value) == (10, 100)


def list_of(metric):
    return [getattr(metric, name) for name in ("name", "value", "variable", "group", "low", "high", "n", "status")]


@pytest.mark.parametrize(("knows", "least", "most"), [(False, 0, 0.05), (True, 0.95, 1)])
def test_links_at_random_are_chance_and_true_links_are_found(knows, least, most):
    generator = np.random.default_rng(0)
    truth = np.where(np.arange(1000) < 500, generator.permutation(1000), -1)
    guesses = np.where((truth >= 0) & knows, truth, generator.integers(1000, size=1000))
    scores = generator.normal(size=1000) + 6 * (knows & (truth >= 0))
    metrics = metrics_of(guesses[:, None], scores[:, None], truth, 1000)
    assert least <= metrics[HEADLINE].value <= most
    assert (metrics["attack_advantage_p"].value < 1e-3) == knows
    assert metrics[HEADLINE].low <= metrics[HEADLINE].value <= metrics[HEADLINE].high


def test_a_wrong_link_never_counts_however_sure():
    truth = np.where(np.arange(400) < 200, np.arange(400), -1)
    wrong = (np.arange(400) + 1) % 400
    metrics = metrics_of(wrong[:, None], np.where(truth >= 0, 9.0, 0.0)[:, None], truth, 400)
    assert metrics[HEADLINE].value == 0


def test_a_vector_without_a_link_is_never_linked():
    truth = np.where(np.arange(400) < 200, np.arange(400), -1)
    guesses = np.where(truth >= 0, truth, -1)
    metrics = metrics_of(guesses[:, None], np.ones((400, 1)), truth, 400)
    assert metrics[HEADLINE].value == 1  # all absent vectors are left out
    guesses = np.where(truth >= 0, -1, 0)
    assert metrics_of(guesses[:, None], np.ones((400, 1)), truth, 400)[HEADLINE].value == 0


@pytest.mark.parametrize(
    ("candidates", "scores", "message"),
    [
        (np.zeros((3, 1), int), np.zeros((3, 1)), r"shape \(3, 1\), not whole numbers of \(4, k\)"),
        (np.zeros((4, 0), int), np.zeros((4, 0)), "not whole numbers"),
        (np.zeros((4, 1)), np.zeros((4, 1)), "float64"),
        (np.full((4, 1), 2), np.zeros((4, 1)), "outside 0 to 1"),
        (np.full((4, 1), -2), np.zeros((4, 1)), "outside 0 to 1"),
        (np.zeros((4, 1), int), np.zeros((4, 2)), "not one finite number"),
        (np.zeros((4, 1), int), np.full((4, 1), np.nan), "not one finite number"),
    ],
)
def test_malformed_links_are_refused(candidates, scores, message):
    with pytest.raises(RequestError, match=message):
        link_metrics(Links(candidates, scores), np.array([0, 1, -1, -1]), 2)
