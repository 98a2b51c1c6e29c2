"""Test the search for texts: what a vector shows is found exactly, and what it does not show is not."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from planted_texts import BAG, FakeOracle, Refusing, any_words, hashed, positions, view_of

from leakboard.attacks._reading.asking import questions
from leakboard.attacks._reading.climbing import Climbing, Found
from leakboard.attacks._reading.edits import Edits
from leakboard.attacks._reading.first_texts import first_texts
from leakboard.attacks._reading.word_sums import WordSums
from leakboard.attacks.aligned import Aligned
from leakboard.attacks.search import Search
from leakboard.errors import RequestError
from leakboard.interfaces import FittedVictim, Victim
from leakboard.models.trigrams import Trigrams
from leakboard.pipeline.publications import fit, publish
from leakboard.randomness import Streams
from leakboard.threats.threat import VictimSide


@pytest.mark.slow
def test_an_encoder_that_hides_nothing_is_inverted_exactly(scored):
    """Every edit is tried, and one of them always brings a position more into agreement."""
    attack = Search(bag=BAG, candidates=300, rounds=20, beam=1)
    found, details = scored(attack, positions, FakeOracle(positions, public=False))
    assert found["exact_matches"].value == 1
    assert "questions a text to the victim; mean cosine 1.000" in details


@pytest.mark.slow
def test_without_questions_words_are_found_and_fewer_texts_exactly(scored):
    found, details = scored(Search(bag=BAG), positions, Refusing())
    assert details.startswith("no questions (the victim cannot encode new texts)")
    assert found["attack_score"].low > 1 - found["privacy_best_constant"].value
    assert found["exact_matches"].value < 0.9
    few, details = scored(Search(bag=BAG, questions=10), positions, FakeOracle(positions))
    assert few["exact_matches"].value == found["exact_matches"].value
    assert "first texts, but questions: 10)" in details
    assert scored(Search(bag=BAG, rounds=0), positions, Refusing())[1].startswith("no questions (rounds: 0)")


@pytest.mark.slow
def test_random_vectors_give_the_floor(scored):
    found, _ = scored(Search(bag=BAG, rounds=3), hashed, FakeOracle(hashed))
    assert found["attack_score"].low <= 1 - found["privacy_best_constant"].value
    assert found["exact_matches"].value < 0.05


def law(words=3):
    rng = np.random.default_rng(3)
    return Trigrams.fit([rng.integers(0, words, rng.integers(1, 5)).tolist() for _ in range(60)], words)


class TestFirstTexts:
    def test_a_wide_beam_finds_the_likeliest_of_all_texts(self):
        trigrams, evidence = law(), np.array([[2.0, -1.0, 0.5], [-3.0, 4.0, 0.0]], np.float32)
        every = [text for n in (1, 2, 3) for text in itertools.product(range(3), repeat=n)]
        for row, found in zip(evidence, first_texts(evidence, trigrams, 1.5, 3, 50, 3), strict=True):
            values = {t: trigrams.log_probability(t) + 1.5 * row[list(set(t))].sum() for t in every}
            assert found[:5] == sorted(every, key=lambda t: -values[t])[:5]

    def test_words_without_evidence_are_not_tried(self):
        (found,) = first_texts(np.array([[0.0, 5.0, 9.0]], np.float32), law(), 1.0, 2, 50, 3)
        assert {word for text in found for word in text} == {1, 2}


class TestWordSums:
    def test_sums_of_known_vectors_are_learned(self):
        rng = np.random.default_rng(0)
        table, texts = rng.normal(size=(6, 4)), [rng.integers(0, 6, rng.integers(1, 9)).tolist() for _ in range(3000)]
        vectors = np.stack([table[text].sum(0) / len(text) ** 0.5 for text in texts]).astype(np.float32)
        sums = WordSums.fit(texts, vectors, 6)
        assert sums([1, 2, 2]) == pytest.approx((table[1] + 2 * table[2]) / 3**0.5, abs=0.02)

    def test_changes_are_those_of_the_changed_text(self):
        sums = WordSums(np.concatenate([np.random.default_rng(0).normal(size=(4, 3)), np.zeros((1, 3))]))
        changed = sums.changed([0, 1], [-1, 1], [-1, 3])
        for (i, left), (j, more) in itertools.product(enumerate([[0, 1], [0]]), enumerate([[], [3]])):
            assert changed[i, j] == pytest.approx(sums([*left, *more]), abs=1e-6)


class TestEdits:
    @pytest.fixture
    def edits(self):
        table = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
        return Edits(law(), WordSums(np.concatenate([table, np.zeros((1, 4), np.float32)])), 0.01)

    def test_all_edits_of_a_short_text_are_proposed(self, edits):
        proposed = edits.proposed((0, 1), np.eye(4, dtype=np.float32)[0], [2])
        replaced, inserted = {(2, 1), (0, 2)}, {(2, 0, 1), (0, 2, 1), (0, 1, 2)}
        assert proposed.keys() == replaced | inserted | {(0,), (1,), (1, 0)}

    def test_words_in_a_row_move_together(self, edits):
        assert (1, 2, 0, 0) in edits.proposed((0, 0, 1, 2), np.eye(4, dtype=np.float32)[0], [])

    def test_of_many_moves_the_likeliest_are_kept(self, edits, monkeypatch):
        text = tuple(np.random.default_rng(0).integers(0, 3, 7).tolist())
        every = edits._moved(text)
        monkeypatch.setattr("leakboard.attacks._reading.edits.MOVES", 30)
        kept = edits._moved(text)
        laws = edits.log_laws(every)
        assert len(kept) == 30
        assert edits.log_laws(kept) == pytest.approx(np.sort(laws)[::-1][:30])
        assert edits._moved((0, 1) * 40) == []

    def test_laws_are_those_of_whole_texts(self, edits):
        texts = [(0,), (1, 2, 0), (2, 2)]
        assert edits.log_laws(texts) == pytest.approx([edits.trigrams.log_probability(text) for text in texts])
        assert edits.log_laws([]).shape == (0,)

    def test_values_are_predicted_cosines_and_the_prior(self, edits):
        target, vector = np.eye(4, dtype=np.float32)[:2]
        for error, known in ((0, None), (vector - edits.sums([0, 1]), vector)):
            for text, value in edits.proposed((0, 1), target, [2], known).items():
                predicted = edits.sums(text) + error
                cosine = predicted @ target / np.linalg.norm(predicted)
                assert value == pytest.approx(cosine + 0.01 * edits.trigrams.log_probability(text), abs=1e-5)


class TestQuestions:
    ROTATION = np.linalg.qr(np.random.default_rng(5).normal(size=(100, 100)))[0].astype(np.float32)

    @staticmethod
    def noisy(vectors):
        return vectors + np.random.default_rng(vectors.tobytes()[0]).normal(size=vectors.shape).astype(np.float32)

    def test_noise_is_left_out_and_a_secret_map_is_not(self):
        noise = iter(np.random.default_rng(5).normal(size=(9, 20, 100)))
        oracle = FakeOracle(positions, lambda vectors: vectors + next(noise))
        assert questions(view_of(positions, oracle))[1] == "the encoder without the protection"
        oracle = FakeOracle(positions, lambda vectors: vectors @ self.ROTATION)
        ask, who = questions(view_of(positions, oracle))
        assert (ask, who) == (oracle.encode, "the victim")

    def test_own_vectors_are_compared_with_their_encoder_and_with_no_other(self):
        """Nobody can ask the maker of own vectors; the user may name the encoder."""

        class Own(FakeOracle):
            def encode(self, texts):
                raise RequestError("vectors.npy cannot encode new texts")

        assert questions(view_of(positions, Own(positions)))[1] == "the encoder without the protection"
        other = Own(lambda texts: positions(texts) @ self.ROTATION)
        assert questions(view_of(positions, other)) == (None, "vectors.npy cannot encode new texts")

    def test_a_thief_never_asks_the_victim(self):
        oracle = FakeOracle(positions, lambda vectors: vectors @ self.ROTATION)
        assert questions(view_of(positions, oracle, known_encoder=True))[1] == "the public encoder"
        assert oracle.asked == 0
        assert questions(view_of(positions, Refusing(), known_encoder=True))[0] is None


def test_a_search_stops_when_nothing_is_better():
    """The target is the text itself, so one round shows that it is the best."""
    sums = WordSums(np.eye(4, dtype=np.float32)[[0, 1, 2, 3]])
    sums.table[-1] = 0
    climbing = Climbing(Edits(law(), sums, 0.0), lambda vectors: vectors[:, :3], words=3, beam=1, candidates=5)
    target = np.array([1, 1, 0, 0], np.float32) / 2**0.5
    found = Found(target, target[:3], [(0, 1)])
    assert climbing.rounds([found], lambda texts: np.stack([sums(text) for text in texts]), 9, 99) == 1 + 5
    assert found.finished
    limited = Found(target, target[:3], [(0, 1)])
    assert climbing.rounds([limited], lambda texts: np.stack([sums(text) for text in texts]), 9, 5) == 1
    assert found.texts in ([(0, 1)], [(1, 0)])


def test_a_text_that_comes_twice_does_not_shift_the_law_of_others():
    edits = Edits(law(), WordSums(np.eye(4, dtype=np.float32)), 0.5)
    edits.sums.table[-1] = 0
    climbing = Climbing(edits, lambda vectors: vectors[:, :3], words=3, beam=2, candidates=5)
    targets = np.eye(4, dtype=np.float32)
    found = [Found(targets[0], targets[0, :3], [(0,), (0,)]), Found(targets[1], targets[1, :3], [(1, 2)])]
    climbing.rounds(found, lambda texts: np.stack([edits.sums(text) for text in texts]), 0, 99)
    expected = 0.5**0.5 + 0.5 * edits.log_laws([(1, 2)])[0]
    assert found[1].values[1, 2] == pytest.approx(expected, rel=1e-6)


@dataclass(frozen=True)
class FittedRotated(FittedVictim):
    key: int

    def unprotected(self, texts):
        return positions(texts)

    def publish_documents(self, texts, rng):
        rotation = np.linalg.qr(np.random.default_rng(self.key).normal(size=(100, 100)))[0]
        return (positions(texts) @ rotation).astype(np.float32)


@dataclass(frozen=True)
class Rotated(Victim):
    def fit(self, corpus, seed) -> FittedRotated:
        return FittedRotated(seed % 1000)


@pytest.mark.slow
def test_stolen_vectors_are_mapped_and_the_public_encoder_is_asked(make_corpus):
    """Procrustes finds the secret rotation from the known pairs."""
    rng, streams = np.random.default_rng(0), Streams(0, "made", "rotated", "spy", "cell")
    sizes = {"train": 900, "dev": 100, "test": 40}
    corpus = make_corpus({name: {"text": [any_words(rng) for _ in range(n)]} for name, n in sizes.items()}, [])
    stored, own = (corpus.with_rows("train", rows) for rows in (range(450), range(450, 900)))
    fitted = fit(Rotated(), stored, streams)
    published = publish(Rotated(), lambda: fitted, stored, streams)
    side = VictimSide(stored, own, Rotated(), lambda: fitted, published, streams)
    inner = Search(bag=BAG, candidates=100, rounds=9, beam=1)
    attack = Aligned(inner=inner, pairs=300, alignment="procrustes", adaptive=False)
    found = {
        metric.name: metric.value for metric in attack.threat.evaluate(attack, side).metrics if not metric.variable
    }
    assert found["exact_matches"] > 0.8
    assert found["reencoded_cosine"] > 0.97 > 0.7 > found["reencoded_cosine_floor"]
    assert (found["queries"], found["known_pairs"]) == (0, 300)
    assert found["noiseless_queries"] > 1000
