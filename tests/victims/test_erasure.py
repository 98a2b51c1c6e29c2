"""Linear concept erasure (LEACE): what a linear attacker can still learn."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from leakboard.victims.adversarial import Adversarial, fit_eraser


@pytest.mark.slow
def test_a_linear_attacker_only_learns_the_majority(corpus):
    encoder = {"lstm": {"dimension": 16, "epochs": 6, "batch_size": 8, "learning_rate": 0.01}}
    fitted = Adversarial(method="erasure", encoder=encoder).fit(corpus, 0)
    plain = fitted.encoder.documents(corpus.texts("train")).astype(np.float64)
    erased = fitted.publish_documents(corpus.texts("train"), np.random.default_rng(0)).astype(np.float64)
    learnt_before = 0
    for secret in corpus.secrets:
        truth = corpus.column("train", secret.name)
        majority = np.bincount(truth).max() / len(truth)
        before, after = (
            LogisticRegression(C=np.inf, max_iter=5000).fit(x, truth).score(x, truth) for x in (plain, erased)
        )
        assert after <= majority + 1.96 * np.sqrt(majority * (1 - majority) / len(truth)), secret.name
        learnt_before += before > majority + 0.05
    assert learnt_before


def test_rare_secrets_are_erased_too(make_corpus):
    rng = np.random.default_rng(0)
    truth = (rng.random(6000) < 0.005).astype(int)
    vectors = rng.standard_normal((6000, 16)).astype(np.float32)
    vectors[:, 0] += 1.5 * truth
    corpus = make_corpus({s: {"e": truth} for s in ("train", "dev", "test")}, [("e", ("no", "yes"), "entity")])
    eraser = fit_eraser(SimpleNamespace(documents=lambda texts: vectors), corpus)
    erased = eraser(torch.from_numpy(vectors).double()).numpy()

    def difference(values):
        return values[truth == 1].mean(0) - values[truth == 0].mean(0)

    assert roc_auc_score(truth, vectors @ difference(vectors)) > 0.8
    assert np.abs(difference(erased)).max() < 1e-6
