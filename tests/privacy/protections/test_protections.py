"""Protections of stored vectors: the law of each, on both sides, and one key for all calls."""

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import integrate, stats

from leakboard.errors import RequestError
from leakboard.privacy.protections.compression import Binary, Int8, ProductQuantisation, Truncation
from leakboard.privacy.protections.noise import GaussianNoise, MetricLaplace, Purkayastha, purkayastha_angles
from leakboard.privacy.protections.none import NoProtection
from leakboard.privacy.protections.protection import unit_length
from leakboard.privacy.protections.scale_and_perturb import SCALES, ScaleAndPerturb
from leakboard.privacy.protections.secret_maps import Permutation, Rotation, SecretLinear, Watermark, orthogonal
from leakboard.privacy.protections.whitening import Whitening

DIMENSION = 12
STORED = unit_length(np.random.default_rng(0).normal(size=(300, DIMENSION)) + 0.3)
RECIPES = [
    NoProtection(),
    Rotation(),
    Permutation(),
    Watermark(entries=4),
    SecretLinear(condition=3.0),
    ScaleAndPerturb(beta=0.2),
    GaussianNoise(sigma=0.02),
    MetricLaplace(epsilon=300.0),
    Purkayastha(epsilon=300.0),
    Int8(),
    Binary(),
    ProductQuantisation(subvectors=4),
    Truncation(dimensions=10),
    Whitening(),
]
KEYED = (Rotation, Permutation, Watermark, SecretLinear, ScaleAndPerturb)
every = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)


def rng(seed=0):
    return np.random.default_rng(seed)


def protected(recipe, vectors=STORED, seed=0):
    return recipe.fit(STORED, rng(seed)).protect(vectors, rng(1))


def cosines(left, right):
    return unit_length(left) @ unit_length(right).T


def refusal(recipe, vectors=STORED):
    with pytest.raises(RequestError) as caught:
        recipe.fit(vectors, rng())
    return str(caught.value)


class TestEveryProtection:
    @every
    def test_vectors_are_float32_whatever_their_length(self, recipe):
        fitted = recipe.fit(STORED, rng())
        for publish in (fitted.protect, fitted.protect_query):
            vectors = publish(STORED[:50], rng(1))
            assert vectors.dtype == np.float32
            assert len(vectors) == 50
            assert np.isfinite(vectors).all()
            assert np.allclose(vectors, publish(7 * STORED[:50].astype(np.float64), rng(1)), rtol=1e-4, atol=1e-5)

    @every
    def test_a_query_finds_its_own_vector_with_the_same_key(self, recipe):
        """With another key it does not, if there is a key."""
        fitted, other = recipe.fit(STORED, rng()), recipe.fit(STORED, rng(9))
        documents, queries = fitted.protect(STORED, rng(1)), fitted.protect_query(STORED, rng(2))
        found = (cosines(queries, documents).argmax(1) == np.arange(300)).mean()
        assert found > (0.3 if isinstance(recipe, Binary) else 0.9)
        mistaken = (cosines(other.protect_query(STORED, rng(2)), documents).argmax(1) == np.arange(300)).mean()
        assert (mistaken < found / 2) == isinstance(recipe, KEYED)

    @every
    def test_it_is_saved_with_its_key(self, recipe, tmp_path):
        fitted = recipe.fit(STORED, rng())
        fitted.save(tmp_path)
        loaded = recipe.load(tmp_path)
        assert type(loaded) is type(fitted)
        assert np.array_equal(loaded.protect(STORED, rng(1)), fitted.protect(STORED, rng(1)))

    @every
    def test_zeros_are_finite_and_its_inputs_stay(self, recipe):
        vectors = STORED.copy()
        vectors[3] = 0
        before = vectors.copy()
        fitted = recipe.fit(vectors, rng())
        assert np.isfinite(fitted.protect(vectors, rng(1))).all()
        assert np.array_equal(vectors, before)

    @every
    def test_a_store_of_one_vector_is_refused(self, recipe):
        assert refusal(recipe, STORED[:1]) == "protection: a store of 1 vectors is not allowed: at least 2"


