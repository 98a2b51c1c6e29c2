"""Test word recovery against fake victims with known vectors: planted truths on both sides."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from leakboard.attacks.nearest_neighbour import NearestNeighbour
from leakboard.claims import ReleaseClaim
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import FittedVictim, PublishedWords
from leakboard.models.search import normalised
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.randomness import Streams
from leakboard.threats.oracle import Oracle
from leakboard.threats.published import Publications
from leakboard.threats.threat import VictimSide
from leakboard.threats.words import WordsView

WORDS = [f"word{i:03d}" for i in range(300)]
SIZE = 20


@dataclass(frozen=True)
class Static(FittedVictim):
    """A victim with a given table; its recipe trained again gives the attacker's table."""

    table: np.ndarray
    attacker_table: np.ndarray
    words: tuple = tuple(WORDS)
    trainable: ClassVar = True

    def fit(self, corpus, seed):
        return Static(self.attacker_table, self.attacker_table)

    def non_private(self):
        return self

    def publish_words(self, texts, rng):
        return PublishedWords(list(self.words), self.table.astype(np.float32))


@dataclass(frozen=True)
class Noisy(Static):
    """Publishes its table with fresh Laplace noise, and knows the exact table unless ``tells`` is False."""

    tells: bool = True
    scale: float = 3.0

    @property
    def claim(self):
        return ReleaseClaim(1 / self.scale, 0.0, "word", "laplace", "1", 1 / self.scale)

    def fit(self, corpus, seed):
        return self

    def exact_words(self, texts):
        return Static.publish_words(self, texts, None) if self.tells else None

    def publish_words(self, texts, rng):
        noise = rng.laplace(0, self.scale, self.table.shape).astype(np.float32)
        return PublishedWords(list(self.words), self.table.astype(np.float32) + noise)


class Contextual(FittedVictim):
    """Publishes the word's vector plus noise for every occurrence."""

    def __init__(self, table, noise):
        self.table, self.noise = table, noise

    def publish_words(self, texts, rng):
        occurrences = [(word, i) for i, text in enumerate(texts) for word in text.split()]
        vectors = np.array([self.table[WORDS.index(word)] for word, _ in occurrences])
        vectors = vectors + self.noise * rng.normal(size=vectors.shape)
        owners = np.array([i for _, i in occurrences])
        return PublishedWords([word for word, _ in occurrences], vectors.astype(np.float32), owners)


