"""The families of the portfolio: each finds the signals that it is meant for, and discriminant analysis is exact."""

import numpy as np
import pytest
import torch
from planted import AGE, GENDER, accuracies, copies, exclusive_or, linear, noise, task_of, trained, world

from leakboard.attacks._portfolio import discriminant, mlp, neighbours_and_trees
from leakboard.attacks._portfolio.vector_inputs import Rotated, Scaling
from leakboard.interfaces import Secret, Texts
from leakboard.threats.secrets import KnownTexts


class TestFamilies:
    @pytest.mark.parametrize(
        ("family", "vectors_of", "least"),
        [
            *((family, exclusive_or, 0.93) for family in ("neighbours", "kernel", "trees", "mlp")),
            *((family, copies, 1) for family in ("neighbours", "trees")),
        ],
    )
    def test_they_find_curved_signals_and_copies_of_known_texts(self, family, vectors_of, least):
        view, vectors, truth = world(vectors_of, [GENDER])
        assert accuracies(trained(family, view)(vectors), truth)["gender"] >= least

    @pytest.mark.parametrize("family", ["neighbours", "kernel", "trees"])
    def test_far_from_all_known_texts_the_scores_are_finite(self, family):
        view, vectors, _ = world(linear, [GENDER, AGE])
        scores = trained(family, view)(vectors + 1e6)
        assert all(np.isfinite(values).all() for values in scores.values())

    def test_far_neighbours_leave_the_shares_of_all_texts(self):
        view, vectors, _ = world(linear, [GENDER])
        shares = np.bincount(view.values["gender"]) / 400
        far = np.exp(trained("neighbours", view)(vectors + 1e4)["gender"])
        assert np.allclose(far, shares, atol=1e-4)

    def test_among_many_texts_the_nearest_cells_are_enough(self, monkeypatch):
        view, vectors, truth = world(copies, [GENDER])
        exact = trained("neighbours", view)(vectors)["gender"]
        monkeypatch.setattr(neighbours_and_trees, "MOST_EXACT", 100)
        monkeypatch.setattr(neighbours_and_trees, "CELLS", 16)
        monkeypatch.setattr(neighbours_and_trees, "CELLS_SEARCHED", 4)
        cells = trained("neighbours", view)(vectors)["gender"]
        assert np.mean(cells.argmax(1) == truth["gender"]) == 1
        assert not np.array_equal(cells, exact)

    def test_an_epoch_of_many_texts_is_their_next_part(self, monkeypatch):
        monkeypatch.setattr(mlp, "EPOCH", 150)
        view, vectors, truth = world(linear, [GENDER], sizes=(400, 200, 600))
        batches = mlp._epochs(task_of(view), torch.Generator().manual_seed(0))
        for _ in range(2):  # two passes over all texts
            seen = torch.cat([inputs for _ in range(3) for inputs, _ in batches()]).numpy()
            assert {*map(bytes, seen)} == {*map(bytes, view.vectors)}
            assert len(seen) == 400
        assert accuracies(trained("mlp", view)(vectors), truth)["gender"] > 0.95

    def test_trees_split_other_directions_after_a_rotation(self):
        """A difference of two coordinates is one coordinate along the principal axes."""

        def slanted(codes, rng):
            vectors = rng.normal(size=(len(codes["gender"]), 8))
            common = 20 * rng.normal(size=len(vectors))
            vectors[:, 0] += common
            vectors[:, 1] += common + 3 * codes["gender"]
            return vectors

        view, vectors, truth = world(slanted, [GENDER])
        raw = Scaling("raw")
        plain, rotated = (
            accuracies(trained("trees", view, scaling)(vectors), truth)["gender"]
            for scaling in (raw, Rotated.of(raw, view.vectors))
        )
        assert rotated > plain + 0.1

    def test_retraining_adds_a_second_forest_to_the_first(self):
        view, vectors, _ = world(noise, [GENDER], sizes=(100, 50, 20))
        task, both = task_of(view), KnownTexts.joined([view.train, view.dev])
        retrained = neighbours_and_trees.fit_trees(task).retrain(both).scorer(vectors)["gender"]
        forests = [
            neighbours_and_trees._forest(task, texts, seed)(vectors)["gender"]
            for texts, seed in ((task.train, task.seed), (both, task.seed + 1))
        ]
        assert np.allclose(np.exp(retrained), np.mean(forests, axis=0).clip(1 / (4 * neighbours_and_trees.TREES)))

    def test_leaves_are_bounded_where_secrets_have_many_values(self, monkeypatch):
        from sklearn.ensemble import ExtraTreesClassifier

        monkeypatch.setattr(neighbours_and_trees, "MAX_LEAF_NUMBERS", 2 * neighbours_and_trees.TREES * 5 * 20)
        forests = []
        fit = ExtraTreesClassifier.fit
        monkeypatch.setattr(ExtraTreesClassifier, "fit", lambda self, *given: forests.append(fit(self, *given)))
        view, *_ = world(noise, [Secret("author", tuple("abcde"), "attribute")], sizes=(200, 50, 20))
        trained("trees", view)
        assert max(tree.get_n_leaves() for tree in forests[0].estimators_) == 20


