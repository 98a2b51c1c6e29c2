"""List released sanitisers with a witness each: two words and an output whose probabilities show whether a claim holds.

Each case has eight words on a line, or in a plane. So every probability is a sum or one integral, and can be measured
in seconds. The third argument of each `Case` is the channel of `leakboard.privacy.channels` that has the code's rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakboard.privacy.channels.channel import FittedChannel
from leakboard.privacy.channels.clusant import CluSanT
from leakboard.privacy.channels.custext import CusText, CusTextAsInPyPantera
from leakboard.privacy.channels.diffractor import OneDiffractor
from leakboard.privacy.channels.noisy_vectors import (
    MahalanobisAsInMLDP,
    MahalanobisAsInPyPantera,
    MultivariateLaplace,
    Vickrey,
    VickreyAsInMLDP,
)
from leakboard.privacy.channels.rantext import RANTEXT
from leakboard.privacy.channels.santext import SanText, SanTextPlus
from leakboard.privacy.channels.tem import TEMAsInMLDP, TEMAsInPyPantera
from leakboard.privacy.channels.truncated_gumbel import FittedTruncatedGumbel, extremes_of, noise_scale
from leakboard.privacy.channels.unknown_words import with_unknown_words
from leakboard.privacy.channels.words import WordSpace

WORDS = {"ale": 0.0, "tea": 1.0, "rum": 2.0, "gin": 3.5, "milk": 5.0, "soda": 8.0, "wine": 9.0, "port": 12.0}
"""Words and their places on a line."""
UNKNOWN = "kelly"
"""A word outside the vocabulary."""
SPACE = WordSpace([*WORDS], np.array([*WORDS.values()])[:, None])
HIGHER = ("rum", "milk", "soda")
"""Words at the height 20.5 of the plane; the others are at 20."""
PLANE = WordSpace([*WORDS], np.array([(place, 20.5 if word in HIGHER else 20.0) for word, place in WORDS.items()]))


@dataclass(frozen=True)
class Case:
    """A mechanism of a released package, and a witness."""

    package: str
    """Name and version, or repository and commit."""
    mechanism: str
    channel: FittedChannel
    likelier: str
    other: str
    output: str
    code: str
    """The line that does it."""
    program: tuple[str, ...] = ()
    """Arguments of ``_released_program.py`` before the file of words; empty: the release is no package."""
    options: tuple[str, ...] = ()
    """Options of the mechanism, as ``name=value``."""
    processes: int | None = None
    """Number of fresh processes that replace one word each; None: one process replaces all."""

    @property
    def space(self) -> WordSpace:
        """The words that the mechanism knows, with their vectors."""
        return PLANE if self.channel.space.vectors.shape[1] == 2 else SPACE

    @property
    def chances(self) -> tuple[float, float]:
        """P(output | likelier) and P(output | other)."""
        rows = [self.channel.space.words.index(word) for word in (self.likelier, self.other)]
        logs = self.channel.log_probabilities(np.array(rows))[:, self.channel.space.words.index(self.output)]
        return math.exp(logs[0]), math.exp(logs[1])

    @property
    def bound(self) -> float:
        """The largest log-ratio of this pair that the claim allows (nats)."""
        rows = [self.channel.space.words.index(word) for word in (self.likelier, self.other)]
        claim = self.channel.claim
        return claim.additive + claim.epsilon * float(self.channel.distances(*np.array(rows)[:, None])[0, 0])

    @property
    def verdict(self) -> str:
        """Whether the witness violates the claim; a claim holds if it is proved for the code's rule."""
        one, other = self.chances
        if self.likelier == UNKNOWN:  # papers name no rule, so there is no claim
            return "shows an unknown word"
        ratio = math.log(one / other) if other else math.inf
        if ratio > self.bound * (1 + 1e-9):
            return "violated"
        return "holds" if self.channel.claim.is_proved else "not refuted"

    def row(self, counted: str = "") -> str:
        """Return a row of the table of all releases."""
        one, other = (f"{chance:.6g}" for chance in self.chances)
        words = f"`{self.output}` of `{self.likelier}`, `{self.other}`"
        bound = "none" if self.likelier == UNKNOWN else f"{self.bound:.3g}"
        cells = [self.package, self.mechanism, bound, words, f"{one}, {other}", counted, self.verdict, f"`{self.code}`"]
        return f"| {' | '.join(cells)} |"


def _fitted(recipe: Any, space: WordSpace = SPACE) -> FittedChannel:
    channel: FittedChannel = recipe.fit(space, np.random.default_rng(0))
    return channel


def _kept(recipe: Any) -> FittedChannel:
    return with_unknown_words(_fitted(recipe), [UNKNOWN], 0, "kept")


def _gumbel(epsilon: float) -> FittedChannel:
    least, largest = extremes_of(SPACE, 0)
    return FittedTruncatedGumbel(SPACE, epsilon, noise_scale(epsilon, len(SPACE), least, largest), largest)


MLDP, PANTERA, DIFFRACTOR = "mldp-text 0.1.2", "pypantera 1.0.2", "dp-diffractor 0.2.1"
SANTEXT, CUSTEXT, CLUSANT = "xiangyue9607/SanText 9c35f6e", "sai4july/CusText 4a3ced8", "AwonSomeSauce/CluSanT 07c73be"
INFERDPT = "mengtong0110/InferDPT 4adf4af"