@pytest.fixture(scope="module")
def corpus(make_corpus):
    """Return a corpus with word i in the first 1 + (299 - i) // 10 train texts: frequencies fall with the number."""
    train = [" ".join(w for i, w in enumerate(WORDS) if t <= (299 - i) // 10) for t in range(30)]
    splits = {"train": train, "dev": train[:1], "test": [" ".join(WORDS[i : i + 10]) for i in range(0, 300, 10)]}
    return make_corpus({k: {"text": v, "s": [0] * len(v)} for k, v in splits.items()}, [("s", ("a",), "attribute")])


def side_of(victim, corpus, seed=5):
    words = victim.publish_words(corpus.texts("test"), np.random.default_rng(seed))
    published, streams = Publications({}, None, words, None), Streams(0, "made", "fake", "nn")
    return VictimSide(corpus, corpus, victim, lambda: victim, published, streams)


def recovered(victim, corpus, **options):
    """Return the attack's scores by name, and its result."""
    result = evaluate_attack(NearestNeighbour(**options), side_of(victim, corpus))
    return {m.name: m for m in result.metrics}, result


def tables(noise=0.0, seed=0):
    """Return the attacker's table, a rotated noisy copy of it, and an independent one."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(len(WORDS), SIZE))
    rotation, _ = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))
    return table, table @ rotation + noise * rng.normal(size=table.shape), rng.normal(size=table.shape)


def at_chance(metric, candidates):
    low, high = stats.binom(metric.n, candidates / len(WORDS)).interval(0.9999)
    return low <= metric.value * metric.n <= high


def test_an_identical_table_is_read_completely(corpus):
    table, _, _ = tables()
    metrics, result = recovered(Static(table, table), corpus)
    assert metrics["recall@1"].value == metrics["mean_reciprocal_rank"].value == 1
    assert metrics["empirical_privacy"].value == 0
    assert metrics["recall@1"].n == 300
    assert metrics["sentence_words_right"].value == 1
    assert result.sentences[0].recovered == result.sentences[0].text


def test_an_independent_table_is_guessed_at_chance(corpus):
    table, _, independent = tables()
    for align in ("none", "anchors", "iterative"):
        metrics, _ = recovered(Static(independent, table), corpus, align=align, anchors=30)
        assert at_chance(metrics["recall@1"], 1)
        assert at_chance(metrics["recall@5"], 5)


def test_a_rotated_table_is_safe_until_it_is_aligned(corpus):
    table, rotated, _ = tables()
    metrics, _ = recovered(Static(rotated, table), corpus, align="none")
    assert at_chance(metrics["recall@5"], 5)
    metrics, _ = recovered(Static(rotated, table), corpus, align="anchors", anchors=50)
    assert metrics["recall@1"].value == 1


def test_anchors_are_the_most_frequent_words_and_left_out_of_the_score(corpus):
    table, rotated, _ = tables()
    metrics, result = recovered(Static(rotated, table), corpus, align="anchors", anchors=50)
    assert metrics["recall@1"].n == result.test_size == 250
    assert [s.words for s in result.sentences[:6]] == [0] * 5 + [10]
    assert all(s.recovered.replace("[", "").replace("]", "") == s.text for s in result.sentences)
    assert result.sentences[0].recovered.startswith("[")  # an anchor is not recovered
    assert metrics["sentence_words_right"].n == 250


def test_iterating_makes_up_for_few_anchors(corpus):
    table, rotated, _ = tables(noise=0.2)
    scores = {}
    for align in ("anchors", "iterative"):
        metrics, result = recovered(Static(rotated, table), corpus, align=align, anchors=SIZE - 10)
        scores[align] = metrics["recall@1"].value
    assert scores["iterative"] > scores["anchors"] + 0.1
    assert scores["iterative"] > 0.95
    assert result.details.startswith("rotated by 10 anchors and ")


def test_no_common_anchor_and_no_word_left_are_errors(corpus):
    table, _, _ = tables()
    strange = Static(table, table, words=tuple(f"x{word}" for word in WORDS))
    with pytest.raises(NotApplicable, match="no anchor word is known to attacker and victim"):
        recovered(strange, corpus, align="anchors")
    with pytest.raises(NotApplicable, match="no published word is left"):
        recovered(Static(table, table), corpus, align="anchors", anchors=300)


def test_words_that_the_attacker_does_not_know_stay_in_the_denominator(corpus):
    table, _, _ = tables()
    half = tuple(word if i % 2 else f"x{word}" for i, word in enumerate(WORDS))
    metrics, _ = recovered(Static(table, table, words=half), corpus)
    assert metrics["recall@1"].value == metrics["known_to_attacker"].value == 0.5


def test_the_order_of_the_rows_gives_nothing_away(corpus):
    """All vectors are equal: an attack that used the order of the rows would score 1."""
    table = np.ones((len(WORDS), SIZE))
    metrics, _ = recovered(Static(table, table), corpus)
    assert metrics["recall@1"].value <= 2 / 300


def test_approximate_search_is_reported(corpus):
    table, _, independent = tables()
    _, result = recovered(Static(independent, table), corpus, exact_limit=100)
    assert "approximate search with recall 0." in result.details


class TestLengths:
    """Lengths of vectors name words whose directions are equal."""

    @staticmethod
    def pairs():
        """Return the attacker's table and a rotated one, thrice as long: words 2 i and 2 i + 1 have one direction."""
        directions = np.repeat(normalised(tables()[0][:150]), 2, axis=0) * np.tile([1.0, 2.0], 150)[:, None]
        rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(SIZE, SIZE)))
        return directions, 3 * directions @ rotation

    def test_lengths_tell_words_of_one_direction_apart(self, corpus):
        own, published = self.pairs()
        for align in ("anchors", "iterative"):
            options = {"align": align, "anchors": 200}
            without, _ = recovered(Static(published, own), corpus, **options)
            compared, result = recovered(Static(published, own), corpus, lengths=True, **options)
            assert without["recall@1"].value < 0.7
            assert compared["recall@1"].value == 1
            assert "; lengths have the weight 0." in result.details

    def test_lengths_that_tell_nothing_get_no_weight(self, corpus):
        """All words have directions of their own, and the published lengths are drawn anew."""
        table, rotated, _ = tables()
        strange = rotated * np.exp(2 * np.random.default_rng(1).normal(size=(len(WORDS), 1)))
        metrics, result = recovered(Static(strange, table), corpus, align="anchors", anchors=100, lengths=True)
        assert result.details == "rotated by 100 anchors; lengths have the weight 0"
        assert metrics["recall@1"].value == 1

    def test_an_independent_table_is_guessed_at_chance(self, corpus):
        table, _, independent = tables()
        metrics, _ = recovered(Static(independent, table), corpus, align="anchors", anchors=30, lengths=True)
        assert at_chance(metrics["recall@5"], 5)

    def test_anchors_are_no_candidates(self, corpus):
        table, _, independent = tables()
        side = side_of(Static(independent, table), corpus)
        auxiliary = corpus.only("train", "dev")
        view = WordsView(auxiliary, contextual=False, claim=None, oracle=Oracle(side, auxiliary))
        namer = NearestNeighbour(align="anchors", anchors=30, lengths=True).fit(view, 0)
        guesses = namer(independent[30:].astype(np.float32))
        assert set(guesses.ranked.ravel().tolist()) <= set(range(30, 300))

    def test_unaligned_tables_and_anchors_alone_are_errors(self, corpus):
        with pytest.raises(ValueError, match="lengths: true is not allowed with align: none"):
            NearestNeighbour(lengths=True)
        table, _, _ = tables()
        short = tuple(WORDS[:150] + [f"x{word}" for word in WORDS[150:]])
        own = replace(Static(table, table), words=short)
        with pytest.raises(NotApplicable, match="all words that the attacker knows are anchors"):
            recovered(Static(table, table), corpus, align="anchors", anchors=300, lengths=True)
        assert recovered(own, corpus, align="anchors", anchors=1, lengths=True)[0]["recall@1"].n == 299