class TestSecretMaps:
    @pytest.mark.parametrize("recipe", [Rotation(), Permutation(), SecretLinear(condition=1.0)])
    def test_rotations_keep_all_dot_products(self, recipe):
        assert np.abs(protected(recipe) @ protected(recipe).T - STORED @ STORED.T).max() < 1e-6
        assert np.abs(protected(recipe) - STORED).max() > 0.1

    def test_other_maps_do_not(self):
        for recipe in (SecretLinear(condition=3.0), Watermark(entries=4)):
            assert np.abs(protected(recipe) @ protected(recipe).T - STORED @ STORED.T).max() > 0.05

    def test_a_permutation_keeps_the_multiset_of_coordinates_and_a_rotation_does_not(self):
        assert np.allclose(np.sort(protected(Permutation()), axis=1), np.sort(STORED, axis=1), atol=1e-6)
        assert np.abs(np.sort(protected(Rotation()), axis=1) - np.sort(STORED, axis=1)).max() > 0.1

    def test_rotations_are_haars(self):
        """The first entry squared is Beta(1/2, (d-1)/2), and its sign is fair; without signs of R it is never."""
        first = np.array([orthogonal(3, rng(seed))[0, 0] for seed in range(500)])
        assert stats.kstest(first**2, stats.beta(0.5, 1).cdf).pvalue > 0.01
        assert stats.binomtest(int((first > 0).sum()), 500).pvalue > 0.01
        unsigned = [np.linalg.qr(rng(seed).normal(size=(3, 3)))[0][0, 0] for seed in range(200)]
        assert min(np.mean(np.array(unsigned) > 0), np.mean(np.array(unsigned) < 0)) < 0.01

    def test_the_watermark_is_circulant_and_its_rows_sum_to_one(self):
        matrix = Watermark(entries=4).fit(STORED, rng()).matrix.T
        assert np.allclose(matrix.sum(1), 1)
        assert ((matrix > 0).sum(1) == 4).all()
        assert (matrix >= 0).all()
        assert all(np.array_equal(matrix[i], np.roll(matrix[0], i)) for i in range(DIMENSION))
        assert np.linalg.matrix_rank(matrix) == DIMENSION
        assert np.allclose(np.linalg.norm(protected(Watermark(entries=4)), axis=1), 1)

    def test_the_watermark_is_the_product_of_a_row_with_the_vector(self):
        """One entry a row is a shift: the first row picks a coordinate, the next row the coordinate after it."""
        result = protected(Watermark(entries=1))
        shifts = [shift for shift in range(DIMENSION) if np.allclose(result, np.roll(STORED, shift, axis=1))]
        assert len(shifts) == 1

    @pytest.mark.parametrize("condition", [1.0, 10.0, 1000.0])
    def test_the_condition_number_is_as_stated(self, condition):
        matrix = SecretLinear(condition=condition).fit(STORED, rng()).matrix
        assert np.linalg.cond(matrix) == pytest.approx(condition)


