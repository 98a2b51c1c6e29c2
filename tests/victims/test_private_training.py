"""Test that the training of dp_word2vec keeps its claim: by the parts of the plan, and by attacks on what comes out."""

import dataclasses
import functools
import inspect
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from marks import with_slow
from user_texts import corpus_of

from leakboard.models.skip_gram import vocabulary
from leakboard.models.skip_gram.descent import Training
from leakboard.models.skip_gram.noisy_tables import Descent, NoisyTables
from leakboard.models.skip_gram.pairs import Pairs
from leakboard.models.skip_gram.sampling import PoissonSampler, SequentialBatches
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.privacy.auditing.bound import clopper_pearson_high, clopper_pearson_low
from leakboard.privacy.mechanisms.textbook import gaussian_epsilon
from leakboard.victims._private_word2vec.private_training import plan
from leakboard.victims.dp_word2vec import DPWord2Vec

UNITS = ("pair", "document", "user")
SIZES = {"pair": 80, "document": 20, "user": 11}
ALL = 10**6
DELTA, NOISE, COUNTING, CLIP, RATE, STEPS = 1e-3, 2.0, 2.5, 0.7, 0.05, 8


@pytest.fixture(scope="module")
def rows():
    """Return (user, text) of 160 texts by 80 users in random order, two to six words each, four distinct words."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["key", "door", "open", "red"], rng.integers(2, 7))) for _ in range(160)]
    return [(f"u{user}", text) for user, text in zip(rng.permutation(160) % 80, texts, strict=True)]


@pytest.fixture(scope="module")
def corpus(rows):
    return corpus_of(rows, ("user", "text"))


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Return a function that makes options; the default vocabulary is a public list."""
    path = tmp_path_factory.mktemp("listed") / "words.txt"
    path.write_text("key\ndoor\nopen\nred")
    usual = {"noise_multiplier": NOISE, "delta": DELTA, "clipping_norm": CLIP, "learning_rate": RATE, "steps": STEPS}
    usual |= {"vector_size": 2, "negative": 1, "vocabulary": str(path), "vocabulary_noise": COUNTING}
    return lambda unit, **changed: DPWord2Vec(unit=unit, **usual | {"expected_batch_size": SIZES[unit]} | changed)


def texts_by_unit(rows, unit):
    """Return the texts of each document or user, as lists of words; for pairs each text."""
    texts = {}
    for number, (user, text) in enumerate(rows):
        texts.setdefault(user if unit == "user" else number, []).append(text.split())
    return list(texts.values())


def pairs_by_unit(rows, unit):
    """Return the pairs of neighbours of each unit, counted."""
    units = []
    for texts in texts_by_unit(rows, unit):
        neighbours = [pair for text in texts for pair in itertools.pairwise(text)]
        units.append(neighbours + [(second, first) for first, second in neighbours])
    return [Counter(pairs) for pairs in ([[pair] for pairs in units for pair in pairs] if unit == "pair" else units)]


def paid(training, counting=None):
    """Return the budget that the run pays: by its noise over its clipping norm, and the probability of its sampler."""
    descent = training.descent
    return TrainingBudget(descent.deviation / descent.clipping_norm, training.sampler.probability, DELTA, counting)


def epsilon_of_releases(deviation, visits):
    """Return the epsilon of whole Gaussian releases with this deviation over their sensitivity."""
    return gaussian_epsilon(DELTA, deviation / math.sqrt(visits), 1.0)


def most_visits(sampler, steps):
    """Return the largest number of draws of a unit."""
    return np.bincount(np.concatenate([sampler.draw(step, np.random.default_rng(0)) for step in range(steps)])).max()


