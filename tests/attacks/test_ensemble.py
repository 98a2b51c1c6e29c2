"""The ensemble of classifiers: each family finds what it is there for, and pooling weighs by what helps on dev."""

import dataclasses

import numpy as np
import pytest
from scipy import optimize
from test_attacks import AGE, GENDER, SMALL, accuracies, exclusive_or, linear, noise, world
from threadpoolctl import threadpool_info, threadpool_limits

from leakboard.attacks._portfolio import classifiers as _classifiers
from leakboard.attacks._portfolio import discriminant as _discriminant
from leakboard.attacks._portfolio import ensemble as _ensemble
from leakboard.attacks._portfolio import neighbours_and_trees as _neighbours_and_trees
from leakboard.attacks._portfolio import trainer as _trainer
from leakboard.attacks._portfolio.ensemble import pooled
from leakboard.attacks._portfolio.inputs import Rotated, Scaling
from leakboard.attacks._portfolio.members import log_loss
from leakboard.attacks._portfolio.trainer import Trainer
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.claims import ReleaseClaim
from leakboard.errors import RequestError
from leakboard.interfaces import Secret, Texts
from leakboard.threats.secrets import KnownTexts


def trained(family, view, scaling=None):
    (member,) = Trainer(view.train, view.dev, view.secrets, AttributeInference(**SMALL), 0).members(
        [(family, scaling or Scaling("raw"))]
    )
    return member


def accuracy(member, vectors, truth, name="gender"):
    return float(np.mean(member(vectors)[name].argmax(1) == truth[name]))


def copies(codes, rng):
    """Each vector is one of 40, whose secrets are a coin's; a line through them finds little."""
    places = np.random.default_rng(5).normal(size=(40, 8))
    chosen = rng.integers(0, 40, len(codes["gender"]))
    codes["gender"][:] = np.random.default_rng(6).integers(0, 2, 40)[chosen]
    return places[chosen]


class TestFamilies:
    @pytest.mark.parametrize("family", ["neighbours", "kernel", "trees", "mlp"])
    def test_a_curved_signal(self, family):
        view, vectors, truth = world(exclusive_or, [GENDER])
        assert accuracy(trained(family, view), vectors, truth) > 0.93

    @pytest.mark.parametrize("family", ["neighbours", "trees"])
    def test_copies_of_known_texts(self, family):
        view, vectors, truth = world(copies, [GENDER])
        assert accuracy(trained(family, view), vectors, truth) == 1

    @pytest.mark.parametrize("family", ["neighbours", "kernel", "trees"])
    def test_far_from_all_known_texts_the_scores_are_finite(self, family):
        view, vectors, _ = world(linear, [GENDER, AGE])
        scores = trained(family, view)(vectors + 1e6)
        assert all(np.isfinite(values).all() for values in scores.values())

    def test_neighbours_that_are_far_leave_the_shares_of_all_texts(self):
        view, vectors, _ = world(linear, [GENDER])
        shares = np.bincount(view.values["gender"]) / 400
        far = np.exp(trained("neighbours", view)(vectors + 1e4)["gender"])
        assert np.allclose(far, shares, atol=1e-4)

    def test_trees_see_other_coordinates_after_a_rotation(self):
        """A difference of two coordinates is one coordinate along the principal axes."""

        def slanted(codes, rng):
            vectors = rng.normal(size=(len(codes["gender"]), 8))
            common = 20 * rng.normal(size=len(vectors))
            vectors[:, 0] += common
            vectors[:, 1] += common + 3 * codes["gender"]
            return vectors

        view, vectors, truth = world(slanted, [GENDER])
        plain, rotated = (trained("trees", view, s) for s in (Scaling("raw"), Rotated.of(Scaling("raw"), view.vectors)))
        assert accuracy(rotated, vectors, truth) > accuracy(plain, vectors, truth) + 0.1

    def test_leaves_are_bounded_where_secrets_have_many_values(self, monkeypatch):
        monkeypatch.setattr(_neighbours_and_trees, "VALUES_IN_LEAVES", 2 * _neighbours_and_trees.TREES * 5 * 20)
        grown = []
        from sklearn.ensemble import ExtraTreesClassifier

        fit = ExtraTreesClassifier.fit
        monkeypatch.setattr(ExtraTreesClassifier, "fit", lambda self, *given: grown.append(fit(self, *given)) or self)
        secret = Secret("author", tuple("abcde"), "attribute")
        view, vectors, _ = world(noise, [secret], sizes=(200, 50, 20))
        trained("trees", view)(vectors)
        assert max(tree.get_n_leaves() for tree in grown[0].estimators_) == 20


