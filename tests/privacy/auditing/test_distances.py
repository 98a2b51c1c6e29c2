"""Distances by hand, pairs near and far, and both sides of metric privacy."""

import math

import numpy as np
import pytest

from leakboard.privacy.auditing.distances import DISTANCES, angle, differing_words, measured, pairs_at_distances
from leakboard.privacy.auditing.events import Pair


@pytest.mark.parametrize(
    ("name", "first", "second", "expected"),
    [
        ("euclidean", [0, 0], [3, 4], 5),
        ("l1", [0, 0], [3, -4], 7),
        ("angular", [2, 0], [0, 5], math.pi / 2),
        ("angular", [1, 1], [3, 3], 0),
        ("angular", [1, 0], [-1, 0], math.pi),
        ("angular", [1, 0], [1, 1e-9], 1e-9),
    ],
)
def test_distances_by_hand(name, first, second, expected):
    assert DISTANCES[name](np.array(first), np.array(second)) == pytest.approx(expected, rel=1e-12)


def test_a_vector_of_zeros_has_no_angle():
    with pytest.raises(ValueError, match="a vector of zeros has no angle"):
        angle(np.zeros(2), np.ones(2))


@pytest.mark.parametrize(("second", "expected"), [("a b c", 0), ("a x c", 1), ("a b", 1), ("b c", 3), ("", 3)])
def test_differing_words(second, expected):
    assert differing_words("a b c", second) == expected


@pytest.mark.parametrize("distance", [math.nan, -1, math.inf, "far", None])
def test_a_distance_is_a_number(distance):
    with pytest.raises(ValueError, match=f"it gives {distance!r} for pair 0; allowed: a number from 0"):
        measured(Pair("pair 0", np.zeros(1), np.ones(1)), lambda first, second: distance)


class TestPairs:
    @pytest.mark.parametrize(
        "rounded",
        [
            lambda values: np.round(values, 1),
            lambda values: np.floor(10 * values) / 10,
            lambda values: np.round(127 * values) / 127,
            lambda values: values > 0.5,
        ],
        ids=["to one decimal", "down to one decimal", "int8", "a threshold"],
    )
    @pytest.mark.parametrize("dimension", [8, 64])
    def test_usual_rounding_moves_a_near_pair_apart(self, dimension, rounded):
        rng = np.random.default_rng(0)
        pairs = [pair for part in pairs_at_distances(dimension, 10.0, DISTANCES["l1"], rng) for pair in part]
        ratios = [DISTANCES["l1"](*map(rounded, pair.inputs)) / pair.distance for pair in pairs if pair.distance < 0.1]
        assert max(ratios) > 1.5

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("name", DISTANCES)
    @pytest.mark.parametrize(("dimension", "epsilon"), [(2, 10.0), (64, 3.0), (384, 0.5)])
    def test_they_are_near_and_far_and_in_the_cube(self, name, dimension, epsilon, dtype):
        rng = np.random.default_rng(0)
        learned, further = pairs_at_distances(dimension, epsilon, DISTANCES[name], rng, dtype)
        for pair in learned + further:
            assert pair.first.dtype == pair.second.dtype == dtype
            assert all(((values >= 0) & (values <= 1)).all() for values in pair.inputs)
            assert pair.distance == pytest.approx(DISTANCES[name](*pair.inputs))
            if name == "angular":
                assert [np.linalg.norm(values) for values in pair.inputs] == pytest.approx([1, 1])
        losses = [epsilon * pair.distance for pair in learned + further]
        assert min(losses) < 0.1
        largest = epsilon * {"euclidean": math.sqrt(dimension), "l1": dimension, "angular": math.pi / 2}[name]
        assert max(losses) == pytest.approx(largest, rel=1e-6)
        assert any(0.5 < epsilon * pair.distance < 2 for pair in learned)

    @pytest.mark.parametrize("epsilon", [0.0, 1e6])
    def test_extreme_claims_have_pairs_too(self, epsilon):
        learned, further = pairs_at_distances(1, epsilon, DISTANCES["l1"], np.random.default_rng(0))
        assert all(pair.distance > 0 and (pair.first != pair.second).all() for pair in learned + further)

    def test_one_dimension_has_no_angles(self):
        with pytest.raises(ValueError, match="vectors of one dimension have no angles: at least 2 dimensions"):
            pairs_at_distances(1, 1.0, angle, np.random.default_rng(0))


def test_a_bound_is_divided_by_the_distance():
    """Equal inputs, by the distance, must have equal releases: any bound above 0 refutes any epsilon."""
    pairs = [Pair("", np.zeros(1), np.ones(1), distance) for distance in (2.0, 0.0)]
    assert [pair.per_unit(3.0) for pair in pairs] == [1.5, math.inf]
    assert [pair.per_unit(0.0) for pair in pairs] == [0, 0]
    assert pairs[0].swapped().distance == 2
