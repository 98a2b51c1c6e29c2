"""The ensemble of classifiers: pooling weighs members by what helps on dev, and failures are reported."""

import dataclasses
from typing import get_args

import numpy as np
import pytest
from planted import GENDER, SMALL, accuracies, exclusive_or, linear, noise, task_of, trained, world
from scipy import optimize
from scipy.special import log_softmax, softmax
from threadpoolctl import threadpool_info, threadpool_limits

from leakboard.attacks._portfolio import ensemble, neighbours_and_trees, portfolio, trainer
from leakboard.attacks._portfolio import linear as linear_families
from leakboard.attacks._portfolio.ensemble import pooled
from leakboard.attacks._portfolio.members import Member, Trained, log_loss
from leakboard.attacks._portfolio.trainer import Trainer
from leakboard.attacks._portfolio.vector_inputs import Inputs, Scaling, Whitened, plain_scalings
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.errors import RequestError
from leakboard.execution.side_by_side import lent


class TestPool:
    def logits(self, n=300, values=3):
        """Return the true values, and the scores of a good, a fair and an ignorant member."""
        rng = np.random.default_rng(0)
        truth = rng.integers(0, values, n)
        return truth, [2.0 * np.eye(values)[truth] * k + rng.normal(size=(n, values)) for k in (1.0, 0.5, 0.0)]

    def test_an_ignorant_member_counts_for_nothing(self):
        truth, members = self.logits()
        pool = pooled(members, truth)
        assert pool.shares[0] > pool.shares[1] > 0.1
        assert pool.shares[2] < 0.1
        losses = [log_loss(pooled([member], truth)([member]), truth) for member in members]
        assert log_loss(pool(members), truth) < min(losses)

    def test_a_member_that_is_wrong_on_purpose_gets_no_weight(self):
        truth, (good, *_) = self.logits()
        assert pooled([good, -good], truth).shares[1] == pytest.approx(0, abs=1e-3)

    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    def test_the_scale_of_a_members_scores_does_not_matter(self, scale):
        truth, members = self.logits()
        plain = pooled(members, truth)(members)
        scaled = [scale * (member + 3.0) for member in members]
        assert np.allclose(pooled(scaled, truth)(scaled), plain, atol=1e-3)

    def test_how_frequent_a_value_is_on_dev_does_not_matter(self):
        """A dev in which one value is rarer than in train teaches no threshold."""
        truth, (good, *_) = self.logits(values=2)
        few = np.flatnonzero((truth == 0) | (np.arange(300) % 10 == 0))
        guesses = [pooled([good[rows]], truth[rows])([good]).argmax(1) for rows in (np.arange(300), few)]
        assert np.array_equal(*guesses)

    @pytest.mark.parametrize("count", [1, 2])
    def test_against_a_general_minimiser(self, count):
        """With m members, minimise log-loss plus m / 2 times the squared distance of the weights from their prior."""
        truth, members = self.logits(values=2)
        odds = np.stack([member - member.mean(1, keepdims=True) for member in members[:count]])

        def logs(weights, scores):
            return log_softmax(np.tensordot(weights, scores, 1), axis=1)

        def loss(weights, scores, prior):
            away = np.sum((weights - prior) ** 2)
            return 300 * log_loss(logs(weights, scores), truth) + len(scores) * away / 2

        def best(scores, prior):
            options = {"xatol": 1e-8, "fatol": 1e-8}
            return optimize.minimize(
                loss, np.ones(len(prior)), (scores, prior), method="Nelder-Mead", options=options
            ).x

        units = odds / odds.std((1, 2), keepdims=True)
        calibrated = np.stack([best(unit[None], np.zeros(1)) * unit for unit in units])
        likelihoods = softmax([-300 * log_loss(log_softmax(scores, axis=1), truth) for scores in calibrated])
        expected = logs(best(calibrated, likelihoods), calibrated)
        assert np.allclose(pooled(members[:count], truth)(members[:count]), expected, atol=1e-3)

    def test_a_part_of_a_large_dev_is_enough(self, monkeypatch):
        truth, members = self.logits(n=3000)
        whole = pooled(members, truth)
        monkeypatch.setattr(ensemble, "MAX_SCORES", 3 * 1000 * 3)
        part = pooled(members, truth)
        assert np.array_equal(part.weights, pooled([member[::3] for member in members], truth[::3]).weights)
        assert np.allclose(part.shares, whole.shares, atol=0.1)

    @pytest.mark.parametrize(("strength", "is_spread"), [(ensemble.PRIOR_STRENGTH, True), (0.0, False)])
    def test_a_small_dev_spreads_the_weights_over_members_that_it_cannot_tell_apart(
        self, strength, is_spread, monkeypatch
    ):
        monkeypatch.setattr(ensemble, "PRIOR_STRENGTH", strength)
        rng = np.random.default_rng(0)
        truth, (common, *_) = self.logits(n=60)
        shares = pooled([common + 0.05 * rng.standard_normal(common.shape) for _ in range(10)], truth).shares
        assert (1 / np.sum(shares**2) > 5) == is_spread  # k equal shares have a sum of squares of 1 / k


