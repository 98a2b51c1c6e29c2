"""Test private word2vec: its claims, learning, saved tables, personal budgets, errors and messages."""

import math

import numpy as np
import pytest
from scipy import stats
from user_texts import corpus_of

from leakboard.errors import RequestError
from leakboard.models.skip_gram.descent import Training
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.suite.options import build
from leakboard.victims._private_word2vec.private_training import plan
from leakboard.victims.dp_word2vec import DPWord2Vec

RNG = np.random.default_rng(0)
NOISE, SIZE, STEPS, DELTA = 8.0, 4, 20, 1e-3
USERS = 13  # of the reviews


@pytest.fixture(scope="module")
def listed(word_list):
    """Return options with the words of the reviews as a public list."""
    small = {"unit": "user", "noise_multiplier": NOISE, "expected_batch_size": SIZE, "steps": STEPS, "delta": DELTA}
    return small | {"vector_size": 8, "vocabulary": word_list}


class TestClaims:
    def test_training_ends_when_the_target_is_spent(self, few_reviews, listed):
        recipe = DPWord2Vec(**listed | {"epsilon": 0.7, "steps": 300})
        fitted, planned = recipe.fit(few_reviews, 0), plan(recipe, few_reviews, 0)
        steps = fitted.claim.steps
        cost = TrainingBudget(NOISE, SIZE / USERS, DELTA)
        assert cost.epsilon(steps) <= 0.7 < cost.epsilon(steps + 1)
        assert fitted.claim.proved <= fitted.claim.epsilon <= 0.7
        assert planned.steps == steps
        np.testing.assert_array_equal(fitted.vectors, planned.training.run(steps)[steps])

    def test_recipes_that_differ_share_no_noise(self, few_reviews, listed):
        """Otherwise the noise could be subtracted from two published tables."""
        loud, louder = (
            DPWord2Vec(**listed | {"noise_multiplier": s}).fit(few_reviews, 0).vectors for s in (100.0, 200.0)
        )
        assert abs(np.corrcoef(loud.ravel(), louder.ravel())[0, 1]) < 5 / np.sqrt(loud.size)

    def test_trainings_with_other_checkpoints_share_no_noise(self, few_reviews, listed):
        """A checkpoint adds the late noise to all rows, so the same numbers would be added to other rows."""
        options = listed | {"noise_multiplier": 1000.0, "steps": 3, "vector_size": 100}
        tables = [DPWord2Vec(**options, checkpoints=steps).fit(few_reviews, 0).vectors for steps in ((), (2,))]
        rows = [table / np.linalg.norm(table, axis=1, keepdims=True) for table in tables]
        by_chance = stats.beta(49.5, 49.5, loc=-1, scale=2).isf(1e-4 / len(rows[0]) ** 2)  # of two vectors in R^100
        assert np.abs(rows[0] @ rows[1].T).max() < by_chance

    def test_the_fingerprint_follows_the_list(self, tmp_path):
        for name, content in (("a", "the\nof"), ("b", "the\nof"), ("c", "of\nthe")):
            (tmp_path / name).write_text(content)
        first, same, other = (DPWord2Vec(vocabulary=str(tmp_path / name)).fingerprint() for name in "abc")
        assert first == same != other


