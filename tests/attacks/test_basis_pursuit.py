"""Basis pursuit: means of known vectors give away what they are made of; whole numbers of units count as exact."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from planted_texts import FakeOracle, Refusing, hashed, view_of
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from leakboard.attacks._reading import averages
from leakboard.attacks._reading.averages import SAMPLE, asked_words, public_tokens
from leakboard.attacks._reading.joining import Joiner
from leakboard.attacks._reading.mean_decoder import Decoded, Limits, MeanDecoder
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.attacks.basis_pursuit import BasisPursuit, FittedPursuit
from leakboard.attacks.stacked_words import StackedWords
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable
from leakboard.interfaces import Texts
from leakboard.models import static_vectors
from leakboard.models.static_vectors import StaticVectors
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.texts import TextGuesses, TextsView

LIMITS = Limits(atoms=400, rounds=3, iterations=10_000, longest=40)
WORDS = [f"word{i}" for i in range(120)]
TABLE = dict(zip(WORDS, np.random.default_rng(5).normal(size=(120, 24)).astype(np.float32), strict=True))
BAG = BagOfWords(epochs=2, learning_rate=0.02)
ATTACK = BasisPursuit(stack=StackedWords(bag=BAG, trees=5), bag=BAG, table=None)
PIECES = [
    "?",
    "\u2581",
    "\u2581blu",
    "ray",
    "\u2581don",
    "'",
    "t",
    "!",
    "\u2581great",
    "\u2581key",
    "board",
    "\u2581black",
]


def decoder_of(table, length=4.0, limits=LIMITS):
    return MeanDecoder.of(table, np.ones(len(table)), length, limits)


def exactly(counts):
    return Decoded(counts, certified=True)


def averaged(texts):
    """Return the mean of random vectors of words, float32 (n, 24); zeros for a text without a known word."""
    rows = [[TABLE[word] for word in words(text) if word in TABLE] for text in texts]
    return np.stack([np.mean(row, axis=0) if row else np.zeros(24) for row in rows]).astype(np.float32)


def texts_of(count, rng):
    return Texts([" ".join(rng.choice(WORDS, rng.integers(3, 6))) for _ in range(count)])


def averaging_view(oracle):
    rng = np.random.default_rng(0)
    known = (texts_of(size, rng) for size in (500, 60))
    return TextsView(*(KnownTexts(texts, averaged(texts), {}) for texts in known), oracle)


@pytest.fixture(scope="module")
def fitted():
    """Return the attack after it learned from means of words."""
    return ATTACK.fit(averaging_view(FakeOracle(averaged)), 0)


@pytest.fixture
def public(monkeypatch):
    """Return a public table of twelve tokens in 32 dimensions, in the place of WordLlama's."""
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in PIECES], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    table = np.random.default_rng(2).normal(size=(len(PIECES), 32)).astype(np.float32)
    vectors = StaticVectors(tokenizer, table)
    monkeypatch.setattr(static_vectors, "availability", lambda: "ready")
    monkeypatch.setattr(static_vectors, "wordllama", lambda: ("table", "tokens"))
    monkeypatch.setattr(StaticVectors, "read", lambda table, tokens: vectors)
    return vectors


def tokens_of(*pieces):
    return {PIECES.index(piece): pieces.count(piece) for piece in pieces}


def test_a_hand_worked_mean_is_decoded_and_costs_choose_between_two_explanations():
    """(2, 1) / 3 is the mean of (1, 0) twice and (0, 1), and also that of (1, 0), (1, 1) and (0, 0)."""
    mean = np.array([2.0, 1.0]) / 3
    corners = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float32)
    assert decoder_of(corners[:3])(mean, np.ones(3)) == exactly({0: 2, 1: 1})
    assert decoder_of(corners)(mean, np.array([1.0, 1, 5, 5])) == exactly({0: 2, 1: 1})
    assert decoder_of(corners)(mean, np.array([1.0, 9, 1, 1])) == exactly({0: 1, 2: 1, 3: 1})


def test_a_mean_of_zeros_is_of_no_unit():
    assert decoder_of(np.eye(3, dtype=np.float32))(np.zeros(3), np.ones(3)) == exactly({})


