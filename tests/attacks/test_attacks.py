"""Attribute inference and entity presence: planted signals are found, absent ones are not."""

import dataclasses

import numpy as np
import pytest
from planted import AGE, GENDER, SMALL, attack_accuracies, constant, copies, exclusive_or, linear, noise, trained, world
from scipy import stats
from sklearn.metrics import f1_score

from leakboard.attacks._portfolio import mlp
from leakboard.attacks._portfolio.vector_inputs import FARTHEST_QUANTILE, Quantiles, Rotated, Saturated, Whitened
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.claims import ReleaseClaim
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Secret
from leakboard.metrics.measures import best_offset


@pytest.mark.parametrize("portfolio", [pytest.param("ensemble", marks=pytest.mark.slow), "mlp", "logistic"])
def test_all_find_a_linear_signal(portfolio):
    found = attack_accuracies(AttributeInference(portfolio=portfolio, **SMALL), *world(linear, [GENDER, AGE]))
    assert found["gender"] > 0.95  # the best possible is Φ(2) = 0.977
    assert found["age"] > 0.97


@pytest.mark.parametrize(
    ("portfolio", "low", "high"),
    [("mlp", 0.97, 1), pytest.param("ensemble", 0.97, 1, marks=pytest.mark.slow), ("logistic", 0, 0.6)],
)
def test_a_curved_signal_is_found_by_the_network_and_not_by_a_linear_classifier(portfolio, low, high):
    attack = AttributeInference(portfolio=portfolio, **SMALL)
    assert low < attack_accuracies(attack, *world(exclusive_or, [GENDER]))["gender"] <= high


@pytest.mark.parametrize(
    "vectors_of",
    [linear, pytest.param(exclusive_or, marks=pytest.mark.slow), pytest.param(copies, marks=pytest.mark.slow)],
)
def test_the_ensemble_is_no_worse_than_its_members(vectors_of):
    view, vectors, truth = world(vectors_of, [GENDER])
    single = max(
        np.mean(trained(family, view)(vectors)["gender"].argmax(1) == truth["gender"])
        for family in ("logistic", "mlp", "neighbours", "trees")
    )
    assert attack_accuracies(AttributeInference(**SMALL), view, vectors, truth)["gender"] > single - 0.02


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_independent_vectors_give_nothing_away(seed):
    found = attack_accuracies(AttributeInference(**SMALL), *world(noise, [GENDER, AGE], seed, (400, 200, 4000)))
    for name, chance in (("gender", 1 / 2), ("age", 1 / 3)):
        low, high = stats.binom(4000, chance).interval(0.9999)
        assert low <= found[name] * 4000 <= high


def badly_scaled(scale, shift=0.0):
    def vectors(codes, rng):
        scaled = scale * linear(codes, rng)
        return scaled + shift * rng.normal(size=(len(scaled), 1))

    return vectors


def gender_found(vectors_of, **recipe):
    attack = AttributeInference(**SMALL | {"epochs": 8} | recipe)
    return attack_accuracies(attack, *world(vectors_of, [GENDER]))["gender"]


@pytest.mark.parametrize("portfolio", ["ensemble", "mlp", "logistic"])
@pytest.mark.parametrize("scale", [1e25, 100, 0.01, 1e-30])
def test_a_bad_scale_is_no_defence(portfolio, scale):
    assert gender_found(badly_scaled(scale), portfolio=portfolio) > 0.9


def test_on_raw_vectors_a_network_is_fooled_by_a_bad_scale():
    assert gender_found(badly_scaled(1e-30), portfolio="mlp", inputs="raw") < 0.6


@pytest.mark.parametrize(("scale", "shift"), [(1e4, 1e6), (1e-4, 1.0)])
def test_a_shift_of_all_coordinates_is_no_defence_against_the_ensemble(scale, shift):
    vectors_of = badly_scaled(scale, shift)
    assert gender_found(vectors_of) > 0.9
    assert gender_found(vectors_of, portfolio="mlp") < 0.85


def saturated(codes, rng):
    """Coordinates near -1 or 1, as after tanh; the secret moves them within the last thousandth."""
    signs, own = np.sign(np.arange(8) - 3.5), rng.normal(size=(len(codes["gender"]), 8))
    return np.tanh(signs * 5 + 0.4 * (2 * codes["gender"][:, None] - 1) + own)


