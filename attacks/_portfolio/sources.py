"""Guess secrets from published words by Bayes' rule, with the attacker's own texts as possible sources.

Let s be an own text, x its words, and P(y | x) the channel. A random word of s is published as y with the probability
P(y | s) = mean over x of P(y | x). Let P(y) be the same mean over the words of all own texts. Then a published text
y_1 ... y_n has the score

    L(s) = sum over i of ln((1 - smoothing) P(y_i | s) + smoothing P(y_i)).

The weight of a source is proportional to exp(temper L(s)). The guess is the weighted share of each value among the
sources. Smoothing is for words of the private text that no own text has together. The temper is below 1 because a text
resembles an own text only in part. Both are chosen on own dev texts that the attacker publishes itself.

Nearest neighbours of mean vectors know less: a mean loses which words were published.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._portfolio.members import Scores, shifted
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats, Secret
from leakboard.privacy.channels.channel import ROWS
from leakboard.privacy.channels.texts import TextChannel
from leakboard.threats.published_texts import NO_CHANNEL, Releases
from leakboard.threats.secrets import KnownTexts, SecretGuesses, SecretsView

if TYPE_CHECKING:
    from scipy import sparse

SMOOTHING = (0.3, 0.5, 0.7)
TEMPERS = (0.3, 0.5, 0.75, 1.0)
"""Options that are tried on dev."""
UNSEEN = 0.02
"""Share of each value's base rate in its probability."""
LEAST = 1e-30
"""Smallest probability of a published word."""
SOURCES = 1_000
"""Number of sources whose words are computed at once."""

Logs = NDArray[np.float32]


@dataclass(frozen=True)
class FittedSources:
    """The attacker's own texts, the channel, and the options that dev chose."""

    channel: TextChannel
    secrets: tuple[Secret, ...]
    known: KnownTexts
    smoothing: float
    temper: float
    on_dev: Scores
    """Scores of the dev texts, without the offset, by the texts of train alone."""
    offset: float = 0.0
    """Added to the score of a secret's last value; the last value of an entity is "present"."""

    def __call__(self, texts: Sequence[Releases]) -> SecretGuesses:
        """Guess the secrets of published texts; several publications of a text are independent given its source."""
        flat = [[word for release in text for word in release] for text in texts]
        logs = log_likelihoods(self.channel, self.known.texts, flat, (self.smoothing,))[0]
        scores = _scores(logs, self.temper, self.known, self.secrets)
        details = (
            f"{len(self.known.texts):,} sources; smoothing {self.smoothing:g}, temper {self.temper:g} chosen on dev"
        )
        return SecretGuesses(shifted(scores, self.offset), details, shifted(self.on_dev, self.offset))


def fit_sources(view: SecretsView, observations: int, seed: int) -> FittedSources:
    """Publish the dev texts by the channel, and choose smoothing and temper by the likelihood of their secrets.

    Raises:
        NotApplicable: there is no channel, or it has no matrix that can be computed.
    """
    if view.channel is None:
        raise NotApplicable(NO_CHANNEL)
    channel, rng = view.channel, np.random.default_rng(seed)
    plain = [words(text) for text in view.dev.texts]
    copies = [channel.publish(plain, rng) for _ in range(observations)]
    flat = [[word for copy in of_text for word in copy] for of_text in zip(*copies, strict=True)]
    found = dict(zip(SMOOTHING, log_likelihoods(channel, view.train.texts, flat, SMOOTHING), strict=True))

    def scored(options: tuple[float, float]) -> Scores:
        return _scores(found[options[0]], options[1], view.train, view.secrets)

    def likelihood(options: tuple[float, float]) -> float:
        rows = np.arange(len(flat))
        return sum(float(values[rows, view.dev.values[name]].sum()) for name, values in scored(options).items())

    best = max(product(SMOOTHING, TEMPERS), key=likelihood)
    every = KnownTexts.joined([view.train, view.dev])
    return FittedSources(channel, view.secrets, every, *best, scored(best))


def log_likelihoods(
    channel: TextChannel, sources: Sequence[str], published: Sequence[Sequence[str]], smoothing: Sequence[float]
) -> list[Logs]:
    """Return L of the module for each published text and source, float32 (texts, sources), for each smoothing.

    Args:
        channel: replaces words.
        sources: texts as the attacker has them.
        published: words of each published text.
        smoothing: shares of all own words in the probability of a word.

    Raises:
        NotApplicable: the channel has no matrix that can be computed.
    """
    from scipy import sparse

    seen = {word: code for code, word in enumerate(dict.fromkeys(word for text in published for word in text))}
    given = _counts([[seen[word] for word in text] for text in published], len(seen))
    own = [words(text) for text in sources]
    codes = {word: code for code, word in enumerate(dict.fromkeys(word for text in own for word in text))}
    bags = _counts([[codes[word] for word in text] for text in own], len(codes))
    law = _law(channel, list(codes), seen)
    lengths = np.maximum(np.asarray(bags.sum(1)).ravel(), 1)
    shares = sparse.diags_array(1 / lengths).astype(np.float32) @ bags
    common = np.asarray(bags.sum(0)).ravel() / max(1, int(lengths.sum())) @ law
    logs = [np.empty((len(published), len(own)), np.float32) for _ in smoothing]
    for start in range(0, len(own), SOURCES):
        block = slice(start, start + SOURCES)
        of_source = shares[block] @ law
        for part, share in zip(logs, smoothing, strict=True):
            part[:, block] = given @ np.log((1 - share) * of_source + share * common + LEAST).T
    return logs


def _counts(texts: Sequence[Sequence[int]], size: int) -> "sparse.csr_array":
    """Return how often each text has each code, float32 (texts, size)."""
    from scipy import sparse

    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    columns = np.array([code for text in texts for code in text], np.int64)
    return sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(texts), size))


def _law(channel: TextChannel, plain: Sequence[str], seen: Mapping[str, int]) -> Floats:
    """Return P(published word | word), float32 (words, published words)."""
    rows = channel.rows
    outputs = [(rows[word], code) for word, code in seen.items() if word in rows]
    law = np.zeros((len(plain), len(seen)), np.float32)
    if outputs:
        columns, places = map(np.array, zip(*outputs, strict=True))
        for start in range(0, len(plain), ROWS):
            block = slice(start, start + ROWS)
            try:
                law[block, places] = np.exp(channel.known.log_probabilities(channel.inputs(plain[block]))[:, columns])
            except RequestError as error:
                raise NotApplicable(f"the attacker cannot compute the channel's matrix: {error}") from None
    if channel.unknown == "kept":
        for row, word in enumerate(plain):
            if word not in rows:
                law[row] = 0
                if word in seen:
                    law[row, seen[word]] = 1
    return law


def _scores(logs: Logs, temper: float, known: KnownTexts, secrets: Sequence[Secret]) -> Scores:
    """Return the log-probability of each value of each secret, float32 (texts, values)."""
    from scipy.special import softmax

    weights = softmax(temper * logs.astype(np.float64), axis=1)
    scores = {}
    for secret in secrets:
        is_value = np.eye(len(secret.values))[known.values[secret.name]]
        shares = (1 - UNSEEN) * weights @ is_value + UNSEEN * is_value.mean(0)
        scores[secret.name] = np.log(np.maximum(shares, LEAST)).astype(np.float32)
    return scores
