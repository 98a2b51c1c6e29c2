"""Audits of claims per unit of a distance: noise that suffices is not accused, half of it is."""

import math

import numpy as np
import pytest

import leakboard
from leakboard.errors import RequestError
from leakboard.privacy.protections.noise import directions


def laplace(scale):
    return lambda values, rng: values + rng.laplace(0, scale, values.shape)


def along_a_sphere(scale):
    """Add noise z with a density proportional to exp(-|z| / scale): a uniform direction and a length from Gamma."""

    def release(values, rng):
        count, dimension = values.shape
        return values + rng.gamma(dimension, scale, (count, 1)) * directions(count, dimension, rng)

    return release


def turned(epsilon):
    """Turn vectors of two dimensions by an angle whose density is proportional to exp(-epsilon |angle|)."""

    def release(values, rng):
        angles = rng.exponential(1 / epsilon, len(values)) % np.pi * rng.choice([-1, 1], len(values))
        angles += np.arctan2(values[:, 1], values[:, 0])
        return np.column_stack([np.cos(angles), np.sin(angles)])

    return release


def audit(release, **options):
    chosen = {"epsilon": 1.0, "dimension": 1, "distance": "l1", "draws": 6000, "calls": 0, **options}
    return leakboard.audit(release, **chosen)


class TestBothSides:
    @pytest.mark.slow
    def test_laplace_noise_of_scale_1_per_unit_of_l1_distance_holds(self):
        result = audit(laplace(1))
        assert result.verdict == "not refuted"
        assert result.epsilon_lower > 0.5

    @pytest.mark.slow
    def test_half_the_noise_is_refuted(self):
        result = audit(laplace(0.5))
        assert result.verdict == "violated"
        assert 1 < result.epsilon_lower <= 2

    @pytest.mark.parametrize(("scale", "verdict"), [(1, "not refuted"), (0.5, "violated")])
    def test_one_pair_shows_it_too(self, scale, verdict):
        assert audit(laplace(scale), pairs=[([0.2], [1.7])]).verdict == verdict

    @pytest.mark.slow
    @pytest.mark.parametrize("distance", ["euclidean", "angular", math.dist], ids=str)
    def test_other_distances(self, distance):
        release = turned if distance == "angular" else lambda epsilon: along_a_sphere(1 / epsilon)
        found = {
            factor: audit(release(3 * factor), epsilon=3.0, dimension=2, distance=distance, draws=60_000)
            for factor in (1, 2)
        }
        assert [result.verdict for result in found.values()] == ["not refuted", "violated"]
        assert found[2].epsilon_lower <= 6

    @pytest.mark.slow
    def test_a_claim_for_all_neighbours_is_refuted_as_before(self):
        """Noise of scale 1 on four coordinates: epsilon 1 for each unit of L1, but 4 for two corners."""
        assert audit(laplace(1), dimension=4, draws=20_000).verdict == "not refuted"
        assert audit(laplace(1), dimension=4, draws=20_000, distance=None).verdict == "violated"

    @pytest.mark.slow
    def test_rounding_before_the_noise_shows_in_near_pairs(self):
        """Two inputs 0.05 apart around 1/2 become 0 and 1, which are one unit apart."""
        result = audit(lambda values, rng: np.rint(values + 1e-9) + rng.laplace(0, 1, values.shape), draws=60_000)
        assert result.verdict == "violated"
        assert result.epsilon_lower > 5
        assert result.distance < 0.1

    @pytest.mark.slow
    def test_few_of_many_true_claims_are_accused(self):
        """At 95 % confidence 2 of 40 are expected at most; 7 or more have a probability of 0.3 %."""
        options = {"draws": 2000, "pairs": [([0.5], [0.5 + d]) for d in (0.01, 0.5, 3.0)]}
        violated = [audit(laplace(1), seed=seed, **options).verdict == "violated" for seed in range(40)]
        assert sum(violated) < 7


class TestPairs:
    def test_the_bound_of_a_pair_is_divided_by_its_distance(self):
        """The same releases, seed and event: of 2 units of distance each has half of the bound."""
        plain, metric = (audit(laplace(1), pairs=[([0.0], [2.0])], distance=distance) for distance in (None, "l1"))
        assert metric.epsilon_lower == pytest.approx(plain.epsilon_lower / 2)
        assert (metric.metric, metric.distance) == ("l1 distance", 2.0)
        assert metric.summary.startswith("epsilon for each unit of l1 distance is at least")
        assert "these two are 2 apart" in metric.summary
        assert "apart" not in plain.summary

    def test_inputs_at_distance_0_must_have_equal_releases(self):
        same = {"pairs": [([0.0], [1.0])], "distance": lambda first, second: 0.0}
        assert audit(lambda values, rng: rng.laplace(0, 1, values.shape), **same).epsilon_lower == 0
        result = audit(laplace(1), epsilon=50.0, **same)
        assert (result.verdict, result.epsilon_lower) == ("violated", math.inf)
        assert "is at least inf" in result.summary

    def test_the_plot_shows_what_the_claim_allows_at_this_distance(self):
        figure = audit(laplace(1), pairs=[([0.0], [2.0])]).plot()
        assert "least that the claimed epsilon 2 allows" in [trace.name for trace in figure.data]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": "cosine"}, "distance: 'cosine' is not allowed: euclidean, l1, angular, a function of two inputs"),
        ({"distance": 5}, "distance: 5 is not allowed"),
        ({"distance": "words"}, "distance: 'words' is not allowed"),
        ({"distance": lambda first, second: math.nan}, r"distance: it gives nan for .*; allowed: a number from 0"),
        ({"distance": "angular"}, "distance: vectors of one dimension have no angles: at least 2 dimensions"),
        (
            {"distance": "angular", "pairs": [([0.0], [1.0])]},
            r"distance: a vector of zeros has no angle \(for pair 0\)",
        ),
        ({"domain": "any"}, "domain: 'any' is not allowed: 'cube', since a distance is given"),
    ],
)
def test_what_has_no_distance_is_refused(options, message):
    with pytest.raises(RequestError, match=message):
        audit(laplace(1), **options)
