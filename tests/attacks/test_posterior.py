"""Attackers that know the law of the noise: by hand, against Bayes' rule, and against attackers that do not know it."""

import dataclasses
import itertools

import numpy as np
import pytest
from planted import GENDER, SMALL, attack_accuracies
from scipy.special import logsumexp

from leakboard.attacks._portfolio import mlp, portfolio, posterior
from leakboard.attacks._portfolio.members import Task, log_loss
from leakboard.attacks._portfolio.posterior import Law, fit_posterior, posterior_of
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.claims import ReleaseClaim
from leakboard.errors import NotApplicable
from leakboard.interfaces import Texts
from leakboard.threats.secrets import KnownTexts, SecretsView

DIMENSIONS = 24
CLAIM = ReleaseClaim(1.0, 0.0, "document", "Laplace", "1-norm")


class NoisyOracle:
    """An oracle that knows the input of each text, whose text is its row, and adds Laplace noise to it."""

    def __init__(self, inputs, rng, scale):
        self.known, self.rng, self.scale, self.mechanism = inputs, rng, scale, self

    def inputs(self, texts):
        return self.known[[int(text) for text in texts]]

    def release(self, values, rng):
        return values + rng.laplace(scale=self.scale, size=np.shape(values))

    def encode(self, texts):
        return self.release(self.inputs(texts), self.rng).astype(np.float32)


def noisy_world(seed=0, sizes=(600, 300, 1500), prototypes=60, scale=0.45):
    """Return a view, test vectors with secrets, and the accuracy of the best guess, which knows the prototypes.

    Each text is one of some prototypes in the unit cube; each prototype has a gender of its own, at random.
    """
    rng = np.random.default_rng(seed)
    points, gender = rng.random((prototypes, DIMENSIONS)), rng.integers(0, 2, prototypes)
    drawn = rng.integers(0, prototypes, sum(sizes))
    oracle = NoisyOracle(points[drawn], rng, scale)
    texts = Texts(map(str, range(sum(sizes))))
    vectors = oracle.encode(texts)
    starts = np.cumsum([0, *sizes])
    parts = []
    for start, end in itertools.pairwise(starts):
        rows = slice(start, end)
        parts.append(KnownTexts(Texts(texts[rows]), vectors[rows], {"gender": gender[drawn[rows]]}))
    view = SecretsView((GENDER,), parts[0], parts[1], CLAIM, oracle)
    logs = -np.abs(parts[2].vectors[:, None] - points).sum(2) / scale
    best = np.stack([logsumexp(np.where(gender == code, logs, -np.inf), axis=1) for code in (0, 1)], axis=1).argmax(1)
    return view, parts[2].vectors, parts[2].values, float(np.mean(best == parts[2].values["gender"]))


def task_of(view, **changes):
    inputs = {split: view.oracle.inputs(getattr(view, split).texts).astype(np.float32) for split in ("train", "dev")}
    known = [dataclasses.replace(getattr(view, split), inputs=inputs[split]) for split in ("train", "dev")]
    return Task(*known, view.secrets, AttributeInference(**SMALL), 0, view.oracle.release, **changes)


class TestLaw:
    @pytest.mark.parametrize(("family", "scale"), [("laplace", 0.3), ("gaussian", 2.0)])
    def test_it_is_found(self, family, scale):
        rng = np.random.default_rng(0)
        residuals = getattr(rng, {"laplace": "laplace", "gaussian": "normal"}[family])(scale=scale, size=(300, 8))
        law = Law.of(residuals)
        assert law.family == family
        assert law.scale == pytest.approx(scale, rel=0.05)

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda noise: np.zeros_like(noise), "there is no noise in a coordinate"),
            (lambda noise: noise + 1.0, "are not the inputs with noise added"),
            (lambda noise: np.repeat(noise[:, :1], 8, axis=1), "all coordinates share the noise"),
        ],
    )
    def test_other_residuals_are_refused(self, spoil, message):
        with pytest.raises(ValueError, match=message):
            Law.of(spoil(np.random.default_rng(0).laplace(size=(300, 8))))

    def test_densities_by_hand(self):
        vectors, inputs = np.array([[1.0, 3.0]]), np.array([[0.0, 1.0], [1.0, 3.0]])
        assert Law("laplace", 2.0).surprise(vectors, inputs).tolist() == [[1.5, 0.0]]
        assert Law("gaussian", 2.0).surprise(vectors, inputs).tolist() == [[0.625, 0.0]]


def test_the_posterior_by_hand():
    """Weights 1, e**-1 and e**-2 of texts with the values f, m, m."""
    known = KnownTexts(Texts([]), np.zeros((3, 1)), {"gender": np.array([0, 1, 1])})
    scores = posterior_of(np.array([[5.0, 7.0, 9.0]]), 0.5, known, (GENDER,))["gender"]
    of_m = np.exp(-1) + np.exp(-2)
    assert np.exp(scores) == pytest.approx(np.array([[1, of_m]]) / (1 + of_m), rel=1e-5)


