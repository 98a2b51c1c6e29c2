"""Exact audits: equal to loops over all pairs, tight for the textbook control, and not blind to one planted row."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from recomputed import row

from leakboard.errors import RequestError
from leakboard.privacy.channels.channel import ChannelClaim, FittedChannel
from leakboard.privacy.channels.custext import CusText, CusTextAsInPyPantera
from leakboard.privacy.channels.diffractor import OneDiffractor
from leakboard.privacy.channels.randomised_response import RandomisedResponse
from leakboard.privacy.channels.santext import SanText, SanTextPlus
from leakboard.privacy.channels.tem import TEM, TEMAsInMLDP, TEMAsInPyPantera
from leakboard.privacy.channels.unknown_words import with_unknown_words
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.audit import audit_channel
from leakboard.privacy.exact.bayes import BestGuess
from leakboard.privacy.exact.calibration import calibrate, true_epsilon
from leakboard.privacy.exact.claims import check_claim
from leakboard.privacy.exact.deniability import Deniability
from leakboard.privacy.exact.extremes import ColumnExtremes
from leakboard.privacy.exact.scan import scan
from leakboard.privacy.exact.supports import Supports


def space_of(vectors, frequencies=None):
    return WordSpace([f"w{i}" for i in range(len(vectors))], np.asarray(vectors, np.float64), frequencies)


def rng(seed=0):
    return np.random.default_rng(seed)


SPACE = space_of(rng().normal(size=(70, 5)), rng(1).integers(1, 50, 70) * 1.0)
LINE = space_of(np.arange(60)[:, None] * 0.05)


@pytest.fixture(autouse=True)
def _several_blocks(monkeypatch):
    monkeypatch.setattr("leakboard.privacy.exact.scan.ROWS", 16)


def fitted(recipe, space=SPACE):
    return recipe.fit(space, rng())


def matrix(channel):
    return channel.log_probabilities(np.arange(len(channel)))


@dataclass(frozen=True)
class Planted(FittedChannel):
    """A channel with another row for one word."""

    inner: FittedChannel
    word: int
    flawed: np.ndarray

    @property
    def claim(self):
        return self.inner.claim

    def distances(self, rows, columns):
        return self.inner.distances(rows, columns)

    def log_probabilities(self, rows):
        logs = self.inner.log_probabilities(rows)
        logs[rows == self.word] = self.flawed
        return logs


def planted(inner, factor=1.1):
    """Multiply one probability by a factor, and scale the others of its row."""
    probabilities = np.exp(inner.log_probabilities(np.array([31]))[0])
    raised = probabilities[50] * factor
    probabilities *= (1 - raised) / (1 - probabilities[50])
    probabilities[50] = raised
    return Planted(inner.space, inner, 31, np.log(probabilities))


class TestExtremes:
    @pytest.mark.parametrize(
        "recipe", [RandomisedResponse(epsilon=1.5), SanText(epsilon=3.0), TEMAsInPyPantera(epsilon=9.0)]
    )
    def test_they_are_those_of_a_loop_over_all_pairs(self, recipe):
        logs = matrix(fitted(recipe))
        extremes = ColumnExtremes(70)
        scan(fitted(recipe), [extremes])
        worst, finite = extremes.worst(), extremes.worst_finite()
        with np.errstate(invalid="ignore"):
            gaps = np.nan_to_num(logs[:, None] - logs, nan=-1, neginf=-1, posinf=np.inf)
        assert worst.log_ratio == gaps.max()
        assert finite.log_ratio == pytest.approx(gaps[np.isfinite(gaps)].max())
        for witness in (worst, finite):
            assert logs[witness.likelier, witness.output] == witness.log_likelier
            assert logs[witness.other, witness.output] == witness.log_other

    def test_the_largest_ratio_of_each_output_is_that_of_a_loop(self):
        for recipe in (SanText(epsilon=3.0), TEMAsInPyPantera(epsilon=9.0)):
            logs, extremes = matrix(fitted(recipe)), ColumnExtremes(70)
            scan(fitted(recipe), [extremes])
            assert np.array_equal(extremes.gaps, logs.max(0) - logs.min(0))
            for output in range(70):
                witness = extremes.witness(output)
                assert witness.log_ratio == extremes.gaps[output]
                assert logs[witness.other, output] == witness.log_other


@dataclass(frozen=True)
class Given(FittedChannel):
    """A user's own matrix."""

    logs: np.ndarray
    claim = ChannelClaim(2.0, "different words")

    def log_probabilities(self, rows):
        return self.logs[rows]


CHANCES = np.full((4, 4), 0.2) + 0.2 * np.eye(4)


