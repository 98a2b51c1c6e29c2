"""What dp_word2vec claims is paid for by what it trains: by the parts of its plan, and by the law of what comes out."""

import dataclasses
import functools
import inspect
import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from leakboard.data.corpora import build_corpus
from leakboard.models.skip_gram import vocabulary
from leakboard.models.skip_gram.descent import Training
from leakboard.models.skip_gram.noisy_tables import Descent, NoisyTables
from leakboard.models.skip_gram.pairs import Pairs
from leakboard.models.skip_gram.sampling import PoissonSampler, SequentialBatches
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.privacy.auditing.bound import bound_from_counts
from leakboard.privacy.mechanisms.textbook import gaussian_epsilon
from leakboard.victims._private_word2vec.training import plan
from leakboard.victims.dp_word2vec import DPWord2Vec

UNITS = ("pair", "document", "user")
SIZES = {"pair": 80, "document": 20, "user": 11}
ALL = 10**6
DELTA, NOISE, COUNTING, CLIP, RATE, STEPS = 1e-3, 2.0, 2.5, 0.7, 0.05, 8


def corpus_of(rows):
    """Build a corpus from (user, text)."""
    frame = pd.DataFrame(rows, columns=["user", "text"]).assign(row=range(len(rows)))
    return build_corpus("made", dict.fromkeys(("train", "dev", "test"), frame), [], None).only("train", "dev")


@pytest.fixture(scope="module")
def rows():
    """Return (user, text) of 160 texts by 80 users in no order, of two to six words each, four words in all."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["key", "door", "open", "red"], rng.integers(2, 7))) for _ in range(160)]
    return [(f"u{user}", text) for user, text in zip(rng.permutation(160) % 80, texts, strict=True)]


@pytest.fixture(scope="module")
def corpus(rows):
    return corpus_of(rows)


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Return a function that makes options, with a public list of the words unless told otherwise."""
    path = tmp_path_factory.mktemp("listed") / "words.txt"
    path.write_text("key\ndoor\nopen\nred")
    usual = {"noise_multiplier": NOISE, "delta": DELTA, "clipping_norm": CLIP, "learning_rate": RATE, "steps": STEPS}
    usual |= {"vector_size": 2, "negative": 1, "vocabulary": str(path), "vocabulary_noise": COUNTING}
    return lambda unit, **changed: DPWord2Vec(unit=unit, **usual | {"expected_batch_size": SIZES[unit]} | changed)


def texts_by_unit(rows, unit):
    """Return the texts of each document or user, in words; for pairs each text."""
    texts = {}
    for number, (user, text) in enumerate(rows):
        texts.setdefault(user if unit == "user" else number, []).append(text.split())
    return list(texts.values())


def pairs_by_unit(rows, unit):
    """Return the pairs of neighbours of each unit, counted."""
    found = []
    for texts in texts_by_unit(rows, unit):
        beside = [pair for text in texts for pair in itertools.pairwise(text)]
        found.append(beside + [(second, first) for first, second in beside])
    return [Counter(pairs) for pairs in ([[p] for pairs in found for p in pairs] if unit == "pair" else found)]


def paid(training, counting=None):
    """Return what the run itself pays for: its noise over its clipping norm, and the chance of its sampler."""
    descent = training.descent
    return TrainingBudget(descent.deviation / descent.clipping_norm, training.sampler.probability, DELTA, counting)


def whole(deviation, visits):
    """Return the epsilon of so many whole Gaussian releases with this deviation over their sensitivity."""
    return gaussian_epsilon(DELTA, deviation / math.sqrt(visits), 1.0)


def most_visits(sampler, steps):
    """Return how often the unit that is drawn most often is drawn."""
    return np.bincount(np.concatenate([sampler.draw(step, np.random.default_rng(0)) for step in range(steps)])).max()


