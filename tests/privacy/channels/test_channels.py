"""Channels over a vocabulary: exact matrices, samples that agree with them, and stated behaviour at the edges."""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import get_args

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from leakboard.errors import RequestError
from leakboard.privacy import channels
from leakboard.privacy.channels.channel import DIFFERENT, Channel, Precision
from leakboard.privacy.channels.clusant import CluSanT
from leakboard.privacy.channels.custext import CusText, CusTextAsInPyPantera, CusTextAsReleased
from leakboard.privacy.channels.diffractor import OneDiffractor, tem_place
from leakboard.privacy.channels.randomised_response import ExponentialMechanism, RandomisedResponse
from leakboard.privacy.channels.santext import SanText, SanTextPlus
from leakboard.privacy.channels.tem import TEM, TEMAsInMLDP, TEMAsInPyPantera
from leakboard.privacy.channels.unknown_words import with_unknown_words
from leakboard.privacy.channels.words import WordSpace
from leakboard.victims._channels import CHANNELS


def space_of(vectors, frequencies=None):
    return WordSpace([f"w{i}" for i in range(len(vectors))], np.asarray(vectors, np.float32), frequencies)


def rng(seed=0):
    return np.random.default_rng(seed)


CENTRES = rng().normal(size=(6, 4)) * 3
SPACE = space_of(CENTRES[rng(1).integers(0, 6, 60)] + rng(2).normal(size=(60, 4)), rng(3).integers(1, 99, 60) * 1.0)
TWINS = space_of(np.repeat(SPACE.vectors[:10], 2, axis=0))
LINE = space_of(np.arange(60)[:, None] * 0.05)
RECIPES = [
    RandomisedResponse(epsilon=2.0),
    ExponentialMechanism(epsilon=2.0),
    ExponentialMechanism(epsilon=2.0, score="euclidean"),
    SanText(epsilon=2.0),
    SanTextPlus(epsilon=2.0, sensitive=0.5),
    TEM(epsilon=6.0),
    TEMAsInMLDP(epsilon=6.0),
    TEMAsInPyPantera(epsilon=6.0),
    CusText(epsilon=2.0, size=7),
    CusText(epsilon=2.0, size=7, kept=("w3", "w4")),
    CusTextAsReleased(epsilon=2.0, size=7),
    CusTextAsInPyPantera(epsilon=2.0, size=7),
    CusTextAsInPyPantera(epsilon=2.0, size=7, score="cosine"),
    CluSanT(epsilon=2.0, clusters=8),
    OneDiffractor(epsilon=0.3),
    OneDiffractor(epsilon=0.3, public_seed=42),
    OneDiffractor(epsilon=1.0, method="tem"),
    OneDiffractor(epsilon=0.3, method="tem", public_seed=42),
]
every = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)


def fitted(recipe, space=SPACE):
    return recipe.fit(space, rng())


def matrix(channel):
    return channel.log_probabilities(np.arange(len(channel)))


def largest_ratio(channel):
    """Loop over all pairs: the largest ln P(y | x) - ln P(y | x') - additive, over the claim's epsilon d."""
    logs, everything = matrix(channel)[:, channel.claimed_outputs], np.arange(len(channel))
    distances, worst = channel.distances(everything, everything), 0.0
    for first in everything:
        for second in everything:
            possible = np.isfinite(logs[first])
            with np.errstate(invalid="ignore"):
                gap = (logs[first] - logs[second])[possible].max(initial=0) - channel.claim.additive
            if gap > 1e-9:
                distance = distances[first, second]
                allowed = channel.claim.epsilon * distance
                worst = max(worst, gap / allowed if allowed else np.inf) if np.isfinite(allowed) else worst
    return worst


