"""Alignment of stolen vectors: each method undoes its map, and finds nothing where nothing is to be found."""

import numpy as np
import pytest

from leakboard.attacks._alignment import rotation
from leakboard.attacks._alignment.align import METHODS, align
from leakboard.attacks._alignment.alignment import Pairs, linear
from leakboard.attacks._alignment.criterion import pair_margin
from leakboard.attacks._alignment.known_encoder import KnownEncoder
from leakboard.attacks._alignment.linear_maps import ridge
from leakboard.attacks._alignment.moments import scale_and_noise
from leakboard.attacks._alignment.permutation import find_order
from leakboard.attacks._alignment.rotation import procrustes
from leakboard.attacks._alignment.transport import transport_plan
from leakboard.errors import RequestError
from leakboard.privacy.protections.whitening import Whitening

ROWS, DIM, CLUSTERS, WIDTH = 500, 16, 20, 0.3


def texts(seed, rows=ROWS, dim=DIM):
    """Draw vectors from one mixture of small clusters with skewed centres, the same for every seed."""
    world, rng = np.random.default_rng(7), np.random.default_rng(seed)
    spread = np.linspace(2, 0.3, dim)
    centres = (world.exponential(size=(CLUSTERS, dim)) - 0.8) * spread
    cluster = rng.choice(CLUSTERS, rows, p=world.dirichlet(np.full(CLUSTERS, 2)))
    return (centres[cluster] + WIDTH * (rng.exponential(size=(rows, dim)) - 1) * spread).astype(np.float32)


def rotation_of(rng, dim=DIM):
    return np.linalg.qr(rng.normal(size=(dim, dim)))[0].astype(np.float32)


def whitened(vectors):
    """Return the principal components, largest first, each divided by its standard deviation."""
    fitted = Whitening().fit(vectors, np.random.default_rng(0))
    return fitted.stored(vectors, np.random.default_rng(0)).astype(np.float32)


def linked(mapped, truth):
    """Share of mapped vectors whose own true vector is the nearest."""
    distances = ((mapped[:, None] - truth[None]) ** 2).sum(2)
    return (distances.argmin(1) == np.arange(len(truth))).mean()


@pytest.fixture
def own():
    return texts(1)


@pytest.fixture
def truth():
    return texts(2)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def pairs_of(truth, stored, count):
    return Pairs(truth[:count], stored[:count])


def test_identity_changes_nothing_and_a_scale_and_a_shift_are_undone(own, truth):
    assert np.array_equal(align(own, truth, method="identity")(truth), truth)
    scaled = align(own, 700 * truth, method="scale")
    assert np.allclose(scaled(700 * truth), truth * (scaled.matrix[0, 0] * 700), atol=1e-4)
    assert scaled.matrix[0, 0] * 700 == pytest.approx(1, abs=0.1)
    shifted = align(own, 3 * (truth - truth.mean(0)), method="scale")(3 * (truth - truth.mean(0)))
    assert linked(shifted, truth) > 0.95
    assert linked(3 * (truth - truth.mean(0)), truth) < 0.5


def test_noise_and_scale_are_told_apart(rng):
    own, truth = texts(1, 4000), texts(2, 4000)
    noisy = 5 * (truth + rng.normal(0, 0.5, truth.shape)).astype(np.float32)
    scale, noise = scale_and_noise(own, noisy)
    assert scale == pytest.approx(5, rel=0.08)
    assert noise == pytest.approx(2.5, rel=0.1)
    assert scale_and_noise(own, np.ones_like(truth)) == (1.0, 0.0)


@pytest.mark.parametrize("noise", [0, 0.7])
def test_a_permutation_is_undone(own, truth, rng, noise):
    order = rng.permutation(DIM)
    stored = 9 * (truth + rng.normal(0, noise, truth.shape).astype(np.float32))[:, order]
    found = align(own, stored, method="permutation")
    assert np.array_equal(found.matrix.argmax(0), np.argsort(order))
    assert found.criterion > 0.3
    assert linked(stored, truth) < 0.05


def test_pairs_place_coordinates_whose_moments_are_alike(rng):
    """Independent Gaussian coordinates are the same to any attacker without pairs."""
    own, truth, order = rng.normal(size=(200, DIM)), rng.normal(size=(200, DIM)), rng.permutation(DIM)
    own, truth = own.astype(np.float32), truth.astype(np.float32)
    blind, informed = (
        find_order(own, truth[:, order], 0, pairs) for pairs in (None, pairs_of(truth, truth[:, order], 10))
    )
    assert np.array_equal(informed, np.argsort(order))
    assert (blind == np.argsort(order)).mean() < 0.5


