"""Noise on normalised vectors: draws, claims and proofs of each variant; normalising and hiding words."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from scipy import stats

from leakboard.claims import ReleaseClaim
from leakboard.interfaces import Texts
from leakboard.privacy.auditing.audit import audit
from leakboard.privacy.auditing.events import corners
from leakboard.privacy.mechanisms.cube import CubeRelease, HiddenWordRelease
from leakboard.privacy.mechanisms.masking import hide_words
from leakboard.privacy.mechanisms.normalisation import min_max
from leakboard.privacy.mechanisms.textbook import WordDropout, gaussian_delta, gaussian_scale

NOTHING_SENSITIVE = frozenset()
SHARED, SEPARATE = "Gaussian noise, one number for all coordinates", "Laplace noise, each coordinate by itself"


def rng(seed=0):
    return np.random.default_rng(seed)


class TestMinMax:
    """Algorithm 1, step 2, of DPNR."""

    def test_hand_worked(self):
        assert min_max(np.array([[1.0, 3.0, 2.0], [-4.0, 0.0, 4.0]])).tolist() == [[0, 1, 0.5], [0, 0.5, 1]]

    def test_arrays_and_tensors_agree(self):
        vectors = rng().normal(size=(50, 16)).astype(np.float32)
        assert np.array_equal(min_max(vectors), min_max(torch.from_numpy(vectors)).numpy())

    def test_distances_are_at_most_the_dimension_and_attain_it(self):
        rows = min_max(rng().normal(size=(200, 8)))
        distances = np.abs(rows[:100] - rows[100:])
        assert distances.sum(1).max() <= 8
        assert distances.max() <= 1
        alternating = np.arange(8) % 2.0
        assert np.abs(min_max(alternating[None]) - min_max(1 - alternating[None])).sum() == 8

    def test_subtracting_the_minimum_removes_a_shift(self):
        """So noise that all coordinates share protects nothing."""
        rows = min_max(rng().normal(size=(100, 32)))
        shifted = rows + rng(1).laplace(0, 20, (100, 1))
        assert np.abs(shifted - shifted.min(1, keepdims=True) - rows).max() < 1e-12

    def test_gradients_flow_through_minimum_and_maximum(self):
        vectors = torch.tensor([[1.0, 3.0, 2.0]], requires_grad=True)
        min_max(vectors)[0, 2].backward()
        assert vectors.grad.tolist() == [[-0.25, -0.25, 0.5]]

    @pytest.mark.filterwarnings("ignore:overflow")
    @pytest.mark.parametrize(
        ("row", "spread"),
        [([2.0, 2.0], 0), ([1.0, math.nan], math.nan), ([0.0, math.inf], math.inf), ([-1e308, 1e308], math.inf)],
    )
    @pytest.mark.parametrize("kind", [np.array, torch.tensor])
    def test_rows_that_cannot_be_scaled_are_refused(self, row, spread, kind):
        with pytest.raises(ValueError, match=f"vector 1 has the range {spread:g}; allowed: above 0"):
            min_max(kind([[0.0, 1.0], row], dtype=kind([1.0]).dtype))


class TestHiding:
    """Word dropout before encoding."""

    def test_the_rate_of_whole_words_is_hidden(self):
        text = " ".join(f"word{i}-and-more" for i in range(2000))
        hidden = hide_words([text] * 20, "[MASK]", WordDropout(0.3), NOTHING_SENSITIVE, rng())
        count = sum(t.split().count("[MASK]") for t in hidden)
        assert stats.binomtest(count, 40_000, 0.3).pvalue > 1e-4
        for t in hidden:
            assert all(word in ("[MASK]", f"word{i}-and-more") for i, word in enumerate(t.split()))
            assert len(t.split()) == 2000

    def test_words_are_hidden_independently(self):
        """With an exact number of hidden words, as in the paper's own formula, the count would not vary."""
        texts = hide_words(["a b c d e f g h i j"] * 4000, "-", WordDropout(0.5), NOTHING_SENSITIVE, rng())
        counts = np.array([text.split().count("-") for text in texts])
        assert counts.var() == pytest.approx(2.5, abs=4 * 2.5 * math.sqrt(2 / 4000))

    def test_the_papers_formula_hides_an_exact_number(self):
        texts = hide_words(["a b c d e f g h i j"] * 100, "-", WordDropout(0.3), NOTHING_SENSITIVE, rng(), exact=True)
        assert {text.split().count("-") for text in texts} == {3}
        assert len(set(texts)) > 50

    @pytest.mark.parametrize(("rate", "expected"), [(0.0, "one  two"), (1.0, "- -")])
    def test_rates_of_none_and_all(self, rate, expected):
        assert hide_words(["one  two"], "-", WordDropout(rate), NOTHING_SENSITIVE, rng()) == [expected]

    def test_listed_words_are_always_hidden(self):
        text = "Mr. Bush, met bush: Bushes anti-Bush Bush's \u201cBush\u201d"
        assert hide_words([text], "-", WordDropout(0.0), {"bush"}, rng()) == ["Mr. - met - Bushes - - -"]

    @pytest.mark.parametrize("rate", [0.0, 1.0])
    def test_source_rows_and_ids_are_kept(self, rate):
        hidden = hide_words(Texts(["a"], np.array([7]), ["id7"]), "-", WordDropout(rate), NOTHING_SENSITIVE, rng())
        assert (hidden.rows.tolist(), hidden.ids) == ([7], ["id7"])


