"""Test the noisy vocabulary by the theorem in its module, exact and given vocabularies, and the errors of a list."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from leakboard.errors import RequestError
from leakboard.models.skip_gram import vocabulary
from leakboard.models.skip_gram.vocabulary import counted, exact, read, threshold

LETTERS = list("abcdefgh")
BACKGROUND = [[letter] for letter in LETTERS for _ in range(3)]
"""Units of one word that lift every letter above the threshold, so that its count is returned."""


def count(texts, owners, window=1, *, noise=1e-9, failure=1e-4, max_words=None, seed=0):
    options = {"noise_multiplier": noise, "failure": failure, "max_words": max_words}
    return counted(texts, owners, window, **options, generator=np.random.default_rng(seed))


def histogram(texts, owners, window=1):
    """Return the count of each letter in the texts, to 1e-7."""
    if owners is None:
        texts = [*texts, *([letter] * 3 for letter in LETTERS)]  # three equal words make four pairs
    else:
        texts, owners = texts + BACKGROUND, [*owners, *range(1000, 1000 + len(BACKGROUND))]
    result = count(texts, owners, window)
    assert sorted(result.words) == LETTERS
    return np.array([result.counts[result.words.index(letter)] for letter in LETTERS]) - (4 if owners is None else 3)


def random_texts(rng, texts):
    return [rng.choice(LETTERS, rng.integers(1, 12)).tolist() for _ in range(texts)]


class TestSensitivity:
    @pytest.mark.parametrize("seed", range(20))
    def test_a_user_adds_a_vector_of_norm_one_for_any_number_of_texts(self, seed):
        rng = np.random.default_rng(seed)
        texts, owners = random_texts(rng, 12), rng.integers(0, 4, 12)
        whole = histogram(texts, owners.tolist())
        for user in set(owners.tolist()):
            others = [i for i, owner in enumerate(owners) if owner != user]
            added = whole - histogram([texts[i] for i in others], owners[others].tolist())
            words = Counter(word for text, owner in zip(texts, owners, strict=True) if owner == user for word in text)
            raw = np.array([words[letter] for letter in LETTERS])
            np.testing.assert_allclose(added, raw / np.linalg.norm(raw), atol=1e-6)
            assert np.linalg.norm(added) <= 1 + 1e-6

    @pytest.mark.parametrize("window", [1, 2, 5])
    def test_a_pair_adds_one_to_its_centre(self, window):
        texts = random_texts(np.random.default_rng(window), 15)
        pairs = Counter(
            text[i] for text in texts for i in range(len(text)) for j in range(len(text)) if 0 < abs(i - j) <= window
        )
        lifted = dict.fromkeys(LETTERS, 4 if window == 1 else 6)
        result = count([*texts, *([letter] * 3 for letter in LETTERS)], None, window)
        expected = [lifted[letter] + pairs[letter] for letter in result.words]
        np.testing.assert_allclose(result.counts, expected, atol=1e-6)

    def test_a_word_alone_in_its_text_is_in_no_pair(self):
        assert histogram([["a"], ["b", "a"]], None).round(6).tolist() == [1, 1, 0, 0, 0, 0, 0, 0]

    def test_only_the_most_frequent_words_of_a_unit_are_counted(self, monkeypatch):
        monkeypatch.setattr(vocabulary, "MAX_WORDS_PER_UNIT", 2)
        added = histogram([list("aaabbbbcch")], [0])
        np.testing.assert_allclose(added, [0.6, 0.8, 0, 0, 0, 0, 0, 0], atol=1e-6)


class TestNoise:
    RUNS, NOISE = 1000, 2.0

    @pytest.fixture(scope="class")
    @classmethod
    def noisy(cls):
        """Return the noisy counts of a and b, float64 (runs, 2): 60 and 30 users of one word."""
        texts, rows = [["a"]] * 60 + [["b"]] * 30, []
        for seed in range(cls.RUNS):
            result = count(texts, list(range(90)), noise=cls.NOISE, failure=0.1, seed=seed)
            rows.append([result.counts[result.words.index(word)] for word in ("a", "b")])
        return np.array(rows)

    def test_counts_have_the_stated_mean_and_deviation(self, noisy):
        assert np.abs(noisy.mean(0) - [60, 30]).max() < 4 * self.NOISE / math.sqrt(self.RUNS)
        assert np.abs(noisy.std(0) / self.NOISE - 1).max() < 4 / math.sqrt(2 * self.RUNS)
        assert stats.kstest((noisy[:, 0] - 60) / self.NOISE, "norm").pvalue > 1e-3

    def test_the_noise_of_two_words_is_independent(self, noisy):
        assert abs(np.corrcoef(noisy.T)[0, 1]) < 4 / math.sqrt(self.RUNS)

    def test_order_follows_the_noisy_counts(self):
        """Words with equal counts occur in every order, and the counts always fall."""
        texts = [[word] for word in "abc" for _ in range(40)]
        orders = set()
        for seed in range(60):
            result = count(texts, list(range(120)), noise=3.0, failure=0.5, seed=seed)
            assert (np.diff(result.counts) < 0).all()
            orders.add("".join(result.words))
        assert orders == {"abc", "acb", "bac", "bca", "cab", "cba"}

    def test_max_words_keeps_the_most_frequent(self):
        texts = [[word] for n, word in enumerate("abcd") for _ in range(40 + 20 * n)]
        assert count(texts, list(range(len(texts))), noise=1.0, max_words=2).words == ["d", "c"]


class TestWordsOfOneUnit:
    """A word of one unit alone is kept with at most the promised probability, here 0.5 so that it can be measured."""

    RUNS, FAILURE, NOISE, WORDS = 500, 0.5, 5.0, 20

    def share(self, unit_words):
        """Return how often a word of one unit is kept next to a word of many units."""
        texts = [unit_words, *([["public"]] * 100)]
        results = [
            count(texts, list(range(101)), noise=self.NOISE, failure=self.FAILURE, seed=seed).words
            for seed in range(self.RUNS)
        ]
        assert all("public" in words for words in results)
        return np.mean([not set(unit_words).isdisjoint(words) for words in results])

    @pytest.fixture
    def few_words(self, monkeypatch):
        """Lower the largest number of words of a unit, so that one unit can reach it."""
        monkeypatch.setattr(vocabulary, "MAX_WORDS_PER_UNIT", self.WORDS)

    @pytest.mark.slow
    def test_as_many_words_as_a_unit_may_have(self, few_words):
        """Each counts 1 / sqrt(20); the probability that any is kept follows from independent normal tails."""
        beyond = (threshold(self.NOISE, self.FAILURE) - self.WORDS**-0.5) / self.NOISE
        expected = 1 - stats.norm.cdf(beyond) ** self.WORDS
        assert 0.2 < expected < self.FAILURE
        share = self.share([f"word{i}" for i in range(self.WORDS)])
        assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / self.RUNS)

    @pytest.mark.slow
    def test_one_word_that_counts_one(self, few_words):
        expected = self.FAILURE / self.WORDS
        assert abs(self.share(["word"]) - expected) < 4 * math.sqrt(expected / self.RUNS)

    @pytest.mark.parametrize("noise", [0.1, 5.0])
    def test_the_threshold_is_a_tail_above_what_one_unit_adds(self, noise):
        passing = stats.norm.sf(threshold(noise, 1e-6), loc=1.0, scale=noise)
        assert passing == pytest.approx(1e-6 / vocabulary.MAX_WORDS_PER_UNIT, rel=1e-6)

    @pytest.mark.slow
    @pytest.mark.parametrize("broken", [lambda noise, p: 1.0, lambda noise, p: 1 + noise * stats.norm.isf(p)])
    def test_a_threshold_that_is_too_low_is_detected(self, few_words, monkeypatch, broken):
        """One has no margin, the other ignores how many words a unit may have."""
        monkeypatch.setattr(vocabulary, "threshold", broken)
        assert self.share([f"word{i}" for i in range(self.WORDS)]) > 0.9


class TestExact:
    TEXTS = (["b", "a", "b"], ["c", "b", "a"], [], ["d"])

    def test_occurrences_in_order_of_count_then_of_word(self):
        result = exact(self.TEXTS, 1, None)
        assert (result.words, result.counts.tolist()) == (["b", "a", "c", "d"], [3, 2, 1, 1])
        np.testing.assert_allclose(result.frequencies, [3**0.75, 2**0.75, 1, 1])

    def test_min_count_and_max_words_leave_words_out(self):
        assert exact(self.TEXTS, 2, None).words == ["b", "a"]
        assert exact(self.TEXTS, 1, 3).words == ["b", "a", "c"]

    @pytest.mark.parametrize("texts", [[], [[]], [["once"]]])
    def test_no_word_at_all(self, texts):
        result = exact(texts, 2, 10)
        assert (result.words, result.counts.shape) == ([], (0,))


class TestGiven:
    @pytest.fixture
    def write(self, tmp_path):
        def write(content):
            path = tmp_path / "words.txt"
            path.write_bytes(content)
            return path

        return write

    def test_words_with_counts_stay_in_their_order(self, write):
        result = read(write("the\t200\r\ncafé\t0.5\r\nof\t1e3\n".encode()))
        assert (result.words, result.counts.tolist()) == (["the", "café", "of"], [200, 0.5, 1000])

    def test_words_without_counts_follow_zipf(self, write):
        result = read(write(b"the\nof\nand\nto"))
        assert (result.words, result.counts.tolist()) == (["the", "of", "and", "to"], [1, 1 / 2, 1 / 3, 1 / 4])

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"the\t3\nof\n", "1 of 2 words have a count; allowed: all or none"),
            (b"the\nOf\n", "line 2: 'Of' is not allowed: one word in lower case"),
            (b"the\nof\nthe\n", "line 3: 'the' occurs twice, first as word 1"),
            (b"the\nof\nof\n", "line 3: 'of' occurs twice, first as word 2"),
            (b"the\t3\nof\tmany\n", r"line 2: count 'many' is not allowed: a number above 0"),
            (b"the\t0\nof\t1\n", r"line 1: count '0' is not allowed: a number above 0"),
            (b"the\nof\t-1\n", r"line 2: count '-1' is not allowed"),
            (b"the\nof\tnan\n", r"line 2: count 'nan' is not allowed"),
            (b"the\nof\tinf\n", r"line 2: count 'inf' is not allowed"),
            (b"the\n\nof\n", r"line 2: '' is not allowed: one word in lower case"),
            (b"the\n  \t \nof\n", r"line 2: '' is not allowed: one word in lower case"),
            (b"the\nof\n\xff\xfe\n", r"line 3: bytes that are not UTF-8"),
            (b"", "no usable lines"),
        ],
    )
    def test_an_error_is_one_line_with_file_and_line(self, write, content, message):
        path = write(content)
        with pytest.raises(RequestError, match=message) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(RequestError, match=r"none\.txt: no such file"):
            read(tmp_path / "none.txt")
