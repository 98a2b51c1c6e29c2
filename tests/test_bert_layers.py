"""A BERT in parts against the whole model of `transformers`: the same vectors and gradients at less cost."""

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    RobertaConfig,
    RobertaModel,
)

from leakboard import transformer
from leakboard.bert_layers import BertLayers
from leakboard.transformer import TransformerEncoder

SIZES = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "initializer_range": 0.5,
}
IDS = torch.tensor([[2, 7, 8, 9, 3], [2, 11, 3, 1, 1], [2, 40, 41, 3, 1]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])


@pytest.fixture(params=["bert", "roberta"])
def model(request):
    config, kind = {"bert": (BertConfig, BertModel), "roberta": (RobertaConfig, RobertaModel)}[request.param]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = kind(config(**SIZES, pad_token_id=1)).eval()
        for name, value in made.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(value)  # biases of 0 would hide a wrong one
        return made


def whole(model):
    return model(input_ids=IDS, attention_mask=MASK).last_hidden_state


class TestParts:
    """`BertLayers`."""

    @pytest.mark.parametrize("count", [0, 1, 2, 3])
    def test_parts_give_what_the_model_gives(self, model, count):
        parts = BertLayers.of(model)
        states = parts.below(IDS, MASK, count)
        found, expected = parts.above(states, MASK, count), whole(model)
        assert torch.allclose(found[MASK.bool()], expected[MASK.bool()], atol=1e-5)
        assert torch.allclose(parts.first_tokens(states, MASK, count), expected[:, 0], atol=1e-5)

    def test_padding_is_not_attended(self, model):
        parts = BertLayers.of(model)
        states = parts.below(IDS, MASK, 2)
        spoiled = states.masked_fill(MASK[..., None] == 0, 1e4)
        assert torch.allclose(parts.first_tokens(spoiled, MASK, 2), parts.first_tokens(states, MASK, 2), atol=1e-4)

    def test_gradients_are_the_model_s(self, model):
        parts, probe = BertLayers.of(model), torch.randn(3, 24, generator=torch.Generator().manual_seed(1))
        (whole(model)[:, 0] * probe).sum().backward()
        expected = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
        model.zero_grad(set_to_none=True)
        (parts.first_tokens(parts.below(IDS, MASK, 0), MASK, 0) * probe).sum().backward()
        found = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
        key_bias = "encoder.layer.2.attention.self.key.bias"
        assert expected.keys() - found.keys() == {key_bias}
        assert expected[key_bias].abs().max() < 1e-4  # it shifts all scores alike
        largest = max(value.abs().max() for value in expected.values())
        for name, value in found.items():
            assert torch.allclose(value, expected[name], atol=1e-5 * largest), name

    def test_other_architectures_are_left_whole(self):
        made = DistilBertModel(DistilBertConfig(vocab_size=50, dim=24, n_layers=2, n_heads=4, hidden_dim=40))
        assert BertLayers.of(made) is None
        assert BertLayers.of(BertModel(BertConfig(**SIZES, is_decoder=True))) is None


class TestFrozenLayers:
    """Texts pass frozen layers once."""

    @pytest.fixture
    def make(self, tiny_bert, monkeypatch):
        monkeypatch.setattr(transformer, "_KEPT", type(transformer._KEPT)(2**20, lambda states: states.nbytes))

        def encoder(trained, pooling="cls"):
            made = TransformerEncoder(tiny_bert, 64, pooling, "float32", 4)
            made.freeze(trained)
            return made

        return encoder

    @pytest.fixture
    def passes(self, monkeypatch):
        """Count the texts that go through the frozen layers."""
        counted, below = [], BertLayers.below
        monkeypatch.setattr(BertLayers, "below", lambda *a: counted.append(len(a[1])) or below(*a))
        return counted

    @pytest.mark.parametrize("pooling", ["cls", "mean"])
    @pytest.mark.parametrize("trained", [1, 2, 7, "none"])
    def test_nothing_changes(self, make, reviews, tiny_bert, trained, pooling):
        texts = reviews.texts("test")[:30]
        model = AutoModel.from_pretrained(tiny_bert).eval()
        encoder = make(trained, pooling)
        for text, vector in zip(texts, encoder.documents(texts), strict=True):
            ids = torch.tensor([encoder.tokenise([text])[0].ids])
            with torch.no_grad():
                states = model(ids).last_hidden_state[0]
            expected = states[0] if pooling == "cls" else states.mean(0)
            np.testing.assert_allclose(vector, expected, atol=2e-6)

    def test_a_text_passes_once(self, make, passes, reviews):
        texts = [*reviews.texts("test")[:30], *reviews.texts("test")[:10]]
        first = make(1).documents(texts)
        assert sum(passes) == len(set(texts))
        again = make(1).documents(texts)
        assert sum(passes) == len(set(texts))
        assert np.array_equal(first, again)
        make(2).documents(texts)
        assert sum(passes) == 2 * len(set(texts))

    def test_other_weights_below_are_other_states(self, make, passes, reviews):
        texts = reviews.texts("test")[:30]
        first, other = make(1), make(1)
        other.layers()[0].output.dense.weight.data *= -1
        assert not np.allclose(first.documents(texts), other.documents(texts))
        trained = make(1)
        trained.layers()[1].output.dense.weight.data *= -1  # above what is frozen
        passed = sum(passes)
        assert not np.allclose(first.documents(texts), trained.documents(texts))
        assert sum(passes) == passed

    def test_more_than_may_be_kept_passes_anew(self, make, passes, reviews, monkeypatch):
        texts = reviews.texts("test")[:30]
        kept = make(1).documents(texts)
        monkeypatch.setattr(transformer, "_KEPT", type(transformer._KEPT)(100, lambda states: states.nbytes))
        passes.clear()
        for _ in range(2):
            np.testing.assert_allclose(make(1).documents(texts), kept, atol=2e-6)
        assert sum(passes) == 2 * len(texts)
        assert not transformer._KEPT

    @pytest.mark.parametrize("limit", [100, 2**20])
    def test_frozen_layers_have_no_dropout(self, make, reviews, limit, monkeypatch):
        monkeypatch.setattr(transformer, "_KEPT", type(transformer._KEPT)(limit, lambda states: states.nbytes))
        encoder = make("none")
        prepared = encoder.prepare(reviews.texts("test")[:4])
        encoder.train()
        with torch.no_grad():
            assert torch.equal(encoder(prepared), encoder(prepared))
        encoder = make(1)
        encoder.train()
        assert [layer.training for layer in encoder.layers()] == [False, True]
        with torch.no_grad():
            assert not torch.equal(encoder(prepared), encoder(prepared))

    def test_states_of_frozen_layers_have_no_gradient(self, make, reviews):
        encoder = make(1)
        encoder.train()
        encoder(encoder.prepare(reviews.texts("test")[:4])).sum().backward()
        graded = {name.split(".")[2] for name, value in encoder.model.named_parameters() if value.grad is not None}
        assert graded == {"1"}
