"""A BERT in two parts against the whole model of `transformers`: the same vectors and gradients."""

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

from leakboard.models import frozen_states
from leakboard.models.bert_layers import BertLayers
from leakboard.models.transformer import TransformerEncoder
from leakboard.victims.bert import Bert
from leakboard.victims.dpnr import Dpnr

SIZES = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "initializer_range": 0.5,
    "attention_probs_dropout_prob": 0.0,
}
IDS = torch.tensor([[2, 7, 8, 9, 3], [2, 11, 3, 1, 1], [2, 40, 41, 3, 1]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])


@pytest.fixture(params=["bert", "roberta"])
def model(request):
    config, kind = {"bert": (BertConfig, BertModel), "roberta": (RobertaConfig, RobertaModel)}[request.param]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = kind(config(**SIZES, pad_token_id=1)).eval()
        for name, value in model.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(value)  # biases of 0 would hide a wrong one
        return model


def whole(model):
    return model(input_ids=IDS, attention_mask=MASK).last_hidden_state


class TestParts:
    """`BertLayers`."""

    @pytest.mark.parametrize("split", [0, 1, 2, 3])
    def test_parts_give_the_model_s_vectors(self, model, split):
        parts = BertLayers.of(model, split)
        states = parts.lower(IDS, MASK)
        vectors, expected = parts.upper(states, MASK), whole(model)
        assert torch.allclose(vectors[MASK.bool()], expected[MASK.bool()], atol=1e-5)
        assert torch.allclose(parts.first_tokens(states, MASK), expected[:, 0], atol=1e-5)

    def test_bfloat16_is_as_close_as_the_whole_model_in_bfloat16(self, model):
        parts, exact = BertLayers.of(model, 1), whole(model)[:, 0]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            vectors, expected = parts.first_tokens(parts.lower(IDS, MASK).float(), MASK), whole(model)[:, 0]
        assert 0 < (vectors.float() - exact).abs().mean() < 2 * (expected.float() - exact).abs().mean()

    def test_padding_is_not_attended(self, model):
        parts = BertLayers.of(model, 2)
        states = parts.lower(IDS, MASK)
        spoiled = states.masked_fill(MASK[..., None] == 0, 1e4)
        assert torch.allclose(parts.first_tokens(spoiled, MASK), parts.first_tokens(states, MASK), atol=1e-4)

    def test_gradients_match_the_whole_model(self, model):
        parts, probe = BertLayers.of(model), torch.randn(3, 24, generator=torch.Generator().manual_seed(1))

        def gradients(vectors):
            model.zero_grad(set_to_none=True)
            (vectors * probe).sum().backward()
            return {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}

        expected = gradients(whole(model)[:, 0])
        in_parts = gradients(parts.first_tokens(parts.lower(IDS, MASK), MASK))
        key_bias = "encoder.layer.2.attention.self.key.bias"
        assert expected.keys() - in_parts.keys() == {key_bias}
        assert expected[key_bias].abs().max() < 1e-4  # it shifts all scores by the same number
        largest = max(value.abs().max() for value in expected.values())
        for name, value in in_parts.items():
            assert torch.allclose(value, expected[name], atol=1e-5 * largest), name

    def test_other_architectures_run_whole(self):
        distilled = DistilBertConfig(vocab_size=50, dim=24, n_layers=2, n_heads=4, hidden_dim=40)
        assert BertLayers.of(DistilBertModel(distilled)) is None
        assert BertLayers.of(BertModel(BertConfig(**SIZES, is_decoder=True))) is None
        assert BertLayers.of(BertModel(BertConfig(**SIZES | {"attention_probs_dropout_prob": 0.1}))) is None


@pytest.fixture(autouse=True)
def limit_cache():
    """Return a function that limits the cache (bytes), which is empty before and after."""
    frozen_states.clear()
    yield frozen_states.clear
    frozen_states.clear()


@pytest.fixture
def make(tiny_bert):
    def encoder(trained, pooling="cls", batch_size=4):
        model = TransformerEncoder(tiny_bert, 64, pooling, "float32", batch_size)
        model.freeze(trained)
        return model

    return encoder


@pytest.fixture
def passes(monkeypatch):
    """Count the texts that go through the lower layers."""
    counted, lower = [], BertLayers.lower
    monkeypatch.setattr(BertLayers, "lower", lambda *a: counted.append(len(a[1])) or lower(*a))
    return counted


