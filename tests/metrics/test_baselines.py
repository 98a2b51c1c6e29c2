"""Test the baselines: guesses from a constant, the task label, the text, and exact posteriors."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from leakboard.metrics import baselines
from leakboard.metrics.measures import micro_f1


class TestBestConstant:
    """The best guess that is the same for every text."""

    @pytest.mark.parametrize("seed", range(30))
    def test_of_entities_against_all_subsets(self, seed):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(1, 7))
        train = (rng.random((25, k)) < rng.random(k) ** 2).astype(np.int64)
        best = baselines.best_constant(train, "entity")
        scores = [
            f1_score(train.ravel(), np.tile(guess, len(train)), zero_division=0)
            for guess in itertools.product([0, 1], repeat=k)
        ]
        assert micro_f1(np.broadcast_to(best, train.shape), train).value == pytest.approx(max(scores), abs=1e-12)

    def test_by_hand(self):
        train = np.array([[0, 2], [1, 2], [1, 0]])
        assert baselines.best_constant(train, "attribute").tolist() == [1, 2]  # the majority of each attribute
        assert set(baselines.best_constant(np.zeros((4, 3), np.int64), "entity")) <= {0, 1}

    def test_the_papers_constants_on_the_real_test_split(self, real_data, monkeypatch):
        from leakboard.datasets.ag import Ag

        if not (real_data / "ag").is_dir():
            pytest.skip(f"no AG data in {real_data}")
        monkeypatch.setenv("LEAKBOARD_DATA", str(real_data))
        corpus = Ag(duplicates="keep").load()
        train, test = (baselines.truth(corpus, split, corpus.secrets) for split in ("train", "test"))

        def score(guess, truth):
            return micro_f1(np.broadcast_to(guess, truth.shape), truth).value

        first, all_present = np.array([1, 0, 0, 0, 0]), np.ones(5, np.int64)
        assert score(first, test) == pytest.approx(0.5066, abs=5e-5)
        assert score(all_present, test) == pytest.approx(0.3808, abs=5e-5)
        # On train, guessing the two most frequent entities beats the papers' constant.
        best = baselines.best_constant(train, "entity")
        assert best.tolist() == [1, 1, 0, 0, 0]
        assert score(best, train) > score(first, train) > score(all_present, train)


class TestGivenLabel:
    """Guesses from the task label alone."""

    def test_by_hand(self):
        labels = np.array([0, 0, 0, 1, 1, 1])
        secret = np.array([[0], [0], [1], [2], [2], [0]])
        guesses = baselines.from_label(secret, labels, np.array([1, 0, 1]), "attribute")
        assert guesses.tolist() == [[2], [0], [2]]
        present, labels = np.array([[1, 0], [1, 0], [0, 1], [0, 1]]), np.array([0, 0, 1, 1])
        assert baselines.from_label(present, labels, np.array([0, 1]), "entity").tolist() == [[1, 0], [0, 1]]

    def test_entities_have_the_best_set_of_labels_and_entities_together(self):
        """The best of each label by itself scores less: F1 of parts does not add up."""
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 3, 300)
        chances = np.array([[0.6, 0.1, 0.3], [0.2, 0.15, 0.05], [0.45, 0.5, 0.02]])
        present = (rng.random((300, 3)) < chances[labels]).astype(np.int64)
        guessed = baselines.from_label(present, labels, labels, "entity")

        def f1(sets):
            return micro_f1(np.array(sets)[labels], present).value

        every = itertools.product(itertools.product((0, 1), repeat=3), repeat=3)
        apart = [baselines.best_constant(present[labels == y], "entity") for y in range(3)]
        assert micro_f1(guessed, present).value == pytest.approx(max(map(f1, every)))
        assert micro_f1(guessed, present).value > f1(apart) + 0.005

    def test_a_label_missing_in_train_gets_the_overall_best(self):
        secret = np.array([[0], [0], [1]])
        assert baselines.from_label(secret, np.array([0, 0, 1]), np.array([7]), "attribute").tolist() == [[0]]


class TestFromText:
    """Classifiers on the text itself."""

    @pytest.mark.parametrize("kind", ["attribute", "entity"])
    def test_planted_words_are_learned_and_noise_is_not(self, make_corpus, kind):
        rng = np.random.default_rng(0)
        words = np.array([f"w{i}" for i in range(40)])
        splits = {}
        for split, n in (("train", 400), ("dev", 100), ("test", 400)):
            planted, noise = rng.integers(0, 2, (2, n))
            texts = [" ".join([*rng.choice(words, 8), "plum" if p else "pear"]) for p in planted]
            splits[split] = {"text": texts, "planted": planted, "noise": noise}
        values = ("absent", "present")
        corpus = make_corpus(splits, [("planted", values, kind), ("noise", values, kind)])
        guesses = baselines.from_text(corpus, corpus.secrets, seed=0)
        truth = baselines.truth(corpus, "test", corpus.secrets)
        assert accuracy_score(truth[:, 0], guesses[:, 0]) == 1
        assert abs(accuracy_score(truth[:, 1], guesses[:, 1]) - 0.5) < 4 * 0.5 / np.sqrt(400)

    def test_one_class_and_no_repeated_word(self, make_corpus):
        splits = {name: {"text": [f"{name}{i}" for i in range(3)], "s": [1, 1, 1]} for name in ("train", "dev", "test")}
        corpus = make_corpus(splits, [("s", ("a", "b"), "attribute")])
        assert baselines.from_text(corpus, corpus.secrets, seed=0).tolist() == [[1], [1], [1]]


class TestBayes:
    """The best expected score, given exact posteriors."""

    def test_attributes_against_brute_force(self):
        rng = np.random.default_rng(0)
        posteriors = [rng.dirichlet(np.ones(3), 4), rng.dirichlet(np.ones(2), 4)]
        best = np.mean(
            [
                max(
                    np.mean([p[i, code] for i, code in enumerate(guess)])
                    for guess in itertools.product(range(p.shape[1]), repeat=4)
                )
                for p in posteriors
            ]
        )
        assert baselines.bayes_score(posteriors, "attribute") == pytest.approx(best)

    @pytest.mark.parametrize("seed", range(10))
    def test_entities_against_all_guesses(self, seed):
        present = np.random.default_rng(seed).random((2, 4))
        flat = present.ravel()
        best = max(
            2 * (np.array(guess) @ flat) / (sum(guess) + flat.sum())
            for guess in itertools.product([0, 1], repeat=8)
            if sum(guess)
        )
        posteriors = [np.stack([1 - p, p], axis=1) for p in present]
        assert baselines.bayes_score(posteriors, "entity") == pytest.approx(best)

    def test_certainty_is_1_and_ignorance_is_the_majority(self):
        sure = np.eye(2)[[0, 1, 1, 0]]
        assert baselines.bayes_score([sure], "attribute") == baselines.bayes_score([sure], "entity") == 1
        assert baselines.bayes_score([np.tile([0.3, 0.7], (5, 1))], "attribute") == pytest.approx(0.7)