class TestEveryChannel:
    @every
    @pytest.mark.parametrize("space", [SPACE, TWINS, space_of([[0.0], [1.0]])], ids=["words", "twins", "two words"])
    def test_rows_sum_to_one(self, recipe, space):
        logs = matrix(fitted(recipe, space))
        assert logs.shape == (len(space), len(space))
        assert not np.isnan(logs).any()
        assert np.abs(np.exp(logs).sum(1) - 1).max() < 1e-12

    @every
    def test_rows_do_not_depend_on_the_rows_asked_with_them(self, recipe):
        channel = fitted(recipe)
        rows = np.array([41, 3, 3])
        assert np.allclose(channel.log_probabilities(rows), matrix(channel)[rows], rtol=1e-12)

    @every
    def test_samples_agree_with_the_matrix(self, recipe):
        """And not with the row of another word, unless the rows are equal."""
        channel = fitted(recipe)
        drawn = np.bincount(channel.sample(np.full(20_000, 5), rng(7)), minlength=60)
        rows = np.exp(matrix(channel))
        assert is_drawn_from(drawn, rows[5])
        other = np.abs(rows - rows[5]).sum(1).argmax()
        assert not is_drawn_from(drawn, rows[other])

    @every
    def test_a_huge_epsilon_gives_no_overflow(self, recipe):
        logs = matrix(fitted(replace(recipe, epsilon=1e6)))
        assert np.abs(np.exp(logs).sum(1) - 1).max() < 1e-12

    @every
    @pytest.mark.parametrize("epsilon", [0.0, -1.0, np.inf, np.nan])
    def test_epsilon_is_a_number_above_zero(self, recipe, epsilon):
        with pytest.raises(ValidationError):
            type(recipe)(epsilon=epsilon)

    @every
    def test_words_with_equal_vectors_are_treated_alike_if_the_claim_is_about_distances(self, recipe):
        channel = fitted(recipe, TWINS)
        if channel.claim.distance == "Euclidean" and not isinstance(recipe, SanTextPlus | TEMAsInPyPantera):
            assert np.array_equal(matrix(channel)[::2], matrix(channel)[1::2])


def is_drawn_from(counts, probabilities):
    """Chi-square test at 0.1 %, with rare outputs pooled."""
    order = np.argsort(probabilities)
    expected, counts = (counts.sum() * probabilities)[order], counts[order]
    rare = max(1, int((expected.cumsum() < 10).sum()))
    expected, counts = (np.append(values[:rare].sum(), values[rare:]) for values in (expected, counts))
    if expected[0] < 1e-9:
        if counts[0]:
            return False
        expected, counts = expected[1:], counts[1:]
    return len(counts) == 1 or stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


def test_every_recipe_has_one_name():
    modules = [import_module(f"{channels.__name__}.{module.name}") for module in iter_modules(channels.__path__)]
    classes = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    recipes = {value for value in classes if issubclass(value, Channel) and "__leakboard_revision__" in vars(value)}
    assert recipes == set(CHANNELS.values())
    assert len(recipes) == len(CHANNELS)


@pytest.mark.parametrize("name", CHANNELS)
def test_every_named_channel_has_a_matrix_that_agrees_with_its_samples_and_a_claim(name):
    """On a line of six words, where each of them has a matrix."""
    space = space_of(np.array([0.0, 1.0, 2.5, 4.0, 6.0, 9.0])[:, None])
    channel = fitted(CHANNELS[name](epsilon=12.0 if name == "truncated_gumbel_mldp" else 0.7), space)
    rows = np.exp(matrix(channel))
    assert np.abs(rows.sum(1) - 1).max() < 1e-12
    drawn = np.bincount(channel.sample(np.full(2_000, 2), rng(7)), minlength=6)
    assert is_drawn_from(drawn, rows[2])
    assert 0 < channel.claim.epsilon < np.inf
    assert channel.claim.distance
    assert channel.distances(np.arange(6), np.arange(6)).shape == (6, 6)
    assert channel.precision in get_args(Precision)


@pytest.mark.parametrize(("recipe", "field", "largest"), [(CusText, "size", 1_000), (CluSanT, "clusters", 5_000)])
def test_options_that_take_memory_are_bounded(recipe, field, largest):
    recipe(epsilon=1.0, **{field: largest})
    with pytest.raises(ValidationError):
        recipe(epsilon=1.0, **{field: largest + 1})