@pytest.mark.parametrize("seed", [0, 1])
def test_bayes_rule_reaches_the_best_possible_attacker(seed):
    view, vectors, truth, best = noisy_world(seed)
    guesses = fit_posterior(task_of(view))(vectors)["gender"].argmax(1)
    assert 0.7 < best < 0.95
    assert np.mean(guesses == truth["gender"]) > best - 0.02


class TestBayesAlone:
    """`portfolio: bayes` is Bayes' rule by the law of the noise, and nothing else."""

    def test_it_reaches_the_best_possible_attacker(self):
        view, vectors, truth, best = noisy_world()
        attack = AttributeInference(**SMALL | {"portfolio": "bayes"})
        assert attack_accuracies(attack, view, vectors, truth)["gender"] > best - 0.02

    def test_it_has_the_scores_of_the_rule(self):
        view, vectors, *_ = noisy_world()
        alone = fit_posterior(task_of(view))
        fitted = AttributeInference(**SMALL | {"portfolio": "bayes"}).fit(view, 0)
        assert np.array_equal(fitted(vectors).scores["gender"], alone(vectors)["gender"])

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"claim": None}, "the vectors before the noise are unknown"),
            ({"oracle": NoisyOracle(np.zeros((1000, DIMENSIONS)), None, 0)}, "not the inputs with noise added"),
        ],
    )
    def test_without_a_known_law_it_does_not_apply(self, changes, reason):
        view, *_ = noisy_world(sizes=(200, 100, 10))
        with pytest.raises(NotApplicable, match=f"portfolio: bayes: posterior on raw inputs left out .*{reason}"):
            AttributeInference(**SMALL | {"portfolio": "bayes"}).fit(dataclasses.replace(view, **changes), 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"portfolio": "bayes", "inputs": "raw"}, "inputs: raw is not allowed with portfolio: bayes; allowed: null"),
        ({"portfolio": "mlp", "bayes": "mixed"}, "bayes: mixed is not allowed with portfolio: mlp; allowed: member"),
    ],
)
def test_options_that_would_be_ignored_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        AttributeInference(**options)


def test_an_ensemble_that_knows_the_noise_beats_one_that_does_not():
    view, vectors, truth, best = noisy_world()
    attack = AttributeInference(**SMALL)
    with_law = attack_accuracies(attack, view, vectors, truth)["gender"]
    without = attack_accuracies(attack, dataclasses.replace(view, claim=None), vectors, truth)["gender"]
    assert with_law > best - 0.03
    assert with_law > without + 0.1


@pytest.mark.slow
def test_a_network_sees_fresh_noise_in_each_epoch():
    view, vectors, truth, _ = noisy_world(sizes=(1000, 500, 1500), prototypes=10, scale=0.7)
    seen = []

    def release(values, rng):
        seen.append(view.oracle.release(values, rng))
        return seen[-1]

    task = task_of(view)
    task = dataclasses.replace(task, options=dataclasses.replace(task.options, epochs=60, patience=60))
    fitted = mlp.fit_mlp_under_noise(dataclasses.replace(task, release=release))
    assert len(seen) == 60
    assert not np.array_equal(np.sort(seen[0], axis=None), np.sort(seen[1], axis=None))
    plain = mlp.fit_mlp(task)
    fresh, once = (np.mean(made(vectors)["gender"].argmax(1) == truth["gender"]) for made in (fitted, plain))
    assert fresh > once + 0.02


@pytest.mark.parametrize("fit", [fit_posterior, mlp.fit_mlp_under_noise])
def test_unknown_inputs_are_refused(fit):
    view, *_ = noisy_world(sizes=(40, 20, 10))
    task = Task(view.train, view.dev, view.secrets, AttributeInference(**SMALL), 0)
    with pytest.raises(ValueError, match="the vectors before the noise are unknown"):
        fit(task)


def trim_of(view, times):
    return portfolio.best_trim(view, portfolio._all_publications(view, view.dev, times))


