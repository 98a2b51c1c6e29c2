"""Attacks that read texts from vectors: what a vector holds is read, and chance is not success."""

import itertools

import numpy as np
import pytest
import torch

from leakboard.attacks._reading.language_model import END, FIRST, PADDING, START, UNKNOWN, LanguageModel
from leakboard.attacks._reading.vocabulary import Vocabulary
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.attacks.reconstruction import Reconstruction
from leakboard.interfaces import Texts
from leakboard.metrics.text_scores import text_metrics
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.texts import TextsView

WORDS = [f"w{i:02d}" for i in range(40)]


def world(texts_of, vectors_of, sizes=(600, 200, 200)):
    """Return a view and the test texts with their vectors; ``vectors_of`` sees the texts and a generator."""
    rng, parts = np.random.default_rng(0), []
    for size in sizes:
        texts = Texts([texts_of(rng) for _ in range(size)])
        parts.append(KnownTexts(texts, vectors_of(texts, rng).astype(np.float32), {}))
    return TextsView(parts[0], parts[1], oracle=None), parts[2]  # no attack asks here


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


@pytest.fixture
def scored(make_corpus):
    """Return a function that scores an attack by what it reads of held-out vectors."""

    def score(attack, view, held):
        guesses = attack.fit(view, 0)(held.vectors)
        splits = {"train": view.train.texts, "dev": held.texts, "test": held.texts}
        corpus = make_corpus({name: {"text": texts} for name, texts in splits.items()}, [])
        return {metric.name: metric for metric in text_metrics(guesses.texts, guesses.ordered, corpus)}

    return score


BAG = BagOfWords(epochs=150, learning_rate=0.02, batch_size=64)
WRITER = Reconstruction(hidden=32, embedding=16, epochs=25, batch_size=32, learning_rate=0.01)


class TestBagOfWords:
    def test_words_that_a_vector_holds_are_read(self, scored):
        view, held = world(any_words, bags)
        assert scored(BAG, view, held)["token_f1"].value > 0.98

    def test_from_noise_nothing_is_read(self, scored):
        view, held = world(any_words, nothing)
        found = scored(BAG, view, held)
        assert found["attack_score"].low <= 1 - found["privacy_best_constant"].value

    def test_a_hidden_layer_reads_too(self, scored):
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
    def test_sentences_that_a_vector_holds_are_written(self, scored, unit):
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

    def test_from_noise_no_sentence_is_written(self, scored):
        """The words that all sentences have are the constant's too; which of 64 sentences it is remains a guess."""
        view, held = world(sentences, nothing)
        found = scored(WRITER, view, held)
        assert found["exact_matches"].value < 1 / 64 + 4 * np.sqrt(1 / 64 / 200)
        assert found["attack_score"].low <= 1 - found["privacy_best_constant"].value

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