@pytest.mark.parametrize(
    ("logs", "message"),
    [
        (CHANCES, r"the probabilities of row 0 \(w0\) add up to 5.15603, not to 1"),  # no logarithm: e^0.4 + 3 e^0.2
        (np.where(np.arange(4)[:, None] == 2, np.nan, np.log(CHANCES)), r"row 2 \(w2\) add up to nan, not to 1"),
        (np.log(CHANCES)[:, :3], r"log_probabilities has the shape \(4, 3\), not \(4, 4\)"),
    ],
)
def test_what_is_no_matrix_of_probabilities_is_refused(logs, message):
    assert audit_channel(Given(space_of(np.eye(4)), np.log(CHANCES)), rng()).verdict == "holds"
    with pytest.raises(RequestError, match=message):
        audit_channel(Given(space_of(np.eye(4)), logs), rng())


class TestVerdicts:
    def test_randomised_response_uses_its_whole_claim(self):
        audit = audit_channel(fitted(RandomisedResponse(epsilon=1.5)), rng())
        assert audit.true_epsilon == pytest.approx(1.5, abs=1e-10)
        assert audit.used == pytest.approx(1, abs=1e-10)
        assert audit.verdict == "holds"
        assert audit.infinite.share == 0

    def test_a_flaw_in_one_row_of_randomised_response_is_found(self):
        audit = audit_channel(planted(fitted(RandomisedResponse(epsilon=1.5))), rng())
        assert audit.verdict == "violated"
        assert audit.true_epsilon > 1.5
        assert 31 in (audit.witness.likelier, audit.witness.other)

    def test_a_flaw_in_one_row_of_santext_is_found(self):
        """Its row is far above the claim for its nearest words, and nowhere else; without it the claim holds."""
        channel = fitted(SanText(epsilon=1.0), LINE)
        assert audit_channel(channel, rng()).verdict == "holds"
        audit = audit_channel(planted(channel), rng())
        assert audit.verdict == "violated"
        assert 31 in (audit.witness.likelier, audit.witness.other)
        assert audit.witness.output == 50
        assert 0 < audit.check.violated < 0.1

    @pytest.mark.parametrize(
        ("rule", "recipe", "paper"),
        [
            ("tem_mldp", TEMAsInMLDP(epsilon=14.0), TEM(epsilon=14.0)),
            ("tem_pypantera", TEMAsInPyPantera(epsilon=14.0), TEM(epsilon=14.0)),
            ("custext_pypantera", CusTextAsInPyPantera(epsilon=2.0, size=7), CusText(epsilon=2.0, size=7)),
        ],
    )
    def test_as_released_is_violated_by_a_witness_that_a_reader_recomputes(self, rule, recipe, paper):
        assert audit_channel(fitted(paper, LINE), rng()).verdict == "holds"
        audit = audit_channel(fitted(recipe, LINE), rng())
        assert audit.verdict == "violated"
        witness, points = audit.witness, LINE.vectors.tolist()
        likelier, other = (row(rule, points, recipe.epsilon, x) for x in (witness.likelier, witness.other))
        assert likelier[witness.output] == pytest.approx(witness.log_likelier, rel=1e-9)
        assert other[witness.output] == pytest.approx(witness.log_other, rel=1e-9)
        apart = math.dist(points[witness.likelier], points[witness.other]) if "tem" in rule else 1
        assert likelier[witness.output] - other[witness.output] > 1.05 * recipe.epsilon * apart

    def test_a_public_seed_proves_the_input(self):
        for seed, verdict in ((42, "violated"), (None, "holds")):
            audit = audit_channel(fitted(OneDiffractor(epsilon=0.3, public_seed=seed)), rng())
            assert audit.verdict == verdict
            assert math.isinf(audit.true_epsilon) == (seed == 42)

    def test_unknown_words_prove_themselves(self):
        known = fitted(SanText(epsilon=2.0))
        for rule, verdict in (("kept", "violated"), ("uniform", "violated"), ("token", "holds")):
            audit = audit_channel(with_unknown_words(known, ["new"], 0, rule), rng())
            assert audit.verdict == verdict
            assert (70 in (audit.witness.likelier, audit.witness.other)) == (verdict == "violated")

    def test_words_of_other_clusters_are_no_violation_but_are_told_apart(self):
        audit = audit_channel(fitted(CusText(epsilon=2.0, size=7)), rng())
        assert audit.verdict == "holds"
        assert math.isinf(audit.true_epsilon)
        assert audit.infinite.share == pytest.approx(1 - 6 / 69)

    def test_words_that_are_published_in_clear_count_for_the_true_epsilon_but_not_for_the_claim(self):
        """SanText+ keeps half of the words with 0.7. Each of these, as an output, proves its input."""
        audit = audit_channel(fitted(SanTextPlus(epsilon=2.0, sensitive=0.5)), rng(), runs=7)
        assert audit.verdict == "holds"
        assert math.isfinite(audit.claimed.log_ratio)
        assert math.isinf(audit.true_epsilon)
        assert audit.infinite.share == pytest.approx(35 / 70)  # the pairs (x, x') with a kept word x
        assert audit.runs == 7

    def test_an_unknown_word_is_compared_in_a_large_vocabulary(self):
        """Its outputs prove it, but most pairs that show this are of two sets, about which nothing is claimed."""
        known = fitted(CusText(epsilon=2.0, size=7), space_of(rng().normal(size=(300, 5))))
        for rule, verdict in (("kept", "violated"), ("token", "holds")):
            audit = audit_channel(with_unknown_words(known, ["new"], 250, rule), rng(), inputs=5, nearest=5)
            assert audit.verdict == verdict
        for seed in range(5):
            chosen = check_claim(with_unknown_words(known, ["new"], 250, "kept"), rng(seed), 5, 5)
            assert chosen.violated

    def test_an_approximate_matrix_violates_no_claim_and_a_lower_bound_shows_none(self):
        sound, flawed = fitted(RandomisedResponse(epsilon=1.5)), planted(fitted(RandomisedResponse(epsilon=1.5)))
        unproved = replace(sound.claim, is_proved=False)
        for precision, verdicts in {
            "exact": ["holds", "violated"],
            "lower bound": ["not refuted", "violated"],
            "approximate": ["not refuted", "not refuted"],
        }.items():
            audits = (audit_channel(channel, rng()) for channel in (sound, flawed))
            audits = [replace(audit, precision=precision, claim=unproved) for audit in audits]
            assert [audit.verdict for audit in audits] == verdicts

    def test_equal_vectors_must_have_equal_rows(self):
        space = space_of(np.repeat(SPACE.vectors[:30], 2, axis=0))
        channel = fitted(SanText(epsilon=1.0), space)
        assert audit_channel(channel, rng()).verdict == "holds"
        flawed = channel.log_probabilities(np.array([7]))[0]
        flawed[[1, 2]] = flawed[[2, 1]]
        audit = audit_channel(Planted(space, channel, 7, flawed), rng())
        assert audit.verdict == "violated"
        assert math.isinf(audit.used)
        assert {audit.witness.likelier, audit.witness.other} == {6, 7}

    @pytest.mark.parametrize("epsilon", [1e-6, 1e6])
    def test_extreme_epsilons_are_no_violations(self, epsilon):
        for recipe in (SanText(epsilon=epsilon), RandomisedResponse(epsilon=epsilon), CusText(epsilon=epsilon, size=7)):
            assert audit_channel(fitted(recipe), rng()).verdict == "holds"

    def test_some_inputs_are_compared_if_there_are_many(self):
        audit = audit_channel(fitted(TEMAsInMLDP(epsilon=2.0)), rng(), inputs=20, nearest=5)
        assert not audit.check.is_complete
        assert audit.verdict == "not refuted"
        assert 20 * 5 <= audit.check.pairs <= 20 * 15


