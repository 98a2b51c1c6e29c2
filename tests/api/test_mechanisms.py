"""Audits of functions: what breaks its claim is caught, what keeps it is not, and what cannot be audited is refused."""

import fractions
import math

import numpy as np
import pytest

import leakboard
from leakboard.board.figures import least_false_negatives
from leakboard.errors import RequestError
from leakboard.metrics.audits import rounded_down
from leakboard.privacy.mechanisms.textbook import Gaussian

DIMENSION = 4
DRAWS = 20_000


def correct(values, rng):
    return values + rng.laplace(0, DIMENSION, values.shape)


def too_little_noise(values, rng):
    values += rng.laplace(0, 1, values.shape)
    return values


def audit(release, **options):
    return leakboard.audit(release, **{"epsilon": 1.0, "dimension": DIMENSION, "draws": DRAWS, **options})


def test_a_release_with_too_little_noise_is_violated():
    result = audit(too_little_noise)
    assert result.verdict == "violated"
    assert 2 < result.epsilon_lower <= DIMENSION
    assert result.summary.startswith(
        f"epsilon is at least {rounded_down(result.epsilon_lower)} (95 % confidence), more than the cl"
    )
    assert result.pair in result.summary
    assert result.event in result.summary


@pytest.mark.parametrize("own", [np.random.default_rng(0), np.random.default_rng(0).spawn(1)[0]])
def test_noise_of_the_mechanism_s_own_generator_does_not_follow_the_coins(own):
    """A generator of the audit's own seed would draw the coin of each row as its noise."""
    pairs = [([0.0], [1.0])]
    result = audit(lambda v, _: v + own.laplace(0, 1, v.shape), dimension=1, pairs=pairs, draws=4000, calls=0, seed=0)
    assert result.verdict == "not refuted"


@pytest.mark.parametrize("calls", [0, 400])
def test_noise_of_a_copy_of_the_given_generator_does_not_follow_the_coins(calls):
    """A copy of the generator of the audit's coins would draw the coin of each row as its noise."""
    own = []

    def release(values, rng):
        own.append(own[0] if own else np.random.default_rng(rng.bit_generator.seed_seq))
        return values + own[0].laplace(0, 1, values.shape)

    pairs = [([0.0], [1.0])]
    assert audit(release, dimension=1, pairs=pairs, draws=4000, calls=calls).verdict == "not refuted"


def on_grid(step, dtype):
    """Return a correct mechanism whose noise has whole steps, added in floating-point arithmetic."""

    def release(values, rng):
        keeps = np.exp(-step / DIMENSION)
        steps = rng.geometric(1 - keeps, values.shape) - rng.geometric(1 - keeps, values.shape)
        return (step * np.rint(values / step)).astype(dtype) + (dtype(step) * steps).astype(dtype)

    return release


@pytest.mark.parametrize(("step", "dtype"), [(0.1, np.float64), (0.05, np.float64), (0.1, np.float32)])
def test_rounding_errors_of_a_grid_are_no_leak(step, dtype):
    """0.1 + 0.3 and 0.4 differ in their last bit; the trees of an audit would see it.

    At 95 % one audit in twenty of an exact claim may fail, so the confidence is higher.
    """
    assert audit(on_grid(step, dtype), draws=60_000, calls=0, confidence=0.999).verdict == "not refuted"


def test_a_leak_on_a_grid_is_still_found():
    """Its noise is a third of what the claim needs."""
    noise = on_grid(0.1, np.float32)

    def release(values, rng):
        return noise(3 * values, rng)

    assert audit(release, draws=60_000, calls=0).epsilon_lower > 2


@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 1e6), (np.float64, 1e13)])
def test_a_leak_beside_large_numbers_is_still_found(dtype, large):
    """Rounded to the digits of the large coordinate, the small one would say nothing."""

    def release(values, rng):
        noise = rng.laplace(0, [large, 0.05], values.shape)
        return (values + noise).astype(dtype)

    assert audit(release, dimension=2, calls=0).verdict == "violated"


