"""The generated reviews: exact posteriors, readable choices, and a leak that does what it says."""

import itertools
import math
import re
from functools import cache

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.feature_extraction.text import CountVectorizer

from leakboard.data.corpora import SPLITS, posterior
from leakboard.datasets._generated_reviews import model as model
from leakboard.datasets._generated_reviews import word_lists as words
from leakboard.datasets.generated_reviews import SECRETS, GeneratedReviews

LONERS = 4000
"""Number of users with one text each: independent texts have binomial errors."""


@cache
def loners(leak):
    return GeneratedReviews(users=LONERS, texts_per_user=1, leak=leak).load()


def gold(corpus, column):
    return np.concatenate([corpus.column(split, column) for split in SPLITS])


def test_only_the_scoring_sees_the_posteriors():
    corpus = GeneratedReviews(users=20).load()
    assert posterior(corpus, "train", "gender") is not None
    visible = corpus.only("train", "dev")
    assert not [name for part in visible.splits.values() for name in part.column_names if ":" in name]
    assert [secret.name for secret in visible.secrets] == [secret.name for secret in corpus.secrets]


def posterior_of(corpus, secret):
    return np.concatenate([posterior(corpus, split, secret) for split in SPLITS])


def texts_of(corpus):
    return [text for split in SPLITS for text in corpus.texts(split)]


def prior(secret):
    q = words.ENTITIES.get(secret.name)
    return [0.5, 0.5] if q is None else [1 - q, q]


def enumerate_sentence(sentence, name=""):
    choices = [range(len(sentence.templates)), *(range(len(model.words_of(slot))) for slot in sentence.slots)]
    return [model.write(sentence, template, chosen, name) for template, *chosen in itertools.product(*choices)]


# A second, slow implementation: it reads the words back from the text and applies the docstring's formulas.


def read(sentence, text, name=""):
    """Return the words of a sentence's slots; None: it is of another kind."""
    for template in sentence.templates:
        pattern = re.escape(template).replace(r"\{name\}", name)
        for slot in sentence.slots:
            one_of = "|".join(map(re.escape, model.words_of(slot)))
            pattern = pattern.replace(rf"\{{{slot}\}}", f"(?P<{slot}>{one_of})")
        if match := re.fullmatch(pattern, text, re.IGNORECASE):
            lower = {w.lower(): w for slot in sentence.slots for w in model.words_of(slot)}
            return [(slot, lower[word.lower()]) for slot, word in match.groupdict().items()]
    return None


def read_text(text):
    """Return all (slot, word) of the fixed sentences, and the set of persons mentioned."""
    sentences = re.findall(r"[^ ].*?[.!]\)?(?= |$)", text)
    choices, mentioned = [], set()
    for sentence in words.OPENING:
        choices += read(sentence, sentences.pop(0))
    for name in words.ENTITIES:
        if read(words.PERSON, sentences[0], name):
            mentioned.add(name)
            sentences.pop(0)
    for sentence in words.CLOSING:
        choices += read(sentence, sentences.pop(0))
    assert sentences == []
    return choices, mentioned