@pytest.mark.parametrize(("clusters", "expected"), [(1, 1), (8, 9), (40, 60)])
def test_the_number_of_clusters_follows_from_their_size(clusters, expected):
    """60 words: 8 clusters ask for floor(60 / 8) = 7 words each, which makes ceil(60 / 7) = 9 clusters."""
    channel = fitted(CluSanT(epsilon=1.0, clusters=clusters))
    assert channel.cluster_of.max() + 1 == expected
    distances = SPACE.euclidean(np.arange(60))
    within = [distances[np.ix_(channel.cluster_of == c, channel.cluster_of == c)].max() for c in range(expected)]
    assert np.allclose(channel.diameters, within)


class TestWords:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["a"], "vocabulary: its size is 1; allowed: at least 2 words"),
            (["a", "b", "a"], "vocabulary: 'a' is in it 2 times; allowed: once"),
        ],
    )
    def test_a_vocabulary_has_two_different_words(self, words, message):
        with pytest.raises(RequestError) as caught:
            WordSpace(words, np.zeros((len(words), 2)))
        assert str(caught.value) == message

    def test_vectors_and_frequencies_fit_the_words(self):
        for bad in ({"vectors": np.zeros((3, 2))}, {"vectors": np.full((2, 2), np.nan)}):
            with pytest.raises(RequestError, match="vectors of shape"):
                WordSpace(["a", "b"], **bad)
        for frequencies in (np.ones(3), np.array([1.0, -1.0])):
            with pytest.raises(RequestError, match="frequencies"):
                WordSpace(["a", "b"], np.zeros((2, 2)), frequencies)

    def test_small_distances_are_exact_far_from_the_origin(self):
        space = space_of(1000 + np.array([[0.0], [0.0], [2**-10], [5.0]]))
        assert space.euclidean(np.arange(4)).tolist() == [
            [0, 0, 2**-10, 5],
            [0, 0, 2**-10, 5],
            [2**-10, 2**-10, 0, 5 - 2**-10],
            [5, 5, 5 - 2**-10, 0],
        ]


class TestAsInThePapers:
    def test_randomised_response_has_its_known_values_and_uses_its_whole_epsilon(self):
        channel = fitted(RandomisedResponse(epsilon=np.log(3)), space_of(np.zeros((3, 1))))
        assert np.allclose(np.exp(matrix(channel)), np.full((3, 3), 0.2) + 0.4 * np.eye(3), atol=1e-15)
        assert largest_ratio(channel) == pytest.approx(1, abs=1e-10)

    def test_santext_has_hand_worked_values(self):
        """Words at 0, 2 and 6, epsilon 1: weights exp(-1), exp(-3) next to 1."""
        rows = np.exp(matrix(fitted(SanText(epsilon=1.0), space_of([[0.0], [2.0], [6.0]]))))
        weights = np.exp([0, -1, -3])
        assert np.allclose(rows[0], weights / weights.sum(), rtol=1e-14)

    def test_santext_plus_keeps_frequent_words_and_publishes_rare_ones(self):
        space = space_of([[0.0], [1.0], [2.0], [3.0]], np.array([9.0, 8.0, 2.0, 1.0]))
        rows = np.exp(matrix(fitted(SanTextPlus(epsilon=2.0, sensitive=0.5, replaced=0.25), space)))
        share = 1 / (1 + np.exp(-1))
        assert np.allclose(rows[0], [0.75, 0, 0.25 * share, 0.25 * (1 - share)])
        assert np.allclose(rows[3], [0, 0, 1 - share, share])

    def test_tem_has_hand_worked_values(self):
        """Threshold 2 / 2 ln(0.5 * 3 / 0.5) = 1.0986: the words at 2 and 3 have the weight of the threshold."""
        rows = np.exp(matrix(fitted(TEM(epsilon=2.0, beta=0.5), space_of([[0.0], [1.0], [2.0], [3.0]]))))
        weights = np.array([1, np.exp(-1), 1 / 3, 1 / 3])
        assert np.allclose(rows[0], weights / weights.sum(), rtol=1e-14)

    def test_custext_cuts_the_vocabulary_from_the_most_frequent_word_on(self):
        space = space_of([[0.0], [1.0], [3.0], [10.0]], np.array([1.0, 5.0, 1.0, 1.0]))
        rows = np.exp(matrix(fitted(CusText(epsilon=2.0, size=2), space)))
        near = 1 / (1 + np.exp(-1))
        assert np.allclose(rows[:2, :2], [[near, 1 - near], [1 - near, near]])
        assert np.allclose(rows[2:, 2:], [[near, 1 - near], [1 - near, near]])

    def test_the_diffractor_clips_geometric_noise_to_its_list(self):
        """With e^-epsilon = 1/2: P(0) = 1/3 inside, and 2/3 at the end; each place further halves it."""
        channel = fitted(OneDiffractor(epsilon=np.log(2)), space_of([[0.0], [3.0], [1.0]]))
        assert channel.order.tolist() == [0, 2, 1]
        assert np.allclose(
            np.exp(matrix(channel))[[0, 2, 1]][:, channel.order], [[4, 1, 1], [2, 2, 2], [1, 1, 4]] / np.array(6)
        )

    @pytest.mark.parametrize(
        "recipe",
        [
            recipe
            for recipe in RECIPES
            if "As" not in type(recipe).__name__ and getattr(recipe, "public_seed", None) is None
        ],
        ids=lambda recipe: type(recipe).__name__,
    )
    @pytest.mark.parametrize("space", [SPACE, TWINS], ids=["words", "twins"])
    def test_the_claim_holds(self, recipe, space):
        assert 0 < largest_ratio(fitted(recipe, space)) <= 1 + 1e-9


