"""Audits of functions whose outputs are words, sets and texts: both sides, and what cannot be audited."""

import math
import re

import numpy as np
import pytest

import leakboard
from leakboard.errors import RequestError

WORDS = ["ant", "bee", "cat", "dog"]
TEXT, OTHER = "ant bee cat dog ant bee", "ant bee dog dog ant bee"


def randomised_response(epsilon):
    """Return the word with a probability of e**epsilon / (e**epsilon + 3), else one of the three others."""

    def release(words, rng):
        kept = rng.random(len(words)) < (math.exp(epsilon) - 1) / (math.exp(epsilon) + 3)
        drawn = rng.integers(4, size=len(words))
        return [word if keep else WORDS[i] for word, keep, i in zip(words, kept, drawn, strict=True)]

    return release


def word_by_word(release):
    def release_texts(texts, rng):
        released = iter(release([word for text in texts for word in text.split()], rng))
        return [" ".join(next(released) for _ in text.split()) for text in texts]

    return release_texts


def subsets(share):
    """Keep each member of a set with a probability, and add each other letter with the rest of the probability."""

    def release(sets, rng):
        flips = rng.random((len(sets), 3)) < share
        return [
            {m for m, flip in zip("xyz", row, strict=True) if flip == (m in s)}
            for s, row in zip(sets, flips, strict=True)
        ]

    return release


def audit(release, **options):
    return leakboard.audit(release, **{"epsilon": 1.0, "inputs": WORDS, "draws": 8000, **options})


class TestBothSides:
    def test_words(self):
        assert 0.5 < audit(randomised_response(1.0), confidence=0.999).epsilon_lower <= 1
        result = audit(randomised_response(1.5))
        assert result.verdict == "violated"
        assert "the output is" in result.event
        assert result.epsilon_lower <= 1.5

    def test_a_word_that_only_one_input_can_give(self):
        def unknown_words_are_kept(words, rng):
            return [
                word if word == "dog" else other
                for word, other in zip(words, rng.choice(WORDS[:3], len(words)), strict=True)
            ]

        result = audit(unknown_words_are_kept, epsilon=6.0, inputs=[("cat", "dog")])
        assert result.verdict == "violated"
        assert set(re.findall(r"'(\w+)'", result.event)) in ({"dog"}, set(WORDS[:3]))  # one event in two ways

    @pytest.mark.parametrize(("true_epsilon", "verdict"), [(1.0, "not refuted"), (1.6, "violated")])
    def test_texts(self, true_epsilon, verdict):
        """Two texts differ in one of six words, so the claim about a word is the claim about the texts."""
        release = word_by_word(randomised_response(true_epsilon))
        assert audit(release, inputs=[(TEXT, OTHER)], draws=4000).verdict == verdict

    def test_sets(self):
        pairs = [({"x", "y"}, {"x"})]
        share = math.e / (math.e + 1)
        assert audit(subsets(share), inputs=pairs, draws=4000).verdict == "not refuted"
        assert audit(subsets(0.9), inputs=pairs, draws=4000).verdict == "violated"

    def test_a_length_that_leaks(self):
        lengths = {"ant": 3, "bee": 4}
        result = audit(lambda words, rng: ["word " * lengths[w] for w in words], inputs=WORDS[:2], draws=400)
        assert result.verdict == "violated"

    def test_the_claim_may_be_per_word_of_difference(self):
        """Epsilon 1 for each word: two texts that differ in two words may be 2 apart."""
        far = "ant bee dog cat ant bee"
        options = {"inputs": [(TEXT, far)], "draws": 4000}
        release = word_by_word(randomised_response(1.0))
        assert audit(release, **options).verdict == "violated"
        result = audit(release, distance="words", **options)
        assert result.verdict == "not refuted"
        assert result.distance == 2
        assert result.summary.startswith("epsilon for each unit of differing words is at least")

    def test_a_distance_of_words(self):
        """The exponential mechanism with half of epsilon on a line of four words: metric privacy with epsilon 1."""
        place = {word: i for i, word in enumerate(WORDS)}

        def exponential(slope):
            weights = np.exp(-slope * np.abs(np.subtract.outer(range(4), range(4))))
            channel = (weights / weights.sum(1, keepdims=True)).cumsum(1)

            def release(words, rng):
                rows = channel[[place[word] for word in words]]
                return [WORDS[i] for i in (rng.random((len(words), 1)) > rows[:, :3]).sum(1)]

            return release

        def steps(first, second):
            return abs(place[first] - place[second])

        assert audit(exponential(0.5), distance=steps).verdict == "not refuted"
        result = audit(exponential(1.6), distance=steps, draws=20_000)
        assert (result.verdict, result.metric) == ("violated", "steps distance")

    def test_a_function_that_remembers_its_answers_is_violated(self):
        """Each word got a random answer once. So two rows with equal outputs have equal inputs."""
        answers = {"ant": "bee", "cat": "dog"}
        result = audit(lambda words, rng: [answers[word] for word in words], inputs=[("ant", "cat")], draws=1000)
        assert result.verdict == "violated"

    @pytest.mark.slow
    def test_few_of_many_true_claims_are_accused(self):
        """At 95 % confidence 5 of 100 are expected at most; 12 or more have a probability of 0.4 %."""
        options = {"inputs": [("ant", "bee")], "draws": 2000}
        violated = [audit(randomised_response(1.0), seed=s, **options).verdict == "violated" for s in range(100)]
        assert sum(violated) < 12

    @pytest.mark.slow
    def test_the_budget_is_spent_in_rounds(self):
        result = audit(randomised_response(1.0), draws=None, budget=400_000)
        assert 0.9 < result.epsilon_lower <= 1
        assert result.trade_off is not None


