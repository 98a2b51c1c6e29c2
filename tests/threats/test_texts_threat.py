"""Test the texts threat: guessed texts are scored in the order of the test texts."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from answers import answering, values_of
from made_records import record

from leakboard.board.leaderboard import leaderboard
from leakboard.board.summary import sentence_rows
from leakboard.data.corpora import build_corpus
from leakboard.errors import NotApplicable
from leakboard.interfaces import FittedVictim, Victim
from leakboard.metrics.measures import Metric
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.randomness import Streams
from leakboard.threats.published import Publications
from leakboard.threats.texts import TextGuesses, TextsAttack, TextsThreat
from leakboard.threats.threat import VictimSide

TEXTS = [f"word{i} text" for i in range(30)]


class NeverFitted(Victim):
    encodes_texts = False

    def fit(self, corpus, seed):
        return FittedVictim()


def side_of(texts):
    """Return a victim's side of these test texts with known vectors, and one text of train."""
    splits = {"train": ["text"], "dev": texts, "test": texts}
    frames = {name: pd.DataFrame({"text": texts, "row": range(len(texts))}) for name, texts in splits.items()}
    corpus = build_corpus("invented", frames, [], None)
    documents = {name: np.arange(2 * len(texts), dtype=np.float32).reshape(-1, 2) for name, texts in splits.items()}
    published, streams = Publications(documents, None, None, None), Streams(0, "invented", "v", "a")
    return VictimSide(corpus, corpus, NeverFitted(), FittedVictim, published, streams)


@pytest.fixture
def side():
    return side_of(TEXTS)


def test_right_texts_are_found_in_any_order(side):
    known = {v.tobytes(): text for v, text in zip(side.published.documents["test"], TEXTS, strict=True)}
    attack = answering(TextsAttack, lambda vectors: TextGuesses([known[vector.tobytes()] for vector in vectors]))
    result = evaluate_attack(attack, side)
    assert len(attack.view.train.texts) == len(attack.view.train.vectors)
    assert attack.view.train.values == {}
    metrics = values_of(result)
    assert metrics["exact_matches"] == metrics["token_f1"] == metrics["character_accuracy"] == 1
    assert metrics["set_f1"] == metrics["multiset_f1"] == metrics["rouge_l"] == 1 > 0.6 > metrics["rouge_l_floor"]
    assert metrics["reencoded_cosine"] is None
    assert metrics["empirical_privacy"] == 0
    assert (result.secrets, result.test_size) == (("text",), 30)
    assert result.sentences[3].text == result.sentences[3].recovered == "word3 text"


def test_the_sentence_names_the_attack_that_finds_most_words():
    """Columns of a class of words are the recall of this class."""
    base = {"dataset": "d", "victim": "v", "secrets": "text", "threat": "texts", "attack_metric": "token_f1"}
    base |= {"attack_score": 0.7, "privacy_best_constant": 0.5, "attack_advantage": 0.4, "attack_advantage_p": 0.0}
    strongest = base | {"attack": "bag", "capitalised_words_found": 0.31, "capitalised_words_floor": 0.02}
    (row,) = sentence_rows([strongest])
    words = "without the vectors; of words that few texts have, 31 % of the capitalised ones"
    assert TextsThreat.sentence(row).endswith(f"{words} (bag; guesses about other texts: 2 %) come back")
    other = base | {"attack": "search", "attack_advantage": 0.3, "capitalised_words_found": 0.6}
    other |= {"capitalised_words_floor": 0.1, "numbers_found": 0.002, "numbers_floor": 0.0}
    (row,) = sentence_rows([strongest, other])
    words = "have, 60 % of the capitalised ones (search; guesses about other texts: 10 %)"
    numbers = "0.2 % of the numbers (search; guesses about other texts: 0 %)"
    assert TextsThreat.sentence(row).endswith(f"{words} and {numbers} come back")
    (row,) = sentence_rows([strongest | {"attack_advantage": 0.0}])
    assert "come back" not in TextsThreat.sentence(row)


def test_columns_are_the_recall_of_a_class_of_words():
    shares = {("sensitive", "rare words"): 0.1, ("distinctive", "numbers"): 0.3, ("sensitive", "numbers"): 0.9}
    recall = [Metric(f"{metrics}_recall", share, name) for (metrics, name), share in shares.items()]
    row, *_ = leaderboard([record("v", threat="texts", metrics=[Metric("attack_score", 0.7), *recall])])
    assert [row[f"{name}_found"] for name in ("capitalised_words", "rare_words", "numbers")] == [None, 0.1, 0.3]


def test_guesses_are_encoded_again_before_the_protection(side):
    """The public encoder counts letters; the publications of this victim are all the same."""

    class Counting(FittedVictim):
        def unprotected(self, texts):
            return np.array([[text.count(letter) for letter in "word0123456789 tex"] for text in texts], np.float32)

    class Public(NeverFitted):
        encodes_texts = True

    known = {v.tobytes(): text for v, text in zip(side.published.documents["test"], TEXTS, strict=True)}
    side = dataclasses.replace(side, victim=Public(), fitted=Counting)
    attack = answering(TextsAttack, lambda vectors: TextGuesses([known[vector.tobytes()] for vector in vectors]))
    metrics = values_of(evaluate_attack(attack, side))
    assert metrics["reencoded_cosine"] == pytest.approx(1)
    assert metrics["reencoded_cosine_floor"] < 0.99
    assert metrics["queries"] == metrics["noiseless_queries"] == 0


def test_an_attack_that_trusts_the_order_of_the_vectors_is_wrong(side):
    result = evaluate_attack(answering(TextsAttack, lambda vectors: TextGuesses(TEXTS)), side)
    assert values_of(result)["exact_matches"] < 0.2


def test_texts_whose_words_the_attacker_does_not_know_are_not_attacked(side):
    """Texts without spaces are one word each."""
    attack = answering(TextsAttack, lambda vectors: TextGuesses(["text"] * 30))
    with pytest.raises(NotApplicable, match=r"^3\.3 % of the words of the test texts .*: put spaces between them$"):
        evaluate_attack(attack, side_of(["text", *(text.replace(" ", "") for text in TEXTS[1:])]))
    assert attack.view is None
    evaluate_attack(attack, side)


def test_what_counts_is_the_texts_that_the_attacker_learns_from(side):
    """Its own texts may have other words: it is given texts of train with their vectors."""
    own = side_of(["", *TEXTS[1:]]).corpus.with_rows("train", [])
    evaluate_attack(
        answering(TextsAttack, lambda vectors: TextGuesses(TEXTS)), dataclasses.replace(side, auxiliary=own)
    )