class TestAsReleased:
    @pytest.mark.parametrize(
        "recipe",
        [
            TEMAsInMLDP(epsilon=14.0),
            TEMAsInPyPantera(epsilon=14.0),
            CusTextAsReleased(epsilon=2.0, size=7),
            CusTextAsInPyPantera(epsilon=2.0, size=7),
            OneDiffractor(epsilon=0.3, public_seed=42),
            OneDiffractor(epsilon=0.3, method="tem", public_seed=42),
        ],
        ids=lambda recipe: type(recipe).__name__,
    )
    def test_the_claim_is_violated(self, recipe):
        assert largest_ratio(fitted(recipe, LINE)) > 1.05

    @pytest.mark.parametrize("rule", ["token", "kept", "uniform"])
    @pytest.mark.parametrize("known", [SanText(epsilon=2.0), CusText(epsilon=2.0, size=7)])
    def test_unknown_words_are_proved_by_themselves_unless_a_token_stands_for_them(self, known, rule):
        channel = with_unknown_words(fitted(known), ["new", "newer"], 4, rule)
        assert np.abs(np.exp(matrix(channel)).sum(1) - 1).max() < 1e-12
        assert largest_ratio(channel) <= 1 + 1e-9 if rule == "token" else np.isinf(largest_ratio(channel))

    def test_unknown_words_are_published_by_their_rule(self):
        known = fitted(SanText(epsilon=2.0))
        rows = {
            rule: np.exp(matrix(with_unknown_words(known, ["new"], 4, rule)))[60]
            for rule in ("token", "kept", "uniform")
        }
        assert np.allclose(rows["token"], np.append(np.exp(matrix(known))[4], 0))
        assert np.array_equal(rows["kept"], np.eye(61)[60])
        assert np.allclose(rows["uniform"], 1 / 61)

    def test_a_known_word_is_no_unknown_word(self):
        with pytest.raises(RequestError, match="'w3' is in it 2 times"):
            with_unknown_words(fitted(SanText(epsilon=2.0)), ["w3"], 0, "kept")

    def test_noise_of_a_public_seed_is_drawn_again(self):
        """NumPy's generator of the package's first worker; without the seed both ends of the list stay possible."""
        channel = fitted(OneDiffractor(epsilon=0.3, public_seed=42))
        worker = np.random.default_rng(np.random.SeedSequence(42).spawn(8)[0])
        noise = worker.geometric(1 - np.exp(-0.3)) - worker.geometric(1 - np.exp(-0.3))
        place = np.argsort(channel.order)
        published = channel.sample(np.arange(60), rng())
        assert np.array_equal(place[published], np.clip(place + noise, 0, 59))

    def test_tem_in_a_list_draws_by_its_matrix(self):
        """The released order of draws, with a secret seed; beyond five places all words are equally likely."""
        channel, generator = fitted(OneDiffractor(epsilon=1.0, method="tem")), rng(7)
        row = np.exp(channel.log_probabilities(channel.order[3:4])[0])[channel.order]
        weights = np.exp(-np.minimum(np.abs(np.arange(60) - 3), 5) / 2)
        assert np.allclose(row, weights / weights.sum(), rtol=1e-14)
        drawn = np.bincount([tem_place(generator, 3, 60, 5, 1.0) for _ in range(6_000)], minlength=60)
        assert stats.chisquare(drawn, 6_000 * row).pvalue > 1e-3

    def test_tem_in_a_short_list_has_no_word_outside(self):
        channel = fitted(OneDiffractor(epsilon=1.0, method="tem"), space_of(np.arange(4)[:, None]))
        assert np.allclose(np.exp(matrix(channel)).sum(1), 1)
        assert {tem_place(rng(seed), 0, 4, 5, 1.0) for seed in range(50)} == {0, 1, 2, 3}

    def test_pypantera_publishes_the_input_instead_of_a_word_outside(self):
        """The words outside weigh n_out exp(-eps gamma / 2) together."""
        space, recipe = space_of([[0.0], [1.0], [9.0], [9.5]]), TEMAsInPyPantera(epsilon=2.0, beta=0.5)
        rows = np.exp(matrix(fitted(recipe, space)))
        weights = np.array([1 + 2 / 3, np.exp(-1), 0, 0])
        assert np.allclose(rows[0], weights / weights.sum(), rtol=1e-14)

    def test_mldp_weighs_the_words_outside_by_the_list_that_it_ships(self):
        space = space_of([[0.0], [1.0], [90.0], [95.0]])
        rows = np.exp(matrix(fitted(TEMAsInMLDP(epsilon=2.0), space)))
        gamma = round(np.log(999 * 4), 1)
        outside = np.exp(-gamma) * 34_573 / 2
        weights = np.array([1, np.exp(-1), outside / 2, outside / 2])
        assert np.allclose(rows[0], weights / weights.sum(), rtol=1e-14)

    def test_released_custext_publishes_words_of_earlier_sets_for_late_words(self):
        """In a partition a word's set is the set of each of its words."""
        released, paper = fitted(CusTextAsReleased(epsilon=2.0, size=7)), fitted(CusText(epsilon=2.0, size=7))
        for channel, is_partition in ((released, False), (paper, True)):
            supports = np.isfinite(matrix(channel))
            assert np.array_equal(supports, supports.T) == is_partition

    def test_released_custext_fills_late_sets_with_the_last_words_of_earlier_ones(self):
        """The first set is a, b, c. For d all of these have the similarity 0, and the code takes the last one first."""
        space = space_of([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.0, 1.0]])
        channel = fitted(CusTextAsReleased(epsilon=1.0, size=3), space)
        assert channel.sets[3].tolist() == [3, 2, 1]

    def test_a_claim_about_sets_names_kept_words(self):
        channel = fitted(CusText(epsilon=2.0, size=7, kept=("w3",)))
        assert channel.claim.scope == "words that are not kept and whose sets share a word"
        assert np.isinf(np.delete(channel.distances(np.array([3]), np.arange(60))[0], 3)).all()

    def test_local_privacy_has_distance_one(self):
        channel = fitted(RandomisedResponse(epsilon=1.0))
        assert channel.claim.distance == DIFFERENT
        assert channel.distances(np.array([2, 3]), np.array([3, 4])).tolist() == [[1, 1], [0, 1]]