CASES = (
    Case(
        MLDP,
        "TEM, epsilon 4",
        _fitted(TEMAsInMLDP(epsilon=4.0)),
        "wine",
        "soda",
        "gin",
        "mechanisms.py:305",
        ("mldp-text", "tem", "4"),
    ),
    Case(
        MLDP,
        "Vickrey, epsilon 1",
        _fitted(VickreyAsInMLDP(epsilon=1.0, squared=False)),
        "wine",
        "soda",
        "port",
        "mechanisms.py:247",
        ("mldp-text", "vickrey", "1"),
    ),
    Case(
        MLDP,
        "Mahalanobis, epsilon 0.5, in a plane",
        _fitted(MahalanobisAsInMLDP(epsilon=0.5), PLANE),
        "gin",
        "wine",
        "ale",
        "mechanisms.py:343",
        ("mldp-text", "mahalanobis", "0.5"),
    ),
    Case(
        MLDP,
        "truncated Gumbel, epsilon 12",
        _gumbel(12.0),
        "soda",
        "milk",
        "port",
        "mechanisms.py:171",
        ("mldp-text", "truncated_gumbel", "12"),
        ("min_inter_dist=1", "max_inter_dist=12"),
    ),
    Case(
        MLDP,
        "multivariate Laplace, epsilon 1",
        _fitted(MultivariateLaplace(epsilon=1.0)),
        "ale",
        "tea",
        "ale",
        "mechanisms.py:53",
        ("mldp-text", "multivariate_calibrated", "1"),
    ),
    Case(
        MLDP,
        "multivariate Laplace, epsilon 1, an unknown word",
        _kept(MultivariateLaplace(epsilon=1.0)),
        UNKNOWN,
        "ale",
        UNKNOWN,
        "mechanisms.py:96",
        ("mldp-text", "multivariate_calibrated", "1"),
    ),
    Case(
        PANTERA,
        "TEM, epsilon 4",
        _fitted(TEMAsInPyPantera(epsilon=4.0)),
        "tea",
        "ale",
        "milk",
        "tem.py:125",
        ("pypantera", "TEM", "4"),
        ("beta=0.001",),
    ),
    Case(
        PANTERA,
        "CusText, epsilon 2, sets of 3",
        _fitted(CusTextAsInPyPantera(epsilon=2.0, size=3)),
        "ale",
        "rum",
        "ale",
        "custext.py:84",
        ("pypantera", "CusText", "2"),
        ("k=3", "distance=euclidean"),
    ),
    Case(
        PANTERA,
        "SanText, epsilon 1",
        _fitted(SanText(epsilon=1.0)),
        "ale",
        "tea",
        "ale",
        "santext.py:90",
        ("pypantera", "SanText", "1"),
    ),
    Case(
        PANTERA,
        "Mahalanobis, epsilon 0.2, lam 1, in a plane",
        _fitted(MahalanobisAsInPyPantera(epsilon=0.2), PLANE),
        "gin",
        "tea",
        "tea",
        "mahalanobis.py:85",
        ("pypantera", "Mahalanobis", "0.2"),
        ("lam=1",),
    ),
    Case(
        PANTERA,
        "Vickrey, epsilon 1, t 0.25",
        _fitted(Vickrey(epsilon=1.0, second=0.25)),
        "ale",
        "tea",
        "ale",
        "vickrey.py:95",
        ("pypantera", "VickreyCMP", "1"),
        ("t=0.25",),
    ),
    Case(
        DIFFRACTOR,
        "geometric, epsilon 1, first word of a process",
        _fitted(OneDiffractor(epsilon=1.0, public_seed=42)),
        "ale",
        "tea",
        "ale",
        "core.py:20",
        ("dp-diffractor", "geometric", "1"),
        processes=5,
    ),
    Case(
        DIFFRACTOR,
        "TEM, epsilon 1, first word of a process",
        _fitted(OneDiffractor(epsilon=1.0, public_seed=42, method="tem")),
        "gin",
        "milk",
        "gin",
        "core.py:20",
        ("dp-diffractor", "TEM", "1"),
        processes=5,
    ),
    Case(
        DIFFRACTOR,
        "TEM, epsilon 1, threshold 2, no seed",
        _fitted(OneDiffractor(epsilon=1.0, method="tem", threshold=2)),
        "ale",
        "tea",
        "ale",
        "core.py:134",
        ("dp-diffractor", "TEM", "1"),
        ("seed=none", "gamma=2"),
    ),
    Case(
        SANTEXT,
        "SanText+, epsilon 1, p 0.3, half of the words sensitive",
        _fitted(SanTextPlus(epsilon=1.0, sensitive=0.5)),
        "port",
        "ale",
        "port",
        "SanText.py:63",
    ),
    Case(
        SANTEXT,
        "SanText, epsilon 1, an unknown word",
        with_unknown_words(_fitted(SanText(epsilon=1.0)), [UNKNOWN], 0, "uniform"),
        UNKNOWN,
        "ale",
        UNKNOWN,
        "SanText.py:73",
    ),
    Case(
        CUSTEXT,
        "CusText, epsilon 2, an unknown word",
        _kept(CusText(epsilon=2.0, size=3)),
        UNKNOWN,
        "ale",
        UNKNOWN,
        "CusText/sst2/utils.py:266",
    ),
    Case(
        CLUSANT,
        "standard, epsilon 1",
        _fitted(CluSanT(epsilon=1.0, clusters=3)),
        "ale",
        "tea",
        "ale",
        "src/clusant.py:96",
    ),
    Case(
        INFERDPT,
        "RANTEXT, epsilon 1",
        _fitted(RANTEXT(epsilon=1.0)),
        "port",
        "ale",
        "port",
        "func.py:169",
    ),
    Case(
        INFERDPT,
        "RANTEXT, epsilon 6",
        _fitted(RANTEXT(epsilon=6.0)),
        "port",
        "ale",
        "port",
        "func.py:138",
    ),
)
"""Released mechanisms. A claim that holds has the pair of neighbours with the largest ratio."""
