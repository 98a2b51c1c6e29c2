"""Test the scores of written texts: values worked by hand, and floors that show what chance gives."""

import numpy as np
import pytest

from leakboard.metrics.agreement import agreement_metrics, another_order, cosine_metrics
from leakboard.metrics.sensitive_words import capitalised_words, sensitive_metrics, word_classes


def values(metrics):
    return {(m.name, m.variable) if m.variable else m.name: m.value for m in metrics}


def agreement(guessed, truth, ordered=True):
    return values(agreement_metrics(guessed, truth, ordered, None, [], np.random.default_rng(0)))


def test_sets_and_multisets_count_repeated_words_differently():
    found = agreement(["a a b"], ["A a a, c!"])
    assert found["set_f1"] == 2 * 1 / (2 + 2)
    assert found["multiset_f1"] == pytest.approx(2 * 2 / (3 + 4))


def test_rouge_l_is_the_f1_of_the_longest_common_subsequence():
    """The subsequences are ``a c d`` of 4 and 5 words, and nothing."""
    found = agreement(["a c x d", "z"], ["A, b c d e", "y"])
    assert found["rouge_l"] == pytest.approx((2 * 3 / (4 + 5) + 0) / 2)
    assert agreement(["d c b a"], ["a b c d"])["rouge_l"] == 1 / 4


def test_bleu_is_the_geometric_mean_of_precisions():
    """Of ``a b c d e x``, 5 of 6 words, 4 of 5 pairs, 3 of 4 triples and 2 of 3 quadruples are right."""
    expected = (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25
    assert agreement(["a b c d e x"], ["a b c d e f"])["bleu"] == pytest.approx(expected)


def test_sets_of_words_have_no_order_to_score():
    found = agreement_metrics(["b a", "c"], ["a b", "c"], False, None, [], np.random.default_rng(0))
    status = {m.name: m.status for m in found}
    assert values(found)["set_f1"] == 1
    assert values(found)["rouge_l"] is None is values(found)["bleu_floor"]
    assert status["rouge_l"] == "the guesses are sets of words, without an order"


def test_right_guesses_are_far_above_their_floor_and_one_guess_for_all_texts_is_its_floor():
    texts = [f"word{i} and word{i + 1} again" for i in range(50)]
    right, same = agreement(texts, texts), agreement(["and again"] * 50, texts)
    for name in ("set_f1", "multiset_f1", "rouge_l"):
        assert right[name] == 1 > 0.7 > right[f"{name}_floor"]
        assert same[name] == same[f"{name}_floor"] > 0.5
    assert right["bleu"] > 0.99 > 0.1 > right["bleu_floor"]


@pytest.mark.parametrize("n", [2, 3, 50])
def test_in_another_order_no_row_keeps_its_place(n):
    order = another_order(n, np.random.default_rng(n))
    assert sorted(order) == list(range(n))
    assert not (order == np.arange(n)).any()


def test_one_text_has_no_floor():
    assert not [name for name in agreement(["a"], ["a"]) if name.endswith("_floor")]
    vector = np.eye(1, 4, dtype=np.float32)
    assert values(cosine_metrics(vector, vector, np.random.default_rng(0))) == {"reencoded_cosine": 1}


def test_cosines_of_right_vectors_are_one_and_those_of_other_texts_are_not():
    vectors = np.eye(4, dtype=np.float32)
    found = values(cosine_metrics(2 * vectors, vectors, np.random.default_rng(0)))
    assert found == {"reencoded_cosine": 1, "reencoded_cosine_floor": 0}


def test_capitalised_words_are_written_with_a_capital_inside_sentences():
    texts = ["The dog saw Anna Berg. Then a Dog met (Anna)", '"Yes." Today the dog slept; I saw the will of Will']
    assert capitalised_words([*texts, "will"]) == {"anna", "berg"}


def test_quotes_short_forms_and_dots_make_no_capitalised_words():
    assert capitalised_words(["so I'm sure that I'll go and I\u2019ve seen it"]) == set()
    quoted = {"\u201calice\u201d", "\u00abbob\u00bb"}  # tokens keep such quotes
    assert capitalised_words(["he met \u201cAlice\u201d and \u00abBob\u00bb there"]) == quoted
    assert capitalised_words(["he said \u201cgo home.\u201d Then he went", "well\u2026 Then he left"]) == set()


def test_words_that_matter_are_scored_by_class():
    known = ["he paid Otto 10 euros"] * 999 + ["he paid zlotys"]
    guessed, truth = ["he paid otto 20 zlotys", "nothing"], ["he paid Otto 10 zlotys", "call 555 now"]
    classes = word_classes([*known, *truth], [*known, *known])
    found = values(sensitive_metrics(guessed, truth, None, classes))
    assert found["sensitive_recall", "numbers"] == 0 == found["sensitive_precision", "numbers"]
    assert found["sensitive_recall", "names"] == 1 == found["sensitive_precision", "names"]
    assert found["sensitive_recall", "rare words"] == 0
    assert found["sensitive_precision", "rare words"] == 0


def test_words_that_more_than_one_text_in_fifty_has_are_not_distinctive():
    known = ["call 44 on Friday"] * 3 + ["call 555 or Otto"] * 2 + ["we call"] * 95
    guessed, truth = ["44 friday otto"], ["ask Friday Otto 44 555"]
    found = values(sensitive_metrics(guessed, truth, None, word_classes([*known, *truth], known)))
    assert found["sensitive_recall", "names"] == 1
    assert found["sensitive_recall", "numbers"] == 1 / 2
    assert found["distinctive_recall", "capitalised words"] == 1 == found["distinctive_precision", "capitalised words"]
    assert found["distinctive_recall", "numbers"] == 0
    one_more = word_classes([*known, *truth], [*known, "Otto"])  # 3 of 101 texts
    assert {kind.name: kind.holds("otto") for kind in one_more if kind.metrics == "distinctive"} == {
        "numbers": False,
        "capitalised words": False,
    }


def test_a_class_without_words_has_no_score_and_says_why():
    (numbers, *_) = word_classes(["a"], ["a"])
    recall, precision = sensitive_metrics(["1"], ["a"], None, [numbers])
    assert (recall.value, recall.status) == (None, "the test texts have no such words")
    assert (precision.value, precision.variable) == (0, "numbers")
