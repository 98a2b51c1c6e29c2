"""The threat of sanitised words: what the attacker sees, baselines beside its score, and refusals."""

from dataclasses import fields, replace

import numpy as np
import pytest
from answers import answering, values_of

from leakboard.errors import RequestError
from leakboard.interfaces import Secret, Texts
from leakboard.pipeline.publications import fit, load_publications, publish, save_publications
from leakboard.randomness import Streams
from leakboard.suite.options import build
from leakboard.threats.sanitised_words import SanitisedWordsAttack, WordReadings
from leakboard.threats.threat import VictimSide
from leakboard.victims.sanitiser import Sanitiser

NAMES = [f"w{i}" for i in range(20)]


@pytest.fixture(scope="module")
def side(make_corpus, tmp_path_factory):
    """Return the side of a victim that keeps a word with probability e^2 / (e^2 + 20)."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text("".join(f"{name} {i} 0\n" for i, name in enumerate(NAMES)), "utf-8")

    def split(name, count):
        texts = [" ".join([*rng.choice(NAMES, 8, p=np.arange(20, 0, -1) / 210), f"only{name}"]) for _ in range(count)]
        return {"text": texts, "label": rng.integers(2, size=count), "W3": rng.integers(2, size=count)}

    splits = {name: split(name, count) for name, count in (("train", 60), ("dev", 20), ("test", 50))}
    corpus = make_corpus(splits, [Secret("W3", ("absent", "present"), "entity")])
    options = {"channel": {"randomised_response": {"epsilon": 2.0}}, "vectors": str(path)}
    victim, streams = build(Sanitiser, options, "sanitiser"), Streams(0, "made", "sanitiser", "spy", "cell")
    fitted = fit(victim, corpus, streams)
    published = publish(victim, lambda: fitted, corpus, streams)
    return VictimSide(corpus, corpus, victim, lambda: fitted, published, streams)


def echo(place=0):
    """Return an attacker who takes the published words for the true ones."""
    return answering(SanitisedWordsAttack, lambda shown: WordReadings([one[place] for one in shown], "echo"))


def evaluate(attack, side):
    return attack.threat.evaluate(attack, side)


def test_the_published_words_gain_nothing(side):
    result = evaluate(echo(), side)
    values = values_of(result)
    assert values["attack_score"] == values["words_kept"] == pytest.approx(1 - values["privacy_best_constant"])
    assert values["attack_advantage"] == 0
    assert (result.secrets, result.test_size, result.details) == (("words",), 50, "echo")
    assert values["true_epsilon"] == pytest.approx(2)
    assert values["unused_budget"] == pytest.approx(0, abs=1e-9)
    assert values["own_texts"] == 80


def test_an_approximate_matrix_has_no_computed_epsilon(side):
    fitted = side.fitted()
    approximate = type("Approximate", (type(fitted.channel.known),), {"precision": "approximate"})
    known = approximate(**{field.name: getattr(fitted.channel.known, field.name) for field in fields(approximate)})
    fitted = replace(fitted, channel=replace(fitted.channel, known=known))
    found = {metric.name: metric for metric in evaluate(echo(), replace(side, fitted=lambda: fitted)).metrics}
    for name in ("true_epsilon", "unused_budget"):
        assert found[name].value is None
        assert found[name].status == "the channel's matrix is approximate"
    assert found["context_free_bound"].value is not None
    assert found["context_free_bound"].status == "the channel's matrix is approximate"


def test_the_kept_share_is_that_of_the_channel_and_within_the_bound(side):
    """Of 9 words of a text 8 are in the vocabulary; the ninth becomes the token first."""
    values = values_of(evaluate(echo(), side))
    expected = 8 / 9 * np.exp(2) / (np.exp(2) + 20)
    assert values["words_kept"] == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 450))
    assert values["context_free_bound"] > expected


def test_an_attacker_who_knows_the_texts_names_all_words(side):
    texts = dict.fromkeys(side.corpus.texts("test"))
    order = side.streams.stream("shuffle").permutation(50)
    known = [list(texts)[row].split() for row in order]
    values = values_of(evaluate(answering(SanitisedWordsAttack, lambda shown: WordReadings(known)), side))
    assert values["attack_score"] == values["names_right"] == values["rare_right"] == 1
    assert values["attack_advantage"] == 1


def test_texts_are_shown_in_random_order_and_the_view_has_none_of_them(side):
    attack = echo()
    evaluate(attack, side)
    published = [text.split() for text in side.published.texts]
    assert [one[0] for one in attack.shown] != published
    assert sorted(one[0] for one in attack.shown) == sorted(published)
    assert set(attack.view.auxiliary.splits) == {"train", "dev"}
    assert not any("onlytest" in text for part in attack.view.auxiliary.splits.values() for text in part["text"])
    assert attack.view.channel is side.fitted().text_channel


def test_several_publications_are_drawn_anew_and_the_claim_adds_up(side):
    attack = echo(place=2)
    attack.observations = 3
    result = evaluate(attack, side)
    assert {len(one) for one in attack.shown} == {3}
    assert all(len({*map(tuple, one)}) > 1 for one in attack.shown)
    assert result.claim.epsilon == pytest.approx(6)
    assert result.claim.exact == pytest.approx(2)  # of one publication


def test_published_texts_are_those_of_the_documents_and_are_saved(side, tmp_path):
    """The mean vector of a published text is its document."""
    table = side.fitted().table
    assert np.array_equal(side.published.documents["test"], table.mean_vectors(side.published.texts))
    save_publications(side.published, tmp_path)
    loaded = load_publications(tmp_path)
    assert loaded.texts == side.published.texts
    assert loaded.claim == side.published.claim


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda shown: [one[0] for one in shown], "an attack on sanitised words returns WordReadings, not list"),
        (lambda shown: WordReadings([["a"]]), "the attack read 1 texts, 50 were published"),
        (
            lambda shown: WordReadings([one[0][1:] for one in shown]),
            "text 0: the attack read 8 words, 9 were published",
        ),
    ],
)
def test_wrong_answers_are_refused(answer, message, side):
    with pytest.raises(RequestError, match=message):
        evaluate(answering(SanitisedWordsAttack, answer), side)


def test_a_publication_that_drops_words_is_refused(side):
    texts = Texts([text.split(" ", 1)[1] for text in side.published.texts])
    broken = replace(side, published=replace(side.published, texts=texts))
    with pytest.raises(RequestError, match="a text of 9 words was published with another number of words"):
        evaluate(echo(), broken)
