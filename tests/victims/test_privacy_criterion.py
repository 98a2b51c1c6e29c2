"""Selection by privacy on dev: which epoch is kept, and how privacy on dev is measured."""

import dataclasses

import numpy as np
import pytest
import torch

from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.victims._adversarial.privacy_criterion import EmpiricalPrivacyCriterion, dev_privacy
from leakboard.victims.adversarial import Adversarial

DEV_PRIVACY = "leakboard.victims._adversarial.privacy_criterion.dev_privacy"
ENCODERS = [
    {"lstm": {"dimension": 8, "epochs": 2, "batch_size": 16}},
    {"embedding_bag": {"dimension": 8, "epochs": 2}},
]


def nothing(rows, split):
    """Encode texts to vectors that show nothing."""
    return torch.zeros(len(rows), 3)


class TestEmpiricalPrivacyCriterion:
    """The most accurate epoch that is private enough on dev."""

    @pytest.mark.parametrize(
        ("privacies", "errors", "kept"),
        [
            ([0.1, 0.5, 0.4], [0.1, 0.3, 0.2], 3),  # 2 and 3 are private enough, 3 is more accurate
            ([0.1, 0.5, 0.1], [0.1, 0.3, 0.2], 2),
            ([0.1, 0.2, 0.15], [0.1, 0.3, 0.2], 2),  # none is private enough: the most private
        ],
    )
    def test_which_epoch_is_best(self, corpus, monkeypatch, privacies, errors, kept):
        measured = iter(privacies)
        monkeypatch.setattr(DEV_PRIVACY, lambda *_: next(measured))
        criterion = EmpiricalPrivacyCriterion(0.4, corpus, None)
        assert 1 + int(np.argmin([criterion(error) for error in errors])) == kept

    @pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: next(iter(encoder)))
    @pytest.mark.parametrize("kept", [1, 2])
    def test_the_private_epoch_is_kept(self, corpus, monkeypatch, encoder, kept):
        states, measured = [], iter([0.9 if epoch == kept else 0.1 for epoch in (1, 2)])

        def privacy(_, encode):
            states.append(encode([0, 1], "dev").clone())
            return next(measured)

        monkeypatch.setattr(DEV_PRIVACY, privacy)
        fitted = Adversarial(method="declustering", encoder=encoder, least_privacy=0.4).fit(corpus, 0)
        vectors = fitted.publish_documents(Texts(corpus.texts("dev")[:2]), np.random.default_rng(0))
        np.testing.assert_allclose(vectors, states[kept - 1], atol=1e-6)
        assert not np.allclose(vectors, states[2 - kept], atol=1e-4)

    @pytest.mark.parametrize(("privacy", "is_logged"), [(0.1, True), (0.5, False)])
    def test_privacy_that_no_epoch_and_no_size_reaches_is_logged(self, corpus, monkeypatch, privacy, is_logged):
        lines = []
        monkeypatch.setattr(DEV_PRIVACY, lambda *_: privacy)
        monkeypatch.setattr("leakboard.victims.adversarial.log_progress", lines.append)
        encoder = {"lstm": {"dimension": [4, 8], "epochs": 1}}
        Adversarial(method="declustering", encoder=encoder, least_privacy=0.4).fit(corpus, 0)
        assert (lines == ["least_privacy: no epoch reached 0.4; the most private epoch is kept"]) is is_logged

    def test_an_attacker_that_fails_shows_no_privacy(self, make_corpus):
        rare = {"e": [0] * 9 + [1], "f": [1] * 6 + [0] * 4}
        secrets = [(name, ("absent", "present"), "entity") for name in rare]
        corpus = make_corpus(dict.fromkeys(("train", "dev", "test"), rare), secrets)
        assert dev_privacy(corpus, nothing) == pytest.approx(1 - 2 * 6 / (6 + 7 + 4))

    def test_dev_privacy_of_vectors_that_show_everything_or_nothing(self, corpus):
        def everything(rows, split):
            columns = [corpus.column(split, secret.name)[rows] for secret in corpus.secrets]
            return torch.tensor(np.stack([c == v for c in columns for v in range(5)], axis=1), dtype=torch.float32)

        assert dev_privacy(corpus, everything) == pytest.approx(0.0, abs=0.01)
        attributes = [secret.name for secret in corpus.secrets if secret.kind == "attribute"]
        majority = [np.bincount(corpus.column("train", name)).argmax() for name in attributes]
        right = [np.mean(corpus.column("dev", n) == m) for n, m in zip(attributes, majority, strict=True)]
        assert dev_privacy(corpus, nothing) == pytest.approx(1 - np.mean(right))

    def test_it_needs_secrets(self, corpus):
        without_secrets = dataclasses.replace(corpus, secrets=())
        with pytest.raises(RequestError, match=r"least_privacy: 0\.4 needs secrets, and generated_reviews has none"):
            Adversarial(method="generation", encoder=ENCODERS[0], least_privacy=0.4).fit(without_secrets, 0)
