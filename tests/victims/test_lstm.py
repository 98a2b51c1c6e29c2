"""The recurrent encoder: its states, its unknown words, and how its epoch is chosen."""

import numpy as np
import pytest
import torch

from leakboard.errors import RequestError
from leakboard.interfaces import Coverage, Texts
from leakboard.models import task_training
from leakboard.models.word_encoders import RARITY, UNKNOWN, LstmEncoder
from leakboard.suite.options import build
from leakboard.victims.lstm import Lstm

COUNTS = {"bad": 1, "good": 40, "room": 3, "the": 1000}
TEXTS = Texts(["The room, the GOOD room!", "good", "", "bad bad nothing", f"the {UNKNOWN} room"])
RNG = np.random.default_rng(0)


def encoder(dropout=0.0, batch_size=2):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return LstmEncoder(COUNTS, 5, 3, dropout, batch_size)


def by_hand(made, text):
    """The recurrence written out (Hochreiter and Schmidhuber 1997, with forget gates), one word at a time."""
    weights = {name: value.detach().numpy() for name, value in made.named_parameters()}
    hidden, cell = np.zeros(3), np.zeros(3)
    for row in made.prepare([text])[0]:
        gates = weights["lstm.weight_ih_l0"] @ weights["words.weight"][row] + weights["lstm.bias_ih_l0"]
        gates = gates + weights["lstm.weight_hh_l0"] @ hidden + weights["lstm.bias_hh_l0"]
        enters, forgets, leaves = (1 / (1 + np.exp(-gates[i * 3 : i * 3 + 3])) for i in (0, 1, 3))
        cell = forgets * cell + enters * np.tanh(gates[6:9])
        hidden = leaves * np.tanh(cell)
    return hidden


class TestEncoder:
    def test_words_are_rows_and_unknown_ones_row_0(self):
        rows = [entry.tolist() for entry in encoder().prepare(TEXTS)]
        assert rows == [[4, 3, 4, 2, 3], [2], [0], [1, 1, 0], [4, 0, 3]]

    @pytest.mark.parametrize("batch_size", [1, 2, 5])
    def test_documents_are_the_last_states_whatever_the_batches(self, batch_size):
        made = encoder(batch_size=batch_size)
        expected = [by_hand(made, text) for text in TEXTS]
        np.testing.assert_allclose(made.documents(TEXTS), expected, atol=1e-6)

    def test_no_texts(self):
        assert encoder().documents([]).shape == (0, 3)

    def test_coverage(self):
        assert encoder().coverage(TEXTS) == Coverage(unknown=0.2)

    def test_a_rare_word_is_often_unknown_while_training(self, monkeypatch):
        made, seen = encoder(), []
        monkeypatch.setattr(
            made.words, "forward", lambda rows: seen.append(rows.clone()) or torch.zeros(*rows.shape, 5)
        )
        texts = made.prepare(["bad good room the"] * 20_000)
        made.train()
        made(texts)
        shares = (seen[0] == 0).float().mean(0)
        for share, count in zip(shares, COUNTS.values(), strict=True):
            rate = RARITY / (RARITY + count)
            assert share == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / 20_000) + 1e-9)
        made.eval()
        made(texts)
        assert not (seen[1] == 0).any()

    def test_dropout_has_one_mask_a_text(self, monkeypatch):
        made, seen = encoder(dropout=0.5), []
        monkeypatch.setattr(made.lstm, "forward", lambda vectors: seen.append(vectors) or 1 / 0)
        made.unknown.zero_()
        made.words.weight.data.fill_(1.0)
        made.train()
        with pytest.raises(ZeroDivisionError):
            made(made.prepare(["good room good the"] * 2000))
        masks = seen[0].detach()
        assert torch.equal(masks, masks[:, :1].expand_as(masks))
        assert set(masks.unique().tolist()) == {0.0, 2.0}
        assert (masks[:, 0] == 0).float().mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(10_000))
        assert not torch.equal(masks[0], masks[1])