class TestNoise:
    def test_gaussian_noise_has_its_deviation_on_each_coordinate(self):
        noise = protected(GaussianNoise(sigma=0.3)) - STORED
        assert stats.kstest(noise.ravel() / 0.3, "norm").pvalue > 0.01
        assert stats.kstest(noise.ravel() / 0.33, "norm").pvalue < 0.01

    def test_metric_laplace_noise_has_gamma_lengths(self):
        noise = protected(MetricLaplace(epsilon=5.0)) - STORED
        lengths = np.linalg.norm(noise, axis=1)
        assert stats.kstest(lengths, stats.gamma(DIMENSION, scale=1 / 5).cdf).pvalue > 0.01
        assert stats.kstest(lengths, stats.gamma(DIMENSION - 1, scale=1 / 5).cdf).pvalue < 0.01
        assert is_uniform(noise)

    def test_perturbations_are_uniform_in_the_ball(self):
        fitted = ScaleAndPerturb(beta=2.0).fit(STORED, rng())
        noise = fitted.protect(STORED, rng(1)) / fitted.scale - STORED[:, fitted.order]
        radii = np.linalg.norm(noise, axis=1)
        assert radii.max() <= 0.5 + 1e-5
        assert stats.kstest((radii / 0.5) ** DIMENSION, "uniform").pvalue > 0.01
        assert stats.kstest(radii / 0.5, "uniform").pvalue < 0.01
        assert is_uniform(noise)
        assert 1 <= fitted.scale < SCALES

    def test_scale_and_perturb_keeps_distances_that_differ_by_more_than_beta(self):
        """The scheme's theorem; distances that differ less may change their order."""
        fitted = ScaleAndPerturb(beta=0.4).fit(STORED, rng())
        documents, queries = fitted.protect(STORED, rng(1)), fitted.protect_query(STORED[:20], rng(2))
        before, after = (
            np.linalg.norm(q[:, None] - v, axis=2) for q, v in ((STORED[:20], STORED), (queries, documents))
        )
        nearer = before[:, :, None] < before[:, None, :]
        by_beta = before[:, :, None] < before[:, None, :] - 0.4
        stays = after[:, :, None] < after[:, None, :]
        assert by_beta.sum() > 1000
        assert stays[by_beta].all()
        assert not stays[nearer].all()

    def test_purkayastha_turns_by_its_angles_in_uniform_directions(self):
        centre = np.tile(unit_length(np.ones((1, DIMENSION))), (4000, 1))
        result = Purkayastha(epsilon=20.0).fit(STORED, rng()).protect(centre, rng(1))
        assert np.allclose(np.linalg.norm(result, axis=1), 1, atol=1e-6)
        turned = np.arccos((result * centre).sum(1).clip(-1, 1))
        assert stats.kstest(turned, angle_cdf(DIMENSION, 20.0)).pvalue > 0.01
        tangents = result - np.cos(turned)[:, None] * centre
        basis = np.linalg.svd(centre[:1])[2][1:]  # of the tangent space
        assert is_uniform(tangents @ basis.T)

    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
    def test_angles_in_three_dimensions_have_the_closed_form(self, epsilon):
        """The integral of exp(-eps t) sin t is (1 - exp(-eps t)(eps sin t + cos t)) / (1 + eps^2)."""

        def cdf(t):
            return (1 - np.exp(-epsilon * t) * (epsilon * np.sin(t) + np.cos(t))) / (1 + np.exp(-epsilon * np.pi))

        angles = purkayastha_angles(4000, 3, epsilon, rng())
        assert stats.kstest(angles, cdf).pvalue > 0.01
        assert stats.kstest(purkayastha_angles(4000, 3, 1.3 * epsilon + 0.1, rng()), cdf).pvalue < 0.01

    @pytest.mark.parametrize("epsilon", [1.0, 100.0, 1000.0, 4000.0, 20_000.0])
    def test_angles_in_many_dimensions_have_the_integrated_law(self, epsilon):
        angles = purkayastha_angles(4000, 384, epsilon, rng())
        assert stats.kstest(angles, angle_cdf(384, epsilon)).pvalue > 0.01
        assert stats.kstest(angles, angle_cdf(430, epsilon)).pvalue < 0.01

    @pytest.mark.parametrize(
        ("recipe", "total"), [(MetricLaplace(epsilon=3.0), 6), (Purkayastha(epsilon=2.0), 2 * np.pi)]
    )
    def test_metric_privacy_claims_epsilon_times_the_largest_distance(self, recipe, total):
        claim = recipe.fit(STORED, rng()).claim
        assert (claim.epsilon, claim.proved, claim.delta, claim.unit) == (total, total, 0, "document")

    def test_the_claim_is_tight_for_opposite_vectors(self):
        """Counts on both sides of the equator differ by at most the claim, and by nearly the claim at the pole."""
        fitted = MetricLaplace(epsilon=0.5).fit(STORED, rng())
        centre = np.tile(np.eye(3, dtype=np.float32)[:1], (200_000, 1))
        beyond = fitted.protect(centre, rng(1))[:, 0] > 2
        opposite = fitted.protect(-centre, rng(2))[:, 0] > 2
        assert 0.6 < np.log(beyond.mean() / opposite.mean()) <= fitted.claim.epsilon

    @every
    def test_others_claim_nothing(self, recipe):
        claims = isinstance(recipe, MetricLaplace | Purkayastha)
        assert (recipe.fit(STORED, rng()).claim is not None) == claims

    def test_two_dimensions_are_refused(self):
        expected = "purkayastha: vectors of 2 dimensions are not allowed: at least 3"
        assert refusal(Purkayastha(epsilon=1.0), STORED[:, :2]) == expected