def test_quantiles_read_saturated_vectors():
    found = {
        inputs: gender_found(saturated, portfolio="logistic", inputs=inputs) for inputs in ("standardised", "quantile")
    }
    assert found["quantile"] > found["standardised"] + 0.03


def test_quantiles_of_vectors_beyond_the_known_ones_are_bounded():
    view, vectors, _ = world(linear, [GENDER])
    scaled = Quantiles.of(view.train.vectors)
    assert np.abs(scaled(view.train.vectors)).max() == FARTHEST_QUANTILE
    assert np.array_equal(scaled(1000 * np.abs(vectors) + 1000), np.full_like(vectors, FARTHEST_QUANTILE))
    middle = np.median(view.train.vectors, 0)[None].astype(np.float32)
    assert np.allclose(scaled(middle), 0, atol=0.01)


def two_clusters(codes, rng):
    """Saturated vectors with the signs of one vector or the opposite ones, each saturated as a whole more or less."""
    n = len(codes["gender"])
    side, saturation = rng.choice([-1.0, 1.0], (n, 1)), 5 + rng.uniform(0, 2, (n, 1))
    pattern, shift = np.sign(np.arange(8) - 3.5), np.where(np.arange(8) % 2, 0.15, -0.15)
    secret = shift * (2 * codes["gender"][:, None] - 1) * np.where(side > 0, 1, 2)
    return np.tanh(side * pattern * (saturation + secret + 0.2 * rng.normal(size=(n, 8))))


class TestSaturated:
    def test_vectors_in_two_clusters_are_read_better_than_by_quantiles(self):
        found = {
            inputs: gender_found(two_clusters, portfolio="logistic", inputs=inputs)
            for inputs in ("quantile", "saturated")
        }
        assert found["saturated"] > found["quantile"] + 0.1

    def test_by_hand(self):
        known = np.tanh(np.array([[1.0, -2.0], [3.0, -4.0], [-1.0, 2.0], [-1.0, 6.0]]))
        scaled = Saturated.of(known.astype(np.float32))(np.tanh([[4.0, -3.0], [-1.0, 6.0]]).astype(np.float32))
        # on their sides the clusters have the means (2, 3) and (1, 4), and the deviations (1, 1) and (0, 2)
        assert scaled == pytest.approx(np.array([[1, -1, 1], [-1, 1, -1]]), abs=1e-4)

    def test_the_signs_are_those_of_most_vectors_whatever_the_first(self):
        vectors = world(two_clusters, [GENDER])[0].train.vectors
        odd = np.where(np.arange(8) % 2, -0.99, 0.99)[None].astype(np.float32)
        assert np.abs(odd @ np.sign(vectors[0])) < 1e-6  # on neither side
        found = [Saturated.of(known).signs for known in (vectors, np.concatenate([odd, vectors]))]
        assert np.array_equal(found[0], np.sign(vectors[0]))
        assert np.array_equal(np.abs(found[0] @ found[1]), 8)

    def test_coordinates_of_one_are_kept_finite(self):
        ones = np.array([[1.0, -1.0], [1 - 6e-8, -0.5]], np.float32)
        assert np.isfinite(Saturated.of(ones)(-ones)).all()

    def test_other_vectors_are_refused(self):
        with pytest.raises(NotApplicable, match=r"inputs: saturated: a coordinate is 1\.5 from 0; allowed: at most 1"):
            Saturated.of(np.array([[0.5, -1.5]], np.float32))

    @pytest.mark.parametrize("derived", [Whitened, Rotated])
    def test_further_inputs_have_the_coordinate_of_the_cluster(self, derived):
        vectors = world(two_clusters, [GENDER])[0].train.vectors
        assert derived.of(Saturated.of(vectors), vectors)(vectors).shape == (len(vectors), 9)


def entities(strength):
    """Return vectors and two entities, each in one text of eight; each shifts a coordinate by ``strength``."""

    def vectors(codes, rng):
        n = len(codes["one"])
        for name in codes:
            codes[name][:] = rng.random(n) < 1 / 8
        return noise(codes, rng) + strength * np.stack([codes["one"], codes["two"]] + [np.zeros(n)] * 6, axis=1)

    return vectors, [Secret(name, ("absent", "present"), "entity") for name in ("one", "two")]


