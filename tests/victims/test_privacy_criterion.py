"""Selection by a privacy budget: which epoch is kept, and what privacy on dev is."""

import dataclasses

import numpy as np
import pytest
import torch

from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.victims._adversarial.privacy_criterion import EmpiricalPrivacyCriterion, dev_privacy
from leakboard.victims.adversarial import Adversarial

ENCODERS = [
    {"lstm": {"dimension": 8, "epochs": 2, "batch_size": 16}},
    {"embedding_bag": {"dimension": 8, "epochs": 2}},
]


@pytest.fixture(scope="module")
def corpus(reviews):
    return reviews.only("train", "dev")


class TestEmpiricalPrivacyCriterion:
    """The most accurate epoch that is private enough on dev."""

    @pytest.mark.parametrize(
        ("privacies", "errors", "kept"),
        [
            ([0.1, 0.5, 0.4], [0.1, 0.3, 0.2], 3),  # 2 and 3 are private enough, 3 is more accurate
            ([0.1, 0.5, 0.1], [0.1, 0.3, 0.2], 2),
            ([0.1, 0.2, 0.15], [0.1, 0.3, 0.2], 2),  # none is: the most private
        ],
    )
    def test_which_epoch_is_best(self, corpus, monkeypatch, privacies, errors, kept):
        told = iter(privacies)
        monkeypatch.setattr("leakboard.victims._adversarial.privacy_criterion.dev_privacy", lambda *_: next(told))
        budget = EmpiricalPrivacyCriterion(0.4, corpus, None)
        assert 1 + int(np.argmin([budget(error) for error in errors])) == kept

    @pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: next(iter(encoder)))
    @pytest.mark.parametrize("kept", [1, 2])
    def test_the_epoch_within_the_budget_is_kept(self, corpus, monkeypatch, encoder, kept):
        states, told = [], iter([0.9 if epoch == kept else 0.1 for epoch in (1, 2)])

        def privacy(_, encode):
            states.append(encode([0, 1], "dev").clone())
            return next(told)

        monkeypatch.setattr("leakboard.victims._adversarial.privacy_criterion.dev_privacy", privacy)
        fitted = Adversarial(method="declustering", encoder=encoder, least_privacy=0.4).fit(corpus, 0)
        found = fitted.publish_documents(Texts(corpus.texts("dev")[:2]), np.random.default_rng(0))
        np.testing.assert_allclose(found, states[kept - 1], atol=1e-6)
        assert not np.allclose(found, states[2 - kept], atol=1e-4)

    @pytest.mark.parametrize(("privacy", "told"), [(0.1, True), (0.5, False)])
    def test_a_budget_that_no_epoch_and_no_size_reaches_is_told(self, corpus, monkeypatch, privacy, told):
        notes = []
        monkeypatch.setattr("leakboard.victims._adversarial.privacy_criterion.dev_privacy", lambda *_: privacy)
        monkeypatch.setattr("leakboard.victims.adversarial.log_progress", notes.append)
        encoder = {"lstm": {"dimension": [4, 8], "epochs": 1}}
        Adversarial(method="declustering", encoder=encoder, least_privacy=0.4).fit(corpus, 0)
        assert (notes == ["least_privacy: no epoch reached 0.4; the most private epoch is kept"]) is told

    def test_an_attacker_who_fails_shows_no_privacy(self, make_corpus):
        rare = {"e": [0] * 9 + [1], "f": [1] * 6 + [0] * 4}
        secrets = [(name, ("absent", "present"), "entity") for name in rare]
        corpus = make_corpus(dict.fromkeys(("train", "dev", "test"), rare), secrets)
        constant = dev_privacy(corpus, lambda rows, split: torch.zeros(len(rows), 3))
        assert constant == pytest.approx(1 - 2 * 6 / (6 + 7 + 4))

    def test_dev_privacy_of_vectors_that_show_everything_or_nothing(self, corpus):
        def showing(rows, split):
            columns = [corpus.column(split, secret.name)[rows] for secret in corpus.secrets]
            return torch.tensor(np.stack([c == v for c in columns for v in range(5)], axis=1), dtype=torch.float32)

        assert dev_privacy(corpus, showing) == pytest.approx(0.0, abs=0.01)
        constant = dev_privacy(corpus, lambda rows, split: torch.zeros(len(rows), 3))
        attributes = [secret.name for secret in corpus.secrets if secret.kind == "attribute"]
        majority = [np.bincount(corpus.column("train", name)).argmax() for name in attributes]
        right = [np.mean(corpus.column("dev", n) == m) for n, m in zip(attributes, majority, strict=True)]
        assert constant == pytest.approx(1 - np.mean(right))

    def test_it_needs_secrets(self, corpus):
        silent = dataclasses.replace(corpus, secrets=())
        with pytest.raises(RequestError, match=r"least_privacy: 0\.4 needs secrets, and generated_reviews has none"):
            Adversarial(method="generation", encoder=ENCODERS[0], least_privacy=0.4).fit(silent, 0)