def is_uniform(noise):
    """Return whether directions are uniform: of rows on the sphere, a squared coordinate is Beta(1/2, (d-1)/2)."""
    units, law = unit_length(noise), stats.beta(0.5, (noise.shape[1] - 1) / 2).cdf
    fits = [stats.kstest(units[:, i] ** 2, law).pvalue > 1e-3 for i in range(units.shape[1])]
    return all(fits) and np.abs(units.mean(0)).max() < 4 / np.sqrt(units.size)


def angle_cdf(dimension, epsilon):
    """Return the integral of the density of Purkayastha's angle, by the trapezoidal rule around its mode."""
    mode = np.arctan2(dimension - 2, epsilon)
    width = 12 * np.sin(mode) / np.sqrt(dimension - 2)
    grid = np.linspace(max(mode - width, 1e-12), min(mode + width, np.pi - 1e-12), 40_001)
    log_density = (dimension - 2) * np.log(np.sin(grid)) - epsilon * grid
    sums = integrate.cumulative_trapezoid(np.exp(log_density - log_density.max()), grid, initial=0)
    return lambda t: np.interp(t, grid, sums / sums[-1])


class TestCompression:
    def test_int8_errs_by_at_most_half_a_step_inside_its_range(self):
        fitted = Int8().fit(STORED[:200], rng())
        errors = np.abs(fitted.protect(STORED[:200], rng()) - STORED[:200])
        assert (errors <= fitted.step / 2 + 1e-6).all()
        assert (errors.max(0) > fitted.step / 3).all()
        for column in fitted.protect(STORED, rng()).T:
            assert len(np.unique(column)) <= 256

    def test_int8_clips_values_outside_its_range(self):
        fitted = Int8().fit(np.array([[1, 0], [0, 1]]), rng())
        assert fitted.protect(np.array([[-1.0, 0.0], [1.0, 0.0]]), rng()).tolist() == [[0, 0], [1, 0]]

    def test_int8_keeps_a_coordinate_that_never_changes(self):
        stored = np.array([[0.6, 0.8, 0.0], [0.8, 0.6, 0.0]])
        assert np.allclose(Int8().fit(stored, rng()).protect(stored, rng()), stored, atol=1e-6)

    def test_queries_of_int8_and_product_quantisation_stay(self):
        for recipe in (Int8(), ProductQuantisation(subvectors=4)):
            fitted = recipe.fit(STORED, rng())
            assert np.array_equal(fitted.protect_query(STORED, rng()), unit_length(STORED))
            assert not np.allclose(fitted.protect(STORED, rng()), STORED, atol=1e-4)

    def test_signs(self):
        fitted = Binary().fit(STORED, rng())
        for publish in (fitted.protect, fitted.protect_query):
            assert publish(np.array([[0.5, -2.0, 0.0]]), rng()).tolist() == [[1, -1, -1]]

    def test_product_quantisation_stores_the_nearest_centre_of_each_part(self):
        fitted = ProductQuantisation(subvectors=4, bits=3).fit(STORED, rng())
        assert fitted.centres.shape == (4, 8, 3)
        parts = STORED.reshape(300, 4, 3)
        distances = np.linalg.norm(parts[:, :, None] - fitted.centres[None], axis=3)
        nearest = np.stack([fitted.centres[part, distances[:, part].argmin(1)] for part in range(4)], axis=1)
        assert np.allclose(fitted.protect(STORED, rng()), nearest.reshape(300, 12))

    def test_more_bits_are_nearer(self):
        errors = [np.abs(protected(ProductQuantisation(subvectors=4, bits=bits)) - STORED).mean() for bits in (2, 4, 8)]
        assert errors == sorted(errors, reverse=True)

    def test_truncation_keeps_the_first_coordinates(self):
        result = protected(Truncation(dimensions=2), np.array([[3.0, 4.0, *[1.0] * 10]]))
        assert np.allclose(result, [[0.6, 0.8]])

    @pytest.mark.parametrize(
        ("recipe", "message"),
        [
            (
                ProductQuantisation(subvectors=5),
                "product_quantisation.subvectors: 5 is not allowed with 12 dimensions (allowed: 1, 2, 3, 4, 6, 12)",
            ),
            (
                ProductQuantisation(subvectors=4, bits=6),
                "product_quantisation.bits: 6 is not allowed: from 1 to 5, for 40 stored vectors",
            ),
            (Truncation(dimensions=13), "truncation.dimensions: 13 is not allowed: from 1 to 12, the dimension"),
            (Watermark(), "watermark.entries: 25 is not allowed: from 1 to 12, the dimension"),
            (Whitening(dimensions=13), "whitening.dimensions: 13 is not allowed: from 1 to 12, the rank of the stored"),
        ],
    )
    def test_options_that_do_not_suit_the_vectors_are_refused(self, recipe, message):
        assert refusal(recipe, STORED[:40]).startswith(message)