@pytest.mark.parametrize("unit", UNITS)
class TestPlan:
    @pytest.mark.slow
    def test_given_noise_is_trained_with_and_claimed(self, options, corpus, rows, unit):
        planned = plan(options(unit), corpus, 0)
        training, units = planned.training, len(pairs_by_unit(rows, unit))
        assert training.descent == Descent(RATE, CLIP, pytest.approx(NOISE * CLIP, rel=1e-12))
        assert training.sampler == PoissonSampler(units, pytest.approx(SIZES[unit] / units, rel=1e-12))
        assert (planned.steps, training.pairs.units, training.participation) == (STEPS, units, None)
        claim = planned.claim(STEPS)
        assert (claim.unit, claim.delta) == (unit, DELTA)
        assert claim.epsilon == pytest.approx(paid(training).epsilon(STEPS), rel=1e-9)
        assert claim.proved == pytest.approx(paid(training).epsilon(STEPS, "pld"), rel=1e-9)
        assert claim.epsilon >= claim.proved > 0.2

    @pytest.mark.slow
    @pytest.mark.parametrize("counting", [None, COUNTING])
    def test_the_noise_for_a_target_reaches_it(self, options, corpus, rows, unit, counting):
        size = 2 if unit == "document" and not counting else ALL  # noise for a sample takes seconds to find
        changed = {"vocabulary": "noisy"} if counting else {}
        recipe = options(unit, noise_multiplier=None, epsilon=2.5, expected_batch_size=size, **changed)
        planned, units = plan(recipe, corpus, 0), len(pairs_by_unit(rows, unit))
        training, claim = planned.training, planned.claim(STEPS)
        assert planned.steps == STEPS
        assert (training.descent.rate, training.descent.clipping_norm, training.descent.of_batch) == (RATE, CLIP, False)
        assert training.sampler == PoissonSampler(units, pytest.approx(min(1, size / units), rel=1e-12))
        assert 0.98 * 2.5 < paid(training, counting).epsilon(STEPS) <= claim.epsilon == 2.5
        assert claim.proved == pytest.approx(paid(training, counting).epsilon(STEPS, "pld"), rel=1e-9)

    def test_given_noise_and_a_target_end_training_in_time(self, options, corpus, unit):
        free = plan(options(unit), corpus, 0)
        target = 1.001 * paid(free.training).epsilon(5)
        planned = plan(options(unit, epsilon=target), corpus, 0)
        assert (planned.steps, planned.training.descent) == (5, free.training.descent)
        assert planned.training.sampler == free.training.sampler
        assert paid(planned.training).epsilon(5) <= planned.claim(5).epsilon <= target

    def test_batches_in_order_are_whole_releases(self, options, corpus, rows, unit):
        planned = plan(options(unit, sampling="fixed", expected_batch_size=50), corpus, 0)
        sampler, units = planned.training.sampler, len(pairs_by_unit(rows, unit))
        assert sampler == SequentialBatches(units, 50)
        assert planned.training.descent == Descent(RATE, CLIP, pytest.approx(NOISE * CLIP, rel=1e-12))
        claim = planned.claim(STEPS)
        assert claim.proved == pytest.approx(epsilon_of_releases(NOISE, most_visits(sampler, STEPS)), rel=1e-9)
        sampled = plan(options(unit, expected_batch_size=50), corpus, 0)
        assert claim.epsilon == pytest.approx(paid(sampled.training).epsilon(STEPS), rel=1e-9)
        assert claim.epsilon < claim.proved

    def test_without_noise_it_clips_and_claims_nothing(self, options, corpus, unit):
        planned = plan(options(unit, noise_multiplier=0.0), corpus, 0)
        assert planned.training.descent == Descent(RATE, CLIP, 0.0)
        assert planned.claim(STEPS) is None

    def test_units_are_clipped_as_one(self, options, corpus, rows, unit):
        planned = plan(options(unit), corpus, 0)
        words, units = planned.vocabulary.words, []
        for number in range(planned.pairs.units):
            codes = zip(*planned.pairs.batch(np.array([number]))[:2], strict=True)
            units.append(Counter((words[centre], words[context]) for centre, context in codes))
        assert Counter(map(_entries, units)) == Counter(map(_entries, pairs_by_unit(rows, unit)))

    def test_the_plan_is_trained_and_published(self, options, corpus, unit):
        recipe = options(unit, sampling="fixed")  # its proof is quickly computed
        planned, fitted = plan(recipe, corpus, 0), recipe.fit(corpus, 0)
        np.testing.assert_array_equal(fitted.vectors, planned.training.run(STEPS)[STEPS])
        assert (fitted.vocabulary, fitted.claim) == (planned.vocabulary.words, planned.claim(STEPS))


def _entries(counts):
    return tuple(sorted(counts.items()))