@pytest.mark.parametrize("noise", [0, 0.1])
def test_a_rotation_is_undone_without_pairs(own, truth, rng, noise):
    stored = 4 * (truth + rng.normal(0, noise, truth.shape).astype(np.float32)) @ rotation_of(rng)
    found = align(own, stored, method="rotation")
    assert linked(found(stored), truth) > 0.98
    assert found.criterion > 0.7
    assert linked(stored, truth) < 0.05


@pytest.mark.parametrize(("starts", "finds"), [(6, False), (79, True)])
def test_more_starts_find_a_rotation_if_third_moments_mislead(own, truth, rng, monkeypatch, starts, finds):
    """Stored texts of other topics have other third moments. Here two of twelve axes seem to be mirrored."""
    moments, mirror = rotation.third_moments, np.ones(12, np.float32)
    mirror[2:4] = -1

    def misleading(values):
        return moments(values * mirror if len(values) < len(own) else values)

    stored = truth[:400] @ rotation_of(rng)
    monkeypatch.setattr(rotation, "third_moments", misleading)
    found = align(own, stored, method="rotation", starts=starts)
    assert (linked(found(stored), truth[:400]) > 0.95) == finds


def test_procrustes_is_exact_with_as_many_pairs_as_dimensions(own, truth, rng):
    stored = truth @ rotation_of(rng)
    assert np.allclose(stored[:50] @ procrustes(stored[:50], truth[:50]), truth[:50], atol=1e-4)
    assert linked(align(own, stored, pairs_of(truth, stored, DIM), "procrustes")(stored), truth) > 0.99
    assert linked(align(own, stored, pairs_of(truth, stored, 3), "procrustes")(stored), truth) < 0.5


def test_ridge_solves_a_linear_system_by_hand():
    """y = 2 x_1 - x_2, without noise: the penalty must be the smallest."""
    stored = np.array([[1, 0], [0, 1], [1, 1], [2, 1]], np.float32)
    assert np.allclose(ridge(Pairs(stored @ np.array([[2], [-1]], np.float32), stored)), [[2], [-1]], atol=1e-4)


def test_a_linear_map_to_other_dimensions_is_undone_with_pairs(own, truth, rng):
    stored = truth @ rng.normal(size=(DIM, 40)).astype(np.float32)
    assert linked(align(own, stored, pairs_of(truth, stored, 100))(stored), truth) > 0.99
    assert linked(align(own, stored, pairs_of(truth, stored, 1), "least_squares")(stored), truth) < 0.3


def test_whitening_needs_fewer_pairs_than_least_squares(own, truth, rng):
    stored = truth @ (rotation_of(rng) * np.logspace(0, 1, DIM)) @ rotation_of(rng)
    known = pairs_of(truth, stored.astype(np.float32), 5)
    shares = {name: linked(align(own, stored, known, name)(stored), truth) for name in ("least_squares", "whitened")}
    assert shares["whitened"] > shares["least_squares"] + 0.1


def test_whitening_is_undone_without_pairs(rng):
    """Whitening has no key: own components have the order and nearly the directions of those of the stored texts."""
    centres = (np.random.default_rng(7).exponential(size=(60, 12)) - 1) * np.geomspace(3, 0.5, 12)
    own, truth = (
        (centres[rng.integers(60, size=1500)] + 0.05 * rng.normal(size=(1500, 12))).astype(np.float32) for _ in range(2)
    )
    stored = whitened(truth)

    def likeness(stored):
        mapped = align(own, stored, method="unwhitened")(stored)
        return np.mean([np.corrcoef(mapped[:, axis], truth[:, axis])[0, 1] for axis in range(12)])

    assert likeness(stored) > 0.95
    assert likeness(stored @ rotation_of(rng, 12)) < 0.3  # a key hides the order of the components
    assert align(own, stored).method != "unwhitened"


def test_still_coordinates_keep_their_mean(own, truth, rng):
    """After a division by its tiny deviation, an error of the map would drown all other coordinates."""
    own[:, 3] = 0.5 + 1e-8 * rng.normal(size=len(own))
    own[:, 5] = 0.5 + 1e-2 * rng.normal(size=len(own))
    found = align(own, truth @ rotation_of(rng), method="rotation")
    plain, without = (each(truth) for each in (found, found.without_still(own)))
    assert plain[:, 3].std() > 1e-3
    assert np.allclose(without[:, 3], 0.5)
    assert np.array_equal(np.delete(plain, 3, 1), np.delete(without, 3, 1))


@pytest.mark.parametrize("name", ["identity", "scale", "permutation", "rotation"])
def test_auto_names_the_map(own, truth, rng, name):
    maps = {
        "identity": truth,
        "scale": 50 * truth - 50 * truth.mean(0),
        "permutation": truth[:, rng.permutation(DIM)],
        "rotation": truth @ rotation_of(rng),
    }
    assert align(own, maps[name]).method == name