class TestLearning:
    @pytest.fixture(scope="class")
    @staticmethod
    def planted():
        """Return 200 texts of 20 users; the words of a text are all of one group."""
        rng, groups = np.random.default_rng(0), [[f"{group}{i}" for i in range(5)] for group in "ab"]
        return corpus_of([(f"u{i % 20}", " ".join(rng.choice(groups[i % 2], 12)), 1.0) for i in range(200)])

    @staticmethod
    def gap(fitted):
        """Return the mean cosine within groups minus the mean cosine across groups."""
        unit = fitted.vectors / np.linalg.norm(fitted.vectors, axis=1, keepdims=True)
        same, cosines = np.equal.outer(*[[word[0] == "a" for word in fitted.vocabulary]] * 2), unit @ unit.T
        return cosines[same & ~np.eye(len(same), dtype=bool)].mean() - cosines[~same].mean()

    @pytest.mark.parametrize(
        ("unit", "expected_batch_size"),
        [pytest.param("user", 20, marks=pytest.mark.slow), ("document", 32), ("pair", 64)],
    )
    def test_without_noise_it_learns_and_claims_nothing(self, planted, unit, expected_batch_size):
        options = {"unit": unit, "expected_batch_size": expected_batch_size, "vector_size": 8, "vocabulary": "exact"}
        options["learning_rate"] = 1 / expected_batch_size
        for seed in range(3):
            fitted = DPWord2Vec(**options, steps=100, noise_multiplier=0.0).fit(planted, seed)
            assert fitted.claim is None
            assert self.gap(fitted) > 0.5
        noisy = [DPWord2Vec(**options, steps=20, noise_multiplier=1000.0).fit(planted, seed) for seed in range(8)]
        assert abs(np.mean([self.gap(fitted) for fitted in noisy])) < 0.25

    def test_the_start_does_not_depend_on_the_data(self, few_reviews, listed):
        half = few_reviews.with_rows("train", range(20))
        starts = [DPWord2Vec(**listed | {"steps": 0}).fit(corpus, 0) for corpus in (few_reviews, half)]
        np.testing.assert_array_equal(starts[0].vectors, starts[1].vectors)
        assert (starts[0].claim.epsilon, starts[0].claim.proved) == (0.0, 0.0)
        trained = [DPWord2Vec(**listed).fit(corpus, 0).vectors for corpus in (few_reviews, half)]
        assert (trained[0] != trained[1]).any()


def assert_same(first, second, texts):
    assert (first.vocabulary, first.claim) == (second.vocabulary, second.claim)
    np.testing.assert_array_equal(first.vectors, second.vectors)
    documents = first.publish_documents(texts, RNG)
    np.testing.assert_array_equal(documents, second.publish_documents(texts, RNG))
    np.testing.assert_array_equal(first.predict(documents), second.predict(documents))


class TestSaved:
    def test_checkpoints_cost_less_and_are_published_from_one_training(self, few_reviews, listed, tmp_path):
        recipe = DPWord2Vec(**listed, checkpoints=(5, 10, STEPS))
        fitted, texts, spent = recipe.fit(few_reviews, 0), few_reviews.texts("dev"), []
        fitted.save(tmp_path)
        assert_same(recipe.load(tmp_path), fitted, texts)
        for step, expected in fitted.checkpoints.items():
            chosen = DPWord2Vec(**listed, checkpoints=(5, 10, STEPS), published_step=step)
            assert chosen.training_config() == recipe
            assert_same(chosen.load(tmp_path), expected, texts)
            spent.append((expected.claim.epsilon, expected.claim.proved))
        assert list(fitted.checkpoints) == [5, 10, STEPS]
        assert (np.diff(spent, axis=0) > 0).all()
        assert_same(fitted, fitted.checkpoints[STEPS], texts)
        np.testing.assert_array_equal(fitted.checkpoints[5].vectors, plan(recipe, few_reviews, 0).training.run(5)[5])
        late = DPWord2Vec(**listed, checkpoints=(5, 10, 15), published_step=15)
        with pytest.raises(RequestError, match="published_step: 15 was not reached"):
            late.load(tmp_path)

    @pytest.mark.slow
    def test_a_training_for_one_checkpoint_gives_its_table(self, few_reviews, listed):
        """Shadow models of the recipe, and audits by canaries, train for one checkpoint."""
        options = listed | {"checkpoints": (5, 10), "steps": STEPS}
        fitted, alone = (DPWord2Vec(**options, published_step=step).fit(few_reviews, 0) for step in (None, 10))
        assert_same(alone, fitted.checkpoints[10], few_reviews.texts("dev"))
        spent = DPWord2Vec(**options | {"epsilon": 0.3, "checkpoints": (STEPS,)}, published_step=STEPS)
        with pytest.raises(RequestError, match=f"published_step: {STEPS} was not reached"):
            spent.fit(few_reviews, 0)

    @pytest.mark.parametrize("options", [{"noise_multiplier": 0.0}, {"vocabulary": "exact", "min_count": 1}])
    def test_a_missing_claim_and_an_unproved_one_are_loaded(self, few_reviews, listed, tmp_path, options):
        recipe = DPWord2Vec(**listed | options)
        fitted = recipe.fit(few_reviews, 0)
        assert fitted.claim is None or fitted.claim.proved == math.inf
        fitted.save(tmp_path)
        assert_same(recipe.load(tmp_path), fitted, few_reviews.texts("dev"))