class TestNoise:
    """The law of the noise, by Kolmogorov and Smirnov, at a level of 1e-4."""

    @pytest.mark.parametrize(
        ("family", "calibration", "law"),
        [
            ("laplace", "per_coordinate", stats.laplace(scale=1 / 0.5)),
            ("laplace", "l1", stats.laplace(scale=16 / 0.5)),
            ("gaussian", "per_coordinate", stats.norm(scale=gaussian_scale(0.5, 1e-3, 1.0))),
            ("gaussian", "l2", stats.norm(scale=gaussian_scale(0.5, 1e-3, 4.0))),
        ],
    )
    @pytest.mark.parametrize("sampling", ["independent", "shared"])
    @pytest.mark.parametrize("kind", ["array", "tensor"])
    def test_its_law(self, family, calibration, law, sampling, kind):
        release = CubeRelease(16, 0.5, family, calibration, sampling, 1e-3 if family == "gaussian" else 0.0)
        rows = 2000 if sampling == "independent" else 20_000
        if kind == "array":
            noise = release.release(np.zeros((rows, 16)), rng())
        else:
            noise = release.release(torch.zeros(rows, 16), torch.Generator().manual_seed(0)).double().numpy()
        if sampling == "shared":
            assert (noise == noise[:, :1]).all()
            noise = noise[:, :1]
        assert stats.kstest(noise.ravel(), law.cdf).pvalue > 1e-4

    def test_a_scale_off_by_a_tenth_would_be_found(self):
        noise = CubeRelease(16, 0.5).release(np.zeros((2000, 16)), rng())
        assert stats.kstest(noise.ravel(), stats.laplace(scale=1.1 / 0.5).cdf).pvalue < 1e-4

    def test_discrete_noise_is_on_its_grid(self):
        released = CubeRelease(4, 1.0, "discrete_laplace", "l1").release(rng().random((100, 4)), rng())
        assert np.array_equal(released * 1024, np.rint(released * 1024))

    def test_types_are_kept(self):
        for dtype in (np.float32, np.float64):
            assert CubeRelease(3, 1.0).release(np.zeros((2, 3), dtype), rng()).dtype == dtype
        assert CubeRelease(3, 1.0).release(torch.zeros(2, 3), torch.Generator()).dtype == torch.float32


