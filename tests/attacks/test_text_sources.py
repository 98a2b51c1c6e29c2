"""Test Bayes' rule with own texts as sources of published words: by hand, and on planted secrets."""

import numpy as np
import pytest
from planted_channel import MATRIX, SPACE, WORDS, Planted, channel

from leakboard.attacks._portfolio.sources import fit_sources, log_likelihoods
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Secret, Texts
from leakboard.privacy.channels.texts import TextChannel
from leakboard.threats.published import Publications
from leakboard.threats.secrets import KnownTexts, SecretsView

GENDER, BOB = Secret("gender", ("f", "m"), "attribute"), Secret("Bob", ("absent", "present"), "entity")


def test_likelihoods_are_those_by_hand():
    """A word outside the vocabulary is replaced like the token; the token's row is the last."""
    (logs,) = log_likelihoods(channel(), ["red blue", "new"], [["green", "green", "red"], []], [0.25])
    common = {"green": (0.7 + 0.1 + 0.1) / 3, "red": (0.1 + 0.7 + 0.2) / 3}
    first = {"green": (0.7 + 0.1) / 2, "red": (0.1 + 0.7) / 2}
    second = {"green": 0.1, "red": 0.2}
    expected = [
        sum(times * np.log(0.75 * of[word] + 0.25 * common[word]) for word, times in (("green", 2), ("red", 1)))
        for of in (first, second)
    ]
    assert logs[0] == pytest.approx(expected, rel=1e-5)
    assert logs[1].tolist() == [0, 0]


def test_a_word_that_is_kept_is_only_itself():
    (logs,) = log_likelihoods(channel(unknown="kept"), ["new red", "red red"], [["new"], ["red"]], [0.5])
    assert logs[0] == pytest.approx(np.log([0.5 * 0.5 + 0.5 * 0.25, 0.5 * 0.25]), rel=1e-5)
    assert logs[1] == pytest.approx(np.log([0.5 * 0.05 + 0.5 * 0.075, 0.5 * 0.1 + 0.5 * 0.075]), rel=1e-5)


def view_of(of, secret, rng, sizes=(300, 100)):
    """Return a view in which texts of value 1 are mostly red, and those of value 0 mostly blue."""
    parts = []
    for n in sizes:
        values = rng.integers(0, 2, n)
        parts.append(KnownTexts(Texts(written(values, rng)), np.zeros((n, 2), np.float32), {secret.name: values}))
    return SecretsView((secret,), parts[0], parts[1], None, None, channel=of)


def written(values, rng):
    shares = np.array([[0.1, 0.2, 0.7], [0.7, 0.2, 0.1]])
    return [" ".join(rng.choice(WORDS[:3], 12, p=shares[value])) for value in values]


@pytest.mark.parametrize("matrix", [MATRIX, np.full((4, 4), 0.25)], ids=["shows words", "hides all"])
@pytest.mark.parametrize(("attack", "secret"), [(AttributeInference, GENDER), (EntityPresence, BOB)])
def test_what_the_channel_shows_is_found_and_nothing_else(attack, secret, matrix):
    rng = np.random.default_rng(0)
    view = view_of(channel(matrix), secret, rng)
    values = rng.integers(0, 2, 400)
    published = [(text,) for text in view.channel.publish([text.split() for text in written(values, rng)], rng)]
    guesses = attack(portfolio="sources").fit(view, 0)(published)
    found = guesses.scores[secret.name].argmax(1)
    right = np.mean(found == values)
    if matrix is MATRIX:
        assert right > 0.85
        assert np.mean(guesses.on_dev[secret.name].argmax(1) == view.dev.values[secret.name]) > 0.8
    else:
        assert abs(right - 0.5) < 4.5 * 0.5 / 400**0.5
        assert np.ptp(guesses.scores[secret.name], axis=0).max() < 1e-5
    assert guesses.details.startswith("400 sources; smoothing")


def test_more_publications_show_more():
    rng = np.random.default_rng(1)
    view, values = view_of(channel(), GENDER, rng), rng.integers(0, 2, 600)
    plain = [text.split()[:3] for text in written(values, rng)]
    copies = [view.channel.publish(plain, rng) for _ in range(5)]
    once, often = (
        np.mean(fit_sources(view, m, 0)([*zip(*copies[:m], strict=True)]).scores["gender"].argmax(1) == values)
        for m in (1, 5)
    )
    assert often > once + 0.03


def test_a_channel_without_a_matrix_is_not_attacked():
    class Unknown(Planted):
        def log_probabilities(self, rows):
            raise RequestError("too large")

        def sample(self, indices, rng):
            return indices

    of = TextChannel(Unknown(SPACE, MATRIX))
    with pytest.raises(NotApplicable, match="cannot compute the channel's matrix: too large"):
        fit_sources(view_of(of, GENDER, np.random.default_rng(0)), 1, 0)


def test_rewritten_texts_have_no_channel_to_invert():
    view = view_of(None, GENDER, np.random.default_rng(0), sizes=(3, 3))
    with pytest.raises(NotApplicable, match="the victim rewrites whole texts"):
        AttributeInference(portfolio="sources").fit(view, 0)


def test_only_victims_that_publish_texts_are_attacked(make_corpus):
    attack = AttributeInference(portfolio="sources")
    corpus = make_corpus({name: {"text": ["red"], "gender": [0]} for name in ("train", "dev", "test")}, [GENDER])
    vectors = Publications({"test": np.zeros((1, 2), np.float32)}, None, None, None)
    assert attack.threat.why_not_applicable(attack, corpus, vectors) == "the victim publishes no texts"
    assert attack.threat.why_not_applicable(AttributeInference(), corpus, vectors) == ""
