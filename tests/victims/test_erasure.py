"""Linear concept erasure: what a linear attacker is left with."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from leakboard.victims.adversarial import Adversarial, fit_eraser


@pytest.fixture(scope="module")
def corpus(reviews):
    return reviews.only("train", "dev")


class TestErasure:
    """LEACE: no linear attacker does better than a constant on the vectors that it was fitted on."""

    def test_a_linear_attacker_is_left_with_the_majority(self, corpus):
        from sklearn.linear_model import LogisticRegression

        encoder = {"lstm": {"dimension": 16, "epochs": 6, "batch_size": 8, "learning_rate": 0.01}}
        fitted = Adversarial(method="erasure", encoder=encoder).fit(corpus, 0)
        plain = fitted.encoder.documents(corpus.texts("train")).astype(np.float64)
        erased = fitted.publish_documents(corpus.texts("train"), np.random.default_rng(0)).astype(np.float64)
        beaten = 0
        for secret in corpus.secrets:
            truth = corpus.column("train", secret.name)
            majority = np.bincount(truth).max() / len(truth)
            scores = [
                LogisticRegression(C=np.inf, max_iter=5000).fit(x, truth).score(x, truth) for x in (plain, erased)
            ]
            assert scores[1] <= majority + 1.96 * np.sqrt(majority * (1 - majority) / len(truth)), secret.name
            beaten += scores[0] > majority + 0.05
        assert beaten

    def test_rare_secrets_are_erased_too(self, make_corpus):
        from sklearn.metrics import roc_auc_score

        rng = np.random.default_rng(0)
        truth = (rng.random(6000) < 0.005).astype(int)
        vectors = rng.standard_normal((6000, 16)).astype(np.float32)
        vectors[:, 0] += 1.5 * truth
        corpus = make_corpus({s: {"e": truth} for s in ("train", "dev", "test")}, [("e", ("no", "yes"), "entity")])
        encoder = SimpleNamespace(documents=lambda texts: vectors)
        erased = fit_eraser(encoder, corpus)(torch.from_numpy(vectors).double()).numpy()

        def separates(values):
            direction = values[truth == 1].mean(0) - values[truth == 0].mean(0)
            return roc_auc_score(truth, values @ direction)

        assert separates(vectors) > 0.8
        assert np.abs(erased[truth == 1].mean(0) - erased[truth == 0].mean(0)).max() < 1e-6