def test_auto_stops_where_left_out_pairs_show_that_no_other_map_can_win(own, truth, monkeypatch):
    monkeypatch.setitem(METHODS, "rotation", lambda problem: pytest.fail("tried"))
    assert align(own, truth, pairs_of(truth, truth, 30)).method == "identity"
    noisy = truth + 0.6 * texts(4)
    with pytest.raises(pytest.fail.Exception, match="tried"):
        align(own, noisy, pairs_of(truth, noisy, 30))


def test_auto_finds_nothing_in_independent_vectors(own, rng):
    stored = rng.normal(size=(ROWS, DIM)).astype(np.float32)
    found = align(own, stored)
    assert found.criterion < 0.2
    assert linked(found(stored), texts(2)) < 0.03  # chance is 1 of 500


def test_a_fresh_key_for_each_vector_is_not_undone(own, truth, rng):
    stored = np.stack([row @ rotation_of(rng) for row in truth])
    found = align(own, stored)
    assert found.criterion < 0.2
    assert linked(found(stored), truth) < 0.03


def test_truncated_vectors_are_padded(own, truth):
    found = align(own, truth[:, :10])
    mapped = found(truth[:, :10])
    assert np.allclose(mapped[:, :10], truth[:, :10], atol=0.1 * np.abs(truth).max())
    assert not mapped[:, 10:].any()
    assert found.criterion > 0.8


def test_more_stored_dimensions_without_pairs_fit_nothing(own, rng):
    found = align(own, rng.normal(size=(ROWS, 40)).astype(np.float32))
    assert found.method == "none"
    assert "40 stored dimensions, 16 own ones" in found.details
    assert not found(np.ones((2, 40), np.float32)).any()


def test_what_does_not_fit_is_refused(own, truth):
    with pytest.raises(RequestError, match="'spin': allowed: auto, identity"):
        align(own, truth, method="spin")
    with pytest.raises(RequestError, match="'procrustes': it needs pairs"):
        align(own, truth, method="procrustes")
    with pytest.raises(RequestError, match="500 own and 20 stored vectors; it needs 50 of each"):
        align(own, truth[:20], method="rotation")


def test_few_rows_leave_identity_and_pairs(own, truth):
    assert align(own, truth[:20]).method in ("identity", "scale")
    assert align(own, truth[:1]).method in ("identity", "scale")


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"unwhitened"}))
def test_constant_coordinates_and_duplicates_are_no_obstacle(own, truth, name):
    own[:, 3], truth[:, 3] = 0.5, 0.5
    own[:250], truth[1::2] = own[250:], truth[::2]
    mapped = align(own, truth, pairs_of(truth, truth, 40), name)(truth)
    assert np.isfinite(mapped).all()
    assert linked(mapped[::2], truth[::2]) > 0.9


def test_results_repeat_and_inputs_stay(own, truth, rng):
    stored = truth @ rotation_of(rng)
    kept = stored.copy()
    first, second = (align(own, stored, method="rotation", seed=5)(stored) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.array_equal(stored, kept)


class TestPairMargin:
    """A margin is high if a mapped vector is nearer to its own text than to all others."""

    def test_hand_worked(self):
        own = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)  # their mean is 0
        pairs = Pairs(own[:1], np.array([[0.6, 0.8]], np.float32))
        # 0.6 to its own text, 0.8 to the third: (0.6 - 0.8) / (1 - 0.8)
        assert pair_margin(linear(np.eye(2)), pairs, own, 0) == pytest.approx(-1)
        assert pair_margin(linear(np.eye(2)), Pairs(own[:1], own[:1]), own, 0) == pytest.approx(1)

    def test_shrinking_loses_where_links_are_sought(self, own, truth):
        """Least squares takes noise away. So its cosine is higher, but it tells texts less well apart."""
        stored = truth + 1.2 * np.random.default_rng(5).normal(size=truth.shape).astype(np.float32)
        pairs = pairs_of(truth, stored, 200)
        names = ("identity", "least_squares")
        cosine, margin = (
            [align(own, stored, pairs, name, for_links=links).criterion for name in names] for links in (False, True)
        )
        assert cosine[0] < cosine[1]
        assert margin[0] > margin[1]
        assert align(own, stored, pairs).method == "least_squares"
        assert align(own, stored, pairs, for_links=True).method == "identity"


