"""Test the decoder and its corrector: what a vector shows is written exactly, and what it does not show is not."""

import dataclasses

import numpy as np
import pytest
import torch
from planted_texts import BAG, FakeOracle, Refusing, hashed, positions, view_of

from leakboard.attacks._reading.decoder import Decoder, Evidence, Hints
from leakboard.attacks._reading.pieces import Pieces, joined
from leakboard.attacks._reading.writer import Writer
from leakboard.attacks.inversion import Found, Inversion
from leakboard.models.language_model import END, FIRST_UNIT, PADDING, START, UNKNOWN
from leakboard.workspace import resumable

SMALL = Inversion(bag=BAG, width=64, layers=2, longest=12, epochs=8, corrector_epochs=4, batch_size=32, candidates=4)


class TestPieces:
    @pytest.mark.parametrize("text", ["call 9051 or 14", "привет мир", "日本", "", "a"])
    def test_words_that_were_never_seen_are_split_and_joined_again(self, text):
        pieces = Pieces(["Call 555 0199!", "call 0142, or 7"] * 3, 300)
        (split,) = pieces.split([text])
        assert joined(split) == text
        assert len(pieces.split(["call 555"])[0]) == 2

    def test_the_same_texts_give_the_same_pieces(self):
        texts = [" ".join(map(str, np.random.default_rng(i).integers(0, 10**6, 9))) for i in range(200)]
        assert Pieces(texts, 400).split(texts) == Pieces(texts, 400).split(texts)


@pytest.fixture
def decoder():
    torch.manual_seed(0)
    made = Decoder(torch.nn.Linear(5, 8), 5, pieces=8, width=64, layers=2, longest=6).eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


@pytest.fixture
def hints():
    torch.manual_seed(1)
    return Hints(torch.randn(4, 5))


@pytest.fixture
def corrected(hints):
    texts = [torch.tensor(codes, dtype=torch.int64) for codes in ([4, 5, 6], [7], [], [8, 8])]
    return Hints(hints.targets, texts, torch.randn(4, 5))


def following(decoder, hints, line):
    """Return the logits of the code after a line, float32 (1, codes)."""
    evidence = decoder._evidence(hints)
    is_written = torch.isin(evidence.pieces, line)
    return decoder._logits(decoder._states(hints, line)[:, -1], evidence, is_written)


class TestDecoder:
    def test_logits_have_the_evidence_of_pieces_that_are_not_written_yet(self, decoder):
        """Without states the logits are the evidence alone, weighted by ln 2, the softplus of 0."""
        torch.nn.init.zeros_(decoder.transformer.wte.weight)
        torch.nn.init.zeros_(decoder.gates.weight)
        decoder.gates.bias.data = torch.tensor([0.0, 50.0])
        evidence = Evidence(torch.tensor([[9, 4, 11]]), torch.tensor([[3.0, 2.0, 0.5]]))
        logits = decoder._logits(torch.randn(1, 64), evidence, torch.tensor([[False, True, False]]))
        expected = np.zeros(12)
        expected[[9, 4, 11]] = np.log(2) * np.array([3, 2, 0.5]) - [0, 50 * 2, 0]
        assert logits[0].detach().numpy() == pytest.approx(expected, abs=1e-4)

    def test_evidence_is_what_the_likeliest_pieces_have_above_the_next(self, decoder, corrected, monkeypatch):
        monkeypatch.setattr("leakboard.attacks._reading.decoder.GUIDED", 3)
        decoder.correction.data = torch.tensor(3.0)
        found = decoder._evidence(corrected)
        target, reached = decoder.bag(corrected.targets), decoder.bag(corrected.reached)
        odds = (target + 3 * (target - reached)).detach().numpy()
        order = np.argsort(-odds, axis=1)
        assert found.pieces.tolist() == (FIRST_UNIT + order[:, :4]).tolist()
        best = np.take_along_axis(odds, order[:, :4], axis=1)
        assert found.values.detach().numpy() == pytest.approx(best - best[:, 3:], abs=1e-5)

    @pytest.mark.parametrize("given", ["hints", "corrected"])
    def test_loss_is_that_of_one_piece_after_the_other(self, decoder, given, request):
        """Each text alone, and each piece from the texts before it alone, give the same sum."""
        hints = request.getfixturevalue(given)
        texts = [torch.tensor([START, *codes, END]) for codes in ([4, 5, 4], [6], [], [7, 8, 9, 7, 7])]
        total = 0.0
        for row, text in enumerate(texts):
            for place in range(1, len(text)):
                before = text[None, :place]
                logits = following(decoder, hints[[row]], before)
                total -= logits.log_softmax(1)[0, text[place]].item()
        assert decoder.loss(hints, texts, "sum").item() == pytest.approx(total, rel=1e-5)
        assert decoder.loss(hints, texts).item() == pytest.approx(total / 13, rel=1e-5)

    @pytest.mark.parametrize("given", ["hints", "corrected"])
    def test_written_pieces_are_the_likeliest_ones(self, decoder, given, request):
        """Kept states of earlier pieces give what reading the whole text again gives."""
        hints = request.getfixturevalue(given)
        for row, text in enumerate(decoder.write(hints, 6)):
            line = [START]
            for code in [*text.tolist(), *([END] if len(text) < 6 else [])]:
                logits = following(decoder, hints[[row]], torch.tensor([line]))[0]
                logits[[PADDING, START, UNKNOWN]] = -torch.inf
                assert logits[code] > logits.max() - 1e-4
                line.append(code)

    def test_drawn_pieces_follow_the_law(self, decoder, hints):
        """Of 4,000 first pieces, the share of each is its probability at this temperature, within 4.5 deviations."""
        many = hints[[0] * 4_000]
        texts = decoder.write(many, 1, 2.0, torch.Generator().manual_seed(0))
        first = torch.tensor([[*text.tolist(), END][0] for text in texts])
        logits = following(decoder, hints[[0]], torch.tensor([[START]]))[0]
        logits[[PADDING, START, UNKNOWN]] = -torch.inf
        expected = (logits / 2).softmax(0).detach().numpy()
        shares = np.bincount(first.numpy(), minlength=12) / 4_000
        assert np.all(np.abs(shares - expected) < 4.5 * np.sqrt(expected * (1 - expected) / 4_000) + 2e-3)


