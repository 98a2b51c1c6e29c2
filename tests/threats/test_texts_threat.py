"""Texts: what is read comes back in order, and answers of another kind or number are refused."""

import numpy as np
import pandas as pd
import pytest

from leakboard.data.corpora import build_corpus
from leakboard.errors import RequestError
from leakboard.interfaces import FittedVictim, Victim
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.randomness import Streams
from leakboard.threats.published import Publications
from leakboard.threats.secrets import SecretGuesses
from leakboard.threats.texts import TextGuesses, TextsAttack
from leakboard.threats.threat import VictimSide


class Told(TextsAttack):
    """An attack that was told the answers; ``wrong`` alters them."""

    def __init__(self, answers, wrong=TextGuesses):
        self.answers, self.wrong = answers, wrong

    def fit(self, view, seed):
        assert len(view.train.texts) == len(view.train.vectors)
        assert view.train.values == {}
        return lambda vectors: self.wrong([self.answers[vector.tobytes()] for vector in vectors])


class Silent(Victim):
    """A victim that nobody asks."""

    def fit(self, corpus, seed):
        return FittedVictim()


def evaluated(train, test, wrong=TextGuesses):
    """Return the result of the attack on texts whose vectors are known."""
    splits = {"train": train, "dev": test, "test": test}
    frames = {name: pd.DataFrame({"text": texts, "row": range(len(texts))}) for name, texts in splits.items()}
    corpus = build_corpus("invented", frames, [], None)
    documents = {
        split: np.arange(2 * len(part), dtype=np.float32).reshape(-1, 2) for split, part in corpus.splits.items()
    }
    answers = {v.tobytes(): text for v, text in zip(documents["test"], corpus.texts("test"), strict=True)}
    published, streams = Publications(documents, None, None, None), Streams(0, "invented", "v", "a")
    side = VictimSide(corpus, corpus, Silent(), FittedVictim, published, streams)
    return evaluate_attack(Told(answers, wrong), side)


def test_texts_come_back_in_order():
    result = evaluated(["text"], [f"word{i} text" for i in range(30)])
    found = {metric.name: metric.value for metric in result.metrics}
    assert found["exact_matches"] == found["token_f1"] == found["character_accuracy"] == 1
    assert found["empirical_privacy"] == 0
    assert (result.secrets, result.test_size) == (("text",), 30)
    assert result.sentences[3].text == result.sentences[3].recovered == "word3 text"


def test_an_attack_that_trusts_the_order_of_the_vectors_is_wrong():
    texts = [f"word{i} text" for i in range(30)]
    found = {m.name: m.value for m in evaluated(["text"], texts, lambda read: TextGuesses(texts)).metrics}
    assert found["exact_matches"] < 0.2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda texts: TextGuesses(texts[:-1]), "the attack wrote 2 texts of 3 vectors"),
        (lambda texts: TextGuesses([*texts, "d"]), "the attack wrote 4 texts of 3 vectors"),
        (lambda texts: SecretGuesses({}), "an attack on texts returns TextGuesses, not SecretGuesses"),
        (lambda texts: texts, "an attack on texts returns TextGuesses, not list"),
    ],
)
def test_answers_of_another_kind_or_number_are_refused(wrong, message):
    with pytest.raises(RequestError, match=message):
        evaluated(["a"], ["a", "b", "c"], wrong)
