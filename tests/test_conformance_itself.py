"""The other side of the conformance suite: a plugin that breaks the contract fails, with the reason."""

from types import SimpleNamespace

import conformance
import numpy as np
import pytest

from leakboard.interfaces import FittedVictim
from leakboard.threats.secrets import SecretsAttack


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    return conformance.Sides(tmp_path_factory.mktemp("examples"))


def test_noise_from_elsewhere_would_be_found():
    """A victim whose noise does not come from the given generator answers otherwise each time."""

    class Careless(FittedVictim):
        publishes = ("documents",)

        def publish_documents(self, texts, rng):
            return np.random.default_rng().normal(size=(len(texts), 2)).astype(np.float32)

    first, again = (
        conformance.digest(conformance.published(Careless, Careless(), conformance.corpus())) for _ in range(2)
    )
    assert first != again


class Guesses(SecretsAttack):
    """An attack on secrets whose answer is given."""

    def __init__(self, guess):
        self.guess = guess

    def fit(self, view, seed):
        return lambda vectors: {secret.name: self.guess(view, vectors, len(secret.values)) for secret in view.secrets}


def zeros(view, vectors, values):
    return np.zeros((len(vectors), values), np.float32)


def drawn(view, vectors, values):
    return np.random.default_rng().random((len(vectors), values)).astype(np.float32)


def writing(view, vectors, values):
    vectors[:] = 0.0
    return zeros(view, vectors, values)


def writing_into_the_view(view, vectors, values):
    view.vectors[:] = 0.0
    return zeros(view, vectors, values)


@pytest.mark.parametrize(
    ("guess", "complaint"),
    [
        (zeros, ""),
        (drawn, "answers the same question otherwise"),
        (writing, "writes into what it is shown"),
        (writing_into_the_view, "writes into its view"),
    ],
)
def test_an_attack_that_breaks_the_contract_would_be_found(guess, complaint, sides):
    attack = Guesses(guess)
    if not complaint:
        watched, _ = conformance.attacked(attack, sides(attack))
        assert len(watched.calls) == 1
        return
    with pytest.raises(AssertionError, match=complaint):
        conformance.attacked(attack, sides(attack))


def test_an_attack_without_an_applicable_victim_gets_the_reasons(tmp_path):
    threat = SimpleNamespace(needs="documents", why_not_applicable=lambda *_: "texts are too short")
    sides = conformance.Sides(tmp_path)
    sides.makers = {name: sides.makers[name] for name in list(sides.makers)[:1]}
    with pytest.raises(LookupError, match=r"no victim .* SimpleNamespace: .*: 'texts are too short'"):
        sides(SimpleNamespace(threat=threat))