@pytest.mark.parametrize("unit", UNITS)
class TestPlan:
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

    @pytest.mark.parametrize("counting", [None, COUNTING])
    def test_the_noise_for_a_target_reaches_it(self, options, corpus, rows, unit, counting):
        kind = {"vocabulary": "noisy"} if counting else {}
        expected_batch_size = (
            2 if unit == "document" and not counting else ALL
        )  # for a sample, noise takes seconds to find
        asked = options(unit, noise_multiplier=None, epsilon=2.5, expected_batch_size=expected_batch_size, **kind)
        planned, units = plan(asked, corpus, 0), len(pairs_by_unit(rows, unit))
        training, claim = planned.training, planned.claim(STEPS)
        assert planned.steps == STEPS
        assert (training.descent.rate, training.descent.clipping_norm, training.descent.of_batch) == (RATE, CLIP, False)
        assert training.sampler == PoissonSampler(units, pytest.approx(min(1, expected_batch_size / units), rel=1e-12))
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
        assert planned.claim(STEPS).proved == pytest.approx(whole(NOISE, most_visits(sampler, STEPS)), rel=1e-9)

    def test_without_noise_it_clips_and_claims_nothing(self, options, corpus, unit):
        planned = plan(options(unit, noise_multiplier=0.0), corpus, 0)
        assert planned.training.descent == Descent(RATE, CLIP, 0.0)
        assert planned.claim(STEPS) is None

    def test_what_is_clipped_as_one_is_the_unit(self, options, corpus, rows, unit):
        planned = plan(options(unit), corpus, 0)
        found = []
        for number in range(planned.training.pairs.units):
            codes = zip(*planned.training.pairs.batch(np.array([number]))[:2], strict=True)
            found.append(
                Counter(
                    (planned.vocabulary.words[centre], planned.vocabulary.words[context]) for centre, context in codes
                )
            )
        assert Counter(map(_entries, found)) == Counter(map(_entries, pairs_by_unit(rows, unit)))

    def test_what_is_published_is_what_was_planned(self, options, corpus, unit):
        asked = options(unit, sampling="fixed")  # whose proof is quickly worked out
        planned, fitted = plan(asked, corpus, 0), asked.fit(corpus, 0)
        np.testing.assert_array_equal(fitted.vectors, planned.training.run(STEPS)[STEPS])
        assert (fitted.vocabulary, fitted.claim) == (planned.vocabulary.words, planned.claim(STEPS))


def _entries(counts):
    return tuple(sorted(counts.items()))


@pytest.mark.parametrize("unit", UNITS)
class TestCounting:
    SEEDS = 150

    @pytest.fixture
    def calls(self, monkeypatch):
        """Return the arguments of each call of `vocabulary.counted` and what came of it, as they are made."""
        made, count = [], vocabulary.counted

        def recorded(*args, **kwargs):
            found = count(*args, **kwargs)
            made.append((inspect.signature(count).bind(*args, **kwargs).arguments, found))
            return found

        monkeypatch.setattr(vocabulary, "counted", recorded)
        return made

    def test_the_claim_pays_for_the_noise_of_the_counts(self, options, corpus, rows, unit, calls):
        planned = plan(options(unit, vocabulary="noisy", expected_batch_size=ALL), corpus, 0)
        [(asked, found)] = calls
        assert (asked["noise_multiplier"], asked["failure"]) == (COUNTING, pytest.approx(0.1 * DELTA))
        budget = paid(planned.training, asked["noise_multiplier"])
        claim = planned.claim(STEPS)
        assert claim.epsilon == pytest.approx(budget.epsilon(STEPS), rel=1e-9)
        assert claim.proved == pytest.approx(budget.epsilon(STEPS, "pld"), rel=1e-9)
        assert asked["failure"] == budget.failure
        assert [list(text) for text in asked["texts"]] == [text.split() for _, text in rows]
        keys = {"pair": None, "document": range(len(rows)), "user": [user for user, _ in rows]}[unit]
        if keys is None:
            assert asked["owners"] is None
        else:
            both = set(zip(asked["owners"], keys, strict=True))
            assert len(both) == len(set(asked["owners"])) == len(set(keys))
        assert planned.vocabulary.words == found.words
        law = np.diff(planned.training.cumulative, prepend=0)
        np.testing.assert_allclose(law, found.frequencies / found.frequencies.sum(), atol=1e-12)

    def test_the_counts_that_come_out_have_that_noise(self, options, corpus, rows, unit, calls):
        true = Counter()
        for counts in [Counter(word for text in texts for word in text) for texts in texts_by_unit(rows, unit)]:
            norm = math.sqrt(sum(count**2 for count in counts.values()))
            true.update({word: count / norm for word, count in counts.items()})
        if unit == "pair":
            true = Counter(centre for pairs in pairs_by_unit(rows, unit) for centre, _ in pairs)
        for seed in range(self.SEEDS):
            plan(options(unit, vocabulary="noisy"), corpus, seed)
        errors = [[found.counts[found.words.index(word)] - true[word] for word in sorted(true)] for _, found in calls]
        errors, n = np.array(errors) / COUNTING, self.SEEDS * len(true)
        assert abs(errors.mean()) < 4 / math.sqrt(n)
        assert abs(errors.std() - 1) < 4 / math.sqrt(2 * n)


@dataclasses.dataclass(frozen=True)
class Case:
    """A unit in question, who else is there, and how it is trained."""

    unit: str
    texts: tuple
    """Of the unit; for pairs the last pair of the text is the unit."""
    others: tuple
    options: dict
    published_alone: bool = False
    """Look at the published vectors alone, not at both tables with all of their noise, which the proof is about too."""


APART = ("open window",) * 3
CASES = {
    "pair": Case("pair", ("key door",), APART, {"steps": 2}),
    "document": Case("document", ("key door",), APART, {"steps": 4, "expected_batch_size": 2}),
    "user": Case("user", ("key door", "door key"), APART, {"steps": 2}),
    # The published vectors follow output vectors whose direction is known once others have trained them.
    "user, published": Case("user", ("key door",) * 2, ("key door",) * 20, {"steps": 6, "learning_rate": 0.5}, True),
}