def micro_f1(attack, view, vectors, truth):
    scores = attack.fit(view, 0)(vectors).scores
    guessed = np.stack([scores[name].argmax(1) for name in truth], axis=1)
    return f1_score(np.stack(list(truth.values()), axis=1), guessed, average="micro", zero_division=0)


def test_the_threshold_helps_with_rare_entities():
    given = world(*entities(1.2), sizes=(600, 600, 1200))
    plain, chosen = (micro_f1(EntityPresence(portfolio="logistic", threshold=t), *given) for t in (False, True))
    assert chosen > plain + 0.1


def test_the_scores_on_dev_have_the_threshold_too():
    view, vectors, _ = world(*entities(1.2), sizes=(600, 600, 10))
    plain, chosen = (
        EntityPresence(portfolio="logistic", threshold=t).fit(view, 0)(vectors).on_dev for t in (False, True)
    )
    shifts = np.concatenate([chosen[name] - plain[name] for name in chosen])
    assert np.allclose(shifts, [0, shifts[0, 1]], atol=1e-5)
    assert shifts[0, 1] > 0.1


@pytest.mark.slow
def test_entities_are_found_and_not_invented():
    assert micro_f1(EntityPresence(**SMALL), *world(*entities(6.0))) > 0.97
    # A set chosen without knowledge has at most the F1 of calling everything present, 2q / (1 + q), give or take.
    assert micro_f1(EntityPresence(**SMALL), *world(*entities(0.0))) < 2 / 9 + 4 * 0.02


def test_no_threshold_is_between_equal_scores():
    """The choices are "all present" and "none"; all present is better."""
    assert best_offset(np.zeros(6), np.array([1, 0, 0, 1, 0, 0])) > 0


@pytest.mark.parametrize("seed", range(10))
def test_the_threshold_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    margins = rng.integers(-3, 4, 12).astype(np.float32)
    truth = rng.integers(0, 2, 12)
    found = f1_score(truth, margins + best_offset(margins, truth) > 0, zero_division=0)
    assert found == pytest.approx(max(f1_score(truth, margins >= m, zero_division=0) for m in np.unique(margins)))


def test_without_a_positive_no_threshold_is_better_than_another():
    assert best_offset(np.array([3.0, -1.0, 0.5]), np.zeros(3, np.int64)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "given"),
    [(AttributeInference(**SMALL), (linear, [GENDER, AGE])), (EntityPresence(**SMALL), entities(2.0))],
)
def test_same_seed_same_guesses_and_inputs_unchanged(attack, given):
    view, test, _ = world(*given, sizes=(100, 50, 80))
    inputs = [array for known in (view.train, view.dev) for array in (known.vectors, *known.values.values())] + [test]
    before = [array.copy() for array in inputs]
    first, second = (attack.fit(view, 3)(test) for _ in range(2))
    assert first.details == second.details
    for name, scores in first.scores.items():
        assert np.array_equal(scores, second.scores[name])
        assert scores.dtype == np.float32
    assert all(np.array_equal(a, b) for a, b in zip(before, inputs, strict=True))


def test_values_that_train_does_not_hold():
    view, vectors, _ = world(linear, [GENDER, AGE], sizes=(60, 30, 20))
    only = {"gender": np.ones(60, np.int64), "age": 2 * view.values["gender"]}
    view = dataclasses.replace(view, train=dataclasses.replace(view.train, values=only))
    scores = AttributeInference(portfolio="logistic").fit(view, 0)(vectors).scores
    assert (scores["gender"].argmax(1) == 1).all()
    assert set(scores["age"].argmax(1)) <= {0, 2}
    assert all(np.isfinite(s).all() for s in scores.values())


def test_the_details_name_the_classifier_and_its_inputs():
    view, vectors, _ = world(linear, [GENDER], sizes=(100, 60, 10))
    details = AttributeInference(portfolio="logistic").fit(view, 0)(vectors).details
    assert details == "logistic on standardised inputs"


def one_class(codes, rng):
    codes["gender"][:] = 1
    return noise(codes, rng)


