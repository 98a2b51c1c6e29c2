"""Attacks on sanitised words: equal to brute force, within the bound of a known law, and above single words there."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from planted_channel import MATRIX, SPACE, WORDS, channel

from leakboard.attacks._reading.lattice import Pairs, likeliest_text, likeliest_words, pair_posteriors
from leakboard.attacks._reading.likely_words import Lattice, OwnWords, lattices, read_words
from leakboard.attacks.context_free_bayes import ContextFreeBayes
from leakboard.attacks.sequence_bayes import SequenceBayes
from leakboard.errors import NotApplicable
from leakboard.models.trigrams import Trigrams
from leakboard.pipeline.publications import fit, publish
from leakboard.privacy.channels.noisy_vectors import MultivariateLaplace
from leakboard.privacy.channels.randomised_response import RandomisedResponse
from leakboard.privacy.channels.texts import TOKEN, TextChannel
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.corpus_bound import corpus_bound
from leakboard.randomness import Streams
from leakboard.suite.options import build
from leakboard.threats.threat import VictimSide
from leakboard.victims.sanitiser import Sanitiser

LENGTH = 4


def randomised(epsilon):
    return TextChannel(RandomisedResponse(epsilon=epsilon).fit(SPACE, np.random.default_rng(0)))


def texts_of_law(count, rng, stays=0.1):
    """Draw texts of a bigram law: red, green, blue follow each other in a circle, but for a share of jumps."""
    texts = np.empty((count, LENGTH), np.int64)
    texts[:, 0] = rng.integers(3, size=count)
    for place in range(1, LENGTH):
        jump = np.where(rng.random(count) < stays, rng.integers(3, size=count), 1)
        texts[:, place] = (texts[:, place - 1] + jump) % 3
    return texts


def own_words(make_corpus, texts, of):
    rows = [" ".join(WORDS[code] for code in text) for text in texts]
    splits = {name: {"text": part, "label": [0] * len(part)} for name, part in (("train", rows[1:]), ("dev", rows[:1]))}
    corpus = make_corpus({**splits, "test": splits["dev"]}, []).only("train", "dev")
    return OwnWords.of(corpus, of)


@pytest.fixture(scope="module")
def own(make_corpus):
    return own_words(make_corpus, texts_of_law(3_000, np.random.default_rng(0)), channel())


@pytest.fixture(scope="module")
def law(own):
    return Trigrams.fit(own.texts, len(own.words))


@pytest.fixture(scope="module")
def prior(own, law):
    """Return every text of this length as codes, and the log of its probability under the law."""
    every = np.array([*itertools.product(range(len(own.words)), repeat=LENGTH)])
    return every, np.array([law.log_probability(text) for text in every])


def best_guesses(prior, own, publications):
    """Return the likeliest word at each place and the likeliest text, by a sum over all texts."""
    every, logs = prior
    rows, of = channel().known.log_probabilities(own.inputs), channel()
    joint = logs + sum(rows[every, [of.rows[word] for word in words]].sum(1) for words in publications)
    sums = np.array([np.bincount(column, np.exp(joint - joint.max()), minlength=4) for column in every.T])
    return sums.argmax(1).tolist(), every[joint.argmax()].tolist()


def draw_publications(count, rng, times=1):
    return [tuple([WORDS[code] for code in rng.integers(4, size=LENGTH)] for _ in range(times)) for _ in range(count)]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_with_all_words_in_the_beam_it_is_brute_force(times, is_transposed, own, law, prior):
    """An attacker who exchanges inputs and outputs of the channel is not."""
    published = draw_publications(20, np.random.default_rng(1), times)
    found = lattices(channel(MATRIX.T if is_transposed else MATRIX), own, published, 4)
    read = [(likeliest_words(one, law).tolist(), likeliest_text(one, law).tolist()) for one in found]
    expected = [best_guesses(prior, own, publications) for publications in published]
    if is_transposed:
        assert sum(one == other for one, other in zip(read, expected, strict=True)) < 10
    else:
        assert read == expected


def test_pairs_of_words_are_brute_force(own, law):
    """Every text of the lattice, with the law of pairs: shares of the texts that have a word at a place."""
    every = np.array([*itertools.product(range(4), repeat=LENGTH)])
    line = np.concatenate([np.full((len(every), 1), law.start), every, np.full((len(every), 1), law.end)], axis=1)
    logs = law.log_pairs(line[:, :-1], line[:, 1:]).sum(1)
    for lattice in lattices(channel(), own, draw_publications(5, np.random.default_rng(4)), 4):
        likelihoods = np.take_along_axis(lattice.logs, np.argsort(lattice.codes, axis=1), axis=1)
        joint = np.exp(0.5 * logs + likelihoods[np.arange(LENGTH), every].sum(1))
        expected = np.array([np.bincount(column, joint, minlength=4) for column in every.T]) / joint.sum()
        found = pair_posteriors(lattice.logs, Pairs.of(lattice.codes, law), 0.5)
        assert found == pytest.approx(np.take_along_axis(expected, lattice.codes, axis=1))


def test_pairs_keep_a_word_that_single_words_would_leave_out(own, law):
    """After red comes green, though single words make it the least likely of all."""
    logs = np.log([[0.97, 0.01, 0.01, 0.01], [0.3, 0.2, 0.3, 0.2]])
    codes = np.array([[own.codes[word] for word in WORDS]] * 2)
    lattice = Lattice(codes, logs)
    assert own.codes["green"] not in lattice.best(logs, 2).codes[1]
    assert own.codes["green"] in lattice.best(pair_posteriors(logs, Pairs.of(codes, law)), 2).codes[1]


def test_a_lattice_holds_the_likeliest_inputs_and_their_likelihoods(own):
    of = channel()
    (lattice,) = lattices(of, own, [(["red", "unk"],)], 2)
    logs = of.known.log_probabilities(own.inputs)
    for place, word in enumerate(("red", "unk")):
        joint = own.log_prior + logs[:, of.rows[word]]
        best = np.argsort(-joint)[:2]
        assert lattice.codes[place].tolist() == best.tolist()
        assert lattice.logs[place] == pytest.approx(logs[best, of.rows[word]])


def test_several_publications_give_the_same_lattice_in_parts(own, monkeypatch):
    published = draw_publications(9, np.random.default_rng(2), 3)
    whole = lattices(channel(), own, published, 3)
    monkeypatch.setattr("leakboard.attacks._reading.likely_words.PAIRS", 30)
    for one, other in zip(whole, lattices(channel(), own, published, 3), strict=True):
        assert np.array_equal(one.codes, other.codes)
        assert np.array_equal(one.logs, other.logs)


def bound_of_law(of, stays=0.1):
    """Return the share of words that the best attacker gets right who knows the law, by a sum over all texts."""
    every = np.array([*itertools.product(range(3), repeat=LENGTH)])
    steps = (every[:, 1:] - every[:, :-1]) % 3
    prior = (np.where(steps == 1, 1 - stays + stays / 3, stays / 3)).prod(1) / 3
    matrix = np.exp(of.known.log_probabilities(np.arange(3)))
    outputs = np.array([*itertools.product(range(4), repeat=LENGTH)])
    joint = prior[:, None] * matrix[every[:, None, :], outputs].prod(2)
    best = [np.stack([joint[every[:, place] == word].sum(0) for word in range(3)]).max(0) for place in range(LENGTH)]
    return np.sum(best) / LENGTH


COUNT = 1_500
ERROR = 4 * np.sqrt(0.25 / COUNT)
"""Four standard errors at most of a share of words: words of a text depend on each other."""


@pytest.fixture(scope="module")
def read(own, law):
    """Return the shares of words that attackers read right, and the bounds of the best ones."""
    of, rng = randomised(1.0), np.random.default_rng(5)
    truth = texts_of_law(COUNT, rng)
    plain = [[WORDS[code] for code in text] for text in truth]
    published = [(text,) for text in of.publish(plain, rng)]
    found = lattices(of, own, published, 4)

    def share(decode):
        words = [read_words(own, of, decode(one), text[0]) for one, text in zip(found, published, strict=True)]
        return np.mean([[WORDS.index(word) for word in text] for text in words] == truth)

    return {
        "sequence": share(lambda one: likeliest_words(one, law)),
        "single": share(lambda one: one.codes[:, 0]),
        "bound": bound_of_law(of),
        "single bound": corpus_bound(of, [word for text in plain for word in text]),
    }


class TestKnownLaw:
    """Texts of a bigram law whose best attacker is known."""

    def test_reading_the_text_is_better_than_single_words(self, read):
        assert read["bound"] > read["single bound"] + 0.08
        assert read["sequence"] > read["single bound"] + ERROR

    def test_it_stays_within_the_bound_of_the_law_and_comes_close(self, read):
        assert read["bound"] - 2 * ERROR < read["sequence"] < read["bound"] + ERROR

    def test_single_words_stay_within_theirs(self, read):
        assert read["single"] < read["single bound"] + ERROR


@pytest.mark.parametrize("decode", [likeliest_words, likeliest_text])
def test_without_weight_the_trigrams_say_nothing(decode, own, law):
    """The likeliest word is that of the channel alone."""
    for lattice in lattices(channel(), own, draw_publications(5, np.random.default_rng(3)), 4):
        assert decode(lattice, law, 0.0).tolist() == [
            int(codes[logs.argmax()]) for codes, logs in zip(lattice.codes, lattice.logs, strict=True)
        ]


def test_a_kept_word_is_read_as_itself_whether_or_not_the_attacker_knows_it(own, law):
    of = channel(unknown="kept")
    (lattice,) = lattices(of, own, [(["kelly", "red"],)], 3)
    assert read_words(own, of, likeliest_words(lattice, law), ["kelly", "red"])[0] == "kelly"


@pytest.mark.parametrize("times", [1, 3])
def test_a_word_that_would_be_kept_is_no_candidate_for_a_word_of_the_vocabulary(times, make_corpus):
    """Most words are zebra, which is published as zebra: to read every published word as itself is better than that."""
    space = WordSpace(["red", "green", TOKEN], np.eye(3))
    of = TextChannel(RandomisedResponse(epsilon=0.5).fit(space, np.random.default_rng(0)), "kept")
    text = ["zebra", "zebra", "red", "zebra", "zebra", "zebra", "green", "zebra", "zebra"]
    rows = {"text": [" ".join(text)] * 20, "label": [0] * 20}
    own = OwnWords.of(make_corpus(dict.fromkeys(("train", "dev", "test"), rows), []).only("train", "dev"), of)
    rng = np.random.default_rng(1)
    published = [*zip(*(of.publish([text] * 100, rng) for _ in range(times)), strict=True)]
    law = Trigrams.fit(own.texts, len(own.words))

    def share(words):
        return np.mean([[one == other for one, other in zip(of_text, text, strict=True)] for of_text in words])

    kept = share([one[0] for one in published])
    for decode in (lambda one: one.codes[:, 0], lambda one: likeliest_words(one, law)):
        found = zip(lattices(of, own, published, 12), published, strict=True)
        assert share([read_words(own, of, decode(one), text[0]) for one, text in found]) >= kept
    codes = np.concatenate([one.codes[one.logs > -np.inf] for one in lattices(of, own, [(["red"],) * times], 12)])
    assert {own.words[code] for code in codes} == {"red", "green", TOKEN}


def test_empty_texts_have_no_words(own, law):
    (lattice, _) = lattices(channel(), own, [([],), (["red"],)], 3)
    assert likeliest_words(lattice, law).tolist() == likeliest_text(lattice, law).tolist() == []


def test_without_a_matrix_the_attacks_do_not_apply(own):
    of = TextChannel(MultivariateLaplace(epsilon=1.0).fit(SPACE, np.random.default_rng(0)))
    with pytest.raises(NotApplicable, match="the attacker cannot compute the channel's matrix: channel: vectors of 4"):
        lattices(of, own, [(["red"],)], 2)


def sanitised(make_corpus, folder, vocabulary, texts, epsilon):
    """Return the side of a sanitiser by randomised response. ``texts`` are rows of words by split."""
    path = folder / "words.txt"
    path.write_text("".join(f"{word} {code}\n" for code, word in enumerate(vocabulary)), "utf-8")
    rng = np.random.default_rng(7)
    splits = {
        name: {"text": [" ".join(text) for text in rows], "label": rng.integers(2, size=len(rows))}
        for name, rows in texts.items()
    }
    corpus = make_corpus(splits, [])
    options = {"channel": {"randomised_response": {"epsilon": epsilon}}, "vectors": str(path)}
    victim, streams = build(Sanitiser, options, "sanitiser"), Streams(0, "made", "sanitiser", "a", "cell")
    fitted = fit(victim, corpus, streams)
    published = publish(victim, lambda: fitted, corpus, streams)
    return VictimSide(corpus, corpus, victim, lambda: fitted, published, streams)


@pytest.fixture(scope="module")
def side(make_corpus, tmp_path_factory):
    """Return the side of a sanitiser whose texts are of the same law."""
    rng = np.random.default_rng(7)
    texts = {
        name: [[WORDS[code] for code in text] for text in texts_of_law(count, rng)]
        for name, count in (("train", 900), ("dev", 50), ("test", 300))
    }
    return sanitised(make_corpus, tmp_path_factory.mktemp("words"), WORDS[:3], texts, 1.0)


@pytest.fixture(scope="module")
def side_of_topics(make_corpus, tmp_path_factory):
    """Return a sanitiser of texts whose words are all of one of eight topics of five words."""
    rng = np.random.default_rng(8)
    topics = [[f"w{topic}x{word}" for word in range(5)] for topic in range(8)]
    texts = {
        name: [rng.choice(topics[rng.integers(8)], 16).tolist() for _ in range(count)]
        for name, count in (("train", 100), ("dev", 20), ("test", 40))
    }
    return sanitised(make_corpus, tmp_path_factory.mktemp("topics"), [*itertools.chain(*topics)], texts, 3.0)


class TestAgainstASanitiser:
    """The plugins."""

    @staticmethod
    def score(attack, side):
        result = attack.threat.evaluate(attack, side)
        return {metric.name: metric.value for metric in result.metrics} | {"details": result.details}

    def test_reading_texts_gains_more_than_reading_words(self, side):
        single, whole = (self.score(attack, side) for attack in (ContextFreeBayes(), SequenceBayes()))
        assert whole["words_right"] > max(single["words_right"], single["context_free_bound"]) + 0.05
        assert whole["attack_advantage"] > 0.1
        assert "trigrams of" in whole["details"]

    def test_the_weight_is_chosen_on_texts_of_its_own(self, side):
        """Other texts of the law: the trigrams help. Texts in another order than the victim's: they do not."""
        assert "weight 0," not in self.score(SequenceBayes(), side)["details"]
        rows = [" ".join(reversed(text.split())) for text in side.auxiliary.texts("train")]
        parts = dict(side.auxiliary.splits)
        parts["train"] = parts["train"].remove_columns("text").add_column("text", rows)
        misled = replace(side, auxiliary=replace(side.auxiliary, splits=type(side.auxiliary.splits)(parts)))
        single = self.score(ContextFreeBayes(), misled)["words_right"]
        assert self.score(SequenceBayes(weight=1.0), misled)["words_right"] < single - 0.1
        assert self.score(SequenceBayes(), misled)["words_right"] > single - 0.02

    def test_pairs_choose_the_words_that_trigrams_see(self, side):
        """With two words at each place, single words leave out more of the right ones."""
        wide, narrow = (
            self.score(SequenceBayes(weight=1.0, topic=0.0, beam=2, candidates=candidates), side)["words_right"]
            for candidates in (4, 2)
        )
        assert wide > narrow + 0.02

    def test_the_topic_tells_what_single_words_do_not(self, side_of_topics, side):
        """Where all texts have one topic, it tells nothing."""

        def right(of, topic):
            return self.score(SequenceBayes(weight=0.0, topic=topic, candidates=40), of)["words_right"]

        assert right(side_of_topics, 0.9) > right(side_of_topics, 0.0) + 0.06
        assert self.score(SequenceBayes(weight=0.0), side_of_topics)["details"].endswith("topic 0.5")
        assert right(side, 0.9) == pytest.approx(right(side, 0.0), abs=0.02)

    def test_more_publications_tell_more(self, side):
        for attack in (ContextFreeBayes, SequenceBayes):
            once, often = (self.score(attack(observations=times), side)["words_right"] for times in (1, 5))
            assert often > once + 0.1

    def test_the_likeliest_text_gets_fewer_words_right_or_as_many(self, side):
        words, text = (
            self.score(SequenceBayes(decoding=kind, weight=1.0, topic=0.0), side)["words_right"]
            for kind in ("words", "text")
        )
        assert text <= words + 0.02
