"""Test the broken controls of private word2vec: their training, their claims, and what is proved for them."""

import math

import numpy as np
import pytest
from user_texts import corpus_of

from leakboard.errors import RequestError
from leakboard.models.skip_gram.noisy_tables import Descent
from leakboard.models.skip_gram.sampling import PaperAccounting, PoissonSampler, SequentialBatches
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.privacy.mechanisms.textbook import gaussian_epsilon
from leakboard.suite.options import build
from leakboard.victims._private_word2vec.private_training import plan
from leakboard.victims.dp_word2vec import DPWord2Vec
from leakboard.victims.dp_word2vec_as_published import DPWord2VecAsPublished

NOISE, SIZE, STEPS, DELTA = 8.0, 4, 20, 1e-3
PAIRS = 2 * (2140 - 39)  # of the reviews, which have 2,140 words in 39 texts


@pytest.fixture(scope="module")
def options(word_list):
    """Return options with the words of the reviews as a public list."""
    return {"noise_multiplier": NOISE, "steps": STEPS, "delta": DELTA, "vector_size": 8, "vocabulary": word_list}


@pytest.fixture(scope="module")
def released(options):
    """Return a function that makes the released code."""
    return lambda **changed: DPWord2VecAsPublished(variant="released_code", **options | changed)


@pytest.fixture(scope="module")
def accounting(options):
    """Return a function that makes the paper's accounting of budgets."""
    usual = options | {"variant": "paper_accounting", "expected_batch_size": SIZE}
    return lambda **changed: DPWord2VecAsPublished(**usual | changed)


class TestReleasedCode:
    @pytest.mark.parametrize("size", [50, 10**6])
    def test_clips_the_mean_of_batches_in_order(self, released, few_reviews, size):
        """The mean is clipped to C in each table and gets noise s C**2; the sum gets both times the batch size."""
        planned = plan(released(expected_batch_size=size, clipping_norm=0.7, learning_rate=0.05), few_reviews, 0)
        size = min(size, PAIRS)
        assert planned.training.sampler == SequentialBatches(PAIRS, size)
        expected = (pytest.approx(x * size) for x in (0.7, NOISE * 0.7**2))
        assert planned.training.descent == Descent(0.05, *expected, of_batch=True)

    def test_the_claim_and_the_proof_by_hand(self, released, few_reviews):
        """100 batches of 128 have some pairs 4 times. The mean turns by at most sqrt(8) C; its noise is s C**2."""
        changed = {"expected_batch_size": 128, "steps": 100, "clipping_norm": 0.5}
        fitted = released(**changed).fit(few_reviews, 0)
        deviation = NOISE * 0.25 / (math.sqrt(8) * 0.5) / math.sqrt(math.ceil(100 * 128 / PAIRS))
        assert fitted.claim.proved == pytest.approx(gaussian_epsilon(DELTA, deviation, 1.0), rel=1e-9)
        assert fitted.claim.epsilon == TrainingBudget(NOISE, 128 / len(fitted.vocabulary), DELTA).epsilon(100)
        assert (fitted.claim.unit, fitted.claim.sampling) == ("pair", "sequential")
        planned = plan(released(**changed, vocabulary="noisy", vocabulary_noise=0.5), few_reviews, 0)
        assert planned.claim(100).epsilon == TrainingBudget(NOISE, 128 / len(planned.vocabulary.words), DELTA).epsilon(
            100
        )
        assert planned.claim(100).proved > fitted.claim.proved  # the proof pays for the counting
        assert fitted.claim.proved > 2 * fitted.claim.epsilon

    def test_nothing_is_proved_with_an_exact_vocabulary(self, released, few_reviews):
        assert plan(released(vocabulary="exact"), few_reviews, 0).claim(STEPS).proved == math.inf