def divided_by_the_largest(values, rng):
    return values / (values.max() or 1) + rng.laplace(0, values.shape[1], values.shape)


def test_a_row_that_changes_all_others_is_found_in_large_calls():
    result = audit(divided_by_the_largest, dimension=8, draws=2000)
    assert result.verdict == "violated"
    assert "one row of 256 in a call" in result.pair


@pytest.mark.parametrize("scale", [1e-12, 1e9])
def test_leaks_are_found_at_any_scale(scale):
    def release(values, rng):
        return scale * (values + rng.laplace(0, 1, values.shape))

    assert audit(release, dimension=1, epsilon=0.5, calls=0).verdict == "violated"


@pytest.mark.slow
def test_a_correct_release_is_not():
    result = audit(correct)
    assert result.verdict == "not refuted"
    assert 0.2 < result.epsilon_lower <= 1.0
    assert "which does not prove it" in repr(result)


@pytest.mark.slow
def test_delta_and_pairs_count():
    """Noise of N(0, 1) on vectors at a distance of 1: (1, 0.1269)-private, and far from (1, 0)-private."""

    def gaussian(values, rng):
        return values + rng.normal(0, 1, values.shape)

    pairs = [(np.zeros(DIMENSION), np.eye(DIMENSION)[0])]
    assert audit(gaussian, delta=0.13, pairs=pairs).verdict == "not refuted"
    assert audit(gaussian, pairs=pairs).verdict == "violated"
    assert audit(gaussian, delta=0.13).verdict == "violated"  # corners of the cube are up to 2 apart


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("dimension", "budget"), [(1, 200_000), (4, 1_000_000)])
def test_half_the_sigma_of_a_gaussian_mechanism_is_refuted_by_every_seed(dimension, budget, seed):
    """Half of these budgets is too small for some seeds. An audit takes 2 seconds in one dimension, 4 in four."""
    delta = 1e-5
    sigma = Gaussian(epsilon=1.0, delta=delta, sensitivity=math.sqrt(dimension)).scale

    def audited(scale):
        options = {"delta": delta, "dimension": dimension, "budget": budget, "calls": 0, "seed": seed}
        return leakboard.audit(lambda values, rng: values + rng.normal(0, scale, values.shape), 1.0, **options)

    assert audited(sigma / 2).verdict == "violated"
    whole = audited(sigma)
    assert whole.verdict == "not refuted"
    assert whole.epsilon_lower > 0.2  # the audit sees something


@pytest.mark.slow
def test_the_same_seed_gives_the_same_audit():
    assert audit(correct, draws=2000) == audit(correct, draws=2000)
    assert audit(correct, draws=2000) != audit(correct, draws=2000, seed=1)


