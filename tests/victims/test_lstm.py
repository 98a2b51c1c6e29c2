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


def new_encoder(dropout=0.0, batch_size=2):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return LstmEncoder(COUNTS, 5, 3, dropout, batch_size)


def last_state(encoder, text):
    """Write out the recurrence (Hochreiter and Schmidhuber 1997, with forget gates), one word at a time."""
    weights = {name: value.detach().numpy() for name, value in encoder.named_parameters()}
    hidden, cell = np.zeros(3), np.zeros(3)
    for row in encoder.prepare([text])[0]:
        gates = weights["lstm.weight_ih_l0"] @ weights["words.weight"][row] + weights["lstm.bias_ih_l0"]
        gates = gates + weights["lstm.weight_hh_l0"] @ hidden + weights["lstm.bias_hh_l0"]
        input_gate, forget_gate, output_gate = (1 / (1 + np.exp(-gates[i * 3 : i * 3 + 3])) for i in (0, 1, 3))
        cell = forget_gate * cell + input_gate * np.tanh(gates[6:9])
        hidden = output_gate * np.tanh(cell)
    return hidden


class TestEncoder:
    def test_words_are_rows_and_unknown_words_row_0(self):
        rows = [entry.tolist() for entry in new_encoder().prepare(TEXTS)]
        assert rows == [[4, 3, 4, 2, 3], [2], [0], [1, 1, 0], [4, 0, 3]]

    @pytest.mark.parametrize("batch_size", [1, 2, 5])
    def test_documents_are_the_last_states_in_batches_of_any_size(self, batch_size):
        encoder = new_encoder(batch_size=batch_size)
        expected = [last_state(encoder, text) for text in TEXTS]
        np.testing.assert_allclose(encoder.documents(TEXTS), expected, atol=1e-6)
        assert encoder.documents([]).shape == (0, 3)
        assert encoder.coverage(TEXTS) == Coverage(unknown=0.2)

    def test_a_rare_word_is_often_unknown_while_training(self, monkeypatch):
        encoder, seen = new_encoder(), []
        monkeypatch.setattr(
            encoder.words, "forward", lambda rows: seen.append(rows.clone()) or torch.zeros(*rows.shape, 5)
        )
        texts = encoder.prepare(["bad good room the"] * 20_000)
        encoder.train()
        encoder(texts)
        shares = (seen[0] == 0).float().mean(0)
        for share, count in zip(shares, COUNTS.values(), strict=True):
            rate = RARITY / (RARITY + count)
            assert share == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / 20_000) + 1e-9)
        encoder.eval()
        encoder(texts)
        assert not (seen[1] == 0).any()

    def test_dropout_has_one_mask_a_text(self, monkeypatch):
        encoder, seen = new_encoder(dropout=0.5), []
        monkeypatch.setattr(encoder.lstm, "forward", lambda vectors: seen.append(vectors) or (torch.zeros(2000, 4, 3),))
        encoder.unknown.zero_()
        encoder.words.weight.data.fill_(1.0)
        encoder.train()
        encoder(encoder.prepare(["good room good the"] * 2000))
        masks = seen[0].detach()
        assert torch.equal(masks, masks[:, :1].expand_as(masks))
        assert set(masks.unique().tolist()) == {0.0, 2.0}
        assert (masks[:, 0] == 0).float().mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(10_000))
        assert not torch.equal(masks[0], masks[1])


class TestVictim:
    def test_it_learns_the_task_and_is_saved(self, corpus, tmp_path):
        victim = Lstm(epochs=12, batch_size=8, learning_rate=0.01)
        fitted = victim.fit(corpus, 0)
        texts, labels = corpus.texts("train"), corpus.column("train", "label")
        vectors = fitted.publish_documents(texts, RNG)
        assert vectors.shape == (len(texts), 32)
        right = np.mean(fitted.predict(vectors) == labels)
        assert right > np.bincount(labels).max() / len(labels) + 0.1
        fitted.save(tmp_path)
        loaded = victim.load(tmp_path)
        assert np.array_equal(loaded.publish_documents(texts, RNG), vectors)
        assert np.array_equal(loaded.predict(vectors), fitted.predict(vectors))

    def test_the_head_has_a_hidden_layer(self, corpus):
        head = Lstm(epochs=1, hidden=7).fit(corpus, 0).head
        assert [tuple(value.shape) for value in head.parameters()] == [(7, 32), (7,), (2, 7), (2,)]

    def test_the_epoch_of_best_dev_accuracy_is_kept(self, corpus, monkeypatch):
        histories, train = [], task_training.train
        monkeypatch.setattr(task_training, "train", lambda *a, **k: histories.append(train(*a, **k)) or histories[-1])
        fitted = Lstm(epochs=4, batch_size=8).fit(corpus, 0)
        vectors = fitted.publish_documents(corpus.texts("dev"), RNG)
        assert np.mean(fitted.predict(vectors) != corpus.column("dev", "label")) == min(histories[0])

    @pytest.mark.slow
    def test_of_several_dimensions_the_one_of_best_dev_accuracy_is_kept(self, corpus, tmp_path):
        options, texts = {"epochs": 12, "batch_size": 8, "learning_rate": 0.01}, corpus.texts("dev")
        single = {size: Lstm(dimension=size, **options).fit(corpus, 0) for size in (2, 16)}
        vectors = {size: fitted.publish_documents(texts, RNG) for size, fitted in single.items()}
        labels = corpus.column("dev", "label")
        accuracy = {size: np.mean(fitted.predict(vectors[size]) == labels) for size, fitted in single.items()}
        assert accuracy[2] != accuracy[16], "the example needs two different accuracies"
        best = max(accuracy, key=accuracy.get)
        both = Lstm(dimension=(2, 16), **options)
        fitted = both.fit(corpus, 0)
        assert np.array_equal(fitted.publish_documents(texts, RNG), vectors[best])
        fitted.save(tmp_path)
        assert np.array_equal(both.load(tmp_path).publish_documents(texts, RNG), vectors[best])

    def test_a_dimension_that_diverges_does_not_stop_the_others(self, corpus, monkeypatch):
        train_on_task, lines = task_training.train_on_task, []

        def diverging(encoder, *arguments):
            if encoder.dimension == 4:
                raise FloatingPointError("the dev loss is not finite in any of 1 epochs")
            return train_on_task(encoder, *arguments)

        monkeypatch.setattr(task_training, "train_on_task", diverging)
        monkeypatch.setattr("leakboard.models.trainable.log_progress", lines.append)
        fitted = Lstm(dimension=(4, 8), epochs=1).fit(corpus, 0)
        assert fitted.encoder.dimension == 8
        assert lines[0] == "the dev loss is not finite in any of 1 epochs"
        assert lines[1].startswith("best of 2 recipes: 8 dimensions, 0.")
        with pytest.raises(FloatingPointError, match="not finite with any of 2 recipes"):
            Lstm(dimension=(4, 4), epochs=1).fit(corpus, 0)

    @pytest.mark.parametrize("wrong", [1, [], [8, 1], "8"])
    def test_dimensions_that_are_not_allowed(self, wrong):
        with pytest.raises(RequestError, match=r"lstm\.dimension.*not allowed"):
            build(Lstm, {"dimension": wrong}, "lstm")