class TestDiscriminant:
    def test_with_many_texts_it_is_scikit_learns(self):
        """The penalty is small here, and leaving one text out changes little."""
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

        def faint(codes, rng):
            return 0.5 * linear(codes, rng) + rng.normal(size=(len(codes["gender"]), 8))

        view, vectors, _ = world(faint, [GENDER, AGE], sizes=(20_000, 2_000, 500))
        scores = trained("discriminant", view)(vectors)
        for name in ("gender", "age"):
            expected = LinearDiscriminantAnalysis().fit(view.vectors, view.values[name]).predict_log_proba(vectors)
            likely = np.abs(expected).max(1) < 10
            assert likely.sum() > 100
            assert np.allclose(scores[name][likely], expected[likely], rtol=0.05, atol=0.05)

    @pytest.mark.parametrize("d", [12, 60], ids=["few features", "more features than texts"])
    @pytest.mark.parametrize("penalty", [0, 3, 8])
    def test_outputs_of_known_texts_are_those_of_fits_without_them(self, d, penalty):
        """Compare with ridge regressions without each text, centre and mean of the other texts included."""
        from sklearn.linear_model import Ridge

        rng = np.random.default_rng(0)
        vectors, codes = rng.normal(size=(30, d)), np.repeat([0, 1], 15)
        vectors[:, 0] += codes
        targets = np.eye(2)[codes]
        texts = KnownTexts(Texts([""] * 30), vectors.astype(np.float32), {"gender": codes})
        analysis = discriminant._Analysis.of(lambda given: given.astype(np.float64), texts, [GENDER])
        ridge = discriminant.PENALTIES[penalty] * np.var(vectors, axis=0).mean() * 30

        def less_its_mean(rows, at):
            return Ridge(ridge, solver="svd").fit(vectors[rows], targets[rows]).predict(at) - targets[rows].mean(0)

        alone = np.stack([less_its_mean(np.arange(30) != i, vectors[[i]])[0] for i in range(30)])
        means = np.stack([alone[codes == value].mean(0) for value in (0, 1)])
        around = alone - means[codes]
        slope = (means[1] - means[0]) @ np.linalg.pinv(around.T @ around / 28)
        odds = np.diff(analysis.discriminants["gender"][penalty](analysis.project(texts.vectors)))[:, 0]
        fitted, intercept = np.polyfit(less_its_mean(np.arange(30), vectors) @ slope, odds, 1)
        assert fitted == pytest.approx(1, abs=0.02)
        assert intercept == pytest.approx(-(means.mean(0) @ slope), abs=0.02)

    def test_a_matrix_of_the_features_may_be_given_apart(self):
        view, vectors, _ = world(linear, [GENDER])
        basis = np.random.default_rng(0).normal(size=(8, 5))
        apart = discriminant._Analysis.of(lambda v: v.astype(np.float64), view.train, [GENDER], basis)
        whole = discriminant._Analysis.of(lambda v: v.astype(np.float64) @ basis, view.train, [GENDER])
        scores = [each.scorer({"gender": 3})(vectors)["gender"] for each in (apart, whole)]
        assert np.allclose(*scores, atol=1e-5)

    def test_scorers_hold_no_known_texts(self):
        view, *_ = world(linear, [GENDER])
        held = [trained("discriminant", view).trained.scorer]
        for item in held:  # the list grows
            assert not isinstance(item, discriminant._Analysis)
            held += [cell.cell_contents for cell in getattr(item, "__closure__", None) or ()]
        assert max(item.size for item in held if isinstance(item, np.ndarray)) == 8 * 8

    @pytest.mark.parametrize("shift", [0, 1_000])
    def test_inner_products_between_landmarks_are_the_kernel(self, shift):
        """They are exact far from 0, too."""
        from sklearn.metrics.pairwise import rbf_kernel

        vectors = (np.random.default_rng(0).normal(size=(40, 3)) + shift).astype(np.float32)
        kernel_at, basis, rate = discriminant.gaussian_functions(vectors, seed=1)
        landmarks = np.random.default_rng(1).choice(40, 20, replace=False)
        found = kernel_at(vectors)[landmarks] @ basis
        kernel = rbf_kernel(vectors[landmarks] - np.float64(shift), gamma=rate)
        assert np.allclose(found @ found.T, kernel, atol=1e-4)
