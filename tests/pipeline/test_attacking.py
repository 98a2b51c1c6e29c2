"""The victim's metrics come before the attack's, and a threat that does not apply says so."""

import dataclasses

import numpy as np
import pytest

from leakboard.errors import NotApplicable
from leakboard.interfaces import Coverage, FittedVictim, Secret, Victim
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.pipeline.victim_metrics import victim_metrics
from leakboard.randomness import Streams
from leakboard.threats.published import Publications
from leakboard.threats.secrets import SecretsAttack
from leakboard.threats.threat import VictimSide


class Blind(SecretsAttack):
    def fit(self, view, seed):
        return lambda vectors: {"s": np.zeros((len(vectors), 2), np.float32)}


class BlindToEntities(Blind):
    kind = "entity"


class Silent(Victim):
    """A victim that publishes nothing by itself."""

    def fit(self, corpus, seed):
        return FittedVictim()


@pytest.fixture
def side(make_corpus):
    """Return a victim with equal vectors for all texts and right task labels."""
    splits = {split: {"s": [0, 1] * 10, "label": [0, 1] * 10} for split in ("train", "dev", "test")}
    corpus = make_corpus(splits, [Secret("s", ("a", "b"), "attribute")])
    documents = {split: np.ones((20, 2), np.float32) for split in splits}
    published = Publications(documents, corpus.column("test", "label"), None, None, Coverage(cut=0.25))
    return VictimSide(corpus, corpus, Silent(), FittedVictim, published, Streams(0, "made", "silent", "blind"))


def test_the_victims_metrics_come_before_the_attacks(side):
    of_victim = victim_metrics(side, None)
    result = evaluate_attack(Blind(), side, of_victim)
    assert result.metrics[: len(of_victim)] == of_victim
    assert next(m.value for m in of_victim if m.name == "task_accuracy") == 1.0
    names = [metric.name for metric in result.metrics]
    assert names.index("task_accuracy") < names.index("attack_score")


def test_a_threat_that_does_not_apply_is_refused_before_anything_is_fitted(side):
    with pytest.raises(NotApplicable, match="made has no entity secrets"):
        evaluate_attack(BlindToEntities(), side)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_share_of_texts_that_are_cut_is_a_metric(share, side):
    published = dataclasses.replace(side.published, coverage=Coverage(cut=share))
    metrics = {m.name: (m.value, m.n) for m in victim_metrics(dataclasses.replace(side, published=published), None)}
    assert metrics["cut_texts"] == (share, 20)
    assert "unknown_texts" not in metrics


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_outside_0_and_1_is_refused(share, side):
    published = dataclasses.replace(side.published, coverage=Coverage(unknown=share))
    with pytest.raises(ValueError, match=r"coverage: unknown_texts=.* is not allowed: a share of texts, from 0 to 1"):
        victim_metrics(dataclasses.replace(side, published=published), None)
