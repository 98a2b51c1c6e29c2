"""Scores of a word table against a gold table: by hand, at their ends, and at chance."""

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
"""The paper's examples, with and without noise: query, predicted words, both scores recomputed from the words."""

LETTERS = "etaoinshrdlcumwfgypbvkjxqz"
SHARES = np.array([127, 91, 82, 75, 70, 67, 63, 61, 60, 43, 40, 28, 28, 24, 24, 22, 20, 20, 19, 15, 10, 8, 2, 2, 1, 1])
"""Letters of English text, in thousandths."""


def english_like(count, rng):
    """Return distinct words of one to ten letters that are as frequent as in English."""
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(rng.choice(list(LETTERS), rng.integers(1, 11), p=SHARES / SHARES.sum()))] = None
    return list(found)


def table(words, seed, width=16):
    vectors = np.random.default_rng(seed).normal(size=(len(words), width)).astype(np.float32)
    return PublishedWords(list(words), vectors)


def by_name(metrics):
    assert len({metric.name for metric in metrics}) == len(metrics)
    return {metric.name: metric for metric in metrics}


class TestScoresByHand:
    """The paper's examples, and where its scores part from the standard one."""

    @pytest.mark.parametrize(("query", "predicted", "word", "char"), TABLE_2)
    def test_the_papers_examples(self, query, predicted, word, char):
        predicted, gold = predicted.split(), GOLD[query].split()
        assert map_word_as_coded(predicted, gold) == pytest.approx(word, abs=5e-5)
        assert map_char_as_coded(predicted, gold) == pytest.approx(char, abs=5e-5)
        assert average_precision(predicted, gold) == pytest.approx(word / 4, abs=5e-5)  # one hit at most, of four

    def test_one_hit_at_rank_1_is_all_as_coded_and_a_hundredth_by_the_standard(self):
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

    def test_letters_count_wherever_they_stand_before(self):
        # a is gold's first letter, b its second: seen too late at rank 1, in time at rank 2
        assert map_char_as_coded(["ba"], ["ab"]) == pytest.approx(1 / 2)
        assert map_char_as_coded(["aa"], ["ab"]) == 1

    @pytest.mark.parametrize("score", [map_word_as_coded, map_char_as_coded, average_precision])
    def test_nothing_found_or_nothing_wanted_is_zero(self, score):
        assert score(["xyz"], ["abc"]) == score([], ["abc"]) == score(["abc"], []) == score([], []) == 0

    def test_letters_of_a_random_list_score_high_though_nothing_is_right(self):
        words = english_like(200, np.random.default_rng(0))
        assert map_word_as_coded(words[:100], words[100:]) == average_precision(words[:100], words[100:]) == 0
        assert map_char_as_coded(words[:100], words[100:]) > 0.8


class TestNeighbours:
    """The nearest words of a table, without the query."""

    words = ("east", "north", "northeast", "west", "nowhere")
    vectors = np.array([[2, 0], [0, 1], [3, 2], [-1, 0], [0, 0]], np.float32)

    def test_by_hand(self):
        found = neighbours(self.words, self.vectors, ["east", "south", "west"], 2)
        assert found == {"east": ["northeast", "north"], "west": ["north", "nowhere"]}  # a tie: the table's order

    def test_a_small_table_gives_all_of_its_other_words(self):
        found = neighbours(self.words, self.vectors, ["north"], 100)
        assert found == {"north": ["northeast", "east", "west", "nowhere"]}
        assert neighbours(["one"], np.ones((1, 3), np.float32), ["one"], 100) == {"one": []}

    def test_no_query_in_the_table(self):
        assert neighbours(self.words, self.vectors, ["south"], 3) == {}

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
            found = by_name(neighbour_metrics(published, gold))
            assert found["map_word"].value == found["average_precision@100"].value == pytest.approx(1)
            assert found["gold_queries"].value == 1
            assert {metric.n for metric in found.values()} == {11}
            assert found["average_precision@100_random"].high < 0.5

    def test_an_independent_table_is_at_chance(self):
        k, others = 40, len(self.words) - 1
        published, gold = table(self.words, 6), table(self.words, 7)
        found = by_name(neighbour_metrics(published, gold, self.words, k))
        # A rank is a hit with chance k/others; given that, each rank before it is one with (k - 1)/(others - 1).
        ranks = np.arange(1, k + 1)
        expected = np.sum((1 + (ranks - 1) * (k - 1) / (others - 1)) / ranks) / others
        for name in ("average_precision@40", "average_precision@40_random"):
            error = (found[name].high - found[name].low) / (2 * 1.96)
            assert abs(found[name].value - expected) < 4 * error

    def test_letters_do_not_tell_an_independent_table_from_gold(self):
        found = by_name(neighbour_metrics(table(self.words, 6), table(self.words, 7)))
        assert found["map_char"].value > 0.8
        assert found["map_char_random"].value > 0.8
        assert found["average_precision@100"].value < 0.2

    def test_what_is_near_gold_is_between_it_and_chance(self):
        gold, noise = table(self.words, 8), table(self.words, 9)
        near = PublishedWords(gold.words, gold.vectors + noise.vectors)
        found = by_name(neighbour_metrics(near, gold, k=20))
        assert found["average_precision@20_random"].high < found["average_precision@20"].low
        assert found["average_precision@20"].value < 0.9

    def test_queries_that_one_table_lacks_are_left_out_and_reported(self):
        gold = table(self.words, 4)
        published = PublishedWords(gold.words[2:], gold.vectors[2:])
        found = by_name(neighbour_metrics(published, gold))
        assert found["gold_queries"].value == pytest.approx(9 / 11)
        assert found["map_word"].n == found["map_char_random"].n == 9

    def test_no_query_is_known(self):
        gold = table(self.words, 4)
        found = by_name(neighbour_metrics(PublishedWords(gold.words[11:], gold.vectors[11:]), gold))
        share = found.pop("gold_queries")
        assert share.value == 0
        assert {(metric.value, metric.n, metric.status) for metric in found.values()} == {(None, 0, UNKNOWN)}
        assert len(found) == 6

    def test_contextual_vectors_are_no_table(self):
        gold = table(self.words, 4)
        contextual = PublishedWords(gold.words, gold.vectors, np.zeros(len(gold.words), np.int64))
        for pair in ((contextual, gold), (gold, contextual)):
            metric = by_name(neighbour_metrics(*pair))["map_word"]
            assert (metric.value, metric.status) == (None, CONTEXTUAL)

    def test_a_table_of_one_word(self):
        found = by_name(neighbour_metrics(table(["time"], 0), table(["time"], 1)))
        assert found["average_precision@100"].value == found["map_char_random"].value == 0

    def test_the_random_words_depend_on_the_seed_only(self):
        published, gold = table(self.words, 6), table(self.words, 7)
        first, again, other = (neighbour_metrics(published, gold, seed=seed) for seed in (0, 0, 1))
        assert first == again
        assert by_name(first)["map_char"] == by_name(other)["map_char"]
        assert by_name(first)["map_char_random"] != by_name(other)["map_char_random"]
        turned = by_name(neighbour_metrics(published, gold, QUERIES[::-1]))
        assert turned["map_char_random"].value == pytest.approx(by_name(first)["map_char_random"].value, abs=1e-12)