@pytest.mark.parametrize("unit", UNITS)
class TestCounting:
    SEEDS = 150

    @pytest.fixture
    def calls(self, monkeypatch):
        """Record the arguments and the result of each call of `vocabulary.counted`."""
        calls, count = [], vocabulary.counted

        def recorded(*args, **kwargs):
            result = count(*args, **kwargs)
            calls.append((inspect.signature(count).bind(*args, **kwargs).arguments, result))
            return result

        monkeypatch.setattr(vocabulary, "counted", recorded)
        return calls

    @pytest.mark.slow
    def test_the_claim_pays_for_the_noise_of_the_counts(self, options, corpus, rows, unit, calls):
        planned = plan(options(unit, vocabulary="noisy", expected_batch_size=ALL), corpus, 0)
        [(arguments, counted)] = calls
        assert (arguments["noise_multiplier"], arguments["failure"]) == (COUNTING, pytest.approx(0.1 * DELTA))
        budget = paid(planned.training, arguments["noise_multiplier"])
        claim = planned.claim(STEPS)
        assert claim.epsilon == pytest.approx(budget.epsilon(STEPS), rel=1e-9)
        assert claim.proved == pytest.approx(budget.epsilon(STEPS, "pld"), rel=1e-9)
        assert arguments["failure"] == budget.failure
        assert [list(text) for text in arguments["texts"]] == [text.split() for _, text in rows]
        keys = {"pair": None, "document": range(len(rows)), "user": [user for user, _ in rows]}[unit]
        if keys is None:
            assert arguments["owners"] is None
        else:
            both = set(zip(arguments["owners"], keys, strict=True))
            assert len(both) == len(set(arguments["owners"])) == len(set(keys))
        assert planned.vocabulary.words == counted.words
        assert planned.claim(0).epsilon == pytest.approx(budget.epsilon(0), rel=1e-9)
        probabilities = np.diff(planned.training.cumulative, prepend=0)
        np.testing.assert_allclose(probabilities, counted.frequencies / counted.frequencies.sum(), atol=1e-12)

    def test_the_counts_have_that_noise(self, options, corpus, rows, unit, calls):
        true = Counter()
        for counts in [Counter(word for text in texts for word in text) for texts in texts_by_unit(rows, unit)]:
            norm = math.sqrt(sum(count**2 for count in counts.values()))
            true.update({word: count / norm for word, count in counts.items()})
        if unit == "pair":
            true = Counter(centre for pairs in pairs_by_unit(rows, unit) for centre, _ in pairs)
        for seed in range(self.SEEDS):
            plan(options(unit, vocabulary="noisy"), corpus, seed)
        errors = [[counted.counts[counted.words.index(w)] - true[w] for w in sorted(true)] for _, counted in calls]
        errors, n = np.array(errors) / COUNTING, self.SEEDS * len(true)
        assert abs(errors.mean()) < 4 / math.sqrt(n)
        assert abs(errors.std() - 1) < 4 / math.sqrt(2 * n)


@dataclasses.dataclass(frozen=True)
class Case:
    """A unit to tell apart, the texts of other units, and the options."""

    unit: str
    texts: tuple
    """Of the unit; for pairs, the last pair of the text is the unit."""
    others: tuple
    options: dict
    published_alone: bool = False
    """Attack the published vectors alone. Otherwise attack both tables with all noise, which the proof covers too."""


APART = ("open window",) * 3
CASES = {
    "pair": Case("pair", ("key door",), APART, {"steps": 2}),
    "document": Case("document", ("key door",), APART, {"steps": 4, "expected_batch_size": 2}),
    "user": Case("user", ("key door", "door key"), APART, {"steps": 2}),
    # other units train the output vectors, so that the published vectors follow a known direction
    "user, published": Case("user", ("key door",) * 2, ("key door",) * 20, {"steps": 6, "learning_rate": 0.5}, True),
}