class TestBudgets:
    def test_users_leave_by_the_budgets_of_a_column(self, listed):
        corpus = corpus_of([("u2", "the was", 0.5), ("u1", "a the", 0.3), ("u2", "i was", 0.5), ("u0", "a i", 9.0)])
        recipe = DPWord2Vec(**listed | {"budgets": "budget", "noise_multiplier": 20.0})
        participation = plan(recipe, corpus, 0).training.participation
        steps = [TrainingBudget(20.0, 1.0, DELTA).steps_within(epsilon, STEPS) for epsilon in (9.0, 0.3, 0.5)]
        assert 0 < steps[1] < steps[2] < steps[0] == STEPS
        assert participation.paid_steps.tolist() == steps

    def test_budgets_drawn_from_a_list_do_not_depend_on_other_users(self, few_reviews, listed):
        options = listed | {"budgets": [0.3, 0.5], "expected_batch_size": USERS}
        drawn = plan(DPWord2Vec(**options), few_reviews, 0).budgets
        assert set(drawn.tolist()) == {0.3, 0.5}
        users = few_reviews.splits["train"]["user"][:]
        rows = [i for i, user in enumerate(users) if user != min(users)]
        fewer = plan(DPWord2Vec(**options), few_reviews.with_rows("train", rows), 0).budgets
        np.testing.assert_array_equal(fewer, drawn[1:])

    def test_a_filter_keeps_within_the_largest_budget(self, few_reviews, listed):
        claim = DPWord2Vec(**listed | {"budgets": (0.2, 0.4)}).fit(few_reviews, 0).claim
        steps = TrainingBudget(NOISE, SIZE / USERS, DELTA).steps_within(0.4, STEPS)
        assert claim.epsilon == pytest.approx(TrainingBudget(NOISE, SIZE / USERS, DELTA).epsilon(steps), rel=1e-9)
        assert 0.2 < claim.proved <= claim.epsilon <= 0.4

    def test_a_user_with_too_small_a_budget_is_not_counted(self, listed):
        """The words of 30 poor users are kept if their budgets pay for being counted."""
        rich = [(f"rich{i}", "open door", 9.0) for i in range(30)]
        counting = TrainingBudget(30.0, 0.1, DELTA, 2.0).epsilon(0)
        options = listed | {"budgets": "budget", "noise_multiplier": 30.0}
        options |= {"vocabulary": "noisy", "vocabulary_noise": 2.0}
        for budget, expected in ((0.99 * counting, ["door", "open"]), (9.0, ["door", "key", "open", "secret"])):
            corpus = corpus_of(rich + [(f"poor{i}", "secret key", budget) for i in range(30)])
            planned = plan(DPWord2Vec(**options), corpus, 0)
            assert sorted(planned.vocabulary.words) == expected
            assert (planned.training.participation.paid_steps[:30] == 0).all() == (budget < counting)

    @pytest.mark.parametrize(("second", "budgets"), [(0.6, "0.5 to 0.6"), (-0.5, "-0.5 to 0.5")])
    def test_a_user_has_one_budget(self, listed, second, budgets):
        corpus = corpus_of([("u", "the was", 0.5), ("u", "a the", second)])
        with pytest.raises(RequestError, match=f"budgets: a user has {budgets}; allowed: one, above 0"):
            DPWord2Vec(**listed | {"budgets": "budget"}).fit(corpus, 0)

    def test_a_missing_column(self, listed):
        with pytest.raises(RequestError, match=r"budgets: 'budgte' is no numeric column of made \(budget\)"):
            DPWord2Vec(**listed | {"budgets": "budgte"}).fit(corpus_of([("u", "the was", 0.5)]), 0)