class TestFrozenLayers:
    """The output of frozen layers is cached, and no vector changes."""

    @pytest.mark.parametrize("pooling", ["cls", "pooler", "mean"])
    @pytest.mark.parametrize("trained", [1, 2, 7, "none", "all"])
    def test_vectors_are_the_whole_model_s(self, make, reviews, tiny_bert, trained, pooling):
        """Each text is encoded alone, without padding, and pooled here."""
        texts = reviews.texts("test")[:30]
        model = AutoModel.from_pretrained(tiny_bert).eval()
        encoder = make(trained, pooling)
        for text, vector in zip(texts, encoder.documents(texts), strict=True):
            ids = torch.tensor([encoder.tokenise([text])[0].ids])
            with torch.no_grad():
                states = model(ids).last_hidden_state[0]
                dense = torch.tanh(model.pooler.dense.weight @ states[0] + model.pooler.dense.bias)
            expected = {"cls": states[0], "pooler": dense, "mean": states.mean(0)}[pooling]
            np.testing.assert_allclose(vector, expected, atol=2e-6)

    def test_the_same_texts_pass_once(self, make, passes, reviews, tmp_path):
        texts = [*reviews.texts("test")[:30], *reviews.texts("test")[:10]]
        first = make(1)
        vectors = first.documents(texts)
        assert sum(passes) == len(set(texts))
        first.save(tmp_path)
        saved = TransformerEncoder(tmp_path, 64, "cls", "float32", 4)
        saved.freeze(1)
        for again in (make(1), saved):
            assert np.array_equal(again.documents(texts), vectors)
        assert sum(passes) == len(set(texts))
        make(2).documents(texts)
        assert sum(passes) == 2 * len(set(texts))

    def test_other_frozen_weights_have_other_states(self, make, passes, reviews):
        texts = reviews.texts("test")[:30]
        first, other, trained = make(1), make(1), make(1)
        other.layers()[0].output.dense.weight.data *= -1
        assert not np.allclose(first.documents(texts), other.documents(texts))
        trained.layers()[1].output.dense.weight.data *= -1  # above the frozen layers
        passed = sum(passes)
        assert not np.allclose(first.documents(texts), trained.documents(texts))
        assert sum(passes) == passed

    def test_other_batches_have_other_states(self, make, passes, reviews):
        """Their rounding differs, and no earlier encoding may change a later one's numbers."""
        texts = list(dict.fromkeys(reviews.texts("test")))
        for batch_size in (4, 32, 4, 32):
            make(1, batch_size=batch_size).documents(texts)
        assert sum(passes) == 2 * len(texts)

    def test_states_larger_than_the_cache_are_computed_anew(self, make, passes, reviews, limit_cache):
        texts = reviews.texts("test")[:30]
        expected = make(1).documents(texts)
        limit_cache(100)
        passes.clear()
        for _ in range(2):
            np.testing.assert_allclose(make(1).documents(texts), expected, atol=2e-6)
        assert sum(passes) == 2 * len(texts)

    def test_the_least_recently_used_states_make_room(self, limit_cache):
        computed = []

        def obtain(key, count=40):
            return frozen_states.obtain(
                {"name": key}, [], 4 * count, lambda: computed.append(key) or torch.zeros(count)
            )

        limit_cache(400)
        for key in "abacab":
            assert len(obtain(key)) == 40
        assert computed == ["a", "b", "c", "b"]
        assert obtain("d", 101) is None

    @pytest.mark.parametrize("limit", [0, 2**30])
    @pytest.mark.parametrize(("trained", "has_dropout"), [("none", False), (1, True)])
    def test_frozen_layers_have_no_dropout(self, make, reviews, limit, limit_cache, trained, has_dropout):
        limit_cache(limit)
        encoder = make(trained, "mean")
        encoder.train()
        prepared = encoder.prepare(reviews.texts("test")[:4])
        assert all((entry.states is None) == (limit == 0) for entry in prepared)
        assert [layer.training for layer in encoder.layers()] == [False, has_dropout]
        with torch.no_grad():
            assert torch.equal(encoder(prepared), encoder(prepared)) != has_dropout

    @pytest.mark.parametrize("limit", [0, 2**30])
    def test_frozen_layers_have_no_gradient(self, make, reviews, limit, limit_cache):
        limit_cache(limit)
        encoder = make(1)
        encoder(encoder.prepare(reviews.texts("test")[:4])).sum().backward()
        layers = {name.split(".")[2] for name, value in encoder.model.named_parameters() if value.grad is not None}
        assert layers == {"1"}

    @pytest.mark.slow
    def test_words_hidden_while_training_leave_the_layers_in_training_mode(self, tiny_bert, reviews, monkeypatch):
        """Words are hidden anew in every epoch, and the texts are prepared again."""
        training, first_tokens = [], BertLayers.first_tokens

        def recorded(parts, *arguments):
            training.append((torch.is_grad_enabled(), parts.upper_layers[-1].training))
            return first_tokens(parts, *arguments)

        monkeypatch.setattr(BertLayers, "first_tokens", recorded)
        encoder = Bert(checkpoint=str(tiny_bert), epochs=2, train_layers=1, precision="float32")
        victim = Dpnr(encoder=encoder, epsilon=1.0, mu=0.3, train_dropout=True)
        fits = [victim.fit(reviews.only("train", "dev"), 0).encoder.state_dict() for _ in range(2)]
        assert set(training) == {(True, True), (False, False)}
        assert all(torch.equal(value, fits[1][name]) for name, value in fits[0].items())
