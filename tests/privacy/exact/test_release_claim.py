"""Exact audits as claims: the claimed, proved and computed epsilon, and a witness that can be checked by hand."""

import math

import numpy as np
import pytest

from leakboard.privacy.channels.custext import CusTextAsInPyPantera
from leakboard.privacy.channels.noisy_vectors import MultivariateLaplace
from leakboard.privacy.channels.randomised_response import RandomisedResponse
from leakboard.privacy.channels.santext import FittedSanText, SanText, SanTextPlus
from leakboard.privacy.channels.unknown_words import with_unknown_words
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.audit import audit_channel
from leakboard.privacy.exact.calibration import calibrate
from leakboard.privacy.exact.release_claim import release_claim

LINE = WordSpace(["near", "middle", "far"], np.array([[0.0], [1.0], [3.0]]))


def claim(recipe, space=LINE, calibrated=None, nearest=50):
    channel = recipe.fit(space, np.random.default_rng(0))
    audit = audit_channel(channel, np.random.default_rng(0), nearest=nearest)
    return release_claim(channel, audit, "name", calibrated)


def test_the_textbook_control_uses_its_whole_claim():
    found = claim(RandomisedResponse(epsilon=2.0))
    assert (found.epsilon, found.distance, found.unit, found.caveat) == (2.0, None, "word", "")
    assert found.proved == found.exact == pytest.approx(2.0, abs=1e-12)
    assert found.exact <= 2.0  # rounding does not violate a claim


def test_santext_leaves_a_part_of_its_claim_unused():
    """By hand: of near and middle, whose distance is 1, the output near has the largest ratio."""
    sums = [sum(math.exp(-abs(x - y)) for y in (0, 1, 3)) for x in (0, 1)]
    found = claim(SanText(epsilon=2.0))
    assert found.distance == "euclidean"
    by_hand = [1 + math.log(sums[1] / sums[0]), 1 - math.log(sums[1] / sums[0])]
    assert found.proved == found.exact
    assert found.exact >= max(by_hand) - 1e-12
    assert found.exact < 2.0


def test_pairs_that_were_not_compared_are_covered_by_the_proof_alone():
    many = WordSpace([f"w{i}" for i in range(30)], np.random.default_rng(1).normal(size=(30, 3)))
    found = claim(SanText(epsilon=2.0), many, nearest=2)
    assert found.exact < found.proved == 2.0


def test_a_violated_claim_has_no_proof_and_a_witness():
    found = claim(CusTextAsInPyPantera(epsilon=1.0, size=2))
    assert (found.proved, found.exact) == (math.inf, math.inf)
    assert "a witness against it: P(" in found.caveat
    assert found.caveat.endswith("= 0")


def test_what_a_claim_says_nothing_about_is_said():
    found = claim(SanTextPlus(epsilon=1.0))
    assert found.caveat == "about outputs that are sensitive words; plus 1.2 at any distance"


def test_a_calibrated_channel_claims_its_exact_epsilon_between_any_words():
    recipe = calibrate(SanText(epsilon=1.0), LINE, 1.0)
    found = claim(recipe, calibrated=1.0)
    assert (found.epsilon, found.distance) == (1.0, None)
    assert found.proved == found.exact
    assert 0.999 <= found.exact <= 1.0


def test_kept_words_violate_the_epsilon_that_a_channel_was_calibrated_to():
    """An unknown word alone gives itself: no rounding."""
    known = RandomisedResponse(epsilon=1.0).fit(LINE, np.random.default_rng(0))
    channel = with_unknown_words(known, ["a", "b"], 0, "kept")
    audit = audit_channel(channel, np.random.default_rng(0))
    found = release_claim(channel, audit, "name", calibrated=1.0)
    assert (found.epsilon, found.proved, found.exact) == (1.0, math.inf, math.inf)
    assert found.caveat.startswith("a witness against it: P(")
    assert found.caveat.endswith("= 0")


def test_without_a_matrix_there_is_only_the_papers_proof():
    channel = MultivariateLaplace(epsilon=1.0).fit(LINE, np.random.default_rng(0))
    found = release_claim(channel, None, "name")
    assert (found.proved, found.exact) == (1.0, None)


class Approximate(FittedSanText):
    precision = "approximate"


def test_rows_of_an_approximate_matrix_show_nothing():
    channel = Approximate(LINE, 1.0)
    found = release_claim(channel, audit_channel(channel, np.random.default_rng(0)), "name")
    assert (found.proved, found.exact) == (1.0, None)


def test_a_channel_calibrated_by_an_approximate_matrix_has_no_exact_epsilon():
    channel = Approximate(LINE, 1.0)
    found = release_claim(channel, audit_channel(channel, np.random.default_rng(0)), "name", calibrated=5.0)
    assert (found.epsilon, found.proved, found.exact) == (5.0, math.inf, None)