class TestSeveralPublications:
    """The trimmed mean of several publications of a text that is nearest to the text's input."""

    @pytest.mark.parametrize(("trim", "wanted"), [(0.0, 16.5), (0.25, 5.0), (0.5, 4.5)])
    def test_means_by_hand(self, trim, wanted):
        publications = np.array([[[0.0], [1.0], [2.0], [4.0], [5.0], [9.0], [20.0], [91.0]]], np.float32)
        assert portfolio.trimmed_mean(publications, trim) == pytest.approx(wanted)

    def test_few_are_kept_of_laplace_noise_and_all_of_gaussian_noise(self):
        view, *_ = noisy_world()
        assert [trim_of(view, times) for times in (2, 16)] == [0.0, 0.25]
        view.oracle.release = lambda values, rng: values + rng.normal(size=np.shape(values))
        dev = dataclasses.replace(view.dev, vectors=view.oracle.encode(view.dev.texts))
        assert trim_of(dataclasses.replace(view, dev=dev), 16) == 0.0

    def test_densities_are_multiplied_by_hand(self):
        publications, inputs = np.array([[[1.0], [4.0]]], np.float32), np.array([[0.0], [1.0]], np.float32)
        assert Law("laplace", 2.0).surprise(publications, inputs).tolist() == [[2.5, 1.5]]
        assert Law("gaussian", 1.0).surprise(publications, inputs).tolist() == [[6.25, 2.25]]  # without 2.25

    def test_of_far_inputs_the_mean_counts(self, monkeypatch):
        """Of 0, 2 and 4 the mean is 2; the sums of distances are 21, 5 and 5, and by the mean alone 21, 3 and 3."""
        monkeypatch.setattr(posterior, "NEAREST", 2)
        publications, inputs = np.array([[[0.0], [2.0], [4.0]]]), np.array([[9.0], [1.0], [3.0]])
        assert Law("laplace", 1.0).surprise(publications, inputs).tolist() == [[23.0, 5.0, 5.0]]

    @pytest.mark.parametrize("family", ["laplace", "gaussian"])
    def test_shortcuts_agree_with_products_of_densities(self, family):
        rng = np.random.default_rng(0)
        inputs = rng.normal(size=(40, 3))
        publications = inputs[:5, None] + rng.laplace(size=(5, 4, 3))
        law = Law(family, 0.7)
        product = sum(law.surprise(publications[:, number], inputs) for number in range(4))
        shortcut = law.surprise(publications, inputs)
        assert np.ptp(shortcut - product, axis=1) == pytest.approx(0, abs=1e-9)

    def test_two_publications_are_never_worse_than_one_under_strong_noise(self):
        """Far own texts count: the values of the nearest ones alone would be luck."""
        rng = np.random.default_rng(0)
        secrets = rng.integers(0, 2, 4_000)
        inputs = rng.normal(size=(4_000, 16)) + 0.5 * secrets[:, None] * (np.arange(16) < 4)
        seen = inputs[3_000:, None] + rng.laplace(scale=1.5, size=(1_000, 2, 16))
        known, truth = KnownTexts(Texts([]), inputs[:3_000], {"gender": secrets[:3_000]}), secrets[3_000:]
        losses = [
            min(log_loss(posterior_of(surprise, t, known, (GENDER,))["gender"], truth) for t in posterior.TEMPERS)
            for surprise in (Law("laplace", 1.5).surprise(part, inputs[:3_000]) for part in (seen[:, 0], seen))
        ]
        assert losses[1] < losses[0] - 0.01

    def test_they_bring_bayes_rule_near_the_best_possible_attacker(self):
        """Of nine publications: the best attacker is right in .80, by trimmed means .75, by means .70."""
        scale, times = 1.5, 9
        view, _, truth, _ = noisy_world(scale=scale)
        oracle, start = view.oracle, len(view.train.texts) + len(view.dev.texts)
        publications = np.stack([oracle.encode(range(start, len(oracle.known))) for _ in range(times)], axis=1)
        points, codes = np.unique(oracle.known, axis=0, return_inverse=True)
        gender = dict(zip(codes[start:], truth["gender"], strict=True))
        of_points = np.array([gender.get(code, -1) for code in range(len(points))])
        logs = sum(-np.abs(publications[:, i, None] - points).sum(2) / scale for i in range(times))
        best = np.stack([logsumexp(np.where(of_points == value, logs, -np.inf), axis=1) for value in (0, 1)], axis=1)

        def right(trim, multiply=False):
            several = portfolio._all_publications(view, view.dev, times)
            dev = dataclasses.replace(view.dev, vectors=portfolio.trimmed_mean(several, trim))
            train = portfolio._published(view, view.train, 1, times, trim)
            task = task_of(
                dataclasses.replace(view, train=train, dev=dev), dev_publications=several if multiply else None
            )
            seen = publications if multiply else portfolio.trimmed_mean(publications, trim)
            return np.mean(fit_posterior(task)(seen)["gender"].argmax(1) == truth["gender"])

        possible = np.mean(best.argmax(1) == truth["gender"])
        assert right(0.0) + 0.02 < right(0.25) < right(0.0, multiply=True) - 0.02
        assert possible - 0.02 < right(0.0, multiply=True) <= possible + 0.01