@dataclasses.dataclass(frozen=True)
class Trial:
    """A run with the unit in question and one without; the start, which depends on no data, is known."""

    training: Training
    without: Pairs
    steps: int
    delta: float
    proved: float
    published_alone: bool

    def releases(self, pairs, seeds, sampler, descent):
        """Return what comes out, float64 (seeds, values): from the plan's own parts unless they are changed."""
        ours, found = self.training, []
        frequencies = np.diff(ours.cumulative, prepend=0)
        start = NoisyTables.start(len(frequencies), ours.tables.values.shape[1], np.random.default_rng(0)).values
        shape = {"dimensions": ours.tables.values.shape[1], "negatives": ours.negatives}
        for seed in seeds:
            run = Training(pairs, frequencies, sampler, descent, **shape, seed=seed, participation=ours.participation)
            run.tables.values[:] = start
            published = run.run(self.steps)[self.steps]
            found.append((published if self.published_alone else run.tables.values).ravel().astype(np.float64))
        return np.stack(found)

    def bound(self, runs, sampler=None, **changed):
        """Return what an adversary proves at 95 %, who chooses statistic and threshold on as many runs as it tests."""
        how = sampler or self.training.sampler, dataclasses.replace(self.training.descent, **changed)
        present = self.releases(self.training.pairs, range(2 * runs), *how)
        absent = self.releases(self.without, range(10**6, 10**6 + 2 * runs), *how)
        direction = present[:runs].mean(0) - absent[:runs].mean(0)
        scores = np.stack([present @ direction, absent @ direction])
        chosen, tested = scores[:, :runs], scores[:, runs:]

        def proves(part, threshold, error):
            return bound_from_counts(*np.count_nonzero(part >= threshold, axis=1), (runs, runs), self.delta, error)

        thresholds = np.quantile(chosen, np.linspace(0.01, 0.99, 99))
        return proves(tested, max(thresholds, key=lambda threshold: proves(chosen, threshold, 1e-3)), 0.05)


class TestLaw:
    """Neighbours are told apart, but no better than is proved; with a part of the plan changed they are."""

    DELTA = 1e-2

    @pytest.fixture(scope="class")
    @classmethod
    def trial(cls, tmp_path_factory):
        """Return a function that returns the trial of a case. The negative is always the same word: counts say so."""
        path = tmp_path_factory.mktemp("tiny") / "words.txt"
        path.write_text("the\t1e9\nkey\t1\ndoor\t1\nopen\t1\nwindow\t1\nred\t1\n")
        usual = {
            "noise_multiplier": 2.0,
            "delta": cls.DELTA,
            "clipping_norm": 0.02,
            "learning_rate": 0.1,
            "expected_batch_size": 100,
        }
        usual |= {"vector_size": 2, "negative": 1, "vocabulary": str(path)}

        @functools.cache
        def make(name):
            case = CASES[name]
            asked = DPWord2Vec(unit=case.unit, **usual | case.options)
            others = [(f"other {n}", text) for n, text in enumerate(case.others)]
            with_it, without = (
                plan(asked, corpus_of([*others, *(("the unit", text) for text in texts)]), 3)
                for texts in (case.texts, [""] * len(case.texts))
            )
            training, neighbour = with_it.training, without.training
            pairs, last = neighbour.pairs, training.pairs.units - 1
            if case.unit == "pair":  # no corpus lacks one pair alone
                kept = training.pairs.centres[:last], training.pairs.contexts[:last]
                pairs = Pairs(*kept, np.minimum(np.arange(last + 2), last))
            else:
                assert (training.descent, training.sampler) == (neighbour.descent, neighbour.sampler)
                np.testing.assert_array_equal(training.tables.values, neighbour.tables.values)
            assert (pairs.units, pairs.batch(np.array([last]))[2].tolist()) == (training.pairs.units, [0, 0])
            proved = with_it.claim(with_it.steps).proved
            return Trial(training, pairs, with_it.steps, cls.DELTA, proved, case.published_alone)

        return make

    @pytest.mark.parametrize("case", CASES)
    def test_no_more_is_found_than_is_proved_but_a_quarter_of_it_is(self, trial, case):
        tried = trial(case)
        assert 0.25 * tried.proved < tried.bound(1500) <= tried.proved

    @pytest.mark.parametrize("case", CASES)
    def test_a_tenth_of_the_noise_is_found(self, trial, case):
        tried = trial(case)
        assert tried.bound(200, deviation=tried.training.descent.deviation / 10) > tried.proved

    @pytest.mark.parametrize("case", UNITS)
    def test_three_times_the_clipping_norm_is_found(self, trial, case):
        tried = trial(case)
        assert tried.bound(600, clipping_norm=3 * tried.training.descent.clipping_norm) > tried.proved

    def test_twice_the_chance_is_found(self, trial):
        tried = trial("document")
        sampler = tried.training.sampler
        assert sampler == PoissonSampler(4, 0.5)
        assert tried.bound(2000, sampler=PoissonSampler(4, 1.0)) > tried.proved
