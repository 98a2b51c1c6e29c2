"""Attacks that read texts from vectors: what a vector holds is read, and chance is not success."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from leakboard.attacks._language_model import END, FIRST, PADDING, START, UNKNOWN, LanguageModel
from leakboard.attacks._texts import Vocabulary
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.attacks.reconstruction import Reconstruction
from leakboard.data.corpora import build_corpus
from leakboard.errors import RequestError
from leakboard.interfaces import AttackerView, KnownTexts, SecretGuesses, TextGuesses, Texts
from leakboard.metrics.texts import text_metrics


def corpus_of(train, test):
    """Return a corpus without secrets or labels."""
    splits = {"train": train, "dev": test, "test": test}
    frames = {name: pd.DataFrame({"text": texts, "row": range(len(texts))}) for name, texts in splits.items()}
    return build_corpus("invented", frames, [], None)


def values(metrics):
    return {metric.name: metric.value for metric in metrics}


class Oracle:
    """An attack that was told the answers; ``wrong`` alters them."""

    needs, target = "documents", "text"

    def __init__(self, answers, wrong=lambda texts: TextGuesses(texts)):
        self.answers, self.wrong = answers, wrong

    def fit(self, view, seed):
        assert len(view.train.texts) == len(view.train.vectors)
        assert view.train.secrets == {}
        return self

    def guess(self, vectors):
        return self.wrong([self.answers[vector.tobytes()] for vector in vectors])


class TestMounting:
    def mounted(self, corpus, wrong=TextGuesses):
        from leakboard.pipeline.cell import mount
        from leakboard.pipeline.fitting import Names
        from leakboard.pipeline.publications import Publications
        from leakboard.pipeline.scene import Scene

        documents = {
            split: np.arange(2 * len(part), dtype=np.float32).reshape(-1, 2) for split, part in corpus.splits.items()
        }
        answers = {v.tobytes(): text for v, text in zip(documents["test"], corpus.texts("test"), strict=True)}
        published = Publications(documents, None, None, None)
        scene = Scene(corpus, corpus, None, lambda: None, published)
        return mount(Oracle(answers, wrong), scene, Names(0, "invented", "v", "a"), None)

    def test_texts_come_back_in_order(self):
        test = [f"word{i} text" for i in range(30)]
        judged = self.mounted(corpus_of(["text"], test))
        found = values(judged.metrics)
        assert found["exact_matches"] == found["token_f1"] == found["character_accuracy"] == 1
        assert found["empirical_privacy"] == 0
        assert (judged.secrets, judged.attack_metric, judged.test_size) == (("text",), "token_f1", 30)
        assert judged.sentences[3].text == judged.sentences[3].recovered == "word3 text"

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (lambda texts: TextGuesses(texts[:-1]), "the attack wrote 2 texts of 3 vectors"),
            (lambda texts: SecretGuesses({}), "an attack on text returns TextGuesses, not SecretGuesses"),
        ],
    )
    def test_guesses_of_another_shape_are_refused(self, wrong, message):
        with pytest.raises(RequestError, match=message):
            self.mounted(corpus_of(["a"], ["a", "b", "c"]), wrong)


WORDS = [f"w{i:02d}" for i in range(40)]


def refuse(*args):
    raise AssertionError("the attack has no need of this")


def world(texts_of, vectors_of, sizes=(600, 200, 200)):
    """Return a view and the test texts with their vectors; ``vectors_of`` sees the texts and a generator."""
    rng, parts = np.random.default_rng(0), []
    for size in sizes:
        texts = Texts([texts_of(rng) for _ in range(size)])
        parts.append(KnownTexts(texts, {}, vectors_of(texts, rng).astype(np.float32)))
    view = AttackerView((), parts[0], parts[1], None, refuse, refuse, refuse, None, None)
    return view, parts[2]


def any_words(rng):
    return " ".join(rng.choice(WORDS, rng.integers(3, 8), replace=False))


def sentences(rng):
    """Draw one of 4 x 4 x 4 sentences, whose order is fixed."""
    who, what, where = rng.integers(0, 4, 3)
    return f"the {WORDS[who]} {WORDS[10 + what]} near {WORDS[20 + where]} again and again"


def bags(texts, rng):
    return np.array([[word in text.split() for word in WORDS] for text in texts]) + rng.normal(
        0, 0.01, (len(texts), 40)
    )


def nothing(texts, rng):
    return rng.normal(size=(len(texts), 40))


def scored(attack, view, held):
    guesses = attack.fit(view, 0).guess(held.vectors)
    corpus = corpus_of(list(view.train.texts), list(held.texts))
    return {metric.name: metric for metric in text_metrics(guesses, corpus)}


BAG = BagOfWords(epochs=150, learning_rate=0.02, batch_size=64)
WRITER = Reconstruction(hidden=32, embedding=16, epochs=25, batch_size=32, learning_rate=0.01)


class TestBagOfWords:
    def test_words_that_a_vector_holds_are_read(self):
        view, held = world(any_words, bags)
        assert scored(BAG, view, held)["token_f1"].value > 0.98

    def test_from_noise_nothing_is_read(self):
        view, held = world(any_words, nothing)
        found = scored(BAG, view, held)
        assert found["attack_score"].low <= 1 - found["privacy_majority"].value

    def test_a_hidden_layer_reads_too(self):
        view, held = world(any_words, bags)
        attack = BagOfWords(hidden=64, epochs=150, learning_rate=0.01, batch_size=64)
        assert scored(attack, view, held)["token_f1"].value > 0.9

    def test_it_starts_from_the_shares_of_the_words(self):
        vocabulary = Vocabulary.of([["a", "b"], ["a", "c"], ["a", "b"], ["d"]], 2)
        assert (vocabulary.units, vocabulary.shares) == (["a", "b"], [0.75, 0.5])
        for hidden in (None, 8):
            network = BagOfWords(hidden=hidden)._network(3, vocabulary)
            assert torch.sigmoid(network(torch.randn(5, 3))).allclose(torch.tensor([0.75, 0.5]))

    def test_unless_all_are_single_a_word_of_one_text_is_left_out(self):
        assert Vocabulary.of([["a"], ["a"], ["b"]], 9).units == ["a"]
        assert Vocabulary.of([["c"], ["b"]], 9).units == ["b", "c"]


class TestReconstruction:
    @pytest.mark.parametrize("unit", ["words", "characters"])
    def test_sentences_that_a_vector_holds_are_written(self, unit):
        view, held = world(sentences, bags)
        attack = (
            WRITER
            if unit == "words"
            else Reconstruction(unit=unit, hidden=64, embedding=16, epochs=25, batch_size=32, learning_rate=0.01)
        )
        found = scored(attack, view, held)
        assert found["exact_matches"].value > 0.9
        assert found["character_accuracy"].value > 0.95
        assert found["token_f1"].value > 0.97

    def test_from_noise_no_sentence_is_written(self):
        """The words that all sentences have are the constant's too; which of 64 sentences it is remains a guess."""
        view, held = world(sentences, nothing)
        found = scored(WRITER, view, held)
        assert found["exact_matches"].value < 1 / 64 + 4 * np.sqrt(1 / 64 / 200)
        assert found["attack_score"].low <= 1 - found["privacy_majority"].value

    def test_the_loss_is_that_of_one_unit_after_the_other_whatever_the_padding(self):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = LanguageModel(5, 9, 4, 6)
            vectors = torch.randn(3, 5)
        texts = [
            torch.tensor([START, 4, 5, END]),
            torch.tensor([START, END]),
            torch.tensor([START, 8, UNKNOWN, 4, END]),
        ]
        total = 0.0
        for vector, codes in zip(vectors, texts, strict=True):
            context, state = model._start(vector[None])
            for before, after in itertools.pairwise(codes):
                states, state = model._step(before.reshape(1, 1), context, state)
                total -= model.output.log_prob(states[:, 0])[0, after].item()
        assert model.loss(vectors, texts, "sum").item() == pytest.approx(total, rel=1e-5)
        assert model.loss(vectors, texts).item() == pytest.approx(total / 8, rel=1e-5)

    def test_what_is_written_are_known_units_and_the_likeliest(self):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            model = LanguageModel(5, 9, 4, 6)
            vectors = torch.randn(40, 5)
        with torch.no_grad():
            model.output.head.bias[[PADDING, START, UNKNOWN]] = 50.0
        written = model.write(vectors, 7)
        assert all(set(codes) <= set(range(FIRST, 9)) and len(codes) <= 7 for codes in written)
        with torch.no_grad():
            model.output.head.bias[END] = 100.0
        assert model.write(vectors, 7) == [[]] * 40

    def test_a_victim_without_document_vectors(self):
        known = KnownTexts(Texts(["a"]), {}, None)
        view = AttackerView((), known, known, None, refuse, refuse, refuse, None, None)
        for attack in (BAG, WRITER):
            with pytest.raises(RequestError, match="no document vectors are published"):
                attack.fit(view, 0)