class TestRefused:
    @pytest.fixture(autouse=True)
    def no_step(self, monkeypatch):
        monkeypatch.setattr(Training, "advance", lambda training: pytest.fail("a step was taken"))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"noise_multiplier": None, "epsilon": 0.5, "vocabulary_noise": 1.0}, "vocabulary_noise 1 alone costs"),
            ({"epsilon": 0.5, "vocabulary_noise": 1.0}, "vocabulary_noise 1 alone costs"),
            ({"noise_multiplier": None, "epsilon": 0.5, "vocabulary_noise": 1.0, "steps": 0}, "alone costs"),
            ({"epsilon": 0.01, "vocabulary": "exact", "expected_batch_size": 5000}, "one step with noise_multiplier 8"),
        ],
    )
    def test_a_target_that_cannot_be_reached(self, few_reviews, listed, options, message):
        options = listed | {"unit": "pair", "vocabulary": "noisy"} | options
        with pytest.raises(RequestError, match=f"epsilon {options['epsilon']:g} cannot be reached: .*{message}"):
            DPWord2Vec(**options).fit(few_reviews, 0)

    def test_a_corpus_without_users(self, listed):
        with pytest.raises(RequestError, match=r"unit: 'user' is not allowed \(pair, document\): made names no users"):
            DPWord2Vec(**listed).fit(corpus_of([("the was", 1.0)], ("text", "budget")), 0)

    @pytest.mark.parametrize("unit", ["pair", "document", "user"])
    @pytest.mark.parametrize("vocabulary", ["list", "exact", "noisy"])
    @pytest.mark.parametrize("text", [" ", "?!", "lonely"])
    def test_no_two_known_words(self, listed, unit, vocabulary, text):
        chosen = {} if vocabulary == "list" else {"vocabulary": vocabulary, "min_count": 1}
        with pytest.raises(RequestError, match="made has no two known words within window=1; the vocabulary has"):
            DPWord2Vec(**listed | chosen | {"unit": unit}).fit(corpus_of([("u", text, 1.0), ("v", text, 1.0)]), 0)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"noise_multiplier": 0.0, "epsilon": 1.0}, "noise_multiplier: 0 reaches no epsilon"),
            ({"noise_multiplier": 1.0, "budgets": [1.0]}, "budgets belong to users"),
            ({"unit": "user", "budgets": "column"}, "budgets .* a noise_multiplier for all"),
            ({"unit": "user", "noise_multiplier": 5.0, "budgets": [1.0], "sampling": "fixed"}, "needs Poisson samples"),
            ({"published_step": 5, "checkpoints": [4, 6]}, "5 is not among the checkpoints \\(4, 6\\)"),
        ],
    )
    def test_options_that_do_not_go_together(self, options, message):
        with pytest.raises(RequestError, match=message):
            build(DPWord2Vec, options, "here")


@pytest.fixture
def lines(monkeypatch):
    """Return the log lines of the plan."""
    lines = []
    monkeypatch.setattr("leakboard.victims._private_word2vec.private_training.log_progress", lines.append)
    return lines


@pytest.mark.parametrize(
    ("delta", "text", "caveat", "logged"),
    [
        (1 / 3.9, "i was", "delta 0.25641 is not below 1/4: it lets one user be given away", []),
        (1 / 4.1, " ", "", ["1 of 4 users have no two known words together: they contribute nothing"]),
        (1 / 4.1, "of a", "", []),
    ],
)
def test_weak_claims_and_users_without_pairs_are_reported(lines, listed, delta, text, caveat, logged):
    rows = [(f"u{i}", text, 1.0) for i, text in enumerate(["the was", "i was", "a zzz it was", text])]
    fitted = DPWord2Vec(**listed | {"delta": delta, "steps": 1}).fit(corpus_of(rows), 0)
    assert lines == ["4 users, 1 steps with noise 8 times the clipping norm", *logged]
    assert fitted.claim.caveat == caveat


def test_a_training_that_ends_early_is_reported(few_reviews, listed):
    options = listed | {"epsilon": 0.7, "steps": 300}
    last = plan(DPWord2Vec(**options), few_reviews, 0).steps
    planned = plan(DPWord2Vec(**options, checkpoints=(1, last)), few_reviews, 0)
    assert planned.claim(last).caveat == f"training ended after {last} of 300 steps: epsilon was spent"
    assert planned.claim(1).caveat == ""


def test_a_training_without_noise_is_reported(lines, few_reviews, listed):
    plan(DPWord2Vec(**listed | {"noise_multiplier": 0.0}), few_reviews, 0)
    assert lines[0] == "13 users, 20 steps with no noise"


@pytest.mark.parametrize(
    "protected",
    [
        {"epsilon": 1.0, "noise_multiplier": None},
        {"unit": "pair", "sampling": "fixed", "vocabulary": "noisy"},
        {"budgets": (1.0, 2.0)},
    ],
)
def test_without_its_protection_it_is_none_dp(listed, protected):
    options = listed | protected
    vocabulary = "exact" if options["vocabulary"] == "noisy" else options["vocabulary"]
    none_dp = {"unit": options["unit"], "noise_multiplier": 0.0, "vocabulary": vocabulary}
    assert DPWord2Vec(**options).non_private() == DPWord2Vec(**listed | none_dp)