class TestRefinement:
    """Links between stored vectors and candidate texts fit a map again, by the method that suits them."""

    @pytest.mark.parametrize(
        ("scales", "noise", "method"), [((1, 1), 0.6, "procrustes"), ((0.6, 1.4), 0.05, "least_squares")]
    )
    def test_links_choose_the_method(self, own, truth, rng, scales, noise, method):
        stored = truth @ (rotation_of(rng) * rng.uniform(*scales, DIM).astype(np.float32))
        noisy = (stored + noise * rng.normal(size=stored.shape)).astype(np.float32)
        found = KnownEncoder(own, None, noisy).align("rotation", 0, truth)
        assert found.method == method
        assert f"fitted again by {method} to " in found.details
        unrefined = KnownEncoder(own, None, noisy).align("rotation", 0)
        errors = [np.linalg.norm(each(stored) - truth) for each in (found, unrefined)]
        assert errors[0] < errors[1]

    def test_links_of_chance_change_nothing(self, own, truth, rng):
        unrelated = rng.normal(size=(ROWS, DIM)).astype(np.float32)
        stored = truth @ rotation_of(rng)
        found = KnownEncoder(own, None, stored).align("rotation", 0, unrelated)
        unrefined = align(own, stored, None, "rotation", 0, for_links=True)
        assert "fitted again" not in found.details
        assert np.array_equal(found.matrix, unrefined.matrix)


def test_near_own_texts_make_a_rough_rotation_better(own, truth, rng):
    """Some stored texts have a near own text. The neighbourhoods of all are means of clusters."""
    own[:150] = truth[:150] + 0.02 * rng.normal(size=(150, DIM))
    stored = truth @ rotation_of(rng)
    rough = align(own, stored, None, "rotation", 0)
    found = KnownEncoder(own, None, stored).align("rotation", 0)
    assert "near own texts" in found.details
    errors = [np.linalg.norm(each(stored) - truth) for each in (found, rough)]
    assert errors[0] < 0.9 * errors[1]


def test_few_pairs_do_not_judge_maps_for_links(own, truth):
    noisy = truth + 1.0 * np.random.default_rng(8).normal(size=truth.shape).astype(np.float32)
    few, many = (align(own, noisy, pairs_of(truth, noisy, count), for_links=True) for count in (20, 120))
    assert "closeness" in few.details
    assert "margin of left-out pairs" in many.details


class TestTransport:
    """Optimal transport refines a rotation for which neighbourhoods had too few texts."""

    def test_a_plan_gives_rows_and_columns_equal_weights(self, rng):
        cosines = rng.uniform(-1, 1, (30, 20)).astype(np.float32)
        plan = transport_plan(cosines, 0.2)
        assert np.allclose(plan.sum(1), 1, atol=1e-5)
        assert np.allclose(plan.sum(0), 30 / 20, atol=1e-2)

    def test_by_hand(self):
        """By symmetry of two rows and columns the scalings are equal: the plan is a softmax."""
        plan = transport_plan(np.array([[1, 0], [0, 1]], np.float32), 0.5)
        assert np.allclose(
            plan, [[1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))], [1 / (1 + np.exp(2)), 1 / (1 + np.exp(-2))]]
        )

    def test_rows_share_a_column_that_is_nearest_to_all(self):
        """The nearest column of both rows is the first. Each column has the same weight, so the second row gives in."""
        plan = transport_plan(np.array([[1, 0.2], [0.9, 0.7]], np.float32), 0.05)
        assert plan.argmax(1).tolist() == [0, 1]

    def test_it_refines_a_rough_rotation(self, rng):
        own, truth = (texts(seed, 600, 60) for seed in (1, 2))
        stored = 3 * truth @ rotation_of(rng, 60)
        rough, refined = (KnownEncoder(own, None, stored).align("rotation", 0, transport=on) for on in (False, True))
        errors = [np.linalg.norm(each(stored) - truth) for each in (refined, rough)]
        assert "refined by optimal transport" in refined.details
        assert errors[0] < 0.9 * errors[1]

    def test_near_texts_that_are_none_change_nothing(self, rng):
        """No own text is near a stored one. So links by chance make the map worse, and transport is kept as it is."""
        own, truth = (texts(seed, 300, 60) for seed in (1, 2))
        encoder = KnownEncoder(own, None, truth @ rotation_of(rng, 60))
        without, found = (encoder.align("rotation", 0, transport=on) for on in (False, True))
        assert "near own texts" in without.details
        assert "near own texts" not in found.details

    def test_near_texts_still_refine(self, own, truth, rng):
        own[:150] = truth[:150] + 0.02 * rng.normal(size=(150, DIM))
        found = KnownEncoder(own, None, truth @ rotation_of(rng)).align("rotation", 0, transport=True)
        assert "near own texts" in found.details

    def test_it_finds_nothing_where_nothing_is(self, own, truth, rng):
        stored = np.stack([row @ rotation_of(rng) for row in truth])  # a fresh key for each vector
        assert linked(KnownEncoder(own, None, stored).align("rotation", 0, transport=True)(stored), truth) < 0.03

    def test_pairs_need_no_transport(self, own, truth, rng):
        stored = truth @ rotation_of(rng)
        found = KnownEncoder(own, pairs_of(truth, stored, 30), stored).align("rotation", 0, transport=True)
        assert "transport" not in found.details