class TestVictim:
    def test_it_learns_the_task_and_is_saved(self, reviews, tmp_path):
        victim = Lstm(epochs=12, batch_size=8, learning_rate=0.01)
        fitted = victim.fit(reviews.only("train", "dev"), 0)
        texts, labels = reviews.texts("train"), reviews.column("train", "label")
        vectors = fitted.publish_documents(texts, RNG)
        assert vectors.shape == (len(texts), 32)
        right = np.mean(fitted.predict(vectors) == labels)
        assert right > np.bincount(labels).max() / len(labels) + 0.1
        fitted.save(tmp_path)
        loaded = victim.load(tmp_path)
        assert np.array_equal(loaded.publish_documents(texts, RNG), vectors)
        assert np.array_equal(loaded.predict(vectors), fitted.predict(vectors))

    def test_the_head_has_a_layer_of_its_own(self, reviews):
        head = Lstm(epochs=1, hidden=7).fit(reviews.only("train", "dev"), 0).head
        assert [tuple(value.shape) for value in head.parameters()] == [(7, 32), (7,), (2, 7), (2,)]

    def test_the_last_epoch_of_best_dev_accuracy_is_kept(self, reviews, monkeypatch):
        told, train = [], task_training.train

        def recorded(*given, **options):
            told.extend(history := train(*given, **options))
            return history

        monkeypatch.setattr(task_training, "train", recorded)
        fitted = Lstm(epochs=4, batch_size=8).fit(reviews.only("train", "dev"), 0)
        vectors = fitted.publish_documents(reviews.texts("dev"), RNG)
        wrong = np.mean(fitted.predict(vectors) != reviews.column("dev", "label"))
        assert wrong == min(told)

    def test_of_several_dimensions_the_one_of_best_dev_accuracy_is_kept(self, reviews, tmp_path):
        given, recipe = reviews.only("train", "dev"), {"epochs": 12, "batch_size": 8, "learning_rate": 0.01}
        single = {size: Lstm(dimension=size, **recipe).fit(given, 0) for size in (2, 16)}
        vectors = {size: fitted.publish_documents(reviews.texts("dev"), RNG) for size, fitted in single.items()}
        labels = reviews.column("dev", "label")
        right = {size: np.mean(fitted.predict(vectors[size]) == labels) for size, fitted in single.items()}
        assert right[2] != right[16], "the example must tell the two apart"
        best = max(right, key=lambda size: right[size])
        both = Lstm(dimension=(2, 16), **recipe)
        fitted = both.fit(given, 0)
        assert np.array_equal(fitted.publish_documents(reviews.texts("dev"), RNG), vectors[best])
        fitted.save(tmp_path)
        assert np.array_equal(both.load(tmp_path).publish_documents(reviews.texts("dev"), RNG), vectors[best])

    def test_a_dimension_that_diverges_loses_no_other(self, reviews, monkeypatch):
        train_on_task, told = task_training.train_on_task, []

        def diverging(encoder, *given):
            if encoder.dimension == 4:
                raise FloatingPointError("the dev loss is not finite in any of 1 epochs")
            return train_on_task(encoder, *given)

        monkeypatch.setattr(task_training, "train_on_task", diverging)
        monkeypatch.setattr("leakboard.models.trainable.log_progress", told.append)
        fitted = Lstm(dimension=(4, 8), epochs=1).fit(reviews.only("train", "dev"), 0)
        assert fitted.encoder.dimension == 8
        assert told[0] == "the dev loss is not finite in any of 1 epochs"
        assert told[1].startswith("best of 2 recipes: 8 dimensions, 0.")
        with pytest.raises(FloatingPointError, match="not finite with any of 2 recipes"):
            Lstm(dimension=(4, 4), epochs=1).fit(reviews.only("train", "dev"), 0)

    @pytest.mark.parametrize("wrong", [1, [], [8, 1], "8"])
    def test_dimensions_that_are_not_allowed(self, wrong):
        with pytest.raises(RequestError, match=r"lstm\.dimension.*not allowed"):
            build(Lstm, {"dimension": wrong}, "lstm")
