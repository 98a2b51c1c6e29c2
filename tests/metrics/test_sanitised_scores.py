"""Scores of words that were read from sanitised texts: shares by hand, on both sides, and refusals."""

import numpy as np
import pytest

from leakboard.errors import RequestError
from leakboard.metrics.sanitised_scores import RARE, read_sentences, sanitised_metrics, sensitive_kinds

TRUTH = [["kelly", "paid", "30"], ["the", "inn"], []]
PUBLISHED = [["the", "paid", "the"], ["the", "hotel"], []]
KINDS = sensitive_kinds(["kelly"], {"paid": RARE + 1, "the": 99, "inn": RARE, "kelly": 50, "30": 50})


def scores(read, **more):
    given = {"published": PUBLISHED, "frequent": "the", "sensitive": KINDS} | more
    return {metric.name: metric for metric in sanitised_metrics(read, TRUTH, **given)}


def test_shares_by_hand():
    found = {name: metric.value for name, metric in scores([["kelly", "the", "30"], ["the", "inn"], []]).items()}
    assert found["attack_score"] == found["words_right"] == 4 / 5
    assert found["words_kept"] == 2 / 5
    assert found["privacy_best_constant"] == 3 / 5
    assert found["empirical_privacy"] == pytest.approx(1 / 5)
    assert found["attack_advantage"] == pytest.approx((4 / 5 - 2 / 5) / (3 / 5))
    assert [found[f"{kind}_right"] for kind in ("names", "numbers", "rare", "sensitive")] == [1, 1, 1, 1]


def test_the_published_words_gain_nothing():
    found = {name: metric.value for name, metric in scores(PUBLISHED).items()}
    assert found["attack_score"] == found["words_kept"]
    assert found["attack_advantage"] == 0
    assert [found[f"{kind}_right"] for kind in ("names", "numbers", "rare", "sensitive")] == [0, 0, 0, 0]


def test_the_best_constant_may_be_the_most_frequent_word():
    nothing = [["a", "a", "a"], ["a", "a"], []]
    found = {name: metric.value for name, metric in scores(nothing, published=nothing).items()}
    assert (found["words_kept"], found["privacy_best_constant"]) == (0, 4 / 5)


def test_without_sensitive_words_there_is_no_share():
    found = sanitised_metrics([["a"]], [["a"]], [["a"]], "a", sensitive_kinds([], {"a": 9}))
    values = {metric.name: (metric.value, metric.n) for metric in found}
    assert values["names_right"] == values["sensitive_right"] == (None, 0)


def test_intervals_are_over_texts_and_over_authors():
    """All words of half of the texts are right: 40 texts say as much as 40 words, not as much as 400."""
    truth = [["a"] * 10] * 40
    read = [["a" if row % 2 else "b"] * 10 for row in range(40)]
    widths = []
    for units in (None, np.arange(40) // 20):
        score = sanitised_metrics(read, truth, read, "c", {}, units)[0]
        widths.append(score.high - score.low)
    assert 0.25 < widths[0] < 0.35
    assert widths[1] != widths[0]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        ([["a"]], "the attack read 1 texts, 3 were published"),
        ([["a"], ["a", "b"], []], "text 0: the attack read 1 words, 3 were published"),
    ],
)
def test_missing_words_are_refused(read, message):
    with pytest.raises(RequestError, match=message):
        scores(read)


def test_the_first_texts_are_shown_next_to_what_is_read():
    shown = read_sentences(PUBLISHED, TRUTH, ["Kelly paid 30.", "The inn", ""])
    assert [(one.text, one.recovered, one.words_right, one.words) for one in shown[:2]] == [
        ("Kelly paid 30.", "the paid the", 1, 3),
        ("The inn", "the hotel", 1, 2),
    ]