@pytest.mark.parametrize(
    ("release", "options", "message"),
    [
        (
            lambda v, rng: v[:, :2],
            {},
            r"it gives float64 of shape \(1000, 2\) for vectors of shape \(1000, 4\)",
        ),
        (lambda v, rng: v * np.nan, {}, "release: the mechanism released NaN or infinity"),
        (lambda v, rng: v + 1e200, {}, r"the mechanism released 1e\+200: numbers up to 1e\+60 can be"),
        (correct, {"delta": 1.0}, "delta: 1.0 is not allowed: a number from 0, below 1"),
        (correct, {"dimension": 0}, "dimension: 0 is not allowed"),
        (correct, {"draws": 299}, "draws: 299 is not allowed: a whole number from 500 for 5 pairs to 10,000,000,000"),
        (correct, {"draws": 10**15}, "draws: 1000000000000000 is not allowed: a whole number from 500"),
        (correct, {"epsilon": True}, "epsilon: True is not allowed: a number"),
        (
            correct,
            {"draws": None, "budget": 2000},
            "budget: 2000 is not allowed: a whole number from 4000 on, for 5 pairs in 4 dimensions",
        ),
        (correct, {"draws": None, "budget": 1e6}, r"budget: 1000000\.0 is not allowed: a whole number from 4000 on"),
        (correct, {"pairs": [([0, 0], [1, 1])]}, r"pairs\[0\]: .* is not allowed: two vectors of 4 finite numbers"),
        (correct, {"pairs": []}, "pairs: .* at least one"),
        (lambda v, rng: v.astype(np.int64) + 2**60 + 1, {}, r"release: it gives whole numbers beyond 2\^53"),
        (lambda v, rng: np.ma.array(v, mask=v > 0), {}, "release: it gives masked float64 of shape"),
        (lambda v, rng: (v, v[:, :1]), {}, r"release: it gives tuple for vectors of shape \(1000, 4\)"),
        (lambda v, rng: None, {}, "release: it gives NoneType for vectors"),
        (lambda v, rng: v.astype(object), {}, r"release: it gives objects of shape \(1000, 4\) for vectors"),
        (correct, {"pairs": 5}, "pairs: 5 is not allowed: pairs, of two vectors of 4 finite numbers each"),
        (
            correct,
            {"pairs": [([0, 0, 0, 0], [0, 0, 0, np.nan])]},
            r"pairs\[0\]: .* nan\]\] is not allowed: two vectors of 4",
        ),
        (correct, {"pairs": [5]}, r"pairs\[0\]: 5 is not allowed: two vectors of 4"),
        (correct, {"pairs": [("a", "b")]}, r"pairs\[0\]: \('a', 'b'\) is not allowed: two vectors of 4"),
        (correct, {"epsilon": "x"}, "epsilon: 'x' is not allowed: a number"),
        (correct, {"calls": 99}, "calls: 99 is not allowed: a whole number from 100, or 0 for none"),
        (correct, {"calls": 1000.0}, "calls: 1000.0 is not allowed"),
        (correct, {"seed": -1}, "seed: -1 is not allowed: a whole number from 0"),
    ],
)
def test_what_cannot_be_audited_is_refused(release, options, message):
    with pytest.raises(RequestError, match=message):
        audit(release, **options)


def test_a_function_of_one_argument_is_refused():
    with pytest.raises(RequestError, match=r"release: .* is not allowed: a function of vectors and a generator"):
        audit(lambda values: values)


def test_a_pair_of_equal_vectors_is_refused():
    with pytest.raises(
        RequestError, match=r"pairs\[0\]: .* is not allowed: two vectors of 4 finite numbers that differ"
    ):
        audit(correct, pairs=[(np.zeros(4), np.zeros(4))])


def test_a_fraction_is_an_epsilon():
    result = audit(correct, epsilon=fractions.Fraction(1, 2), draws=2000, calls=0, confidence=0.999)
    assert (result.epsilon, type(result.epsilon)) == (0.5, float)
    assert "no more than the claimed 0.5" in repr(result)


def test_a_mechanism_without_noise_is_audited():
    assert audit(lambda values, rng: values).verdict == "violated"


def shared(values, rng):
    return values + rng.laplace(0, DIMENSION, DIMENSION)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_rows_that_share_their_noise_are_violated(delta):
    result = audit(shared, delta=delta)
    assert result.verdict == "violated"
    assert result.epsilon_lower < 6.34


def test_as_many_calls_are_made_as_are_asked_for():
    """Of four rows each: as many for each of three pairs to choose the statistic, and as many to test it."""

    def made(calls):
        sizes = []

        def counting(values, rng):
            sizes.append(len(values))
            return correct(values, rng)

        assert audit(counting, draws=2000, calls=calls).verdict == "not refuted"
        return sizes.count(4)

    assert made(200) - made(0) == 4 * 200  # single rows may end with a call of four


def test_the_plot_shows_the_point_below_the_curve_of_a_violated_claim():
    _, curve, bound, point = audit(too_little_noise).plot().data
    allowed = np.interp(point.x[0], curve.x, curve.y)
    assert point.y[0] < allowed
    assert (np.interp(bound.x, curve.x, curve.y) > bound.y).any()
    assert least_false_negatives(math.log(2), 0.0, np.array([0.0, 0.25, 0.5, 1.0])) == pytest.approx([1, 0.5, 0.25, 0])