class TestPaperAccounting:
    def test_users_are_sampled_and_charged_a_share(self, accounting, few_reviews):
        training = plan(accounting(budgets=(0.2, 0.4)), few_reviews, 0).training
        assert training.sampler == PoissonSampler(13, pytest.approx(SIZE / 13))
        assert training.descent == Descent(0.01, 1.0, NOISE)
        participation, cost = training.participation, TrainingBudget(NOISE, SIZE / 13, DELTA)
        assert isinstance(participation, PaperAccounting)
        assert participation.expected_batch_size == SIZE
        np.testing.assert_allclose(participation.prices.cumsum(), [cost.epsilon(n + 1) for n in range(STEPS)])

    def test_a_filter_keeps_the_budgets_and_the_shares_do_not(self, accounting, options, few_reviews):
        claim = accounting(budgets=(0.2, 0.4)).fit(few_reviews, 0).claim
        sound = DPWord2Vec(unit="user", expected_batch_size=SIZE, budgets=(0.2, 0.4), **options)
        filtered = sound.fit(few_reviews, 0).claim
        assert 0.2 < filtered.proved <= filtered.epsilon <= claim.epsilon == 0.4
        assert claim.proved == math.inf

    @pytest.mark.parametrize(
        ("budgets", "steps", "kept"),
        [
            pytest.param((0.2, 0.4), STEPS, False, marks=pytest.mark.slow),
            pytest.param((0.5, 50.0), STEPS, False, marks=pytest.mark.slow),
            ((0.5,), 3, True),
        ],
    )
    def test_every_budget_must_be_kept(self, accounting, few_reviews, budgets, steps, kept):
        """No user leaves in so few steps. All lose the cost of sampled steps, which only the large budgets allow."""
        claim = accounting(budgets=budgets, steps=steps, noise_multiplier=4.0).fit(few_reviews, 0).claim
        sampled = TrainingBudget(4.0, SIZE / 13, DELTA).epsilon(steps, "pld")
        assert (sampled <= min(budgets)) == kept
        assert claim.epsilon == max(budgets)
        assert claim.proved == (pytest.approx(sampled) if kept else math.inf)
        listed = claim.details.rpartition("by budget: ")[2]
        assert listed == ", ".join(f"{budget:g}: {sampled:.3g}" for budget in budgets)

    @pytest.mark.slow
    def test_users_who_are_not_counted_do_not_pay_for_counting(self, accounting):
        """Poor users lose the cost of few visits, so every budget is kept."""
        counting = TrainingBudget(30.0, 0.1, DELTA, 2.0).epsilon(0)
        users = [(f"rich{i}", "open door", 9.0) for i in range(30)] + [(f"poor{i}", "key", 0.3) for i in range(30)]
        changed = {"budgets": "budget", "noise_multiplier": 30.0, "vocabulary": "noisy", "vocabulary_noise": 2.0}
        claim = plan(accounting(**changed), corpus_of(users), 0).claim(STEPS)
        assert counting > 0.3
        free, paid = (TrainingBudget(30.0, SIZE / 60, DELTA, noise).epsilon(STEPS, "pld") for noise in (None, 2.0))
        assert claim.details.endswith(f"by budget: 0.3: {free:.3g}, 9: {paid:.3g}")
        assert claim.proved == pytest.approx(paid)

    def test_many_budgets_are_summed_up(self, accounting):
        users = [(f"user{i}", "open door", 0.001 * (i + 1)) for i in range(30)]
        claim = plan(accounting(budgets="budget"), corpus_of([*users, ("rich", "the was", 9.0)]), 0).claim(STEPS)
        assert claim.details.endswith("of 31 budgets")
        assert claim.proved == math.inf

    @pytest.mark.slow
    def test_users_who_leave_soon_lose_the_cost_of_their_visits(self, accounting, few_reviews):
        """All users are in every batch; each visit is a whole release and is charged a share of 1/13."""
        planned = plan(accounting(budgets=(0.05,), expected_batch_size=13, steps=60), few_reviews, 0)
        cost = TrainingBudget(NOISE, 1.0, DELTA)
        prices = np.diff([cost.epsilon(step) for step in range(61)]) / 13
        visits = int(0.05 / prices.min()) + 1
        assert 1 < visits < 60
        assert f"0.05: {cost.epsilon_of_visits(visits):.3g}" in planned.claim(60).details
        assert cost.epsilon_of_visits(visits) < 0.9 * cost.epsilon_of_visits(60)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "paper_accounting", "noise_multiplier": 1.0}, "paper_accounting needs budgets"),
        ({"variant": "released_code", "noise_multiplier": 5.0, "budgets": [1.0]}, "budgets: users have budgets"),
        ({"variant": "released_code", "noise_multiplier": 0.0}, "noise_multiplier: 0.0 is not allowed"),
        ({"variant": "released_code", "noise_multiplier": 5.0, "epsilon": 1.0}, "unknown name 'epsilon'"),
        ({"variant": "released_code", "noise_multiplier": 5.0, "published_step": 5}, "5 is not among the checkpoints"),
        ({"variant": "released", "noise_multiplier": 5.0}, "did you mean 'released_code'"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(RequestError, match=message):
        build(DPWord2VecAsPublished, options, "here")


def test_without_its_protection_it_is_dp_word2vec_without_noise(released, accounting, options):
    for recipe, unit in ((released(), "pair"), (accounting(budgets=(1.0, 2.0)), "user")):
        kept = options | {"noise_multiplier": 0.0, "expected_batch_size": recipe.expected_batch_size}
        assert recipe.non_private() == DPWord2Vec(unit=unit, **kept)
    assert released(vocabulary="noisy").non_private().vocabulary == "exact"


def test_a_checkpoint_is_published_from_one_training(released, few_reviews, tmp_path):
    recipe = released(checkpoints=(5,), expected_batch_size=64)
    recipe.fit(few_reviews, 0).save(tmp_path)
    chosen = released(checkpoints=(5,), expected_batch_size=64, published_step=5)
    assert chosen.training_config() == recipe
    fitted, alone = chosen.load(tmp_path), chosen.fit(few_reviews, 0)
    np.testing.assert_array_equal(fitted.vectors, alone.vectors)
    assert fitted.claim == alone.claim == plan(recipe, few_reviews, 0).claim(5)