@dataclass(frozen=True)
class Trained(Static):
    """Each training adds noise that is large in the first ten directions, and rotates the table."""

    def fit(self, corpus, seed):
        return replace(self, table=self.trained(seed))

    def trained(self, seed):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=(len(WORDS), SIZE)) * np.repeat([2.0, 0.15], SIZE // 2)
        rotation, _ = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))
        return (self.attacker_table + noise) @ rotation


class TestOwnTables:
    """Several trainings tell which directions mean something."""

    @pytest.mark.parametrize("align", ["anchors", "iterative"])
    def test_several_trainings_name_more_words_and_weighing_still_more(self, corpus, align):
        base = tables()[0]
        victim = Trained(Trained(base, base).trained(7), base)
        choices = {"one": {}, "mean": {"own_tables": 5}, "weighed": {"own_tables": 5, "weigh": True}}
        scores, results = {}, {}
        for name, options in choices.items():
            metrics, results[name] = recovered(victim, corpus, align=align, anchors=100, **options)
            scores[name] = metrics["recall@1"]
        assert scores["one"].value < scores["mean"].value
        assert scores["mean"].high < scores["weighed"].low
        assert results["mean"].details.startswith("mean of 5 own tables; rotated by 100 anchors")

    @pytest.mark.parametrize("options", [{"align": "anchors", "anchors": 30, "lengths": True}, {"align": "none"}])
    def test_an_independent_table_is_guessed_at_chance(self, corpus, options):
        base, _, independent = tables()
        metrics, _ = recovered(Trained(independent, base), corpus, own_tables=3, weigh=True, **options)
        assert at_chance(metrics["recall@5"], 5)

    def test_one_table_cannot_be_weighed(self, corpus):
        with pytest.raises(RequestError, match="weigh: true is not allowed with own_tables: 1"):
            recovered(Static(tables()[0], tables()[0]), corpus, weigh=True)

    def test_noise_of_the_release_is_a_difference(self, corpus):
        """Of equal trainings, published with Laplace noise of scale 3: a variance of 2 * 9 in each direction."""
        victim = Noisy(tables()[0], tables()[0])
        side, auxiliary = side_of(victim, corpus), corpus.only("train", "dev")
        view = WordsView(auxiliary, contextual=False, claim=victim.claim, oracle=Oracle(side, auxiliary))
        own = NearestNeighbour(own_tables=4).fit(view, 0).own
        assert np.allclose(own.vectors, tables()[0], atol=1e-5)
        assert np.allclose(own.differences, 18 * np.eye(SIZE), atol=5)
        assert np.trace(own.differences) / SIZE == pytest.approx(18, rel=0.05)