def test_the_same_seed_gives_the_same_audit():
    options = {"draws": 1000, "inputs": [(TEXT, OTHER)]}
    release = word_by_word(randomised_response(1.0))
    assert audit(release, **options) == audit(release, **options)


@pytest.mark.parametrize(
    ("release", "options", "message"),
    [
        (lambda words, rng: "text", {}, "release: it gives str for [0-9]+ inputs; allowed: a list of outputs"),
        (lambda words, rng: words[1:], {}, r"release: it gives \d+ outputs for \d+ inputs; allowed: one for each"),
        (lambda words, rng: [{}] * len(words), {}, "release: it gives an output that cannot be compared: unhashable"),
        (lambda words: words, {}, "release: .* is not allowed: a function of inputs and a generator"),
        (lambda words, rng: words, {"inputs": []}, "inputs: 0 pairs are not allowed: from 1 to 500"),
        (lambda words, rng: words, {"inputs": "ant"}, "inputs: 'ant' is not allowed: a list of pairs, or a list of in"),
        (lambda words, rng: words, {"inputs": list(range(40))}, "inputs: 780 pairs are not allowed"),
        (lambda words, rng: words, {"inputs": [("a", "a")]}, "inputs: pair 0 is twice 'a'; allowed: two inputs that"),
        (lambda words, rng: words, {"inputs": [({}, "a")]}, "inputs: unhashable type: 'dict'; allowed: hashable"),
        (lambda words, rng: words, {"dimension": 2}, "dimension: 2 is not allowed: None, since inputs are given"),
        (lambda words, rng: words, {"calls": 100}, "calls: 100 is not allowed: 0, since inputs are given"),
        (lambda words, rng: words, {"domain": "any"}, "domain: 'any' is not allowed: 'cube', since inputs are given"),
        (lambda words, rng: words, {"draws": 599}, "draws: 599 is not allowed: a whole number from 600 for 6 pairs"),
        (lambda words, rng: words, {"distance": "l1"}, "distance: .*'ant' and 'bee'"),
    ],
)
def test_what_cannot_be_audited_is_refused(release, options, message):
    with pytest.raises(RequestError, match=message):
        audit(release, **options)


@pytest.mark.parametrize("numbers", [2, 100, 10**9])
def test_outputs_that_a_call_shares_are_sound(numbers):
    result = audit(lambda words, rng: [int(rng.integers(numbers))] * len(words), delta=1e-5)
    assert result.verdict == "not refuted"
