"""Test the scores of a word table against a gold table: by hand, at their extremes, and at chance."""

import numpy as np
import pytest
from scipy import stats

from leakboard.interfaces import PublishedWords
from leakboard.metrics.neighbours import (
    CONTEXTUAL,
    QUERIES,
    UNKNOWN,
    average_precision,
    map_char_as_coded,
    map_word_as_coded,
    neighbour_metrics,
    neighbours,
)

GOLD = {"three": "four two five seven", "eight": "seven nine six four", "they": "we there you he"}
TABLE_2 = [
    ("three", "zero one feeder nine", 0, 0.3814),
    ("eight", "cornerback four stockholders zero", 0.5, 0.2347),
    ("they", "morgan century contentious ferroelectric", 0, 0.4238),
    ("three", "one in UNK zero", 0, 0.1288),
    ("eight", "integrator transfection four one", 0.3333, 0.3561),
    ("they", "that monorail it lesbian", 0, 0.2341),
]
"""The paper's examples, without and with noise: query, predicted words, and both scores recomputed from the words."""

LETTERS = "etaoinshrdlcumwfgypbvkjxqz"
SHARES = np.array([127, 91, 82, 75, 70, 67, 63, 61, 60, 43, 40, 28, 28, 24, 24, 22, 20, 20, 19, 15, 10, 8, 2, 2, 1, 1])
"""Frequencies of the letters in English text, in thousandths."""


def english_like(count, rng):
    """Return distinct words of one to ten letters with English letter frequencies."""
    distinct: dict[str, None] = {}
    while len(distinct) < count:
        distinct["".join(rng.choice(list(LETTERS), rng.integers(1, 11), p=SHARES / SHARES.sum()))] = None
    return list(distinct)


def table(words, seed, width=16):
    vectors = np.random.default_rng(seed).normal(size=(len(words), width)).astype(np.float32)
    return PublishedWords(list(words), vectors)


def by_name(metrics):
    assert len({metric.name for metric in metrics}) == len(metrics)
    return {metric.name: metric for metric in metrics}


class TestScoresByHand:
    """The paper's examples, and how its scores differ from the standard score."""

    @pytest.mark.parametrize(("query", "predicted", "word", "char"), TABLE_2)
    def test_the_papers_examples(self, query, predicted, word, char):
        predicted, gold = predicted.split(), GOLD[query].split()
        assert map_word_as_coded(predicted, gold) == pytest.approx(word, abs=5e-5)
        assert map_char_as_coded(predicted, gold) == pytest.approx(char, abs=5e-5)
        assert average_precision(predicted, gold) == pytest.approx(word / 4, abs=5e-5)  # one hit at most, of four

    def test_one_hit_at_rank_1_scores_1_as_coded_and_a_hundredth_by_the_standard(self):
        gold = [f"gold{i}" for i in range(100)]
        predicted = ["gold7", *(f"miss{i}" for i in range(99))]
        assert map_word_as_coded(predicted, gold) == 1
        assert average_precision(predicted, gold) == pytest.approx(0.01)
        assert average_precision(predicted, gold[:10]) == pytest.approx(0.1)

    def test_a_second_hit_lowers_the_score_as_coded_and_raises_the_standard_one(self):
        gold = [f"gold{i}" for i in range(100)]
        one, two = (["gold0", *(f"miss{i}" for i in range(98)), last] for last in ("miss98", "gold1"))
        assert map_word_as_coded(two, gold) == pytest.approx((1 + 2 / 100) / 2)
        assert map_word_as_coded(two, gold) < map_word_as_coded(one, gold)
        assert average_precision(two, gold) == pytest.approx((1 + 2 / 100) / 100)

    def test_hits_at_ranks_2_and_3(self):
        predicted, gold = ["x", "a", "b", "y"], ["a", "b", "c"]
        assert map_word_as_coded(predicted, gold) == pytest.approx((1 / 2 + 2 / 3) / 2)
        assert average_precision(predicted, gold) == pytest.approx((1 / 2 + 2 / 3) / 3)
        assert average_precision(predicted, gold, k=2) == pytest.approx((1 / 2) / 2)

    def test_letters_count_at_their_rank_or_later(self):
        # a is the first letter of gold and b the second: "ba" has a hit at rank 2 only.
        assert map_char_as_coded(["ba"], ["ab"]) == pytest.approx(1 / 2)
        assert map_char_as_coded(["aa"], ["ab"]) == 1

    @pytest.mark.parametrize("score", [map_word_as_coded, map_char_as_coded, average_precision])
    def test_no_hit_and_no_gold_is_zero(self, score):
        assert score(["xyz"], ["abc"]) == score([], ["abc"]) == score(["abc"], []) == score([], []) == 0

    def test_letters_of_a_random_list_score_high_without_any_right_word(self):
        words = english_like(200, np.random.default_rng(0))
        assert map_word_as_coded(words[:100], words[100:]) == average_precision(words[:100], words[100:]) == 0
        assert map_char_as_coded(words[:100], words[100:]) > 0.8