class TestWhitening:
    def test_stored_vectors_have_mean_zero_and_unit_covariance(self):
        result = protected(Whitening()).astype(np.float64)
        assert np.abs(result.mean(0)).max() < 1e-5
        assert np.allclose(np.cov(result.T), np.eye(DIMENSION), atol=1e-4)
        assert not np.allclose(np.cov(STORED.T), np.eye(DIMENSION), atol=0.1)

    def test_few_vectors_have_few_components(self):
        fitted = Whitening().fit(STORED[:5], rng())
        assert fitted.protect(STORED, rng()).shape == (300, 4)

    def test_the_first_component_has_the_largest_variance(self):
        vectors = rng().normal(size=(500, 3)) * [0.01, 0.1, 0.02] + [1, 0, 0]
        first = Whitening(dimensions=1).fit(vectors, rng()).components[:, 0]
        assert np.abs(first).argmax() == 1
        assert first[1] > 0

    def test_equal_vectors_are_refused(self):
        assert refusal(Whitening(), np.tile(STORED[:1], (5, 1))).startswith("whitening: 5 equal stored vectors are not")


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        (ScaleAndPerturb, {"beta": 0.0}),
        (ScaleAndPerturb, {"beta": -1.0}),
        (ScaleAndPerturb, {"beta": "2"}),
        (ScaleAndPerturb, {}),
        (GaussianNoise, {"sigma": 0.0}),
        (MetricLaplace, {"epsilon": np.inf}),
        (Purkayastha, {"epsilon": np.nan}),
        (SecretLinear, {"condition": 0.5}),
        (ProductQuantisation, {"bits": 9}),
        (Rotation, {"angle": 1.0}),
    ],
)
def test_options_out_of_range_are_refused(recipe, options):
    with pytest.raises(ValidationError):
        recipe(**options)
