"""Draw the choices of generated reviews, write them as texts, and compute posteriors by Bayes' rule.

`generated_reviews` states the formulas. A *state* is a combination of the hidden gender, age, sentiment and topic. A
*slot* is a place in a sentence for one of several words; the choice of the sentence's template counts as a slot too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from leakboard.datasets._generated_reviews.word_lists import (
    AGES,
    ANY,
    CLOSING,
    ENTITIES,
    FIRST_NAMES,
    FREE,
    GENDERS,
    LAST_NAMES,
    OPENING,
    PERSON,
    PREFERRED,
    SENTIMENTAL,
    SENTIMENTS,
    STREETS,
    TOPICAL,
    TOPICS,
    Sentence,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PREFERENCE = 4.0
"""At leak 1, a group uses its preferred words this many times as often as equally common other words."""
SENTIMENT_SHARES = {"own": 0.8, ANY: 0.15, "opposite": 0.05}
TOPIC_SHARES = {"own": 0.7, ANY: 0.3}

SHAPE = {"gender": len(GENDERS), "age": len(AGES), "sentiment": len(SENTIMENTS), "topic": len(TOPICS)}
"""Number of values of each hidden variable; all combinations are equally likely."""
STATES: dict[str, Integers] = dict(zip(SHAPE, np.indices(tuple(SHAPE.values())).reshape(len(SHAPE), -1), strict=True))
"""The value of each hidden variable in each of the states, int64 (states,)."""
SENTENCES = OPENING + (PERSON,) * len(ENTITIES) + CLOSING


@cache
def words_of(slot: str) -> tuple[str, ...]:
    """Return the possible words of a slot, in the order of the columns of its table."""
    if slot in PREFERRED:
        return PREFERRED[slot][1]
    groups = SENTIMENTAL.get(slot) or TOPICAL.get(slot)
    return tuple(word for words in groups.values() for word in words) if groups else FREE[slot]


def word_table(slot: str, leak: float) -> Floats:
    """Return P(word | state), float64 (states, words); each row sums to 1."""
    if slot in PREFERRED:
        shown, words = PREFERRED[slot]
        return _preferences(shown, words, leak)
    if slot in SENTIMENTAL:
        return _groups(SENTIMENTAL[slot], SENTIMENTS, STATES["sentiment"], SENTIMENT_SHARES)
    if slot in TOPICAL:
        return _groups(TOPICAL[slot], TOPICS, STATES["topic"], TOPIC_SHARES)
    return _uniform(len(FREE[slot]))


def _uniform(n: int) -> Floats:
    return np.full((len(STATES["gender"]), n), 1 / n)


def _preferences(shown: Sequence[str], words: Sequence[str], leak: float) -> Floats:
    """Return the table of a slot whose words show these attributes."""
    rank = np.arange(len(words))
    prefers = {"gender": rank % 2, "age": rank // 2 % 2}
    base = 1 / np.sqrt(1 + rank // 4)
    tilt = np.prod([np.where(prefers[v] == STATES[v][:, None], PREFERENCE, 1) for v in shown], axis=0)
    group = base * tilt
    return (1 - leak) * base / base.sum() + leak * group / group.sum(axis=1, keepdims=True)


def _groups(
    groups: dict[str, tuple[str, ...]], names: Sequence[str], classes: Integers, shares: dict[str, float]
) -> Floats:
    """Return the table of a slot with a group of words for each class, given the class of each state."""
    columns = []
    for name, words in groups.items():
        if name == ANY:
            share = np.full(len(classes), shares[ANY])
        else:
            share = np.where(classes == names.index(name), shares["own"], shares.get("opposite", 0))
        columns.append(np.repeat(share[:, None] / len(words), len(words), axis=1))
    return np.hstack(columns)


@dataclass(frozen=True)
class Choices:
    """All choices that determine the texts."""

    slots: list[list[Integers]]
    """For each of `SENTENCES`: the template, then each slot, int64 (n,). A person's count only if it is mentioned."""
    mentioned: NDArray[np.bool_]
    """bool (n, persons)."""


def _tables(sentence: Sentence, leak: float) -> list[Floats]:
    return [_uniform(len(sentence.templates)), *(word_table(slot, leak) for slot in sentence.slots)]


