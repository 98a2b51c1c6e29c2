"""Everything that trains or encodes is placed on the device in force, and the processor's results stay the same."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from leakboard.attacks._portfolio.members import Task
from leakboard.attacks._portfolio.mlp import fit_mlp
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.errors import StopRun
from leakboard.execution import devices
from leakboard.interfaces import Secret
from leakboard.models import transformer
from leakboard.models.language_model import LanguageModel, coded
from leakboard.models.transformer import TransformerEncoder
from leakboard.models.word_encoders import BagEncoder, LstmEncoder
from leakboard.randomness import seeded
from leakboard.victims.adept import Adept
from leakboard.victims.lstm import Lstm

has_cuda = torch.cuda.is_available()
needs_cuda = pytest.mark.skipif(not has_cuda, reason="needs a CUDA device")
TEXTS = ["a good day", "bad", "good and bad", "so"]


@pytest.fixture
def on(monkeypatch):
    """Return a function that puts a device in force, until the test ends."""
    monkeypatch.setattr(devices, "_in_force", "cpu")
    return devices.use


@pytest.fixture
def shapes_only(monkeypatch):
    """Put a device in force that holds only shapes. An operation that mixes it with the processor fails."""
    monkeypatch.setattr(devices, "device", lambda: torch.device("meta"))


def lstm():
    return LstmEncoder.of(TEXTS, 1, 3, 4, 0.1, 2)


def bag():
    return BagEncoder.of(TEXTS, 4, 2, 1, 2)


class TestWithoutACard:
    def test_outside_of_a_stage_the_processor_computes(self):
        assert devices.device() == torch.device("cpu")

    @pytest.mark.skipif(has_cuda, reason="has a CUDA device")
    def test_cuda_that_is_not_there_stops_the_run(self, on):
        assert devices.cards() == 0
        with pytest.raises(StopRun, match="device: cuda: torch sees no CUDA device"):
            on("cuda")
        assert devices.kind() == "cpu"

    @pytest.mark.parametrize("make", [lstm, bag])
    def test_encoders_compute_on_the_device_in_force(self, make, shapes_only):
        encoder = make().train()
        vectors = encoder(encoder.prepare(TEXTS))
        assert (vectors.device.type, vectors.shape) == ("meta", (4, 4))
        assert {value.device.type for value in (*encoder.parameters(), *encoder.buffers())} == {"meta"}

    def test_attackers_networks_compute_on_the_device_in_force(self, shapes_only):
        """A tensor of shapes has no value, so the first loss on dev fails. Everything before it has run."""
        with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
            mlp()
        with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
            BagOfWords.example(None).fit(texts_view(), 0)

    @pytest.mark.parametrize("precision", ["float32", "bfloat16"])
    @pytest.mark.parametrize("pooling", ["cls", "mean"])
    def test_attention_as_on_a_card_gives_the_same_vectors(self, precision, pooling, tiny_bert, monkeypatch):
        before = TransformerEncoder(tiny_bert, 16, pooling, precision, 2).documents(TEXTS)
        monkeypatch.setitem(transformer.ATTENTION, "cpu", transformer.ATTENTION["cuda"])
        fused = TransformerEncoder(tiny_bert, 16, pooling, precision, 2)
        assert fused.model.config._attn_implementation == "sdpa"
        assert np.allclose(fused.documents(TEXTS), before, atol=1e-5 if precision == "float32" else 0.05)

    def test_states_of_frozen_layers_stay_with_their_device(self, tiny_bert):
        made = [TransformerEncoder(tiny_bert, 16, "cls", "float32", 2) for _ in range(2)]
        for encoder in made:
            encoder.freeze("none")
        first = made[0].prepare(TEXTS)
        assert made[1].prepare(TEXTS)[0].states.data_ptr() == first[0].states.data_ptr()
        made[1].device = SimpleNamespace(type="cuda")
        made[1]._lower_states = lambda prepared: torch.zeros(sum(map(len, prepared)), made[1].dimension)
        assert not made[1].prepare(TEXTS)[0].states.any()

    def test_a_temporary_seed_does_not_initialise_cards(self, monkeypatch):
        """Keeping the state of a card's generator would take its memory in every process."""

        def touched(*_):
            raise AssertionError("CUDA is initialised")

        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "get_rng_state", touched)
        with seeded(3):
            first = torch.rand(1)
        with seeded(3):
            assert torch.rand(1) == first

    @pytest.mark.slow
    def test_counting_cards_initialises_nothing(self):
        """Workers are forked, and cannot use a GPU that was initialised before."""
        script = (
            "import torch; from leakboard.execution import devices; devices.cards(); print(torch.cuda.is_initialized())"
        )
        assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


def known(count, seed):
    """Return vectors whose first coordinate has the secret as its sign."""
    vectors = np.random.default_rng(seed).standard_normal((count, 6)).astype(np.float32)
    return SimpleNamespace(vectors=vectors, values={"s": (vectors[:, 0] > 0).astype(np.int64)})


def mlp():
    """Return the accuracy of an attacker's network."""
    options = SimpleNamespace(portfolio="mlp", hidden=16, learning_rate=1e-2, batch_size=32, epochs=20, patience=5)
    secrets = (Secret("s", ("no", "yes"), "attribute"),)
    with seeded(0):
        scorer = fit_mlp(Task(known(400, 0), known(100, 1), secrets, options, 0)).scorer
    test = known(200, 2)
    return np.mean(scorer(test.vectors)["s"].argmax(1) == test.values["s"])


def texts_view():
    """Return what an attack on texts sees."""
    parts = [SimpleNamespace(texts=TEXTS * 5, vectors=known(20, seed).vectors) for seed in (0, 1)]
    return SimpleNamespace(train=parts[0], dev=parts[1])


@needs_cuda
class TestOnACard:
    def test_a_transformer_gives_nearly_the_processors_vectors(self, on, tiny_bert):
        vectors = []
        for kind in ("cpu", "cuda"):
            on(kind)
            encoder = TransformerEncoder(tiny_bert, 16, "mean", "float32", 2)
            assert encoder.device.type == kind
            vectors.append(encoder.documents(TEXTS))
        assert np.allclose(*vectors, atol=1e-4)

    @pytest.mark.parametrize(("plugin", "part"), [(Lstm, "encoder"), (Adept, "model")])
    def test_a_victim_is_trained_and_saved_there_and_read_here(self, plugin, part, on, reviews, tmp_path):
        recipe = plugin.example(tmp_path)
        on("cuda")
        fitted = recipe.fit(reviews.only("train", "dev"), 0)
        assert {value.device.type for value in getattr(fitted, part).parameters()} == {"cuda"}
        on_card = fitted.publish_documents(reviews.texts("test"), np.random.default_rng(0))
        fitted.save(tmp_path)
        on("cpu")
        on_processor = recipe.load(tmp_path).publish_documents(reviews.texts("test"), np.random.default_rng(0))
        assert np.allclose(on_card, on_processor, atol=1e-4)

    def test_an_attackers_network_learns_there(self, on):
        on("cuda")
        assert mlp() > 0.85

    def test_a_language_model_trains_and_writes_there(self, on):
        on("cuda")
        model = LanguageModel(4, 8, 3, 4).to(devices.device())
        vectors = torch.zeros(2, 4, device=devices.device())
        model.loss(vectors, coded([["a"], ["b", "a"]], ["a", "b"])).backward()
        assert len(model.write(vectors, 3)) == 2