class TestDiscriminant:
    def test_of_many_texts_it_is_scikit_learns(self):
        """Without a penalty to speak of, and where leaving one text out changes little."""
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

        def faint(codes, rng):
            return 0.5 * linear(codes, rng) + rng.normal(size=(len(codes["gender"]), 8))

        view, vectors, _ = world(faint, [GENDER, AGE], sizes=(20_000, 2_000, 500))
        scores = trained("discriminant", view)(vectors)
        for name in ("gender", "age"):
            theirs = LinearDiscriminantAnalysis().fit(view.vectors, view.values[name]).predict_log_proba(vectors)
            likely = np.abs(theirs).max(1) < 10
            assert likely.sum() > 100
            assert np.allclose(scores[name][likely], theirs[likely], rtol=0.05, atol=0.05)

    @pytest.mark.parametrize("d", [12, 60], ids=["few features", "more features than texts"])
    @pytest.mark.parametrize("penalty", [0, 3, 8])
    def test_known_texts_are_fitted_as_if_they_were_not_known(self, d, penalty):
        """Against fits of ridge regression without each of them, centre and mean of the others included."""
        from sklearn.linear_model import Ridge

        rng = np.random.default_rng(0)
        vectors, codes = rng.normal(size=(30, d)), np.repeat([0, 1], 15)
        vectors[:, 0] += codes
        secret, targets = Secret("gender", ("f", "m"), "attribute"), np.eye(2)[codes]
        texts = KnownTexts(Texts([""] * 30), vectors.astype(np.float32), {"gender": codes})
        analysis = _discriminant._Analysis.of(lambda given: given.astype(np.float64), texts)
        ridge = _discriminant.PENALTIES[penalty] * np.var(vectors, axis=0).mean() * 30

        def less_its_mean(rows, at):
            return Ridge(ridge, solver="svd").fit(vectors[rows], targets[rows]).predict(at) - targets[rows].mean(0)

        alone = np.stack([less_its_mean(np.arange(30) != i, vectors[[i]])[0] for i in range(30)])
        means = np.stack([alone[codes == value].mean(0) for value in (0, 1)])
        around = alone - means[codes]
        slope = (means[1] - means[0]) @ np.linalg.pinv(around.T @ around / 28)
        odds = np.diff(analysis.discriminant(secret, penalty)(analysis.projected(texts.vectors)))[:, 0]
        fitted, constant = np.polyfit(less_its_mean(np.arange(30), vectors) @ slope, odds, 1)
        assert fitted == pytest.approx(1, abs=0.02)
        assert constant == pytest.approx(-(means.mean(0) @ slope), abs=0.02)

    def test_scorers_hold_no_known_texts(self):
        view, *_ = world(linear, [GENDER])
        held = [trained("discriminant", view).trained.scores]
        for thing in held:  # it grows
            assert not isinstance(thing, _discriminant._Analysis)
            held += [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
        assert max(thing.size for thing in held if isinstance(thing, np.ndarray)) == 8 * 8

    @pytest.mark.parametrize("shift", [0, 1_000])
    def test_the_kernel_machine_does_what_lines_do_in_the_kernels_space(self, shift):
        """Between landmarks inner products of its functions are the kernel itself, also far from 0."""
        from sklearn.metrics.pairwise import rbf_kernel

        vectors = (np.random.default_rng(0).normal(size=(40, 3)) + shift).astype(np.float32)
        functions, rate = _discriminant.gaussian_functions(vectors, seed=1)
        landmarks = np.random.default_rng(1).choice(40, 20, replace=False)
        found = functions(vectors)[landmarks]
        kernel = rbf_kernel(vectors[landmarks] - np.float64(shift), gamma=rate)
        assert np.allclose(found @ found.T, kernel, atol=1e-4)


class TestPool:
    def logits(self, seed=0, n=300, values=3):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, values, n)
        return truth, [2.0 * np.eye(values)[truth] * k + rng.normal(size=(n, values)) for k in (1.0, 0.5, 0.0)]

    def test_a_member_that_knows_nothing_counts_for_nothing(self):
        truth, (good, fair, idle) = self.logits()
        members = [good, fair, idle]
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

    def test_against_a_general_minimiser(self):
        """One member: least log-loss with half the square of the weight's distance from its prior added, by Brent."""
        truth, (good, *_) = self.logits(values=2)
        odds = good - good.mean(1, keepdims=True)

        def logs(weight, scores):
            return weight * scores - np.log(np.exp(weight * scores).sum(1, keepdims=True))

        def loss(weight, scores, prior):
            return -logs(weight, scores)[np.arange(300), truth].sum() + (weight - prior) ** 2 / 2

        unit = odds / odds.std()
        calibrated = optimize.minimize_scalar(loss, args=(unit, 0.0), tol=1e-10).x * unit
        second = optimize.minimize_scalar(loss, args=(calibrated, 1.0), tol=1e-10).x
        assert np.allclose(pooled([good], truth)([good]), logs(second, calibrated), atol=1e-3)

    def test_of_a_large_dev_a_part_is_enough(self, monkeypatch):
        truth, members = self.logits(n=3000)
        whole = pooled(members, truth)
        monkeypatch.setattr(_ensemble, "NUMBERS", 3 * 1000 * 3)
        part = pooled(members, truth)
        assert np.array_equal(part.weights, pooled([member[::3] for member in members], truth[::3]).weights)
        assert np.allclose(part.shares, whole.shares, atol=0.1)

    @pytest.mark.parametrize(("strength", "spread"), [(_ensemble.STRENGTH, True), (0.0, False)])
    def test_a_small_dev_spreads_the_weights_over_members_that_it_cannot_tell_apart(
        self, strength, spread, monkeypatch
    ):
        monkeypatch.setattr(_ensemble, "STRENGTH", strength)
        rng = np.random.default_rng(0)
        truth, (common, *_) = self.logits(n=60)
        shares = pooled([common + 0.05 * rng.standard_normal(common.shape) for _ in range(10)], truth).shares
        assert (1 / np.sum(shares**2) > 5) == spread  # as many equal shares have the same sum of squares