class TestNoisyTables:
    """The attacker knows its own table exactly, or adds noise as the victim does."""

    @staticmethod
    def attacker_table(corpus, tells=True, **options):
        victim = Noisy(tables()[0], tables()[0], tells=tells)
        side, auxiliary = side_of(victim, corpus), corpus.only("train", "dev")
        view = WordsView(auxiliary, contextual=False, claim=victim.claim, oracle=Oracle(side, auxiliary))
        return normalised(NearestNeighbour(**options).fit(view, 0).own.vectors)

    def test_the_table_is_exact(self, corpus):
        exact = normalised(tables()[0].astype(np.float32))
        assert np.array_equal(self.attacker_table(corpus), exact)
        errors = {copies: np.abs(self.attacker_table(corpus, own_publications=copies) - exact) for copies in (1, 100)}
        assert errors[1].mean() > 3 * errors[100].mean() > 0

    def test_a_table_that_the_victim_does_not_give_is_averaged(self, corpus):
        averaged = self.attacker_table(corpus, own_publications=100)
        assert np.array_equal(self.attacker_table(corpus, tells=False), averaged)

    def test_noise_on_its_own_table_costs_the_attacker_words(self, corpus):
        victim = Noisy(tables()[0], tables()[0], scale=0.5)
        side = side_of(victim, corpus)
        side = replace(side, published=replace(side.published, claim=victim.claim))
        scores = [
            next(m for m in evaluate_attack(NearestNeighbour(own_publications=n), side).metrics if m.name == "recall@1")
            for n in (None, 1)
        ]
        assert scores[0].low > scores[1].high


class TestContextual:
    """A victim with a vector for each occurrence of a word."""

    def test_words_with_distinct_vectors_are_recovered(self, corpus):
        table, _, _ = tables()
        metrics, result = recovered(Contextual(table, 0.1), corpus, own_texts=30)
        assert metrics["recall@1"].value == 1
        assert metrics["recall@1"].n == 300
        assert result.sentences[-1].recovered == result.sentences[-1].text

    def test_weighed_directions_name_words_that_others_hide(self, corpus):
        """The first half of the coordinates differs between occurrences of one word, ten times as much as words do."""
        noise = np.repeat([10.0, 0.3], SIZE // 2)
        plain, _ = recovered(Contextual(tables()[0], noise), corpus, own_texts=30)
        weighed, _ = recovered(Contextual(tables()[0], noise), corpus, own_texts=30, weigh=True)
        assert weighed["recall@1"].low > plain["recall@1"].high + 0.3

    @pytest.mark.parametrize("weigh", [False, True])
    def test_noise_alone_is_guessed_by_the_frequency_of_words(self, corpus, weigh):
        metrics, _ = recovered(Contextual(np.zeros((300, SIZE)), 1.0), corpus, own_texts=30, weigh=weigh)
        share = 30 / sum(len(text.split()) for text in corpus.texts("train"))
        assert metrics["recall@1"].value * 300 <= stats.binom(300, share).ppf(0.9999)

    def test_candidates_are_distinct_words(self, corpus):
        table, _, _ = tables()
        attack = NearestNeighbour(candidates=5)
        victim = Contextual(table, 1.0)
        side, auxiliary = side_of(victim, corpus, seed=0), corpus.only("train", "dev")
        view = WordsView(auxiliary, contextual=True, claim=None, oracle=Oracle(side, auxiliary))
        guesses = attack.fit(view, 0)(side.published.words.vectors)
        for row in guesses.ranked.tolist():
            assert min(row) >= 0
            assert len(set(row)) == len(row) == 5

    def test_words_that_the_attacker_has_once(self, make_corpus):
        texts = {"train": [" ".join(reversed(WORDS))], "dev": ["word000"], "test": [" ".join(WORDS)]}
        columns = {k: {"text": v, "s": [0]} for k, v in texts.items()}
        corpus = make_corpus(columns, [("s", ("a",), "attribute")])
        table, _, _ = tables()
        assert recovered(Contextual(table, 0.0), corpus)[0]["recall@1"].value == 1