class StartingWithoutNoise:
    """Correct noise on all but the first 50 rows."""

    def __init__(self):
        self.released = 0

    def __call__(self, values, rng):
        rows = np.arange(self.released, self.released + len(values))
        self.released += len(values)
        return np.where(rows[:, None] < 50, values, correct(values, rng))


def test_first_rows_without_noise_are_violated():
    result = audit(StartingWithoutNoise(), draws=2000)
    assert result.verdict == "violated"
    assert result.pair == "zeros and ones (the first 50 rows that the mechanism released)"
    assert result.trade_off is None


class TestDomain:
    """A mechanism that promises epsilon for any vectors is tried outside the cube."""

    OPTIONS = {"draws": 4000, "calls": 0, "confidence": 0.999}  # noqa: RUF012

    @staticmethod
    def clipped(values, rng):
        return correct(np.clip(np.nan_to_num(values), 0, 1), rng)

    @staticmethod
    def nan_kept(values, rng):
        return correct(np.clip(values, 0, 1), rng)

    @staticmethod
    def refuses(values, rng):
        if not ((values >= 0) & (values <= 1)).all():
            raise ArithmeticError("outside")
        return correct(values, rng)

    @staticmethod
    def nan_kept_in_range(values, rng):
        if (np.abs(values) > 1000).any():
            raise ArithmeticError("outside")
        return correct(np.clip(values, 0, 1), rng)

    @staticmethod
    def clipped_above(values, rng):
        finite = np.nan_to_num(values)
        return correct(np.where(finite < -1.5, finite, np.clip(finite, 0, 1)), rng)

    @staticmethod
    def scaled_by_the_sum(values, rng):
        finite = np.nan_to_num(values, posinf=1e9)
        scaled = finite / np.maximum(np.abs(finite.sum(1, keepdims=True)), 1)
        return correct(scaled, rng)

    @staticmethod
    def unclipped_beside_nan(values, rng):
        has_nan = np.isnan(values).any(1, keepdims=True)
        return correct(np.where(has_nan, np.nan_to_num(values, posinf=1), np.clip(values, 0, 1)), rng)

    @pytest.mark.parametrize(
        ("release", "pair"),
        [
            (correct, ""),
            (nan_kept.__func__, "NaN"),
            (nan_kept_in_range.__func__, "zeros and NaN"),
            (unclipped_beside_nan.__func__, "NaN beside millions"),
            (scaled_by_the_sum.__func__, "millions of both signs"),
            (clipped_above.__func__, "millions"),
        ],
    )
    def test_a_forgotten_clip_is_violated(self, release, pair):
        result = audit(release, domain="any", **self.OPTIONS)
        assert result.verdict == "violated"
        assert pair in result.pair
        assert audit(release, **self.OPTIONS).verdict == "not refuted"

    def test_a_clip_is_left_alone(self):
        result = audit(self.clipped, domain="any", **self.OPTIONS)
        assert (result.verdict, result.notes) == ("not refuted", ())

    def test_an_error_is_noted_and_is_no_leak(self):
        result = audit(self.refuses, domain="any", **self.OPTIONS)
        assert (result.verdict, len(result.notes)) == ("not refuted", 5)
        note = "not tried, since the function refuses it: zeros and NaN (ArithmeticError: outside)"
        assert note in result.summary.splitlines()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"domain": "all"}, "domain: 'all' is not allowed: 'cube' or 'any'"),
            ({"domain": "any", "pairs": [(np.zeros(4), np.ones(4))]}, "domain: 'any' .* 'cube', since pairs are given"),
        ],
    )
    def test_wrong_domains_are_refused(self, options, message):
        with pytest.raises(RequestError, match=message):
            audit(correct, **options)
