"""The attacker's texts overlap with the victim's as the regime says."""

from typing import get_args

import numpy as np
import pytest

from leakboard.data.auxiliary import divide
from leakboard.interfaces import AuxiliaryRegime


@pytest.fixture(scope="module")
def corpus(make_corpus):
    """Train holds 400 distinct texts, every tenth of them three times."""
    texts = [f"text number {i}" for i in range(400) for _ in range(1 if i % 10 else 3)]
    splits = {name: {"text": part} for name, part in (("train", texts), ("dev", ["a", "b"]), ("test", ["c"]))}
    return make_corpus({k: {**v, "s": [0] * len(v["text"])} for k, v in splits.items()}, [("s", ("a",), "attribute")])


def parts(corpus, regime, seed=0):
    victim, attacker = divide(corpus, regime, np.random.default_rng(seed))
    return list(victim.texts("train")), list(attacker.texts("train"))


def test_within_leaves_the_victim_everything(corpus):
    victim, attacker = parts(corpus, "within")
    assert victim == list(corpus.texts("train"))
    assert len(set(attacker)) == 200


def test_overlap_has_half_in_common(corpus):
    victim, attacker = (set(texts) for texts in parts(corpus, "overlap"))
    assert len(victim) == len(attacker) == 200
    # Hypergeometric: 200 of 400 drawn twice have 100 in common, standard deviation 5.
    assert abs(len(victim & attacker) - 100) <= 20


def test_disjoint_has_nothing_in_common(corpus):
    victim, attacker = (set(texts) for texts in parts(corpus, "disjoint"))
    assert not victim & attacker
    assert victim | attacker == set(corpus.texts("train"))
    assert len(victim) == len(attacker) == 200


@pytest.mark.parametrize("regime", get_args(AuxiliaryRegime))
def test_copies_stay_together_and_order_is_kept(corpus, regime):
    order = {text: position for position, text in enumerate(corpus.texts("train"))}
    for texts in parts(corpus, regime):
        assert all(texts.count(text) == (1 if int(text.split()[-1]) % 10 else 3) for text in set(texts))
        assert texts == sorted(texts, key=order.__getitem__)


@pytest.mark.parametrize("regime", get_args(AuxiliaryRegime))
def test_the_same_seed_gives_the_same_parts(corpus, regime):
    assert parts(corpus, regime) == parts(corpus, regime)
    assert parts(corpus, regime)[1] != parts(corpus, regime, seed=1)[1]


@pytest.mark.parametrize("regime", get_args(AuxiliaryRegime))
def test_dev_and_test_are_shared(corpus, regime):
    for part in divide(corpus, regime, np.random.default_rng(0)):
        assert list(part.texts("dev")) == ["a", "b"]
        assert list(part.texts("test")) == ["c"]
