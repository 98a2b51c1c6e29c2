"""The law of the noise: densities are right, known laws are found, and a text is linked once."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from leakboard.attacks._alignment.noise_law import (
    NOT_SURE,
    SCALES,
    Ball,
    NoiseLaw,
    Normal,
    largest_odds,
    once,
    taken,
)
from leakboard.privacy.protections.noise import directions

RNG = np.random.default_rng(0)


def law_in_a_plane():
    noise, between = np.array([[0.5, 0.1], [0.1, 0.2]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    background = np.array([[0, 0], [3, 1]], np.float32)
    return NoiseLaw(2.0, Normal(noise), between, background, pairs=10)


def test_odds_are_those_of_bayes_rule():
    law, vectors = law_in_a_plane(), np.array([[0.4, 0.2], [5.0, 2.0]], np.float32)
    candidates = np.array([[0, 0], [3, 1], [1, 4]], np.float32)
    found = law.log_odds(vectors, candidates)
    for row, vector in enumerate(vectors / 2):
        direct = np.array([multivariate_normal.pdf(vector - c, cov=law.noise.covariance) for c in candidates])
        unknown = np.mean(
            [
                multivariate_normal.pdf(vector - b, cov=law.noise.covariance + t * law.between)
                for b in law.background
                for t in SCALES
            ]
        )
        for column, density in enumerate(direct):
            others = (direct.sum() - density) / 2
            assert found[row, column] == pytest.approx(np.log(density / (others + unknown)), abs=1e-3)


def test_the_law_of_planted_noise_is_found():
    texts = RNG.normal(size=(4_000, 8)).astype(np.float32) * 5
    spread = np.linspace(0.1, 0.5, 8)
    mapped = (3 * (texts + RNG.normal(size=texts.shape) * spread)).astype(np.float32)
    law = NoiseLaw.fit(mapped, texts, np.random.default_rng(1))
    assert law.pairs > 2_000
    assert law.factor == pytest.approx(3, rel=0.01)
    assert np.sqrt(np.diag(law.noise.covariance)) == pytest.approx(spread, rel=0.25)
    assert law.noise.covariance.shape == law.between.shape == (8, 8)


def test_vectors_without_noise_have_finite_odds():
    texts = RNG.normal(size=(200, 6)).astype(np.float32)
    law = NoiseLaw.fit(texts, texts, np.random.default_rng(1))
    odds = law.log_odds(texts, texts)
    assert np.isfinite(odds).all()
    assert (odds.argmax(1) == np.arange(200)).all()
    cosines = (texts / np.linalg.norm(texts, axis=1)[:, None]) @ (texts / np.linalg.norm(texts, axis=1)[:, None]).T
    np.fill_diagonal(cosines, -1)
    between = ((texts - texts[cosines.argmax(1)]) ** 2).sum(1).mean()
    assert np.trace(law.between) == pytest.approx(between, rel=1e-3)


def test_odds_find_more_texts_than_cosines_if_noise_has_directions():
    texts = RNG.normal(size=(600, 16)).astype(np.float32)
    spread = np.where(np.arange(16) % 2, 1.5, 0.05)
    mapped = (texts + RNG.normal(size=texts.shape) * spread).astype(np.float32)
    law = NoiseLaw.fit(mapped, texts, np.random.default_rng(1))
    unit = [rows / np.linalg.norm(rows, axis=1)[:, None] for rows in (mapped, texts)]
    by_odds, by_cosine = (scores.argmax(1) for scores in (law.log_odds(mapped, texts), unit[0] @ unit[1].T))
    right = np.arange(600)
    assert np.mean(by_odds == right) > np.mean(by_cosine == right) + 0.3


def in_a_ball(count, dimension, radius, rng):
    return radius * rng.random((count, 1)) ** (1 / dimension) * directions(count, dimension, rng)


def test_the_law_of_a_ball_finds_texts_that_a_normal_law_does_not():
    rng = np.random.default_rng(2)
    texts = rng.normal(size=(1_500, 60)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1)[:, None]
    stored = np.concatenate([texts[:300], rng.normal(size=(300, 60)) / 60**0.5])  # half are of unknown texts
    mapped = (7 * (stored + in_a_ball(600, 60, 1.2, rng))).astype(np.float32)
    ball = NoiseLaw.fit(mapped, texts, np.random.default_rng(1), radius=1.2)
    assert ball.factor == pytest.approx(7, rel=0.01)
    normal = NoiseLaw.fit(mapped, texts, np.random.default_rng(1))
    found = {}
    for name, law in (("ball", ball), ("normal", normal)):
        odds = law.log_odds(mapped, texts)
        linked = odds.max(1) > np.quantile(odds[300:].max(1), 0.99)
        found[name] = np.mean((linked & (odds.argmax(1) == np.arange(600)))[:300])
    assert found["ball"] > found["normal"] + 0.1


def test_no_text_within_the_ball_is_no_law():
    far = np.full((5, 4), 100, np.float32)
    assert NoiseLaw.fit(far * np.arange(5)[:, None], np.eye(4, dtype=np.float32), RNG, radius=1e-3) is None


def test_a_ball_has_the_same_density_everywhere_and_none_outside():
    at = np.array([[0, 0], [1.9, 0], [2.1, 0]], np.float32)
    inside, near_the_edge, outside = Ball(2).log_density(at, Ball(2).prepared(np.zeros((1, 2), np.float32)))[:, 0]
    assert inside == pytest.approx(0, abs=1e-3)
    assert near_the_edge == pytest.approx(0, abs=1e-3)
    assert outside < -40


def test_the_density_of_a_blurred_ball_is_the_share_of_draws_in_the_ball():
    rng, d = np.random.default_rng(3), 30
    covariance = np.diag(np.linspace(0.005, 0.02, d))
    law, at = Ball(1).plus(covariance), np.zeros((3, d), np.float32)
    at[:, 0] = 0.3, 0.8, 1.0
    draws = rng.multivariate_normal(np.zeros(d), covariance, 40_000)
    shares = [(np.linalg.norm(x - draws, axis=1) < 1).mean() for x in at]
    density = np.exp(law.log_density(at, law.prepared(np.zeros((1, d), np.float32)))[:, 0])
    assert density == pytest.approx(shares, abs=0.02)


def test_without_pairs_there_is_no_law():
    assert NoiseLaw.fit(np.ones((1, 3), np.float32), np.ones((4, 3), np.float32), RNG) is None


def test_a_candidate_that_another_vector_explains_is_taken():
    law = law_in_a_plane()
    candidates = np.array([[0, 0], [9, 9]], np.float32)
    near, far = taken(law, np.array([[0, 0], [0.1, 0]], np.float32), candidates)
    assert near > 0.5 > 0.01 > far
    assert (
        largest_odds(law, np.zeros((1, 2), np.float32), candidates)[0]
        == law.log_odds(np.zeros((1, 2), np.float32), candidates).max()
    )


def test_each_candidate_is_surely_linked_to_its_likeliest_vector():
    found = once(np.array([[3.0, 1.0], [5.0, 4.0], [-2.0, 2.0]], np.float32))
    assert found.rows.tolist() == [[0, 1], [0, 1], [1, 0]]
    assert found.similarity.tolist() == [[3 - NOT_SURE, 1 - NOT_SURE], [5, 4], [2, -2]]
