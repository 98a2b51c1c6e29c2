"""Test the scores of guessed document secrets and their baselines."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from leakboard.errors import RequestError
from leakboard.metrics import baselines
from leakboard.metrics.measures import accuracy
from leakboard.metrics.secret_scores import secret_metrics

PRESENCE = ("absent", "present")


def measured(corpus, guesses, text_guesses=None, secrets=None):
    """Return the metrics by "name", "name/secret" or "name/secret/group"."""
    metrics = secret_metrics(corpus, secrets or corpus.secrets, guesses, text_guesses)
    return {"/".join(filter(None, (m.name, m.variable, m.group))): m for m in metrics}


def one_hot(codes, values):
    return np.eye(values, dtype=np.float32)[codes]


@pytest.fixture
def attributes(make_corpus):
    """Return a corpus with two attributes, of 3 and 2 values, and a label."""
    rng = np.random.default_rng(0)
    splits = {
        split: {"label": rng.integers(0, 2, n), "age": rng.integers(0, 3, n), "gender": rng.integers(0, 2, n)}
        for split, n in (("train", 60), ("dev", 10), ("test", 80))
    }
    return make_corpus(splits, [("age", ("a", "b", "c"), "attribute"), ("gender", ("f", "m"), "attribute")])


@pytest.fixture
def entities(make_corpus):
    rng = np.random.default_rng(1)
    shares = {"one": 0.5, "two": 0.3, "three": 0.1}
    splits = {
        split: {name: (rng.random(n) < share).astype(int) for name, share in shares.items()}
        for split, n in (("train", 60), ("dev", 10), ("test", 80))
    }
    return make_corpus(splits, [(name, PRESENCE, "entity") for name in shares])


def random_guesses(corpus, seed=0):
    rng = np.random.default_rng(seed)
    n = len(corpus.splits["test"])
    return {s.name: rng.normal(size=(n, len(s.values))).astype(np.float32) for s in corpus.secrets}


def test_attributes_against_scikit_learn(attributes):
    guesses = random_guesses(attributes)
    metrics = measured(attributes, guesses)
    truth = baselines.truth(attributes, "test", attributes.secrets)
    accuracies = []
    for column, secret in enumerate(attributes.secrets):
        scores, gold = guesses[secret.name].astype(np.float64), truth[:, column]
        guess = scores.argmax(1)
        accuracies.append(np.mean(guess == gold))
        assert metrics[f"attack_accuracy/{secret.name}"].value == pytest.approx(accuracies[-1])
        balanced = balanced_accuracy_score(gold, guess)
        assert metrics[f"attack_balanced_accuracy/{secret.name}"].value == pytest.approx(balanced)
        for code, group in enumerate(secret.values):
            part = metrics[f"attack_accuracy/{secret.name}/{group}"]
            assert part.value == pytest.approx(np.mean(guess[gold == code] == code))
            assert part.n == np.sum(gold == code)
    assert metrics["attack_score"].value == pytest.approx(np.mean(accuracies))
    age = guesses["age"].astype(np.float64)
    chances = softmax(age, axis=1)  # the log-odds of a value grow with its probability
    areas = [roc_auc_score(truth[:, 0] == code, chances[:, code]) for code in range(3)]
    assert metrics["attack_auc/age"].value == pytest.approx(np.mean(areas))
    gender = guesses["gender"].astype(np.float64)
    assert metrics["attack_auc/gender"].value == pytest.approx(roc_auc_score(truth[:, 1], gender[:, 1] - gender[:, 0]))


def test_entities_against_scikit_learn(entities):
    guesses = random_guesses(entities)
    metrics = measured(entities, guesses)
    truth = baselines.truth(entities, "test", entities.secrets)
    guess = np.stack([guesses[s.name].argmax(1) for s in entities.secrets], axis=1)
    assert metrics["attack_score"].value == pytest.approx(f1_score(truth, guess, average="micro"))
    assert metrics["attack_f1_macro"].value == pytest.approx(f1_score(truth, guess, average="macro"))
    for column, secret in enumerate(entities.secrets):
        expected = f1_score(truth[:, column], guess[:, column])
        assert metrics[f"attack_f1/{secret.name}"].value == pytest.approx(expected)
    recall = metrics["attack_accuracy/one/present"].value
    assert recall == pytest.approx(guess[truth[:, 0] == 1, 0].mean())
    assert "privacy_label" not in metrics


def test_baselines_by_hand(attributes):
    text_guesses = baselines.truth(attributes, "test", attributes.secrets)
    metrics = measured(attributes, random_guesses(attributes), text_guesses)
    train = baselines.truth(attributes, "train", attributes.secrets)
    majorities = [np.bincount(column).argmax() for column in train.T]
    assert metrics["privacy_best_constant"].value == pytest.approx(1 - np.mean(text_guesses == majorities))
    labels = attributes.column("train", "label")
    label_guesses = np.stack(
        [
            [np.bincount(train[labels == y, column]).argmax() for column in range(2)]
            for y in attributes.column("test", "label")
        ]
    )
    assert metrics["privacy_label"].value == pytest.approx(1 - np.mean(text_guesses == label_guesses))
    assert metrics["privacy_text_classifier"].value == 0
    assert "privacy_bayes" not in metrics


def test_privacy_is_zero_for_a_perfect_attack_and_the_constants_for_a_wrong_one(attributes, entities):
    for corpus in (attributes, entities):
        truth = baselines.truth(corpus, "test", corpus.secrets)
        for guessed, broken in ((truth, True), ((truth + 1) % 2, False)):
            scores = {s.name: one_hot(guessed[:, c], len(s.values)) for c, s in enumerate(corpus.secrets)}
            metrics = measured(corpus, scores)
            privacy = metrics["empirical_privacy"]
            if broken:
                assert privacy.value == 0
                assert 0 < privacy.high < 0.1
            else:
                assert privacy.value == metrics["privacy_best_constant"].value
                assert privacy.value < 1 - metrics["attack_score"].value


def test_uncapped_privacy_ignores_the_constant_guess(make_corpus):
    """Of 10 test texts 6 have gender m, and 4 mention Otto; a constant guess has 6 of 10, and an F1 of 8 / 14."""
    gender, otto = np.array([1] * 6 + [0] * 4), np.array([1] * 4 + [0] * 6)
    part = {"gender": gender, "otto": otto}
    corpus = make_corpus(
        dict.fromkeys(("train", "dev", "test"), part),
        [("gender", ("f", "m"), "attribute"), ("otto", PRESENCE, "entity")],
    )
    three_right = np.array([1] * 3 + [0] * 3 + [1] * 4)
    one_found = np.array([1] + [0] * 8 + [1])
    scores = {"gender": one_hot(three_right, 2), "otto": one_hot(one_found, 2)}
    for secret, uncapped, capped in zip(corpus.secrets, (1 - 3 / 10, 1 - 2 / 6), (1 - 6 / 10, 1 - 8 / 14), strict=True):
        metrics = measured(corpus, scores, secrets=[secret])
        for variable in ("", f"/{secret.name}"):
            assert metrics[f"uncapped_privacy{variable}"].value == pytest.approx(uncapped)
            assert metrics[f"empirical_privacy{variable}"].value == pytest.approx(capped)
        of_attack, left = metrics["attack_score"], metrics["uncapped_privacy"]
        assert (left.low, left.high) == pytest.approx((1 - of_attack.high, 1 - of_attack.low))
    scores["gender"] = one_hot(gender, 2)
    perfect = measured(corpus, scores, secrets=corpus.secrets[:1])
    assert perfect["uncapped_privacy"].value == perfect["empirical_privacy"].value == 0


def test_constant_guesses_have_the_score_of_the_constant(entities):
    best = baselines.best_constant(baselines.truth(entities, "train", entities.secrets), "entity")
    n = len(entities.splits["test"])
    scores = {s.name: one_hot(np.full(n, code), 2) for s, code in zip(entities.secrets, best, strict=True)}
    metrics = measured(entities, scores)
    assert 1 - metrics["attack_score"].value == pytest.approx(metrics["privacy_best_constant"].value)
    assert all(metrics[f"attack_auc/{s.name}"].value == 0.5 for s in entities.secrets)


def test_posteriors_give_the_bayes_bound(reviews):
    secrets = [s for s in reviews.secrets if s.kind == "attribute"]
    posteriors = {s.name: np.array(reviews.splits["test"][f"posterior:{s.name}"]) for s in secrets}
    best = {name: p.astype(np.float32) for name, p in posteriors.items()}
    metrics = measured(reviews, best, secrets=secrets)
    expected = np.mean([p.max(1).mean() for p in posteriors.values()])
    assert metrics["privacy_bayes"].value == pytest.approx(1 - expected)
    n = len(reviews.splits["test"])
    assert abs(metrics["attack_score"].value - expected) < 4 * 0.5 / np.sqrt(n)


def constant_corpus(make_corpus, code, n=6, kind="entity"):
    splits = {split: {"s": [code] * size} for split, size in (("train", 4), ("dev", 2), ("test", n))}
    return make_corpus(splits, [("s", PRESENCE, kind)])


def test_a_single_class_has_no_area(make_corpus):
    corpus = constant_corpus(make_corpus, 1, kind="attribute")
    metrics = measured(corpus, random_guesses(corpus))
    assert metrics["attack_auc/s"].value is None
    assert metrics["attack_auc/s"].status == "fewer than two texts (or authors) with each of two values"
    absent = metrics["attack_accuracy/s/absent"]
    assert (absent.value, absent.n, absent.status) == (None, 0, "no test text in this group")
    assert metrics["attack_accuracy/s/present"].n == 6
    assert metrics["empirical_privacy"].value == 0


def test_without_any_entity_all_privacy_remains(make_corpus):
    corpus = constant_corpus(make_corpus, 0)
    metrics = measured(corpus, random_guesses(corpus))
    assert metrics["attack_score"].value == 0
    assert metrics["empirical_privacy"].value == 1


def test_one_text_proves_little(make_corpus):
    corpus = constant_corpus(make_corpus, 1, n=1)
    metrics = measured(corpus, {"s": one_hot([1], 2)})
    assert metrics["attack_score"].value == 1
    assert metrics["attack_score"].low < 0.5


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda scores: scores.pop("age"), "guesses nothing for 'age'"),
        (lambda scores: scores.update(age=scores["age"][:-1]), r"'age' have shape \(79, 3\), not \(80, 3\)"),
        (lambda scores: scores.update(age=scores["age"][:, :2]), r"'age' have shape \(80, 2\), not \(80, 3\)"),
        (lambda scores: scores.update(age=scores["age"].argmax(1)), r"'age' have shape \(80,\)"),
        (lambda scores: scores["gender"].__setitem__((3, 1), np.nan), "'gender' are not finite"),
        (lambda scores: scores["gender"].__setitem__((3, 1), np.inf), "'gender' are not finite"),
    ],
)
def test_bad_guesses_are_refused(attributes, spoil, message):
    guesses = random_guesses(attributes)
    spoil(guesses)
    with pytest.raises(RequestError, match=message):
        secret_metrics(attributes, attributes.secrets, guesses, None)


def test_baselines_of_each_secret_by_hand(make_corpus):
    """Of 10 test texts 6 have gender m, and f is the majority of train; 7 guesses are right; 4 texts mention Otto."""
    train = {"gender": np.array([0, 0, 1]), "otto": np.array([0, 0, 1]), "label": np.array([0, 1, 1])}
    gender, otto = np.array([1] * 6 + [0] * 4), np.array([1] * 4 + [0] * 6)
    splits = {"train": train, "dev": train, "test": {"gender": gender, "otto": otto, "label": gender}}
    corpus = make_corpus(splits, [("gender", ("f", "m"), "attribute"), ("otto", PRESENCE, "entity")])
    by_text = np.array([0] * 5 + [1] * 5)
    scores = {"gender": one_hot(np.array([1] * 3 + [0] * 7), 2), "otto": one_hot(np.array([1] * 2 + [0] * 8), 2)}
    metrics = measured(corpus, scores, by_text[:, None], secrets=corpus.secrets[:1])
    attack, privacy = (metrics[f"{name}/gender"] for name in ("attack_accuracy", "empirical_privacy"))
    assert attack.value == pytest.approx(0.7)
    assert privacy.value == pytest.approx(1 - 0.7)
    constant = accuracy(np.ones(10, np.int64), gender)  # right in 6 of 10
    by_attack = accuracy(np.array([1] * 3 + [0] * 7), gender)
    low, high = (max(score.interval(c)[end] for score in (constant, by_attack)) for end, c in ((0, 0.975), (1, 0.95)))
    assert (privacy.low, privacy.high) == pytest.approx((1 - high, 1 - low))
    assert metrics["privacy_best_constant/gender"].value == pytest.approx(1 - 0.6)
    assert metrics["privacy_label/gender"].value == pytest.approx(1 - 0.4)  # label 1 is a tie, resolved as f
    assert metrics["privacy_text_classifier/gender"].value == pytest.approx(1 - 0.1)  # only the sixth guess is right
    metrics = measured(corpus, scores, secrets=corpus.secrets[1:])
    present = 2 * 4 / (4 + 10)
    assert metrics["privacy_best_constant/otto"].value == pytest.approx(1 - present)
    assert metrics["empirical_privacy/otto"].value == pytest.approx(1 - 2 * 2 / (2 + 4))


def test_the_baselines_of_several_secrets_do_not_mix(attributes, entities):
    for corpus in (attributes, entities):
        text_guesses = np.stack([corpus.column("test", secret.name) for secret in corpus.secrets], axis=1)
        guesses = random_guesses(corpus)
        together = measured(corpus, guesses, text_guesses)
        for column, secret in enumerate(corpus.secrets):
            alone = measured(corpus, guesses, text_guesses[:, [column]], secrets=[secret])
            for name in ("empirical_privacy", "privacy_best_constant", "privacy_text_classifier"):
                assert together[f"{name}/{secret.name}"] == alone[f"{name}/{secret.name}"], (name, secret.name)
                assert alone[f"{name}/{secret.name}"].value == alone[name].value


def test_a_failed_attack_has_the_constants_privacy_with_its_interval(attributes):
    """The attack always guesses the value that is rarest in train."""
    rare = {s.name: np.bincount(attributes.column("train", s.name)).argmin() for s in attributes.secrets}
    guesses = {name: one_hot(np.full(80, code), 3 - (name == "gender")) for name, code in rare.items()}
    metrics = measured(attributes, guesses)
    for name in rare:
        privacy = metrics[f"empirical_privacy/{name}"]
        assert privacy.value == metrics[f"privacy_best_constant/{name}"].value
        assert privacy.high - privacy.low > 0.1


class TestNewTexts:
    """A third of the test texts are in train or dev; on the others the attack's guess of the age is constant."""

    @pytest.fixture
    def copied(self, make_corpus):
        rng = np.random.default_rng(2)
        splits = {
            split: {"text": texts, "age": rng.integers(0, 2, len(texts)), "gender": rng.integers(0, 2, len(texts))}
            for split, texts in (
                ("train", [f"known {i}" for i in (*range(20), *range(30, 60))]),
                ("dev", [f"known {i}" for i in range(20, 30)]),
                ("test", [f"known {i}" for i in range(30)] + [f"new {i}" for i in range(60)]),
            )
        }
        return make_corpus(splits, [("age", ("a", "b"), "attribute"), ("gender", ("f", "m"), "attribute")])

    def test_by_hand(self, copied):
        truth = baselines.truth(copied, "test", copied.secrets)
        guessed = truth.copy()
        guessed[30:, 0] = 0
        guesses = {"age": one_hot(guessed[:, 0], 2), "gender": one_hot(guessed[:, 1], 2)}
        metrics = measured(copied, guesses)
        right = np.mean(truth[30:, 0] == 0)
        assert metrics["attack_score_new/age"].value == pytest.approx(right)
        assert metrics["attack_score_new"].value == pytest.approx((right + 1) / 2)
        assert metrics["attack_score_new"].n == 60
        constant = baselines.best_constant(baselines.truth(copied, "train", copied.secrets), "attribute")
        of_constant = np.mean(truth[30:, 0] == constant[0])
        assert metrics["empirical_privacy_new/age"].value == pytest.approx(1 - max(right, of_constant))
        assert metrics["empirical_privacy_new/gender"].value == 0
        assert metrics["attack_score"].value > metrics["attack_score_new"].value

    def test_without_copies_there_are_no_scores_of_new_texts(self, attributes):
        metrics = measured(attributes, random_guesses(attributes))
        assert not [name for name in metrics if "_new" in name]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_guesses_that_know_nothing_seldom_beat_the_constant(make_corpus, classes):
    """Exactly balanced classes: whichever is frequent in train is rare in test.

    A guess is random, so its interval excludes the constant's score in 2.5 % of the runs at most, as the constant is
    the best of several on the same texts.
    """
    rng, beaten, runs = np.random.default_rng(0), 0, 150
    secret = ("group", tuple(map(str, range(classes))), "attribute")
    for _ in range(runs):
        codes = rng.permutation(np.arange(300) % classes)
        splits = {"train": codes[:210], "dev": codes[210:240], "test": codes[240:]}
        corpus = make_corpus({split: {"group": part, "label": part * 0} for split, part in splits.items()}, [secret])
        scores = {"group": one_hot(rng.integers(classes, size=60), classes)}
        metrics = measured(corpus, scores, secrets=corpus.secrets)
        beaten += metrics["empirical_privacy"].high < metrics["privacy_best_constant"].value - 1e-9
    assert beaten <= stats.binom.isf(1e-4, runs, 0.025)


