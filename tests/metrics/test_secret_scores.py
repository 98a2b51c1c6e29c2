"""Scores of guesses of document secrets, beside every baseline."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from leakboard.errors import RequestError
from leakboard.metrics import baselines
from leakboard.metrics.measures import accuracy
from leakboard.metrics.secret_scores import secret_metrics

PRESENCE = ("absent", "present")


def named(metrics):
    return {(m.name, m.variable, m.group): m for m in metrics}


def one_hot(codes, values):
    return np.eye(values, dtype=np.float32)[codes]


@pytest.fixture
def attributes(make_corpus):
    """A corpus with two attributes, of 3 and 2 values, and a label."""
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
    found = named(secret_metrics(attributes, attributes.secrets, guesses, None))
    truth = baselines.truth(attributes, "test", attributes.secrets)
    accuracies = []
    for column, secret in enumerate(attributes.secrets):
        scores, gold = guesses[secret.name].astype(np.float64), truth[:, column]
        guess = scores.argmax(1)
        accuracies.append(np.mean(guess == gold))
        assert found["attack_accuracy", secret.name, ""].value == pytest.approx(accuracies[-1])
        balanced = balanced_accuracy_score(gold, guess)
        assert found["attack_balanced_accuracy", secret.name, ""].value == pytest.approx(balanced)
        for code, group in enumerate(secret.values):
            part = found["attack_accuracy", secret.name, group]
            assert part.value == pytest.approx(np.mean(guess[gold == code] == code))
            assert part.n == np.sum(gold == code)
    assert found["attack_score", "", ""].value == pytest.approx(np.mean(accuracies))
    age = guesses["age"].astype(np.float64)
    areas = [roc_auc_score(truth[:, 0] == code, age[:, code]) for code in range(3)]
    assert found["attack_auc", "age", ""].value == pytest.approx(np.mean(areas))
    gender = guesses["gender"].astype(np.float64)
    assert found["attack_auc", "gender", ""].value == pytest.approx(
        roc_auc_score(truth[:, 1], gender[:, 1] - gender[:, 0])
    )


def test_entities_against_scikit_learn(entities):
    guesses = random_guesses(entities)
    found = named(secret_metrics(entities, entities.secrets, guesses, None))
    truth = baselines.truth(entities, "test", entities.secrets)
    guess = np.stack([guesses[s.name].argmax(1) for s in entities.secrets], axis=1)
    assert found["attack_score", "", ""].value == pytest.approx(f1_score(truth, guess, average="micro"))
    assert found["attack_f1_macro", "", ""].value == pytest.approx(f1_score(truth, guess, average="macro"))
    for column, secret in enumerate(entities.secrets):
        expected = f1_score(truth[:, column], guess[:, column])
        assert found["attack_f1", secret.name, ""].value == pytest.approx(expected)
    recall = found["attack_accuracy", "one", "present"].value
    assert recall == pytest.approx(guess[truth[:, 0] == 1, 0].mean())
    assert ("privacy_label", "", "") not in found


def test_baselines_stand_beside_the_score(attributes):
    text_guesses = baselines.truth(attributes, "test", attributes.secrets)
    found = named(secret_metrics(attributes, attributes.secrets, random_guesses(attributes), text_guesses))
    train = baselines.truth(attributes, "train", attributes.secrets)
    majorities = [np.bincount(column).argmax() for column in train.T]
    assert found["privacy_best_constant", "", ""].value == pytest.approx(1 - np.mean(text_guesses == majorities))
    labels = attributes.column("train", "label")
    label_guesses = np.stack(
        [
            [np.bincount(train[labels == y, column]).argmax() for column in range(2)]
            for y in attributes.column("test", "label")
        ]
    )
    assert found["privacy_label", "", ""].value == pytest.approx(1 - np.mean(text_guesses == label_guesses))
    assert found["privacy_text_classifier", "", ""].value == 0
    assert ("privacy_bayes", "", "") not in found


def test_privacy_is_capped_by_the_constant_and_not_by_the_attack(attributes, entities):
    for corpus in (attributes, entities):
        truth = baselines.truth(corpus, "test", corpus.secrets)
        for guessed, broken in ((truth, True), ((truth + 1) % 2, False)):
            scores = {s.name: one_hot(guessed[:, c], len(s.values)) for c, s in enumerate(corpus.secrets)}
            found = named(secret_metrics(corpus, corpus.secrets, scores, None))
            privacy = found["empirical_privacy", "", ""]
            if broken:
                assert privacy.value == 0
                assert 0 < privacy.high < 0.1
            else:
                assert privacy.value == found["privacy_best_constant", "", ""].value
                assert privacy.value < 1 - found["attack_score", "", ""].value


def test_constant_guesses_have_the_constants_score(entities):
    best = baselines.best_constant(baselines.truth(entities, "train", entities.secrets), "entity")
    n = len(entities.splits["test"])
    scores = {s.name: one_hot(np.full(n, code), 2) for s, code in zip(entities.secrets, best, strict=True)}
    found = named(secret_metrics(entities, entities.secrets, scores, None))
    assert 1 - found["attack_score", "", ""].value == pytest.approx(found["privacy_best_constant", "", ""].value)
    assert all(found["attack_auc", s.name, ""].value == 0.5 for s in entities.secrets)


def test_the_bayes_bound_is_there_where_posteriors_are(reviews):
    secrets = [s for s in reviews.secrets if s.kind == "attribute"]
    posteriors = {s.name: np.array(reviews.splits["test"][f"posterior:{s.name}"]) for s in secrets}
    best = {name: p.astype(np.float32) for name, p in posteriors.items()}
    found = named(secret_metrics(reviews, secrets, best, None))
    expected = np.mean([p.max(1).mean() for p in posteriors.values()])
    assert found["privacy_bayes", "", ""].value == pytest.approx(1 - expected)
    n = len(reviews.splits["test"])
    assert abs(found["attack_score", "", ""].value - expected) < 4 * 0.5 / np.sqrt(n)


def constant_corpus(make_corpus, code, n=6, kind="entity"):
    splits = {split: {"s": [code] * size} for split, size in (("train", 4), ("dev", 2), ("test", n))}
    return make_corpus(splits, [("s", PRESENCE, kind)])


def test_one_class_only(make_corpus):
    corpus = constant_corpus(make_corpus, 1, kind="attribute")
    found = named(secret_metrics(corpus, corpus.secrets, random_guesses(corpus), None))
    assert found["attack_auc", "s", ""].value is None
    assert found["attack_auc", "s", ""].status == "one class only"
    absent = found["attack_accuracy", "s", "absent"]
    assert (absent.value, absent.n, absent.status) == (None, 0, "no test text in this group")
    assert found["empirical_privacy", "", ""].value == 0


def test_nothing_to_find(make_corpus):
    corpus = constant_corpus(make_corpus, 0)
    found = named(secret_metrics(corpus, corpus.secrets, random_guesses(corpus), None))
    assert found["attack_score", "", ""].value == 0
    assert found["empirical_privacy", "", ""].value == 1


def test_one_text(make_corpus):
    corpus = constant_corpus(make_corpus, 1, n=1)
    found = named(secret_metrics(corpus, corpus.secrets, {"s": one_hot([1], 2)}, None))
    assert found["attack_score", "", ""].value == 1
    assert np.isnan(found["attack_score", "", ""].low)


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


def test_each_secret_has_its_own_baselines_by_hand(make_corpus):
    """Of 10 test texts: gender, most often f in train, is m in 6 and guessed in 7; Otto is mentioned in 4."""
    train = {"gender": np.array([0, 0, 1]), "otto": np.array([0, 0, 1]), "label": np.array([0, 1, 1])}
    gender, otto = np.array([1] * 6 + [0] * 4), np.array([1] * 4 + [0] * 6)
    splits = {"train": train, "dev": train, "test": {"gender": gender, "otto": otto, "label": gender}}
    corpus = make_corpus(splits, [("gender", ("f", "m"), "attribute"), ("otto", PRESENCE, "entity")])
    by_text = np.array([0] * 5 + [1] * 5)
    scores = {"gender": one_hot(np.array([1] * 3 + [0] * 7), 2), "otto": one_hot(np.array([1] * 2 + [0] * 8), 2)}
    found = named(secret_metrics(corpus, corpus.secrets[:1], scores, by_text[:, None]))
    right = found["attack_accuracy", "gender", ""]
    assert right.value == pytest.approx(0.7)
    left = found["empirical_privacy", "gender", ""]
    assert left.value == pytest.approx(1 - 0.7)
    least, most = accuracy(np.zeros(10, np.int64), gender).interval()  # of the constant, right in 4 of 10
    assert (left.low, left.high) == pytest.approx((1 - max(right.high, most), 1 - max(right.low, least)))
    assert found["privacy_best_constant", "gender", ""].value == pytest.approx(1 - 0.4)
    assert found["privacy_label", "gender", ""].value == pytest.approx(1 - 0.4)  # label 1 is a tie: f
    assert found["privacy_text_classifier", "gender", ""].value == pytest.approx(1 - 0.1)  # the sixth is right
    found = named(secret_metrics(corpus, corpus.secrets[1:], scores, None))
    present = 2 * 4 / (4 + 10)
    assert found["privacy_best_constant", "otto", ""].value == pytest.approx(1 - present)
    assert found["empirical_privacy", "otto", ""].value == pytest.approx(1 - 2 * 2 / (2 + 4))


def test_the_baselines_of_several_secrets_do_not_mix(attributes, entities):
    for corpus in (attributes, entities):
        texts = np.stack([corpus.column("test", secret.name) for secret in corpus.secrets], axis=1)
        guesses = random_guesses(corpus)
        together = named(secret_metrics(corpus, corpus.secrets, guesses, texts))
        for column, secret in enumerate(corpus.secrets):
            alone = named(secret_metrics(corpus, [secret], guesses, texts[:, [column]]))
            for name in ("empirical_privacy", "privacy_best_constant", "privacy_text_classifier"):
                assert together[name, secret.name, ""] == alone[name, secret.name, ""], (name, secret.name)
                assert alone[name, secret.name, ""].value == alone[name, "", ""].value


def test_an_attack_that_fails_leaves_doubt(attributes):
    """Always the value that is rare in train: privacy is what the constant leaves, whose score is uncertain too."""
    rare = {s.name: np.bincount(attributes.column("train", s.name)).argmin() for s in attributes.secrets}
    guesses = {name: one_hot(np.full(80, code), 3 - (name == "gender")) for name, code in rare.items()}
    found = named(secret_metrics(attributes, attributes.secrets, guesses, None))
    for name in rare:
        left = found["empirical_privacy", name, ""]
        assert left.value == found["privacy_best_constant", name, ""].value
        assert left.high - left.low > 0.1


class TestNewTexts:
    """A third of the test texts stand in train or dev; the attack looks those up and knows nothing of the others."""

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
        found = named(secret_metrics(copied, copied.secrets, guesses, None))
        right = np.mean(truth[30:, 0] == 0)
        assert found["attack_score_new", "age", ""].value == pytest.approx(right)
        assert found["attack_score_new", "", ""].value == pytest.approx((right + 1) / 2)
        assert found["attack_score_new", "", ""].n == 60
        constant = baselines.best_constant(baselines.truth(copied, "train", copied.secrets), "attribute")
        of_constant = np.mean(truth[30:, 0] == constant[0])
        assert found["empirical_privacy_new", "age", ""].value == pytest.approx(1 - max(right, of_constant))
        assert found["empirical_privacy_new", "gender", ""].value == 0
        assert found["attack_score", "", ""].value > found["attack_score_new", "", ""].value

    def test_without_copies_there_is_nothing_to_tell(self, attributes):
        found = named(secret_metrics(attributes, attributes.secrets, random_guesses(attributes), None))
        assert not [name for name, *_ in found if name.endswith("_new")]