def word_probability(slot, word, state, leak):
    gender, age, sentiment, topic = state
    if slot in words.PREFERRED:
        shown, listed = words.PREFERRED[slot]
        base = [1 / math.sqrt(1 + i // 4) for i in range(len(listed))]
        tilt = [
            (4 if "gender" in shown and i % 2 == gender else 1) * (4 if "age" in shown and i // 2 % 2 == age else 1)
            for i in range(len(listed))
        ]
        group = [b * r for b, r in zip(base, tilt, strict=True)]
        i = listed.index(word)
        return (1 - leak) * base[i] / sum(base) + leak * group[i] / sum(group)
    if slot in words.SENTIMENTAL:
        groups, opposite = words.SENTIMENTAL[slot], 0.05
        shares = {words.SENTIMENTS[sentiment]: 0.8, words.ANY: 0.15}
    else:
        groups, opposite = words.TOPICAL[slot], 0.0
        shares = {words.TOPICS[topic]: 0.7, words.ANY: 0.3}
    group = next(name for name, members in groups.items() if word in members)
    return shares.get(group, opposite) / len(groups[group])


def brute_force(text, leak):
    choices, mentioned = read_text(text)
    totals = {"gender": [0.0, 0.0], "age": [0.0, 0.0]}
    for state in itertools.product(range(2), range(2), range(2), range(5)):
        likelihood = math.prod(word_probability(slot, word, state, leak) for slot, word in choices)
        totals["gender"][state[0]] += likelihood
        totals["age"][state[1]] += likelihood
    for name, q in words.ENTITIES.items():
        if_absent, if_present = (1 - leak) * q, q + leak * (1 - q)
        if name not in mentioned:
            if_absent, if_present = 1 - if_absent, 1 - if_present
        totals[name] = [(1 - q) * if_absent, q * if_present]
    return {secret: np.array(total) / sum(total) for secret, total in totals.items()}


@pytest.mark.parametrize(
    "leak", [pytest.param(0.0, marks=pytest.mark.slow), 0.3, pytest.param(0.7, marks=pytest.mark.slow), 1.0]
)
def test_the_posterior_is_bayes_rule_on_the_text(leak):
    corpus = GeneratedReviews(users=10, texts_per_user=6, leak=leak).load()
    for split in SPLITS:
        expected = [brute_force(text, leak) for text in corpus.texts(split)]
        for secret in SECRETS:
            np.testing.assert_allclose(
                posterior(corpus, split, secret.name), [e[secret.name] for e in expected], atol=1e-12
            )


@pytest.mark.slow
def test_choices_can_be_read_back_from_the_text():
    for sentence, name in [(s, "") for s in words.OPENING + words.CLOSING] + [
        (words.PERSON, n) for n in words.ENTITIES
    ]:
        written = enumerate_sentence(sentence, name)
        assert len(set(written)) == len(written)
        assert all(re.fullmatch(r"\(?[^.!()]+[.!]\)?", text) for text in written)
        assert all([n for n in words.ENTITIES if n in text] == ([name] if name else []) for text in written)


def test_every_template_shows_every_slot_once():
    for sentence in model.SENTENCES:
        for template in sentence.templates:
            assert sorted(set(re.findall(r"{(\w+)}", template)) - {"name"}) == sorted(sentence.slots)
            assert template.count("{") == len(sentence.slots) + (sentence is words.PERSON)


def test_words_are_distinct_and_preferences_balanced():
    for slot in [*words.PREFERRED, *words.SENTIMENTAL, *words.TOPICAL, *words.FREE]:
        listed = [word.lower() for word in model.words_of(slot)]
        assert len(set(listed)) == len(listed)
        assert slot not in words.PREFERRED or len(listed) % 4 == 0
        np.testing.assert_allclose(model.word_table(slot, 0.7).sum(axis=1), 1)


@pytest.mark.slow
def test_same_options_give_the_same_corpus_and_leak_changes_words_only():
    first, again = GeneratedReviews(users=40).load(), GeneratedReviews(users=40).load()
    reseeded, leakier = GeneratedReviews(users=40, seed=1).load(), GeneratedReviews(users=40, leak=1.0).load()
    for split in SPLITS:
        assert first.splits[split].to_dict() == again.splits[split].to_dict()
        assert first.texts(split) != reseeded.texts(split)
        assert first.texts(split) != leakier.texts(split)
        for column in ("label", "gender", "age", "Selma Varga", "row"):
            assert first.splits[split][column] == leakier.splits[split][column]


@pytest.mark.slow
def test_without_leak_the_posterior_is_the_prior_for_every_text():
    corpus = loners(0.0)
    for secret in SECRETS:
        exact = posterior_of(corpus, secret.name)
        np.testing.assert_allclose(exact, np.broadcast_to(prior(secret), exact.shape), atol=1e-12)


def word_secret_z_scores(leak, secret):
    """Return the z score of each common word's correlation with a secret: standard normal if independent."""
    corpus = loners(leak)
    bag = CountVectorizer(binary=True, min_df=40).fit_transform(texts_of(corpus)).toarray().astype(float)
    bag = bag[:, bag.std(axis=0) > 0]
    bag = (bag - bag.mean(axis=0)) / bag.std(axis=0)
    y = gold(corpus, secret)
    return np.sqrt(LONERS) * bag.T @ ((y - y.mean()) / y.std()) / LONERS


@pytest.mark.parametrize("secret", [s.name for s in SECRETS])
def test_words_show_a_secret_exactly_if_there_is_a_leak(secret):
    assert np.abs(word_secret_z_scores(0.0, secret)).max() < 5  # 7 secrets x 500 words: exceeded by chance 1 in 500
    assert np.abs(word_secret_z_scores(0.7, secret)).max() > 8


@pytest.mark.slow
def test_at_full_leak_persons_are_mentioned_exactly_if_present():
    corpus = loners(1.0)
    for name in words.ENTITIES:
        present = gold(corpus, name)
        assert present.tolist() == [name in text for text in texts_of(corpus)]
        assert posterior_of(corpus, name).tolist() == [[1 - p, p] for p in present]


@pytest.mark.parametrize("leak", [0.0, 0.5, 1.0])
def test_the_share_of_mentions_is_the_prevalence_at_any_leak(leak):
    for name, q in words.ENTITIES.items():
        share = np.mean([name in text for text in texts_of(loners(leak))])
        assert abs(share - q) < 4 * math.sqrt(q * (1 - q) / LONERS)


@pytest.mark.parametrize("leak", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("secret", [s.name for s in SECRETS])
def test_the_posterior_is_calibrated(leak, secret):
    p, y = posterior_of(loners(leak), secret), gold(loners(leak), secret)
    confidence, correct = p.max(axis=1), p.argmax(axis=1) == y
    assert abs((confidence - correct).sum()) <= 4 * math.sqrt((confidence * (1 - confidence)).sum())
    for bin_ in range(10):
        inside = p[np.minimum((p[:, 1] * 10).astype(int), 9) == bin_, 1]
        hits = y[np.minimum((p[:, 1] * 10).astype(int), 9) == bin_]
        assert abs((inside - hits).sum()) <= 4 * math.sqrt((inside * (1 - inside)).sum()) + 1e-9


@pytest.mark.parametrize("secret", ["gender", "age"])
def test_more_leak_means_a_better_best_attacker(secret):
    best = [posterior_of(loners(leak), secret).max(axis=1).mean() for leak in (0.0, 0.5, 0.7, 1.0)]
    assert best[0] == pytest.approx(0.5)
    assert best == sorted(best)
    assert 0.95 < best[-1] < 0.99


def test_the_task_is_decodable_but_not_trivial():
    rng = np.random.default_rng(0)
    state = rng.integers(len(model.STATES["gender"]), size=LONERS)
    choices = model.draw(state, np.zeros((LONERS, 5), dtype=np.int64), 0.7, rng)
    given_text = model.state_posterior(choices, 0.7)
    for task in ("sentiment", "topic"):
        p = np.stack([given_text[:, model.STATES[task] == v].sum(axis=1) for v in range(model.SHAPE[task])], axis=1)
        assert 0.93 < np.mean(p.argmax(axis=1) == model.STATES[task][state]) < 0.995


@pytest.mark.parametrize("task", ["sentiment", "topic"])
def test_the_corpus_is_what_the_options_say(task):
    corpus = GeneratedReviews(task=task).load()
    assert corpus.values("label") == {"sentiment": words.SENTIMENTS, "topic": words.TOPICS}[task]
    users = [set(corpus.splits[split]["user"]) for split in SPLITS]
    assert [len(u) for u in users] == [195, 45, 60]
    assert len(set.union(*users)) == 300
    assert sorted(row for split in SPLITS for row in corpus.splits[split]["row"]) == list(range(1500))
    counted = ("dev_copies", "test_copies", "dev_users", "test_users", "empty_texts", "conflicting_labels")
    assert corpus.checks == dict.fromkeys(counted, 0)
    assert [s.name for s in corpus.secrets if s.kind == "entity"] == list(words.ENTITIES)
    for split in SPLITS:
        assert set(corpus.column(split, "label")) == set(range(len(corpus.values("label"))))
        assert all(set(corpus.column(split, secret.name)) == {0, 1} for secret in corpus.secrets)


def test_gender_and_age_belong_to_the_user():
    part = GeneratedReviews(users=50).load().splits["train"].to_pandas()
    assert (part.groupby("user")[["gender", "age"]].nunique() == 1).all(axis=None)
    assert (part.groupby("user").size() == 5).all()


def test_texts_are_short_varied_reviews():
    texts = texts_of(loners(0.7))
    lengths = [len(text.split()) for text in texts]
    assert min(lengths) >= 30
    assert 40 < np.median(lengths) < 60
    assert len(set(texts)) == LONERS
    assert len(CountVectorizer().fit(texts).vocabulary_) > 400


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("leak", 1.5),
        ("leak", -0.1),
        ("users", 0),
        ("texts_per_user", 0),
        ("task", ""),
        ("test_share", 1.0),
        ("seed", -1),
    ],
)
def test_options_out_of_range_are_refused(option, value):
    with pytest.raises(ValidationError):
        GeneratedReviews(**{option: value})


def test_identifiers_stand_before_the_same_texts():
    plain, named = (texts_of(GeneratedReviews(users=200, identifiers=shown).load()) for shown in (False, True))
    pattern = re.compile(r"From (\w+) (\w+), ([1-9]\d{0,2}) (\w+) Street, (0\d{3} \d{3} \d{3}): (.*)")
    found = [pattern.fullmatch(text).groups() for text in named]
    assert [rest for *_, rest in found] == plain
    for column, names in zip(zip(*found, strict=True), (words.FIRST_NAMES, words.LAST_NAMES), strict=False):
        assert set(column) == set(names)
    assert len({phone for *_, phone, _ in found}) == len(found)