@dataclasses.dataclass(frozen=True)
class Trial:
    """A run with the unit and one without. The attacker knows the start, which depends on no data."""

    training: Training
    without: Pairs
    steps: int
    delta: float
    proved: float
    published_alone: bool

    def releases(self, pairs, seeds, sampler, descent):
        """Return what is released, float64 (seeds, values)."""
        planned, released = self.training, []
        frequencies = np.diff(planned.cumulative, prepend=0)
        dimensions = planned.tables.values.shape[1]
        start = NoisyTables.start(len(frequencies), dimensions, np.random.default_rng(0)).values
        options = {"dimensions": dimensions, "negatives": planned.negatives, "participation": planned.participation}
        for seed in seeds:
            run = Training(pairs, frequencies, sampler, descent, **options, seed=seed)
            run.tables.values[:] = start
            published = run.run(self.steps)[self.steps]
            released.append((published if self.published_alone else run.tables.values).ravel().astype(np.float64))
        return np.stack(released)

    def bound(self, runs, sampler=None, **changed):
        """Return the bound at 95 % of an attacker that chooses statistic and threshold on other runs than it tests."""
        rule = sampler or self.training.sampler, dataclasses.replace(self.training.descent, **changed)
        present = self.releases(self.training.pairs, range(2 * runs), *rule)
        absent = self.releases(self.without, range(10**6, 10**6 + 2 * runs), *rule)
        direction = present[:runs].mean(0) - absent[:runs].mean(0)
        scores = np.stack([present @ direction, absent @ direction])
        chosen, tested = scores[:, :runs], scores[:, runs:]

        def proves(part, threshold, error):
            """Return ln((p - delta) / q), by Clopper-Pearson bounds of independent runs."""
            with_unit, without = np.count_nonzero(part >= threshold, axis=1)
            low = clopper_pearson_low(with_unit, runs, error / 2) - self.delta
            return math.log(low / clopper_pearson_high(without, runs, error / 2)) if low > 0 else -math.inf

        thresholds = np.quantile(chosen, np.linspace(0.01, 0.99, 99))
        return proves(tested, max(thresholds, key=lambda threshold: proves(chosen, threshold, 1e-3)), 0.05)


class TestNeighbours:
    """An attacker tells neighbours apart, but no better than proved; if a part of the plan is changed, better."""

    DELTA = 1e-2

    @pytest.fixture(scope="class")
    @classmethod
    def trial(cls, tmp_path_factory):
        """Return a function that returns the trial of a case. The counts make the negative always the same word."""
        path = tmp_path_factory.mktemp("tiny") / "words.txt"
        path.write_text("the\t1e9\nkey\t1\ndoor\t1\nopen\t1\nwindow\t1\nred\t1\n")
        usual = {"noise_multiplier": 2.0, "delta": cls.DELTA, "clipping_norm": 0.02, "learning_rate": 0.1}
        usual |= {"expected_batch_size": 100, "vector_size": 2, "negative": 1, "vocabulary": str(path)}

        @functools.cache
        def make(name):
            case = CASES[name]
            recipe = DPWord2Vec(unit=case.unit, **usual | case.options)
            others = [(f"other {n}", text) for n, text in enumerate(case.others)]
            with_it, without = (
                plan(recipe, corpus_of([*others, *(("the unit", text) for text in texts)], ("user", "text")), 3)
                for texts in (case.texts, [""] * len(case.texts))
            )
            training, neighbour = with_it.training, without.training
            pairs, last = neighbour.pairs, training.pairs.units - 1
            if case.unit == "pair":  # no corpus lacks only one pair
                kept = training.pairs.centres[:last], training.pairs.contexts[:last]
                pairs = Pairs(*kept, np.minimum(np.arange(last + 2), last))
            else:
                assert (training.descent, training.sampler) == (neighbour.descent, neighbour.sampler)
                np.testing.assert_array_equal(training.tables.values, neighbour.tables.values)
            assert (pairs.units, pairs.batch(np.array([last]))[2].tolist()) == (training.pairs.units, [0, 0])
            proved = with_it.claim(with_it.steps).proved
            return Trial(training, pairs, with_it.steps, cls.DELTA, proved, case.published_alone)

        return make

    @pytest.mark.parametrize("case", with_slow(CASES, "document", "user", "user, published"))
    def test_the_bound_is_below_the_proof_but_above_a_quarter_of_it(self, trial, case):
        assert 0.25 * trial(case).proved < trial(case).bound(1500) <= trial(case).proved

    @pytest.mark.parametrize("case", with_slow(CASES, "document", "user, published"))
    def test_a_tenth_of_the_noise_is_detected(self, trial, case):
        tried = trial(case)
        assert tried.bound(200, deviation=tried.training.descent.deviation / 10) > tried.proved

    @pytest.mark.parametrize("case", UNITS)
    def test_three_times_the_clipping_norm_is_detected(self, trial, case):
        tried = trial(case)
        assert tried.bound(200, clipping_norm=3 * tried.training.descent.clipping_norm) > tried.proved

    @pytest.mark.slow
    def test_twice_the_probability_is_detected(self, trial):
        tried = trial("document")
        sampler = tried.training.sampler
        assert sampler == PoissonSampler(4, 0.5)
        assert tried.bound(800, sampler=PoissonSampler(4, 1.0)) > tried.proved