class TestPlanted:
    """Means of 8 of 500 random vectors in 64 dimensions, a vector may be in a mean twice."""

    VECTORS = np.random.default_rng(1).normal(size=(500, 64)).astype(np.float32)
    DECODE = decoder_of(VECTORS, 8.0)
    COSTS = np.full(500, 4.0)

    def test_all_means_are_decoded(self):
        rng = np.random.default_rng(2)
        for _ in range(10):
            chosen = rng.choice(500, 8)
            truth = {int(row): int(count) for row, count in zip(*np.unique(chosen, return_counts=True), strict=True)}
            assert self.DECODE(self.VECTORS[chosen].mean(0).astype(np.float64), self.COSTS) == exactly(truth)

    @pytest.mark.parametrize("noise", [1e-4, 1e-2])
    def test_a_noisy_mean_is_not_certified(self, noise):
        mean = self.VECTORS[:8].mean(0) + noise * np.random.default_rng(3).normal(size=64)
        assert not self.DECODE(mean, self.COSTS).certified

    @pytest.mark.parametrize("limits", [Limits(400, 3, 10_000, 7), Limits(400, 3, 1, 40), Limits(4, 3, 10_000, 40)])
    def test_a_limit_that_is_too_small_leaves_a_mean_undecoded(self, limits):
        mean = self.VECTORS[:8].mean(0).astype(np.float64)
        assert self.DECODE(mean, self.COSTS) == exactly(dict.fromkeys(range(8), 1))
        assert not decoder_of(self.VECTORS, 8.0, limits)(mean, self.COSTS).certified


def test_exact_words_come_back_and_the_stack_reads_the_others(fitted):
    test = texts_of(30, np.random.default_rng(7))
    vectors = averaged(test)
    vectors[0] += np.random.default_rng(8).normal(size=24) / 10
    guesses = fitted(vectors)
    assert [set(words(text)) for text in guesses.texts[1:]] == [set(words(text)) for text in test[1:]]
    assert guesses.texts[0] == fitted.stack(vectors).texts[0]
    assert guesses.details.startswith(
        "of 30 texts 29 exact, 0 inexact, of 120 words by the encoder without the protection"
    )
    assert fitted(np.empty((0, 24), np.float32)).texts == []


def test_a_fit_with_the_same_seed_reads_the_same(fitted):
    vectors = averaged(texts_of(10, np.random.default_rng(9))) + np.float32(0.01)
    again = ATTACK.fit(averaging_view(FakeOracle(averaged)), 0)
    assert again(vectors) == fitted(vectors)


def test_words_without_a_trace_are_no_units_and_questions_are_counted():
    oracle = FakeOracle(averaged, public=False)
    view = averaging_view(oracle)
    texts = Texts([f"{text} unknown" for text in view.train.texts])
    units = asked_words(TextsView(KnownTexts(texts, view.train.vectors, {}), view.dev, oracle), 1_000)
    assert sorted(units.names) == sorted(WORDS)
    assert units.split(["word3 unknown Word4!"]) == [["word3", "word4"]]
    assert len(WORDS) < oracle.asked <= len(WORDS) + 2 + 2 * SAMPLE  # each word once, an empty text, a sample twice


def test_vectors_that_are_no_means_are_refused_after_a_sample():
    oracle = FakeOracle(hashed, public=False)
    view = view_of(hashed, oracle)
    rare = Texts([*view.train.texts[:SAMPLE], *(f"rare{row}" for row in range(400 - SAMPLE))])
    view = TextsView(KnownTexts(rare, view.train.vectors, {}), view.dev, oracle)
    with pytest.raises(NotApplicable, match="the published vectors are no means of vectors of words"):
        ATTACK.fit(view, 0)
    assert oracle.asked < 100
    with pytest.raises(NotApplicable, match="no vectors of words can be asked for: the victim cannot encode new texts"):
        ATTACK.fit(view_of(hashed, Refusing()), 0)


def test_tokens_of_the_public_table_are_units_without_a_question(public):
    rng = np.random.default_rng(3)
    strings = ["don't", "great!", "key", "black", "keyboard"]
    parts = [Texts([" ".join(rng.choice(strings, 4)) for _ in range(size)]) for size in (100, 40)]
    view = TextsView(*(KnownTexts(texts, public.documents(texts), {}) for texts in parts), Refusing())
    attack = BasisPursuit(stack=StackedWords(bag=BAG, trees=2), bag=BAG)
    guesses = attack.fit(view, 0)(public.documents(["great! don't bluray", "black"]))
    assert guesses.texts == ["bluray dont great", "black"]
    assert guesses.details.startswith("of 2 texts 2 exact, 0 inexact, of 12 public tokens")
    other = TextsView(*(KnownTexts(texts, averaged(texts), {}) for texts in parts), Refusing())
    assert not public_tokens(other).explain(other.train)
    assert public_tokens(view).explain(view.train)