class TestProofs:
    """Claimed and proved epsilons of every variant, by their formulas."""

    @pytest.mark.parametrize(
        ("release", "proved"),
        [
            (CubeRelease(768, 0.05), 38.4),
            (CubeRelease(768, 5.0), 3840.0),
            (CubeRelease(768, 0.05, calibration="l1"), 0.05),
            (CubeRelease(768, 0.05, "discrete_laplace", "l1"), 0.05),
            (CubeRelease(768, 0.05, sampling="shared"), math.inf),
            (CubeRelease(768, 0.05, calibration="l1", sampling="shared"), math.inf),
            (CubeRelease(1, 0.05, sampling="shared"), 0.05),
            (CubeRelease(100, 0.5, "gaussian", "l2", delta=1e-3), 0.5),
            (CubeRelease(100, 0.5, "gaussian", "per_coordinate", "shared", 1e-3), math.inf),
        ],
    )
    def test_by_formula(self, release, proved):
        assert release.proved == pytest.approx(proved, rel=1e-9)

    def test_gaussian_noise_for_one_coordinate_by_its_own_theorem(self):
        release = CubeRelease(100, 0.5, "gaussian", "per_coordinate", delta=1e-3)
        assert gaussian_delta(release.proved, release.mechanism.scale, 10.0) == pytest.approx(1e-3, rel=1e-9)
        assert release.proved > 5

    @pytest.mark.parametrize(
        ("mu", "amplified"), [(0.1, 0.9347), (0.3, 0.7897), (0.5, 0.6201), (0.8, 0.2954), (1.0, 0.0)]
    )
    def test_word_dropout_amplifies_claim_and_proof(self, mu, amplified):
        """The claims of DPNR's theorem 2 at epsilon 1; the proof starts from the true epsilon."""
        claim = CubeRelease(768, 1.0).claim("word", WordDropout(mu).amplified)
        assert claim.epsilon == pytest.approx(amplified, abs=5e-5)
        assert claim.proved == pytest.approx(0.0 if mu == 1 else 768 + math.log(1 - mu), abs=1e-6)
        shared = CubeRelease(768, 1.0, sampling="shared").claim("word", WordDropout(mu).amplified)
        assert shared.proved == (0.0 if mu == 1 else math.inf)

    @pytest.mark.parametrize(
        ("release", "noise", "sensitivity", "proved"),
        [
            (CubeRelease(16, 2.0, "gaussian", "l2", "shared", 1e-3), SHARED, "4 in L2", math.inf),
            (CubeRelease(16, 2.0), SEPARATE, "1, of one coordinate", 32.0),
            (CubeRelease(16, 2.0, calibration="l1"), SEPARATE, "16 in L1", 2.0),
        ],
    )
    def test_the_claim_names_its_assumptions(self, release, noise, sensitivity, proved):
        expected = ReleaseClaim(2.0, release.delta, "document", noise, sensitivity, proved)
        assert release.claim("document") == expected

    @pytest.mark.parametrize(
        ("release", "broken"),
        [
            pytest.param(CubeRelease(8, 2.0), True, marks=pytest.mark.slow),
            pytest.param(CubeRelease(8, 2.0, sampling="shared"), True, marks=pytest.mark.slow),
            pytest.param(CubeRelease(8, 2.0, "gaussian", delta=1e-3), True, marks=pytest.mark.slow),
            pytest.param(CubeRelease(8, 2.0, calibration="l1"), False, marks=pytest.mark.slow),
            pytest.param(CubeRelease(8, 2.0, "discrete_laplace", "l1"), False, marks=pytest.mark.slow),
            (CubeRelease(8, 2.0, "gaussian", "l2", delta=1e-3), False),
        ],
    )
    def test_an_audit_agrees(self, release, broken):
        bound = audit(release, corners(8), rng(), draws_per_input=40_000).epsilon
        assert (bound > release.epsilon) == broken
        assert 0.1 < bound <= release.proved


class TestHiddenWord:
    """A release of two neighbours under word dropout."""

    @pytest.mark.slow
    def test_it_attains_the_theorem(self):
        inner = CubeRelease(2, 2.0, calibration="l1")
        hidden = HiddenWordRelease(inner, 0.5)
        assert hidden.epsilon == pytest.approx(math.log(0.5 * math.exp(2) + 0.5))
        bounds = [audit(hidden, corners(2), rng(seed), draws_per_input=60_000).epsilon for seed in range(3)]
        assert max(bounds) <= hidden.epsilon  # at 95 % each
        assert np.median(bounds) > 0.9 * hidden.epsilon
        assert audit(inner, corners(2), rng(), draws_per_input=60_000).epsilon > hidden.epsilon

    def test_the_share_of_hidden_rows(self):
        hidden = HiddenWordRelease(CubeRelease(1, 1e6, calibration="l1"), 0.3)
        released = hidden.release(np.zeros((20_000, 1)), rng())  # the corner of a hidden word is 1
        assert stats.binomtest(int((released > 0.5).sum()), 20_000, 0.3).pvalue > 1e-4


def test_impossible_options_are_refused():
    with pytest.raises(ValidationError, match="calibration: 'l2' is not allowed with mechanism 'laplace'"):
        CubeRelease(8, 0.5, calibration="l2")
    with pytest.raises(ValidationError, match="sampling: 'shared' is not allowed for 'discrete_laplace'"):
        CubeRelease(8, 0.5, "discrete_laplace", "l1", "shared")
    with pytest.raises(ValidationError, match=r"delta: 0.1 is not allowed with mechanism 'laplace' \(allowed: 0\)"):
        CubeRelease(8, 0.5, delta=0.1)
    with pytest.raises(
        ValidationError, match=r"delta: 0 is not allowed with mechanism 'gaussian' \(allowed: above 0\)"
    ):
        CubeRelease(8, 0.5, "gaussian", "l2")
    for epsilon in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValidationError):
            CubeRelease(8, epsilon)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((3, 5)), "vectors of 5 coordinates; this release is for 2"),
        (np.full((3, 2), 1.5), "NaN or outside"),
        (np.array([[0.0, math.nan]]), "NaN or outside"),
        (torch.full((3, 2), -0.1), "NaN or outside"),
    ],
)
def test_vectors_outside_the_cube_are_refused(values, message):
    generator = rng() if isinstance(values, np.ndarray) else torch.Generator()
    with pytest.raises(ValueError, match=message):
        CubeRelease(2, 1.0).release(values, generator)
