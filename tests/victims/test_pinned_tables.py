"""Pin tables and claims of small recipes, so that published numbers stay.

Vectors are compared to four digits, since another processor adds in another order. Another random stream changes all.
"""

import numpy as np
import pytest
from marks import with_slow

from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.victims._private_word2vec.private_training import stream_names
from leakboard.victims.dp_word2vec import DPWord2Vec
from leakboard.victims.dp_word2vec_as_published import DPWord2VecAsPublished

SMALL = {"steps": 20, "delta": 1e-3, "vector_size": 4}
BY_USER = {"noise_multiplier": 4.0, "expected_batch_size": 4, "vocabulary": "exact", "budgets": (0.2, 0.4, 9.0)}
RELEASED = {"noise_multiplier": 5.0, "clipping_norm": 0.01, "expected_batch_size": 128, "learning_rate": 0.0078125}
NONE_DP = {"noise_multiplier": 0.0, "expected_batch_size": 64, "vocabulary": "exact", "learning_rate": 0.1}
PINNED = {
    "pairs": (
        DPWord2Vec(epsilon=6.0, expected_batch_size=64, vocabulary_noise=1.0, checkpoints=(5, 10), **SMALL),
        (174, [0.09921233, 0.1039088, 0.03158481, 0.06788625], 43.9539, 6.0),
    ),
    "pairs in order": (
        DPWord2Vec(
            noise_multiplier=2.0, expected_batch_size=64, vocabulary="exact", min_count=2, sampling="fixed", **SMALL
        ),
        (314, [-0.2807873, -0.1904321, -0.08195868, -0.0142282], 118.2043, 0.1041781419),
    ),
    "users, filter": (
        DPWord2Vec(unit="user", **BY_USER, **SMALL),
        (118, [0.01264243, -0.01338061, 0.1876195, 0.5031846], 71.00308, 1.07801364),
    ),
    "users, accounting of the paper": (
        DPWord2VecAsPublished(variant="paper_accounting", **BY_USER, **SMALL),
        (118, [-0.2286538, 0.2220135, -0.2704519, -0.3222561], 74.36291, 9.0),
    ),
    "released code": (
        DPWord2VecAsPublished(variant="released_code", vocabulary="exact", **RELEASED, **SMALL),
        (118, [-0.06418332, 0.07511326, -0.09424148, 0.04226194], 28.77142, 3.08947106),
    ),
    "no noise": (
        DPWord2Vec(window=2, negative=3, max_words=30, **NONE_DP, **SMALL),
        (30, [-0.02717732, -0.09463035, 0.03469869, 0.06726687], 7.864248, None),
    ),
}


@pytest.fixture(scope="module")
def reviews():
    return GeneratedReviews(users=20, texts_per_user=3).load().only("train", "dev")


@pytest.mark.parametrize("name", with_slow(PINNED, "pairs"))
def test_tables_and_claims_are_those_that_were_published(reviews, name):
    victim, (words, first, total, epsilon) = PINNED[name]
    fitted = victim.fit(reviews, 7)
    assert (len(fitted.vocabulary), fitted.vocabulary[0]) == (words, "the")
    np.testing.assert_allclose(fitted.vectors[0], first, rtol=1e-4, atol=1e-5)
    assert np.abs(fitted.vectors).sum() == pytest.approx(total, rel=1e-4)
    assert (fitted.claim and fitted.claim.epsilon) == (epsilon and pytest.approx(epsilon, rel=1e-8))


def test_another_stream_gives_another_table(reviews):
    """The tolerance detects a changed stream name, even if the option has no effect here."""
    _, first, total, _ = PINNED["users, filter"][1]
    fitted = DPWord2Vec(unit="user", min_count=5, max_words=49_999, **BY_USER, **SMALL).fit(reviews, 7)
    assert len(fitted.vectors) == 118
    assert np.abs(fitted.vectors[0] - first).max() > 0.01
    assert np.abs(fitted.vectors).sum() != pytest.approx(total, rel=1e-3)


def test_every_option_but_the_published_step_names_the_streams():
    options = {"delta": 1e-3, "clipping_norm": 0.5, "expected_batch_size": 7, "steps": 9, "checkpoints": (2, 4)}
    options |= {"learning_rate": 0.1, "vector_size": 3, "window": 2, "negative": 6, "vocabulary": "exact"}
    options |= {"vocabulary_noise": 2.0, "min_count": 1, "max_words": 10, "published_step": 4}
    middle = (7, 9, (2, 4), None, 0.1, 3, 2, 6, "exact", 2.0, 1, 10)
    sound = DPWord2Vec(unit="document", epsilon=2.0, noise_multiplier=3.0, sampling="fixed", **options)
    assert stream_names(sound) == ("document", 2.0, 1e-3, 3.0, 0.5, "fixed", *middle, None, "filter", False)
    released = DPWord2VecAsPublished(variant="released_code", noise_multiplier=3.0, **options)
    assert stream_names(released) == ("pair", None, 1e-3, 3.0, 0.5, "poisson", *middle, None, "filter", True)
    accounting = DPWord2VecAsPublished(variant="paper_accounting", noise_multiplier=3.0, budgets=[1.0], **options)
    assert stream_names(accounting) == ("user", None, 1e-3, 3.0, 0.5, "poisson", *middle, (1.0,), "paper", False)