def faint(codes, rng):
    """Return vectors whose secret is the product of two signs in faint directions, under 14 strong directions."""
    signs = rng.choice([-1.0, 1.0], len(codes["gender"]))
    hidden = np.stack([signs, signs * (2 * codes["gender"] - 1)], 1) + 0.3 * rng.normal(size=(len(signs), 2))
    parts = np.hstack([0.03 * hidden, rng.normal(size=(len(signs), 14))])
    return parts @ np.linalg.qr(np.random.default_rng(7).normal(size=(16, 16)))[0]


def test_whitening_shows_networks_faint_directions():
    """The coordinates mix all directions, so that standardising them does not help."""
    view, vectors, truth = world(faint, [GENDER])
    standard = plain_scalings(view.train.vectors)[1]
    plain, whitened = (
        accuracies(trained("mlp", view, inputs)(vectors), truth)["gender"]
        for inputs in (standard, Whitened.of(standard, view.train.vectors))
    )
    assert plain < 0.65
    assert whitened > 0.9


def test_whitened_vectors_have_no_preferred_direction():
    vectors = np.random.default_rng(0).normal(5, [3.0, 1.0, 0.1], (2000, 3)).astype(np.float32)
    assert np.allclose(np.cov(Whitened.of(Scaling("raw"), vectors)(vectors).T), np.eye(3), atol=0.02)
    with pytest.raises(ValueError, match="the same"):
        Whitened.of(Scaling("raw"), np.ones((5, 3), np.float32))


def test_a_costly_family_is_trained_on_the_inputs_where_the_cheap_ones_do_best():
    """Each vector has another length here, which only the scaling of each vector removes."""

    def lengthened(codes, rng):
        vectors = linear(codes, rng)
        return vectors * np.exp(4 * rng.normal(size=(len(vectors), 1)))

    class Recording(Trainer):
        def members(self, choices, rows=None):
            members = super().members(choices, rows)
            names.extend(member.name for member in members)
            return members

    names = []
    view, *_ = world(lengthened, [GENDER])
    ensemble.train_ensemble(Recording(task_of(view)), plain_scalings(view.vectors))
    trained = [name.partition(" (")[0] for name in names if name.startswith("svm")]  # the rest tells of its steps
    assert trained == ["svm on per vector inputs"]


class TestRetraining:
    """Members that count learn from dev, too."""

    @pytest.fixture
    def retrained(self):
        """Return a function that retrains a member with a given function: the member after and before, the remarks."""
        view, *_ = world(linear, [GENDER])

        def retrain_with(retrain, family="logistic", remark=""):
            member, trainer = trained(family, view), Trainer(task_of(view))
            first = member.trained._replace(remark=remark, retrain=lambda texts: retrain(member.trained))
            before = dataclasses.replace(member, trained=first)
            (after,) = trainer.retrain_with_dev([before])
            return after, before, trainer.remarks

        return retrain_with

    @pytest.mark.slow
    def test_copies_of_dev_texts_are_found_and_the_score_on_dev_is_from_before(self, monkeypatch):
        monkeypatch.setattr(neighbours_and_trees, "TREES", 100)
        view, vectors, _ = world(noise, [GENDER], sizes=(200, 200, 10))
        attack = AttributeInference(**SMALL).fit(view, 0)
        after = attack(view.dev.vectors).scores["gender"].argmax(1)
        assert np.mean(after == view.dev.values["gender"]) > 0.7
        before = attack(vectors).on_dev["gender"].argmax(1)
        assert np.mean(before == view.dev.values["gender"]) < 0.7

    @pytest.mark.parametrize("reason", ["no such luck", "its scores are not finite"])
    def test_a_member_that_fails_with_dev_stays_as_it_was(self, reason, retrained):
        def failing(first):
            if "luck" in reason:
                raise ValueError(reason)
            return first._replace(scorer=lambda vectors: {"gender": np.full((len(vectors), 2), np.nan)})

        after, before, remarks = retrained(failing, "trees")
        assert after is before
        assert remarks == [f"trees on raw inputs learned from train alone (ValueError: {reason})"]

    def test_blas_has_one_thread_while_members_learn(self, retrained):
        def blas_threads():
            return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

        threads = []
        with threadpool_limits(2, "blas"):
            retrained(lambda first: threads.append(blas_threads()) or first)
            assert blas_threads() == {2}
        assert threads == [{1}]

    @pytest.mark.parametrize(
        ("before", "after", "remark"), [("", " (stopped)", " (stopped)"), (" (stopped)", "", " converged")]
    )
    def test_a_change_of_the_remark_is_reported(self, before, after, remark, retrained):
        _, _, remarks = retrained(lambda first: first._replace(remark=after), remark=before)
        assert remarks == [f"logistic on raw inputs, with dev{remark}"]