def many_values(codes, rng):
    return np.eye(1000)[codes["author"]][:, :50] + 0.01 * rng.normal(size=(len(codes["author"]), 50))


AUTHOR = Secret("author", tuple(map(str, range(1000))), "attribute")


@pytest.mark.parametrize(
    ("vectors_of", "secret", "sizes"),
    [
        pytest.param(one_class, GENDER, (50, 20, 10), id="one class"),
        pytest.param(constant, GENDER, (50, 20, 10), id="constant"),
        pytest.param(linear, GENDER, (10, 5, 20), id="ten texts"),
        pytest.param(linear, GENDER, (10, 1, 20), id="one dev text"),
        pytest.param(linear, GENDER, (1, 1, 20), id="one text"),
        pytest.param(many_values, AUTHOR, (200, 40, 20), id="a thousand values", marks=pytest.mark.slow),
    ],
)
def test_odd_secrets_and_vectors_give_a_result(vectors_of, secret, sizes):
    view, vectors, _ = world(vectors_of, [secret], sizes=sizes)
    scores = AttributeInference(**SMALL).fit(view, 0)(vectors).scores[secret.name]
    assert scores.shape == (sizes[2], len(secret.values))
    assert np.isfinite(scores).all()
    if vectors_of is one_class:
        assert (scores.argmax(1) == 1).all()


class NoiselessOracle:
    """An oracle that publishes the same vectors again."""

    def __init__(self, known):
        self.known = known

    def encode(self, texts):
        return self.known.vectors.copy()

    def inputs(self, texts):
        return None


@pytest.mark.parametrize("sizes", [(50, 20, 10), (1, 1, 20)])
def test_vectors_without_separable_noise_are_attacked_as_they_are(sizes):
    view, vectors, _ = world(constant, [GENDER], sizes=sizes)
    claim = ReleaseClaim(1.0, 0.0, "document", "laplace", "1", 1.0)
    view = dataclasses.replace(view, claim=claim, oracle=NoiselessOracle(view.train))
    guesses = AttributeInference(**SMALL).fit(view, 0)(vectors)
    assert np.isfinite(guesses.scores["gender"]).all()
    assert "shrunken inputs left out" in guesses.details
    for portfolio in ("ensemble", "mlp"):
        with pytest.raises(RequestError, match="can be trained on these vectors: shrunken inputs left out"):
            AttributeInference(portfolio=portfolio, inputs="shrunken", **SMALL).fit(view, 0)


class TestPapers:
    """The papers' attackers have their networks, raw inputs and no chosen threshold."""

    @pytest.fixture
    def networks(self, monkeypatch):
        """Return the shapes of all networks: inputs, units of each hidden layer, and secrets."""
        shapes, build = [], mlp._Heads.__init__

        def watched(self, inputs, hidden, sizes, layers):
            shapes.append((inputs, [hidden] * layers, len(sizes)))
            build(self, inputs, hidden, sizes, layers)

        monkeypatch.setattr(mlp._Heads, "__init__", watched)
        return shapes

    @pytest.mark.parametrize(("paper", "expected"), [("coavoux", [([64], 2)]), ("lyu", [([512], 1), ([512], 1)])])
    def test_networks_have_the_size_of_the_paper(self, networks, paper, expected):
        view, vectors, truth = world(linear, [GENDER, AGE])
        found = attack_accuracies(AttributeInference(portfolio=paper, **SMALL), view, vectors, truth)
        assert [shape[1:] for shape in networks] == expected
        assert found["gender"] > 0.9
        assert found["age"] > 0.9

    @pytest.mark.parametrize("paper", ["coavoux", "lyu"])
    def test_vectors_are_not_scaled(self, paper):
        assert gender_found(badly_scaled(1e-30), portfolio=paper) < 0.6

    @pytest.mark.parametrize("paper", ["coavoux", "lyu"])
    def test_an_entity_is_present_above_one_half(self, paper):
        view, _, _ = world(linear, [dataclasses.replace(GENDER, kind="entity")])
        fitted = EntityPresence(portfolio=paper, **SMALL).fit(view, 0)
        assert fitted.offset == 0
        assert EntityPresence(portfolio="mlp", **SMALL).fit(view, 0).offset != 0