class TestEnsemble:
    def test_it_is_no_worse_than_each_family_that_finds_something(self):
        for vectors_of in (linear, exclusive_or, copies):
            view, vectors, truth = world(vectors_of, [GENDER])
            single = max(accuracy(trained(f, view), vectors, truth) for f in ("logistic", "mlp", "neighbours", "trees"))
            assert accuracies(AttributeInference(**SMALL), view, vectors, truth)["gender"] > single - 0.02

    def test_independent_vectors_give_nothing_away(self):
        view, vectors, truth = world(noise, [GENDER], sizes=(400, 200, 4000))
        found = accuracies(AttributeInference(**SMALL), view, vectors, truth)["gender"]
        assert abs(found - 0.5) < 4 * 0.5 / np.sqrt(4000)

    def test_members_that_count_learn_from_dev_too(self):
        """Copies of dev's texts are found; the score on dev is of members that did not see them."""
        view, vectors, _ = world(noise, [GENDER], sizes=(200, 200, 10))
        attack = AttributeInference(**SMALL).fit(view, 0)
        again = attack(view.dev.vectors).scores["gender"].argmax(1)
        assert np.mean(again == view.dev.values["gender"]) > 0.7
        before = attack(vectors).on_dev["gender"].argmax(1)
        assert np.mean(before == view.dev.values["gender"]) < 0.7

    @pytest.mark.parametrize("reason", ["no such luck", "its scores are not finite"])
    def test_a_member_that_fails_with_dev_stays_as_it_was(self, reason):
        view, *_ = world(linear, [GENDER])
        member = trained("trees", view)

        def again(texts):
            if "luck" in reason:
                raise ValueError(reason)
            return member.trained._replace(scores=lambda vectors: {"gender": np.full((len(vectors), 2), np.nan)})

        trainer = Trainer(view.train, view.dev, view.secrets, AttributeInference(**SMALL), 0)
        failing = dataclasses.replace(member, trained=member.trained._replace(again=again))
        (same,) = trainer.again([failing])
        assert same is failing
        assert trainer.remarks == [f"trees on raw inputs learned from train alone (ValueError: {reason})"]

    def test_blas_has_one_thread_while_members_learn(self):
        view, *_ = world(linear, [GENDER])
        member, threads = trained("logistic", view), []

        def again(texts):
            threads.append({p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"})
            return member.trained

        trainer = Trainer(view.train, view.dev, view.secrets, AttributeInference(**SMALL), 0)
        with threadpool_limits(2, "blas"):
            trainer.again([dataclasses.replace(member, trained=member.trained._replace(again=again))])
            assert {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"} == {2}
        assert threads == [{1}]

    def test_whether_the_fit_with_dev_converged_is_told(self):
        view, *_ = world(linear, [GENDER])
        member = trained("logistic", view)
        stopped = member.trained._replace(again=lambda texts: member.trained._replace(remark=" (stopped early)"))
        trainer = Trainer(view.train, view.dev, view.secrets, AttributeInference(**SMALL), 0)
        trainer.again([dataclasses.replace(member, trained=stopped)])
        assert trainer.remarks == ["logistic on raw inputs, with dev (stopped early)"]

    def test_a_member_that_fails_is_left_out_and_named(self, monkeypatch):
        def fails(*given):
            raise ValueError("no such luck")

        monkeypatch.setattr(_neighbours_and_trees, "fit_trees", fails)
        view, vectors, truth = world(linear, [GENDER])
        guesses = AttributeInference(**SMALL).fit(view, 0)(vectors)
        assert "trees on raw inputs left out (ValueError: no such luck" in guesses.details
        assert np.mean(guesses.scores["gender"].argmax(1) == truth["gender"]) > 0.95

    @pytest.mark.parametrize("portfolio", ["logistic", "ensemble"])
    def test_a_lack_of_memory_fails_the_attack(self, portfolio, monkeypatch):
        """Otherwise its result would depend on the machine."""

        def fails(*given):
            raise MemoryError

        monkeypatch.setattr(_classifiers, "fit_logistic", fails)
        view, *_ = world(linear, [GENDER], sizes=(50, 20, 10))
        with pytest.raises(MemoryError):
            AttributeInference(**SMALL | {"portfolio": portfolio}).fit(view, 0)

    def test_where_all_fail_that_is_said(self, monkeypatch):
        monkeypatch.setattr(_trainer, "_fit", lambda family: lambda *given: 1 // 0)
        view, *_ = world(linear, [GENDER], sizes=(50, 20, 10))
        for portfolio, first in (("mlp", "mlp"), ("ensemble", "logistic")):
            expected = f"no classifier can be trained on these vectors: {first} on raw inputs left out"
            with pytest.raises(RequestError, match=expected):
                AttributeInference(portfolio=portfolio, **SMALL).fit(view, 0)


def one_class(codes, rng):
    codes["gender"][:] = 1
    return noise(codes, rng)


def many(codes, rng):
    return np.eye(1000)[codes["author"]][:, :50] + 0.01 * rng.normal(size=(len(codes["author"]), 50))


@pytest.mark.parametrize(
    ("vectors_of", "secret", "sizes"),
    [
        pytest.param(one_class, GENDER, (50, 20, 10), id="one class"),
        pytest.param(lambda codes, rng: np.ones((len(codes["gender"]), 4)), GENDER, (50, 20, 10), id="constant"),
        pytest.param(linear, GENDER, (10, 5, 20), id="ten texts"),
        pytest.param(linear, GENDER, (10, 1, 20), id="one dev text"),
        pytest.param(linear, GENDER, (1, 1, 20), id="one text"),
        pytest.param(
            many, Secret("author", tuple(map(str, range(1000))), "attribute"), (200, 40, 20), id="a thousand values"
        ),
    ],
)
def test_odd_secrets_and_vectors_give_a_result(vectors_of, secret, sizes):
    view, vectors, _ = world(vectors_of, [secret], sizes=sizes)
    guesses = AttributeInference(**SMALL).fit(view, 0)(vectors)
    scores = guesses.scores[secret.name]
    assert scores.shape == (sizes[2], len(secret.values))
    assert np.isfinite(scores).all()
    if vectors_of is one_class:
        assert (scores.argmax(1) == 1).all()


class Same:
    """An oracle whose publications have no noise."""

    def __init__(self, texts):
        self.texts = texts

    def encode(self, texts):
        return self.texts.vectors.copy()


@pytest.mark.parametrize("sizes", [(50, 20, 10), (1, 1, 20)])
def test_vectors_whose_noise_cannot_be_told_are_attacked_as_they_are(sizes):
    view, vectors, _ = world(lambda codes, rng: np.ones((len(codes["gender"]), 4)), [GENDER], sizes=sizes)
    view = dataclasses.replace(
        view, claim=ReleaseClaim(1.0, 0.0, "document", "laplace", "1", 1.0), oracle=Same(view.train)
    )
    guesses = AttributeInference(**SMALL).fit(view, 0)(vectors)
    assert np.isfinite(guesses.scores["gender"]).all()
    assert "shrunken inputs left out" in guesses.details
    for portfolio in ("ensemble", "mlp"):
        with pytest.raises(RequestError, match="can be trained on these vectors: shrunken inputs left out"):
            AttributeInference(portfolio=portfolio, inputs="shrunken", **SMALL).fit(view, 0)