def test_the_nearest_text_is_kept():
    vector_of = {"a": [1, 0], "b": [0, 2], "c": [1, 1]}
    found = Found(np.eye(2, dtype=np.float32), ["c", "c"])
    found.judge([["c", "c"], ["b", "a"], ["a", "c"]], lambda texts: np.array([vector_of[t] for t in texts], np.float32))
    assert (found.texts, found.questions) == (["a", "c"], 6)
    assert found.cosines == pytest.approx([1, 0.5**0.5])
    assert found.vectors.tolist() == [[1, 0], [1, 1]]


@pytest.mark.slow
def test_an_encoder_that_hides_nothing_is_mostly_inverted_exactly(scored):
    """It learns from 400 texts. `search` reads all of the test texts exactly, from the same encoder."""
    attack = dataclasses.replace(SMALL, epochs=20, corrector_epochs=10, candidates=16, rounds=12, temperature=1.0)
    found, details = scored(attack, positions, FakeOracle(positions, public=False))
    assert found["exact_matches"].low > 0.5
    assert "questions a text to the victim; mean cosine 0.9" in details


@pytest.mark.slow
def test_without_questions_texts_are_written_once(scored):
    found, details = scored(SMALL, positions, Refusing())
    assert details == "no questions (the victim cannot encode new texts)"
    assert found["attack_score"].low > 1 - found["privacy_best_constant"].value


@pytest.mark.slow
def test_random_vectors_give_the_floor(scored):
    found, _ = scored(SMALL, hashed, FakeOracle(hashed))
    assert found["attack_score"].low <= 1 - found["privacy_best_constant"].value
    assert found["exact_matches"].value < 0.05


def test_an_interrupted_attack_goes_on_after_its_last_epoch(tmp_path, monkeypatch):
    view = view_of(positions, FakeOracle(positions))
    attack = Inversion(bag=BAG, width=64, layers=1, longest=16, epochs=1, corrector_epochs=1, rounds=1, candidates=2)
    vectors = positions(view.dev.texts[:20])
    whole = attack.fit(view, 0)(vectors).texts
    monkeypatch.setattr("leakboard.models.training_state.SAVE_SECONDS", -1.0)
    with resumable(tmp_path / "state", "attack"):
        with monkeypatch.context() as interrupted:
            interrupted.setattr(Writer, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                attack.fit(view, 0)
        assert [file.name for file in (tmp_path / "state").iterdir()] == ["writer.safetensors"]
        passes = []
        forward = Decoder.loss
        monkeypatch.setattr(Decoder, "loss", lambda self, *rest: passes.append(self) or forward(self, *rest))
        fitted = attack.fit(view, 0)
        assert set(map(id, passes)) == {id(fitted.second.decoder)}  # the first transformer learned nothing more
        assert fitted(vectors).texts == whole
