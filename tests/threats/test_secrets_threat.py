"""Test the secrets threat: the order of guesses, scores on dev, and claims for several observations."""

import dataclasses

import numpy as np
import pytest
from answers import answering, values_of

from leakboard.claims import ReleaseClaim, TrainingClaim
from leakboard.errors import NotApplicable, RequestError
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.threats import secrets
from leakboard.threats.secrets import SecretGuesses, SecretsAttack
from leakboard.threats.threat import release_claim

ONE_HOT = np.eye(2, dtype=np.float32)


def guessing(colour, kind=SecretsAttack, **options):
    """Return an attack whose guesses of the colour are ``colour(shown)``."""
    return answering(kind, lambda shown: {"colour": colour(shown)}, **options)


def zeros(shown):
    return np.zeros((len(shown), 2), np.float32)


def test_guesses_are_scored_in_the_order_of_the_test_texts(plain):
    vectors, truth = plain.published.documents["test"], plain.corpus.column("test", "colour")
    known = {vector.tobytes(): int(value) for vector, value in zip(vectors, truth, strict=True)}
    by_vector = guessing(lambda shown: ONE_HOT[[known[v.tobytes()] for v in shown]])
    by_position = guessing(lambda shown: ONE_HOT[truth])
    assert values_of(evaluate_attack(by_vector, plain))["attack_score"] == 1.0
    assert values_of(evaluate_attack(by_position, plain))["attack_score"] < 0.8


def test_guesses_may_come_with_details(plain):
    bare = evaluate_attack(guessing(zeros), plain)
    attack = answering(SecretsAttack, lambda shown: SecretGuesses({"colour": zeros(shown)}, "blindly"))
    detailed = evaluate_attack(attack, plain)
    assert detailed.metrics == bare.metrics
    assert (bare.details, detailed.details) == ("", "blindly")


def test_guesses_on_dev_are_scored(plain):
    truth = plain.corpus.column("dev", "colour")
    guessed = ONE_HOT[np.where(np.arange(len(truth)) % 4 == 0, 1 - truth, truth)]

    def attack(on_dev):
        return answering(SecretsAttack, lambda v: SecretGuesses({"colour": zeros(v)}, on_dev={"colour": on_dev}))

    metrics = evaluate_attack(attack(guessed), plain).metrics
    right = pytest.approx(1 - len(truth[::4]) / len(truth))
    assert {m.variable: m.value for m in metrics if m.name == "attack_score_dev"} == {"": right, "colour": right}
    with pytest.raises(RequestError, match="guesses of 'colour' on dev have shape"):
        evaluate_attack(attack(guessed[1:]), plain)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_an_attack_may_encode_the_texts_of_its_view(split, plain, make_corpus):
    """Half of the test texts are copies of these texts, and the attacker's corpus has others."""
    corpus = plain.corpus
    columns = {name: part.to_dict() for name, part in corpus.splits.items()}
    columns["test"]["text"][:20] = columns[split]["text"][:20]
    corpus = make_corpus(columns, corpus.secrets)
    side = dataclasses.replace(plain, corpus=corpus, auxiliary=corpus.with_rows("train", []).with_rows("dev", []))

    class Encodes(SecretsAttack):
        def fit(self, view, seed):
            view.oracle.encode(getattr(view, split).texts)
            return lambda shown: {"colour": zeros(shown)}

    assert evaluate_attack(Encodes(), side).test_size == 40


def test_a_corpus_without_secrets_of_the_kind_is_not_attacked(plain):
    class EntitiesAttack(SecretsAttack):
        kind = "entity"

    attribute, entity = guessing(zeros), guessing(zeros, EntitiesAttack)
    assert attribute.threat.why_not_applicable(attribute, plain.corpus, None) == ""
    assert entity.threat.why_not_applicable(entity, plain.corpus, None) == "made has no entity secrets"
    with pytest.raises(NotApplicable, match="made has no entity secrets"):
        evaluate_attack(entity, plain)


class TestObservations:
    """Several publications of the same text."""

    def test_they_are_fresh_and_share_one_row_with_the_composed_claim(self, private):
        attack = guessing(zeros, observations=3)
        result = evaluate_attack(attack, private)
        assert attack.shown.shape == (40, 3, 4)
        assert np.ptp(attack.shown, axis=1).max() > 0
        single = private.published.claim
        assert (result.claim.observations, result.claim.epsilon) == (3, pytest.approx(3 * single.epsilon))
        assert result.claim.proved == pytest.approx(3 * single.proved)

    def test_only_claims_about_releases_are_composed(self, plain):
        def claimed(claim, times):
            published = dataclasses.replace(plain.published, claim=claim)
            return release_claim(dataclasses.replace(plain, published=published), times)

        once = ReleaseClaim(0.5, 1e-3, "word", "Gaussian", "1", 2.0)
        composed = ReleaseClaim(8.0, 0.016, "word", "Gaussian", "1", 32.0, observations=16)
        assert claimed(once, 16) == composed
        assert claimed(dataclasses.replace(once, delta=0.5), 4).delta < 1
        training = TrainingClaim(1.0, 1e-6, "user", 10, "poisson", 5, 100, 1.0, 0.1, "is public")
        assert claimed(training, 5) is claimed(None, 5) is None


@pytest.mark.parametrize("most", [0, 1 << 30])
def test_many_vectors_are_shown_without_a_copy_and_cannot_be_changed(plain, monkeypatch, most):
    monkeypatch.setattr(secrets, "MAX_COPIED", most)
    mapped = plain.published.documents["train"].copy()
    mapped.flags.writeable = False
    documents = {**plain.published.documents, "train": mapped}
    side = dataclasses.replace(plain, published=dataclasses.replace(plain.published, documents=documents))
    shown = secrets.known_texts(side, "train", side.corpus.secrets).vectors
    assert np.array_equal(shown, mapped)
    assert (np.shares_memory(shown, mapped), shown.flags.writeable) == (most == 0, most > 0)
