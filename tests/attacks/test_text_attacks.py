"""Attacks that read texts from vectors: they read what a vector holds, and chance is not success."""

import itertools

import numpy as np
import pytest
import torch

from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.attacks.nearest_text import NearestText
from leakboard.attacks.reconstruction import Reconstruction
from leakboard.interfaces import Texts
from leakboard.metrics.text_scores import text_metrics
from leakboard.models.language_model import END, FIRST_UNIT, PADDING, START, UNKNOWN, LanguageModel
from leakboard.models.vocabulary import Vocabulary
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.texts import TextsView

WORDS = [f"w{i:02d}" for i in range(40)]
RECIPE = {"hidden": 32, "embedding": 16, "epochs": 5, "batch_size": 32, "learning_rate": 0.01}


def any_words(rng):
    return " ".join(rng.choice(WORDS, rng.integers(3, 8), replace=False))


def sentences(rng):
    """Draw one of 4 x 4 x 4 sentences with the same order of words."""
    first, second, third = rng.integers(0, 4, 3)
    return f"the {WORDS[first]} {WORDS[10 + second]} near {WORDS[20 + third]} again and again"


def bags(texts, rng):
    return np.array([[word in text.split() for word in WORDS] for text in texts]) + noise(texts, rng) / 100


def noise(texts, rng):
    return rng.normal(size=(len(texts), 40))


@pytest.fixture
def read(make_corpus):
    """Return a function that returns the guesses of an attack about held-out vectors, and the corpus."""

    def guess(attack, text_of, vectors_of):
        rng, parts = np.random.default_rng(0), []
        for size in (600, 200, 200):
            texts = Texts([text_of(rng) for _ in range(size)])
            parts.append(KnownTexts(texts, vectors_of(texts, rng).astype(np.float32), {}))
        train, dev, held_out = parts
        guesses = attack.fit(TextsView(train, dev, oracle=None), 0)(held_out.vectors)  # no attack asks here
        splits = {"train": train.texts, "dev": held_out.texts, "test": held_out.texts}
        return guesses, make_corpus({name: {"text": texts} for name, texts in splits.items()}, [])

    return guess


@pytest.fixture
def scored(read):
    """Return a function that scores an attack by what it reads of held-out vectors."""

    def score(attack, text_of, vectors_of):
        guesses, corpus = read(attack, text_of, vectors_of)
        return {metric.name: metric for metric in text_metrics(guesses.texts, guesses.ordered, corpus)}

    return score


class TestBagOfWords:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("hidden", "rate", "least"), [(None, 0.02, 0.98), pytest.param(64, 0.01, 0.9, marks=pytest.mark.slow)]
    )
    def test_words_that_a_vector_holds_are_read(self, scored, hidden, rate, least):
        attack = BagOfWords(hidden=hidden, epochs=38, learning_rate=rate, batch_size=64)
        assert scored(attack, any_words, bags)["token_f1"].value > least

    @pytest.mark.slow
    def test_few_texts_are_enough_for_the_defaults(self, scored):
        assert scored(BagOfWords(), any_words, bags)["token_f1"].value > 0.98

    def test_training_that_ends_at_its_limit_is_remarked(self, read):
        remark = "the dev loss still fell in the last of 10 passes"
        assert remark in read(BagOfWords(epochs=1, batch_size=150), any_words, bags)[0].details
        assert "dev loss" not in read(BagOfWords(batch_size=150), any_words, noise)[0].details

    def test_from_noise_nothing_is_read(self, scored):
        found = scored(BagOfWords(epochs=38, learning_rate=0.02, batch_size=64), any_words, noise)
        assert found["attack_score"].low <= 1 - found["privacy_best_constant"].value

    def test_it_starts_from_the_shares_of_the_words(self):
        vocabulary = Vocabulary.of([["a", "b"], ["a", "c"], ["a", "b"], ["d"]], 2)
        assert (vocabulary.units, vocabulary.shares) == (["a", "b"], [0.75, 0.5])
        for hidden in (None, 8):
            network = BagOfWords(hidden=hidden)._network(3, vocabulary)
            assert torch.sigmoid(network(torch.randn(5, 3))).allclose(torch.tensor([0.75, 0.5]))

    def test_a_word_of_one_text_is_left_out_unless_all_words_are(self):
        assert Vocabulary.of([["a"], ["a"], ["b"]], 9).units == ["a"]
        assert Vocabulary.of([["c"], ["b"]], 9).units == ["b", "c"]


class TestNearestText:
    def test_copies_of_known_texts_are_read_exactly(self, scored):
        """Of 64 sentences, all are among 800 known texts."""
        assert scored(NearestText(), sentences, bags)["exact_matches"].value == 1

    def test_texts_without_a_copy_share_words_with_the_nearest_alone(self, scored):
        found = scored(NearestText(), any_words, bags)
        assert found["exact_matches"].value < 0.1
        assert found["attack_score"].low > 1 - found["privacy_best_constant"].value

    def test_from_noise_it_reads_a_random_text(self, scored):
        found = scored(NearestText(), sentences, noise)
        assert found["exact_matches"].value < 1 / 64 + 4 * np.sqrt(1 / 64 / 200)
        assert found["attack_score"].low <= 1 - found["privacy_best_constant"].value

    def test_dev_texts_are_known_too(self):
        vectors = np.eye(3, dtype=np.float32)
        train, dev = KnownTexts(Texts(["a"]), vectors[:1], {}), KnownTexts(Texts(["b", "c"]), vectors[1:], {})
        guesses = NearestText().fit(TextsView(train, dev, oracle=None), 0)(5 * vectors[::-1])
        assert list(guesses.texts) == ["c", "b", "a"]
        assert guesses.details == "the nearest of 3 known texts; mean cosine 1.000"


class TestReconstruction:
    @pytest.mark.parametrize(
        ("unit", "hidden"), [("words", 32), pytest.param("characters", 64, marks=pytest.mark.slow)]
    )
    def test_sentences_that_a_vector_holds_are_written(self, scored, unit, hidden):
        found = scored(Reconstruction(**RECIPE | {"unit": unit, "hidden": hidden}), sentences, bags)
        assert found["exact_matches"].value > 0.9
        assert found["character_accuracy"].value > 0.95
        assert found["token_f1"].value > 0.97

    @pytest.mark.slow
    def test_from_noise_no_sentence_is_written(self, scored):
        """The best constant has the words of all sentences, too; the attacker can only guess which of 64 it is."""
        found = scored(Reconstruction(**RECIPE), sentences, noise)
        assert found["exact_matches"].value < 1 / 64 + 4 * np.sqrt(1 / 64 / 200)
        assert found["attack_score"].low <= 1 - found["privacy_best_constant"].value


class TestLanguageModel:
    @pytest.fixture
    def model(self):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            yield LanguageModel(5, 9, 4, 6)

    def test_the_loss_sums_over_units_and_ignores_padding(self, model):
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

    def test_only_known_units_are_written_up_to_the_end(self, model):
        vectors = torch.randn(40, 5)
        with torch.no_grad():
            model.output.head.bias[[PADDING, START, UNKNOWN]] = 50.0
        written = model.write(vectors, 7)
        assert all(set(codes) <= set(range(FIRST_UNIT, 9)) and len(codes) <= 7 for codes in written)
        with torch.no_grad():
            model.output.head.bias[END] = 100.0
        assert model.write(vectors, 7) == [[]] * 40