@pytest.mark.parametrize(
    ("known", "tokens", "expected"),
    [
        (["don't great!"], tokens_of("\u2581don", "'", "t", "!", "\u2581great"), ["dont", "great"]),
        ([], tokens_of("\u2581blu", "ray", "!"), ["bluray"]),
        (["keyboard black"], tokens_of("\u2581black", "\u2581key", "board"), ["black", "keyboard"]),
        (["blackboard key"], tokens_of("\u2581black", "\u2581key", "board"), ["blackboard", "key"]),
        (["black black black"], tokens_of("\u2581black", "\u2581key", "board"), ["black", "keyboard"]),
        (["key"], tokens_of("board"), ["board"]),
        (["key"], {}, []),
    ],
)
def test_tokens_are_joined_as_in_known_texts_or_else_to_a_rare_word(public, known, tokens, expected):
    assert Joiner.of(public, known)(tokens) == expected


def test_equal_vectors_of_all_words_are_refused():
    with pytest.raises(NotApplicable, match="all words have the same vector"):
        decoder_of(np.ones((5, 3), np.float32))


def test_without_the_package_of_the_table_words_are_asked_for(monkeypatch):
    monkeypatch.setattr(static_vectors, "availability", lambda: "wordllama is missing")
    attack = dataclasses.replace(ATTACK, table="WordLlama")
    assert attack.fingerprint() == ""
    assert "words by the encoder" in attack.fit(averaging_view(FakeOracle(averaged)), 0).units.source


@pytest.mark.parametrize("stack", ["word3", "word1 word2"])
def test_judges_decide_who_reads_texts_without_an_exact_solution(fitted, stack):
    """The linear programs find word1 and word2, inexactly; word4; and nothing. The first text alone is judged."""
    place = fitted.units.names.index
    solutions = [
        Decoded({place("word1"): 1, place("word2"): 1}, certified=False),
        exactly({place("word4"): 1}),
        Decoded({}, certified=False),
    ]
    judges = KnownTexts(Texts(["word1 word2 word5", "word4", "word6"]), averaged(["word1", "word4", "word6"]), {})
    by_stack = {tuple(judges.vectors[0]): stack, tuple(judges.vectors[2]): "word7"}

    class Fixed(type(fitted)):
        def _solutions(self, vectors):
            return solutions

    fixed = Fixed(
        **{**vars(fitted), "stack": lambda vectors: TextGuesses([by_stack[tuple(v)] for v in vectors], False)}
    )
    assert fixed.is_stack_better(judges) == (stack == "word1 word2")
    for prefers in (True, False):
        read = dataclasses.replace(fixed, prefers_stack=prefers)(judges.vectors)
        assert read.texts == [stack if prefers else "word1 word2", "word4", "word7"]
        assert read.details.startswith(f"of 3 texts 1 exact, {0 if prefers else 1} inexact, of 120 words")


@pytest.mark.parametrize(("dev", "held_out"), [(60, 15), (200, 40), (3, 0)])
def test_nothing_learns_from_the_held_out_texts(dev, held_out, monkeypatch):
    learned, judges = [], []

    def spy(owner, name, place):
        original = getattr(owner, name)

        def call(*arguments):
            learned.append(list(arguments[place].dev.texts))
            return original(*arguments)

        monkeypatch.setattr(owner, name, call)

    spy(StackedWords, "fit", 1)
    spy(BagOfWords, "fit_units", 1)
    spy(averages, "asked_words", 0)
    monkeypatch.setattr(FittedPursuit, "is_stack_better", lambda self, known: judges.extend(known.texts))
    view = averaging_view(FakeOracle(averaged))
    texts = texts_of(dev, np.random.default_rng(1))
    ATTACK.fit(dataclasses.replace(view, dev=KnownTexts(texts, averaged(texts), {})), 0)
    assert len(judges) == held_out
    assert len(learned) >= 3
    assert all(part + judges == list(texts) for part in learned)


def test_costs_by_hand(fitted):
    """The bag knows the first two units: e**-0.1 is the first's probability; the second's cost is limited."""
    bag = SimpleNamespace(log_odds=lambda vectors: np.array([[-np.log(np.expm1(0.1)), -50.0]]))
    units = dataclasses.replace(fitted, bag=bag, places=np.array([0, 1]), expected=np.array([0.5, 0.5, 0.01, 1e-15]))
    assert units._costs(np.zeros(24)) == pytest.approx([0.1, np.log(2) + 3, np.log(100), 25])


def test_of_long_texts_inexact_solutions_name_words():
    """The means have 24 coordinates, so 12 vectors of 120 are too many to be found for sure."""
    rng, table = np.random.default_rng(3), np.stack(list(TABLE.values()))
    decode, shares = decoder_of(table, 12.0), []
    for _ in range(20):
        chosen = rng.choice(len(table), 12, replace=False)
        found = decode(table[chosen].mean(0).astype(np.float64), np.ones(len(table)))
        if not found.certified:
            shares.append(len(found.counts.keys() & set(chosen.tolist())) / max(1, len(found.counts)))
    assert len(shares) > 10
    assert np.mean(shares) > 2 * 12 / 120  # chance
