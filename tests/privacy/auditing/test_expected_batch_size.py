"""A divisor that depends on the number of records breaks the claim of a private step.

Opacus (1.0 to 1.6) samples each of n records with probability q and adds noise s C to the sum of clipped gradients. It
then divides by the expected batch size rounded down, floor(q n), but its accountant counts only the noisy sum. With one
record more, the divisor and so the size of the noise may differ: its open questions 571 (few records) and 819 (many
coordinates). Dividing by a public number is sound. Private training here does so: its learning rate multiplies the sum,
and neighbours have the same number of units.
"""

import math

import numpy as np
import pytest

from leakboard.data.corpora import with_texts
from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.interfaces import Texts
from leakboard.privacy.accounting.accountant import epsilon_at, gaussian_releases
from leakboard.privacy.auditing.bound import bound_from_counts
from leakboard.victims._private_word2vec.private_training import plan
from leakboard.victims.dp_word2vec import DPWord2Vec

RATE, NOISE, DELTA, DRAWS = 0.5, 4.0, 1e-5, 20_000
CLAIMED = epsilon_at(gaussian_releases(NOISE, 1, RATE), DELTA)


def releases(records, dimensions, divisor, rng):
    """Return DRAWS releases of one step, float (DRAWS, dimensions): gradients of norm 1 along the first coordinate."""
    sums = rng.normal(0.0, NOISE, (DRAWS, dimensions))
    sums[:, 0] += rng.binomial(records, RATE, DRAWS)
    return sums / divisor(records)


def audited(dimensions, divisor):
    """Return the bound on epsilon from the mean square of a release; its threshold comes from the first half."""
    few, many = ((releases(n, dimensions, divisor, np.random.default_rng(n)) ** 2).mean(1) for n in (3, 4))
    half = DRAWS // 2
    threshold = np.quantile(many[:half], 1 - 1e-3)
    hits, misses = (int((side[half:] > threshold).sum()) for side in (few, many))
    return bound_from_counts(hits, misses, (half, half), DELTA, 0.05)


def expected_batch_size(records):
    return math.floor(RATE * records)


@pytest.mark.parametrize("dimensions", [1, 20])
def test_the_floor_of_the_expected_batch_size_is_caught(dimensions):
    """The sums of 3 and 4 records are divided by 1 and 2: few coordinates reveal it, more reveal it surely."""
    assert audited(dimensions, expected_batch_size) > 2 * CLAIMED


@pytest.mark.parametrize("dimensions", [1, 20])
def test_a_public_divisor_is_left_alone(dimensions):
    assert audited(dimensions, lambda records: 2) < CLAIMED


@pytest.mark.parametrize("unit", ["document", "user"])
def test_private_training_has_no_divisor_that_depends_on_a_unit(unit):
    """With and without the unit: the same number of units, sampling, noise and learning rate."""
    corpus = GeneratedReviews(users=60).load()
    options = DPWord2Vec(unit=unit, noise_multiplier=NOISE, steps=3, vocabulary_noise=0.5, epsilon=1e6)
    trainings = [plan(options, with_texts(corpus, [Texts(["good food"])], [count]), 0).training for count in (1, 0)]
    assert len({(training.descent, repr(training.sampler)) for training in trainings}) == 1