def mention_probability(leak: float) -> Floats:
    """Return P(mentioned | presence), float64 (persons, 2): absent, present."""
    q = np.array(list(ENTITIES.values()))
    return np.stack([(1 - leak) * q, q + leak * (1 - q)], axis=1)


def draw(state: Integers, present: Integers, leak: float, rng: np.random.Generator) -> Choices:
    """Draw the choices of texts with these states, int64 (n,), and presences, 0/1 (n, persons)."""

    def draw_words(table: Floats) -> Integers:
        cumulative = np.cumsum(table, axis=1)
        cumulative /= cumulative[:, -1:]
        return (cumulative[state] <= rng.random(len(state))[:, None]).sum(axis=1)

    mentioned = rng.random(present.shape) < mention_probability(leak)[np.arange(present.shape[1]), present]
    return Choices([[draw_words(table) for table in _tables(sentence, leak)] for sentence in SENTENCES], mentioned)


def write(sentence: Sentence, template: int, words: Sequence[int], name: str = "") -> str:
    """Write one sentence with these choices."""
    filled = {slot: words_of(slot)[i] for slot, i in zip(sentence.slots, words, strict=True)}
    text = sentence.templates[template].format(name=name, **filled)
    start = 1 if text.startswith("(") else 0
    return text[:start] + text[start].upper() + text[start + 1 :]


def write_texts(choices: Choices) -> list[str]:
    """Write the texts; different choices give different texts."""
    n, persons = choices.mentioned.shape
    names = [None] * len(OPENING) + list(ENTITIES) + [None] * len(CLOSING)
    shown = np.ones((len(SENTENCES), n), dtype=bool)
    shown[len(OPENING) : len(OPENING) + persons] = choices.mentioned.T
    texts: list[list[str]] = [[] for _ in range(n)]
    for sentence, name, slots, visible in zip(SENTENCES, names, choices.slots, shown, strict=True):
        for i, (template, *words) in zip(np.flatnonzero(visible), np.stack(slots, axis=1)[visible], strict=True):
            texts[i].append(write(sentence, template, words, name or ""))
    return [" ".join(sentences) for sentences in texts]


def state_posterior(choices: Choices, leak: float) -> Floats:
    """Return P(state | text), float64 (n, states).

    The persons' sentences are left out: given the mentioned persons, their words depend on nothing hidden.
    """
    log_likelihood = np.zeros((len(choices.mentioned), len(STATES["gender"])))
    for sentence, slots in zip(SENTENCES, choices.slots, strict=True):
        if sentence is PERSON:
            continue
        for table, choice in zip(_tables(sentence, leak), slots, strict=True):
            with np.errstate(divide="ignore"):  # a word of another topic has probability 0
                log_likelihood += np.log(table).T[choice]
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    return likelihood / likelihood.sum(axis=1, keepdims=True)


def posteriors(choices: Choices, leak: float) -> dict[str, Floats]:
    """Return P(value | text) of every secret, float64 (n, values)."""
    states = state_posterior(choices, leak)
    result = {
        secret: np.stack([states[:, STATES[secret] == value].sum(axis=1) for value in range(SHAPE[secret])], axis=1)
        for secret in ("gender", "age")
    }
    for j, (name, q) in enumerate(ENTITIES.items()):
        mention = mention_probability(leak)[j]
        likelihood = np.where(choices.mentioned[:, [j]], mention, 1 - mention)
        joint = likelihood * np.array([1 - q, q])
        result[name] = joint / joint.sum(axis=1, keepdims=True)
    return result


def write_identifiers(count: int, rng: np.random.Generator) -> list[str]:
    """Return a person's name, address and telephone number for each text, all independent and uniform.

    Nine words: ``From Mira Ito, 112 Elm Street, 0741 903 358:``. A number of the address is from 1 to 199. Each part of
    the telephone number has 1,000 values. A first or last name is in 1 % of the texts, a street in 1.7 %, a number in
    at most 0.7 %.
    """
    first, last, street = (rng.choice(names, count) for names in (FIRST_NAMES, LAST_NAMES, STREETS))
    houses, parts = rng.integers(1, 200, count), rng.integers(0, 1000, (count, 3))
    phones = [f"0{area:03d} {middle:03d} {end:03d}" for area, middle, end in parts]
    columns = zip(first, last, houses, street, phones, strict=True)
    return [f"From {name} {surname}, {house} {road} Street, {phone}:" for name, surname, house, road, phone in columns]