class TestFailures:
    def test_a_member_that_fails_is_left_out_and_named(self, monkeypatch):
        def fails(task):
            raise ValueError("no such luck")

        monkeypatch.setattr(neighbours_and_trees, "fit_trees", fails)
        view, vectors, truth = world(linear, [GENDER])
        guesses = AttributeInference(**SMALL).fit(view, 0)(vectors)
        assert "trees on raw inputs left out (ValueError: no such luck" in guesses.details
        assert np.mean(guesses.scores["gender"].argmax(1) == truth["gender"]) > 0.95

    @pytest.mark.parametrize("portfolio", ["logistic", "ensemble"])
    def test_a_lack_of_memory_fails_the_attack(self, portfolio, monkeypatch):
        """Otherwise its result would depend on the machine."""

        def fails(task):
            raise MemoryError

        monkeypatch.setattr(linear_families, "fit_logistic", fails)
        view, *_ = world(linear, [GENDER], sizes=(50, 20, 10))
        with pytest.raises(MemoryError):
            AttributeInference(**SMALL | {"portfolio": portfolio}).fit(view, 0)

    @pytest.mark.parametrize(("portfolio", "first"), [("mlp", "mlp on standardised"), ("ensemble", "logistic on raw")])
    def test_if_all_members_fail_the_error_has_the_reasons(self, portfolio, first, monkeypatch):
        monkeypatch.setattr(trainer, "_fit", lambda family: lambda task: 1 // 0)
        view, *_ = world(linear, [GENDER], sizes=(50, 20, 10))
        expected = f"no classifier can be trained on these vectors: {first} inputs left out"
        with pytest.raises(RequestError, match=expected):
            AttributeInference(portfolio=portfolio, **SMALL).fit(view, 0)


class TestGrowingParts:
    """Members learn from growing parts of train as long as that helps."""

    @pytest.mark.parametrize(
        ("texts", "sizes"),
        [(50, [50]), (9_999, [9_999]), (10_000, [2_500, 10_000]), (700_000, [2_734, 10_937, 43_750, 175_000, 700_000])],
    )
    def test_each_part_has_four_times_the_texts_of_the_part_before(self, texts, sizes):
        assert ensemble.parts(texts) == sizes

    def members(self, *signals, families=None):
        """Return members whose dev scores have signals of these sizes, and the truth of dev."""
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 2, 400)
        noise_of = rng.normal(size=(len(signals), 400, 2))
        scores = [signal * np.eye(2)[codes] + noise_of[i] for i, signal in enumerate(signals)]
        families = families or ["logistic"] * len(signals)
        return [
            Member(f"{family} {i}", family, Scaling(inputs), Trained(dict), 100, {"gender": array.astype(np.float32)})
            for i, (family, inputs, array) in enumerate(zip(families, get_args(Inputs), scores, strict=False))
        ], {"gender": codes}

    def learners(self, members, truth, before, left=1):
        losses = {member.key: ensemble._loss(member, truth) for member in members}
        return [member.name for member in ensemble._learners(members, truth, losses, before, left)]

    def test_after_the_first_part_the_best_of_each_family_goes_on(self):
        """Their losses may fall fast on larger parts, even if they do not count yet."""
        members, truth = self.members(6.0, 0.3, 0.0, families=["logistic", "trees", "trees"])
        assert self.learners(members, truth, {}) == ["logistic 0", "trees 1"]

    def test_a_member_with_a_flat_curve_stops(self):
        members, truth = self.members(2.0, 2.0)
        losses = [ensemble._loss(member, truth) for member in members]
        before = {members[0].key: losses[0] + ensemble.FLAT / 2, members[1].key: losses[1] + 2 * ensemble.FLAT}
        assert self.learners(members, truth, before) == ["logistic 1"]

    @pytest.mark.parametrize(("fall", "left", "goes_on"), [(0.2, 1, False), (0.2, 4, True), (0.7, 1, True)])
    def test_a_member_that_does_not_count_goes_on_if_it_can_catch_up(self, fall, left, goes_on):
        members, truth = self.members(6.0, 0.1)
        before = {member.key: ensemble._loss(member, truth) + fall for member in members}
        assert ("logistic 1" in self.learners(members, truth, before, left)) == goes_on

    @pytest.mark.parametrize("grows", [pytest.param(True, marks=pytest.mark.slow), False])
    def test_members_that_learn_late_win_in_the_end(self, grows, monkeypatch):
        """Fifty texts do not teach this exclusive or to any member; larger parts do."""
        monkeypatch.setattr(ensemble, "SMALLEST_PART", 50)
        if not grows:
            monkeypatch.setattr(ensemble, "_learners", lambda *given: [])

        def faint(codes, rng):
            return exclusive_or(codes, rng) / 2 + rng.normal(size=(len(codes["gender"]), 8))

        view, vectors, truth = world(faint, [GENDER], sizes=(3_200, 400, 1_000))
        attacker = ensemble.train_ensemble(Trainer(task_of(view)), plain_scalings(view.vectors))
        assert (np.mean(attacker(vectors)["gender"].argmax(1) == truth["gender"]) > 0.93) == grows

    def test_a_member_that_refuses_a_larger_part_keeps_what_it_knows(self, monkeypatch):
        monkeypatch.setattr(ensemble, "SMALLEST_PART", 50)
        monkeypatch.setattr(ensemble, "MIN_SHARE", 0.0)
        fit = linear_families.fit_logistic

        def refuses(task):
            if len(task.train.vectors) > 50:
                raise ValueError("too many")
            return fit(task)

        monkeypatch.setattr(linear_families, "fit_logistic", refuses)
        view, *_ = world(linear, [GENDER], sizes=(200, 100, 10))
        trainer = Trainer(task_of(view))
        attacker = ensemble.train_ensemble(trainer, plain_scalings(view.vectors))
        assert {m.texts for m in attacker.members if m.family == "logistic"} == {50}
        assert any("too many" in remark for remark in trainer.remarks)

    @pytest.mark.slow
    def test_the_name_says_who_learned_from_a_part(self, monkeypatch):
        monkeypatch.setattr(ensemble, "SMALLEST_PART", 50)
        view, *_ = world(linear, [GENDER], sizes=(800, 200, 10))
        attacker = ensemble.train_ensemble(Trainer(task_of(view)), plain_scalings(view.vectors))
        stopped = [member for member in attacker.members if member.texts < max(m.texts for m in attacker.members)]
        assert stopped
        assert all(f"{member.name} from {member.texts} texts" in attacker.name for member in stopped)

    @pytest.mark.slow
    def test_no_family_learns_from_more_texts_than_it_may(self, monkeypatch):
        monkeypatch.setattr(ensemble, "SMALLEST_PART", 50)
        monkeypatch.setattr(ensemble, "MIN_SHARE", 0.0)
        monkeypatch.setattr(ensemble, "_learners", lambda members, *given: members)
        monkeypatch.setattr(ensemble, "MOST_TEXTS", {"trees": 200, "kernel": 800})
        view, *_ = world(linear, [GENDER], sizes=(800, 100, 10))
        attacker = ensemble.train_ensemble(Trainer(task_of(view)), plain_scalings(view.vectors))
        texts = {member.family: member.texts for member in attacker.members}
        assert (texts["trees"], texts["kernel"], texts["discriminant"]) == (200, 800, 800)

    @pytest.mark.slow
    def test_a_part_of_dev_chooses_and_all_of_dev_is_scored(self, monkeypatch):
        view, vectors, _ = world(linear, [GENDER], sizes=(400, 300, 600))
        whole = AttributeInference(**SMALL).fit(view, 0)(vectors)
        monkeypatch.setattr(portfolio, "MAX_DEV", 100)
        part = AttributeInference(**SMALL).fit(view, 0)(vectors)
        assert part.on_dev["gender"].shape == whole.on_dev["gender"].shape == (300, 2)
        for guesses in (whole, part):
            assert np.mean(guesses.on_dev["gender"].argmax(1) == view.dev.values["gender"]) > 0.95
        assert not np.array_equal(part.scores["gender"], whole.scores["gender"])

    def test_cores_change_nothing(self):
        view, vectors, _ = world(linear, [GENDER], sizes=(100, 50, 80))
        answers = []
        for cores in (1, 4):
            with lent(cores):
                answers.append(AttributeInference(**SMALL).fit(view, 0)(vectors))
        assert answers[0].details == answers[1].details
        assert np.array_equal(answers[0].scores["gender"], answers[1].scores["gender"])