class TestNeighbours:
    """The nearest words of a table, without the query."""

    words = ("east", "north", "northeast", "west", "nowhere")
    vectors = np.array([[2, 0], [0, 1], [3, 2], [-1, 0], [0, 0]], np.float32)

    def test_by_hand(self):
        nearest = neighbours(self.words, self.vectors, ["east", "south", "west"], 2)
        assert nearest == {"east": ["northeast", "north"], "west": ["north", "nowhere"]}  # a tie: the table's order
        assert neighbours(self.words, self.vectors, ["south"], 3) == {}

    def test_a_small_table_returns_all_its_other_words(self):
        nearest = neighbours(self.words, self.vectors, ["north"], 100)
        assert nearest == {"north": ["northeast", "east", "west", "nowhere"]}
        assert neighbours(["one"], np.ones((1, 3), np.float32), ["one"], 100) == {"one": []}

    def test_lengths_do_not_matter(self):
        words = table(english_like(50, np.random.default_rng(1)), 1)
        lengths = np.random.default_rng(2).uniform(0.1, 10, (50, 1)).astype(np.float32)
        scaled = neighbours(words.words, words.vectors * lengths, words.words, 10)
        assert scaled == neighbours(words.words, words.vectors, words.words, 10)


class TestTables:
    """A published table against a gold one."""

    words = (*QUERIES, *english_like(300, np.random.default_rng(3)))

    def test_against_itself_and_a_rotation(self):
        gold = table(self.words, 4)
        rotation = stats.ortho_group.rvs(16, random_state=5).astype(np.float32)
        for published in (gold, PublishedWords(gold.words, gold.vectors @ rotation)):
            scores = by_name(neighbour_metrics(published, gold))
            assert scores["map_word"].value == scores["average_precision@100"].value == pytest.approx(1)
            assert scores["gold_queries"].value == 1
            assert {metric.n for metric in scores.values()} == {11}
            assert scores["average_precision@100_random"].high < 0.5

    @pytest.mark.slow
    def test_an_independent_table_is_at_chance(self):
        k, others = 40, len(self.words) - 1
        published, gold = table(self.words, 6), table(self.words, 7)
        scores = by_name(neighbour_metrics(published, gold, self.words, k))
        # A rank is a hit with probability k/others; then each earlier rank is a hit with (k - 1)/(others - 1).
        ranks = np.arange(1, k + 1)
        expected = np.sum((1 + (ranks - 1) * (k - 1) / (others - 1)) / ranks) / others
        for name in ("average_precision@40", "average_precision@40_random"):
            error = (scores[name].high - scores[name].low) / (2 * 1.96)
            assert abs(scores[name].value - expected) < 4 * error

    def test_letters_score_high_on_an_independent_table(self):
        scores = by_name(neighbour_metrics(table(self.words, 6), table(self.words, 7)))
        assert scores["map_char"].value > 0.8
        assert scores["map_char_random"].value > 0.8
        assert scores["average_precision@100"].value < 0.2

    def test_a_noisy_copy_of_gold_scores_between_gold_and_chance(self):
        gold, noise = table(self.words, 8), table(self.words, 9)
        near = PublishedWords(gold.words, gold.vectors + noise.vectors)
        scores = by_name(neighbour_metrics(near, gold, k=20))
        assert scores["average_precision@20_random"].high < scores["average_precision@20"].low
        assert scores["average_precision@20"].value < 0.9

    def test_queries_missing_in_one_table_are_left_out_and_reported(self):
        gold = table(self.words, 4)
        published = PublishedWords(gold.words[2:], gold.vectors[2:])
        scores = by_name(neighbour_metrics(published, gold))
        assert scores["gold_queries"].value == pytest.approx(9 / 11)
        assert scores["map_word"].n == scores["map_char_random"].n == 9

    def test_unknown_queries_give_no_value(self):
        gold = table(self.words, 4)
        scores = by_name(neighbour_metrics(PublishedWords(gold.words[11:], gold.vectors[11:]), gold))
        share = scores.pop("gold_queries")
        assert share.value == 0
        assert {(metric.value, metric.n, metric.status) for metric in scores.values()} == {(None, 0, UNKNOWN)}
        assert len(scores) == 6

    def test_words_in_context_give_no_value(self):
        gold = table(self.words, 4)
        contextual = PublishedWords(gold.words, gold.vectors, np.zeros(len(gold.words), np.int64))
        for pair in ((contextual, gold), (gold, contextual)):
            metric = by_name(neighbour_metrics(*pair))["map_word"]
            assert (metric.value, metric.status) == (None, CONTEXTUAL)

    def test_a_table_of_one_word(self):
        scores = by_name(neighbour_metrics(table(["time"], 0), table(["time"], 1)))
        assert scores["average_precision@100"].value == scores["map_char_random"].value == 0

    def test_the_random_words_depend_on_the_seed_only(self):
        published, gold = table(self.words, 6), table(self.words, 7)
        first, again, second = (neighbour_metrics(published, gold, seed=seed) for seed in (0, 0, 1))
        assert first == again
        assert by_name(first)["map_char"] == by_name(second)["map_char"]
        assert by_name(first)["map_char_random"] != by_name(second)["map_char_random"]
        reversed_queries = by_name(neighbour_metrics(published, gold, QUERIES[::-1]))
        assert reversed_queries["map_char_random"].value == pytest.approx(
            by_name(first)["map_char_random"].value, abs=1e-12
        )