class TestSupports:
    @pytest.mark.parametrize("recipe", [TEMAsInPyPantera(epsilon=9.0), CusTextAsInPyPantera(epsilon=1.0, size=60)])
    def test_the_share_is_that_of_a_loop(self, recipe):
        possible = np.isfinite(matrix(fitted(recipe)))
        expected = np.mean([(possible[x] & ~possible[z]).any() for x in range(70) for z in range(70) if x != z])
        assert 0 < expected < 1
        supports = Supports()
        scan(fitted(recipe), [supports])
        assert supports.infinite_share().share == pytest.approx(expected)
        assert supports.infinite_share().is_exact

    def test_many_different_supports_are_sampled_and_said_so(self, monkeypatch):
        monkeypatch.setattr("leakboard.privacy.exact.supports.DISTINCT", 40)
        supports = Supports()
        scan(fitted(TEMAsInPyPantera(epsilon=9.0)), [supports])
        assert not supports.infinite_share().is_exact
        assert 0 < supports.infinite_share().share < 1


class TestBayes:
    def test_the_success_is_that_of_all_guesses(self):
        probabilities, prior = np.exp(matrix(fitted(SanText(epsilon=1.0)))), SPACE.frequencies / SPACE.frequencies.sum()
        guess = BestGuess(SPACE.frequencies)
        scan(fitted(SanText(epsilon=1.0)), [guess])
        joint = prior[:, None] * probabilities
        assert guess.success_over(SPACE.frequencies) == pytest.approx(joint.max(0).sum(), rel=1e-12)
        expected = [probabilities[x, joint.argmax(0) == x].sum() for x in range(70)]
        assert np.allclose(guess.success(), expected, rtol=1e-12)

    def test_no_guess_beats_it_and_a_known_channel_has_its_value(self):
        """Randomised response with ln 3 over three equally frequent words: the published word is right in 0.6."""
        guess = BestGuess(np.ones(3))
        scan(fitted(RandomisedResponse(epsilon=np.log(3)), space_of(np.zeros((3, 1)))), [guess])
        assert np.allclose(guess.success(), 0.6)

    def test_words_that_never_occur_are_never_guessed(self):
        guess = BestGuess(np.array([1.0, 0.0, 1.0]))
        scan(fitted(RandomisedResponse(epsilon=np.log(3)), space_of(np.zeros((3, 1)))), [guess])
        assert guess.success()[1] == 0
        assert guess.success_over(np.array([1.0, 0.0, 1.0])) == pytest.approx(0.7)  # 0.6, and half of the third word's


