"""Test the parts of the word attack by hand-worked numbers: own tables, weighed directions, and hubs."""

import numpy as np

from leakboard.attacks._words.lengths import nearest_without_hubs
from leakboard.attacks._words.own_tables import Training, averaged
from leakboard.attacks._words.weighing import weighing, within_words, word_means
from leakboard.interfaces import PublishedWords
from leakboard.models.search import nearest, normalised


class TestAverages:
    """The mean of own tables, and how far a table is from the mean of the others."""

    def test_differences_are_those_to_the_mean_of_the_others(self):
        exact = [
            np.array([[1.0, 0.0], [0.0, 2.0]]),
            np.array([[3.0, 0.0], [0.0, 2.0]]),
            np.array([[1.0, 4.0], [0.0, 2.0]]),
        ]
        published = [exact[0], exact[1], exact[2] + [[0.0, 0.0], [0.0, 1.0]]]
        trainings = [
            Training(PublishedWords(["a", "b"], e), PublishedWords(["a", "b"], p))
            for e, p in zip(exact, published, strict=True)
        ]
        own = averaged(trainings, aligned=False)
        assert np.allclose(own.vectors, [[5 / 3, 4 / 3], [0, 2]])
        # of a: (-1, -2), (2, -2) and (-1, 4); of b: none, none and (0, 1)
        assert np.allclose(own.differences, np.array([[1 + 4 + 1, 2 - 4 - 4], [2 - 4 - 4, 4 + 4 + 16 + 1]]) / 6)

    def test_words_that_one_training_lacks_are_not_named(self):
        first, second = PublishedWords(["a", "b"], np.eye(2)), PublishedWords(["c", "b"], np.eye(2))
        own = averaged([Training(first, first), Training(second, second)], aligned=False)
        assert own.words == ["b"]
        assert np.array_equal(own.vectors, [[0, 1]])


class TestWeighing:
    """Directions in which the vectors of a word differ count less."""

    def test_differences_are_made_equally_large(self):
        differences = np.diag([9.0, 1.0, 2.0])
        assert np.allclose(weighing(differences, 0), np.diag(2 / np.sqrt([9, 1, 2])), atol=1e-6)
        assert np.allclose(weighing(differences, 1.0), np.diag(2 / np.sqrt([13, 5, 6])), atol=1e-6)
        turned = np.array([[5.0, 4.0], [4.0, 5.0]])
        assert np.allclose(weighing(turned, 0) @ turned @ weighing(turned, 0), 5 * np.eye(2), atol=1e-5)
        assert np.array_equal(weighing(np.zeros((3, 3)), 0.1), np.eye(3))

    def test_differences_are_around_the_mean_of_a_word(self):
        vectors = np.array([[0, 0], [2, 4], [5, 5], [1, 0], [1, 3], [1, 3]], np.float32)
        owners = np.array([0, 0, 1, 2, 2, 2])
        # word 0: (-1, -2), (1, 2); word 1: none; word 2: (0, -2), (0, 1), (0, 1)
        assert np.allclose(word_means(vectors, owners), [[1, 2], [5, 5], [1, 2]])
        assert np.allclose(within_words(vectors, owners), np.array([[2.0, 4.0], [4.0, 14.0]]) / 3)


class TestHubs:
    """A word near to all vectors is a hub."""

    def test_a_hub_is_named_only_by_its_own_vector(self):
        """Directions are in degrees: the hub is at 25, in the middle of the vectors; the other words are outside."""
        queries, words = np.radians([10.0, 20, 30, 40, 24]), np.radians([-12.0, -6, 56, 62, 25])
        queries, words = (np.column_stack([np.cos(a), np.sin(a)]).astype(np.float32) for a in (queries, words))
        assert nearest(queries, words, 1).rows.ravel().tolist() == [4] * 5
        found = nearest_without_hubs(queries, words, 5, 100)
        similarity = queries @ words.T
        expected = similarity - similarity.mean(0) / 2  # all five vectors are among the 10 nearest
        assert found.rows.tolist() == np.argsort(-expected, axis=1).tolist()
        assert found.rows[0, 0] != 4
        assert np.allclose(found.similarity, np.take_along_axis(similarity, found.rows, axis=1), atol=1e-5)

    def test_neighbours_that_an_approximate_search_misses_are_no_correction(self):
        """A word far from all vectors found must not become the best guess of every vector."""
        rng = np.random.default_rng(0)
        queries, words = (normalised(rng.normal(size=(120, 8))) for _ in range(2))
        missed = (nearest(words, queries, 10, 50).rows < 0).any(1)
        found = nearest_without_hubs(queries, words, 10, 50)
        assert 0 < missed.mean() < 1
        assert missed[found.rows[:, 0]].mean() < missed.mean() + 0.15
        cosines = np.take_along_axis(queries @ words.T, found.rows, axis=1)
        assert np.allclose(found.similarity, np.where(found.rows >= 0, cosines, -2), atol=1e-5)