class TestRareSecrets:
    """Accuracy hides rare secrets; the advantage does not."""

    def test_a_rare_secret_that_is_ranked_right_is_a_leak(self, make_corpus):
        """3 % of 3,000 texts have the secret, and one coordinate is shifted by 2: the area is Phi(sqrt(2)) = .921."""
        rng, n = np.random.default_rng(0), 3000
        truth = (np.arange(n) < 90).astype(np.int64)
        margin = rng.normal(size=n) + 2 * truth - 4.5  # above 0 where the secret is likelier than not
        corpus = make_corpus(
            {split: {"ill": truth} for split in ("train", "dev", "test")}, [("ill", ("no", "yes"), "attribute")]
        )
        metrics = measured(corpus, {"ill": np.stack([-margin / 2, margin / 2], axis=1)})
        assert metrics["attack_score"].value < 0.98  # the constant guess: .97
        assert metrics["attack_auc/ill"].value == pytest.approx(0.921, abs=0.03)
        advantage = metrics["attack_advantage/ill"]
        assert advantage.value == pytest.approx(2 * metrics["attack_auc/ill"].value - 1)
        assert 0.7 < advantage.low < advantage.value < advantage.high < 0.95
        assert metrics["attack_advantage_p/ill"].value < 1e-20
        assert metrics["tpr@fpr=0.01/ill/yes"].value > 0.2
        assert metrics["lift/ill/yes"].value > 15

    @pytest.mark.parametrize("names", [("ill", "well"), ("well", "ill")])
    def test_the_rare_value_is_measured_whatever_its_place(self, make_corpus, names):
        rng, n = np.random.default_rng(0), 1000
        rare = names.index("ill")
        truth = np.where(np.arange(n) < 30, rare, 1 - rare)
        margin = rng.normal(size=n) + 3 * (truth == rare)
        scores = np.zeros((n, 2))
        scores[:, rare] = margin
        corpus = make_corpus({split: {"s": truth} for split in ("train", "dev", "test")}, [("s", names, "attribute")])
        metrics = measured(corpus, {"s": scores})
        assert metrics["lift/s/ill"].value > 20
        assert metrics["lift/s/well"].value < 1.1
        assert metrics["attack_auc/s"].value == pytest.approx(stats.norm.cdf(3 / np.sqrt(2)), abs=0.02)

    @pytest.mark.parametrize("values", [2, 3])
    def test_a_number_added_to_all_scores_of_a_text_changes_nothing(self, make_corpus, values):
        rng = np.random.default_rng(0)
        truth = rng.integers(0, values, 90)
        names = ("a", "b", "c")[:values]
        corpus = make_corpus({split: {"s": truth} for split in ("train", "dev", "test")}, [("s", names, "attribute")])
        scores = np.eye(values)[truth] + rng.normal(size=(90, 1)) * 100
        assert measured(corpus, {"s": scores})["attack_advantage/s"].value == 1

    def test_the_lift_by_hand(self, make_corpus):
        """Of 40 texts 10 have the value; of the ten most suspected 5 have it surely, and of five places ten tie."""
        truth = np.array([1] * 5 + [0] * 25 + [1] * 5 + [0] * 5)
        margin = np.array([9.0] * 5 + [0.0] * 25 + [5.0] * 10)
        corpus = make_corpus(
            {split: {"s": truth} for split in ("train", "dev", "test")}, [("s", ("a", "b"), "attribute")]
        )
        metrics = measured(corpus, {"s": np.stack([-margin, margin], axis=1)})
        assert metrics["lift/s/b"].value == pytest.approx((5 + 2.5) / 10 / 0.25)

    def test_a_value_of_one_text_is_left_out(self, make_corpus):
        truth = np.array([0, 0, 0, 1, 1, 1, 2])
        corpus = make_corpus(
            {split: {"s": truth} for split in ("train", "dev", "test")}, [("s", ("a", "b", "c"), "attribute")]
        )
        metrics = measured(corpus, {"s": one_hot(np.array([0, 0, 0, 1, 1, 1, 0]), 3)})
        # a: 3 of 3 found and 3 of 4 others told apart, area 1 - 1/8; b: all right; c is not in the mean
        assert metrics["attack_auc/s"].value == pytest.approx((7 / 8 + 1) / 2)

    def test_all_secrets_together_have_the_mean_advantage(self, make_corpus):
        first, second = np.array([0, 0, 1, 1] * 5), np.array([0, 1, 0, 1] * 5)
        corpus = make_corpus(
            {split: {"s": first, "t": second} for split in ("train", "dev", "test")},
            [("s", ("a", "b"), "attribute"), ("t", ("a", "b"), "attribute")],
        )
        metrics = measured(corpus, {"s": one_hot(first, 2), "t": one_hot(first, 2)})
        assert [metrics[f"attack_advantage{name}"].value for name in ("/s", "/t", "")] == [1, 0, 0.5]