class TestDeniability:
    def test_values_are_those_of_the_definition_and_of_runs(self):
        channel, reading = fitted(SanText(epsilon=2.0)), Deniability(70, runs=25)
        scan(channel, [reading])
        probabilities = np.exp(matrix(channel))
        assert np.allclose(reading.kept, np.diag(probabilities))
        assert np.allclose(reading.outputs, (1 - (1 - probabilities) ** 25).sum(1))
        runs = [len(set(channel.sample(np.full(25, 9), rng(seed)).tolist())) for seed in range(200)]
        assert abs(np.mean(runs) - reading.outputs[9]) < 4 * np.std(runs) / np.sqrt(200)

    def test_a_word_that_always_stays_has_one_output(self):
        reading = Deniability(60)
        scan(fitted(RandomisedResponse(epsilon=1e6), LINE), [reading])
        assert np.array_equal(reading.kept, np.ones(60))
        assert np.array_equal(reading.outputs, np.ones(60))


class TestCalibration:
    def test_randomised_response_is_calibrated_as_it_is(self):
        assert calibrate(RandomisedResponse(epsilon=9.0), SPACE, 2.0).epsilon == pytest.approx(2, rel=1e-3)

    @pytest.mark.parametrize("recipe", [SanText(epsilon=1.0), TEM(epsilon=1.0)])
    @pytest.mark.parametrize("epsilon", [0.1, 3.0, 9.0])
    def test_the_true_epsilon_is_the_one_asked_for(self, recipe, epsilon):
        calibrated = calibrate(recipe, SPACE, epsilon)
        assert 0.999 * epsilon <= true_epsilon(calibrated, SPACE) <= epsilon
        assert true_epsilon(replace(calibrated, epsilon=1.1 * calibrated.epsilon), SPACE) > epsilon

    @pytest.mark.parametrize("recipe", [CusText(epsilon=1.0, size=7), SanTextPlus(epsilon=1.0)])
    def test_a_mechanism_that_proves_inputs_has_no_epsilon(self, recipe):
        with pytest.raises(RequestError, match="the true epsilon is infinite even at the option"):
            calibrate(recipe, SPACE, 3.0)

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
    def test_the_true_epsilon_asked_for_is_a_number_above_zero(self, epsilon):
        with pytest.raises(RequestError, match="is not allowed: above 0, not infinite"):
            calibrate(SanText(epsilon=1.0), SPACE, epsilon)

    def test_a_jump_over_the_true_epsilon_is_an_error_that_names_both_sides(self, monkeypatch):
        steps = lambda recipe, *_: 1.0 if recipe.epsilon < 2.5 else 4.0  # noqa: E731
        monkeypatch.setattr("leakboard.privacy.exact.calibration.true_epsilon", steps)
        with pytest.raises(RequestError, match=r"3 is jumped over: 1 at the option epsilon=2\.5, and 4 at 2\.5"):
            calibrate(SanText(epsilon=1.0), SPACE, 3.0)

    def test_an_interval_is_halved(self, monkeypatch):
        """Guesses by proportion would creep: the true epsilon is 10 + ln(option)."""
        asked = []

        def slow(recipe, *_):
            asked.append(recipe.epsilon)
            return max(0.0, 10 + math.log(recipe.epsilon))

        monkeypatch.setattr("leakboard.privacy.exact.calibration.true_epsilon", slow)
        assert 4.995 <= slow(calibrate(SanText(epsilon=1.0), SPACE, 5.0)) <= 5
        assert len(asked) < 20

    def test_tem_does_not_reach_every_true_epsilon(self):
        """Its weights differ by at most (1 - beta) (V - 1) / beta. At a large epsilon all sums of weights are equal."""
        with pytest.raises(RequestError) as caught:
            calibrate(TEM(epsilon=1.0), SPACE, 40.0)
        reached = "at most 11.14 at the option epsilon=1e+06"
        assert str(caught.value) == f"calibrate: a true epsilon of 40 is out of reach: {reached}"
        assert true_epsilon(TEM(epsilon=1e4), SPACE) <= np.log(999 * 69) + 1e-9
