"""Audit training from one run: plant canaries, train once, and guess from the published table which were planted.

Steinke, Nasr and Jagielski (2023): LeakBoard flips a coin for each canary, and adds about half of them to the training
data. The attack scores each canary by the published table. LeakBoard turns the number of right guesses into a lower
bound on epsilon (`leakboard.privacy.auditing.one_run_curve.best_one_run_bound`). Every guess counts, so one training
run is enough.

A canary is one unit: a text in which two rare words alternate. They are from the rarer half of the published words, and
each word is in only one canary. Without noise such a text leaves a trace. Shadow models that are trained with and
without the text reveal this trace. For a claim about pairs the text is the two words. They make two pairs, (a, b) and
(b, a), and the bound counts a group of two pairs. A victim without a claim is audited too: every claim below the bound
would be false.

Under noise the trace is lost. A step adds to a word's vector the output vector of the neighbouring word, and the
output vector of a rare word is mostly noise. With ``partners``, each rare word alternates with a frequent word. Many
texts have shaped the output vector of a frequent word, so the attacker can estimate it. The attacker then knows the
direction of a canary's gradients. Such a canary needs one rare word instead of two. If words are few, a rare word is in
several canaries, each time with another partner. The coins are still independent, so the bound is valid.

Many tables are sorted by how often words are in the training data. A planted canary moves its words up. The published
table, without canaries, shows where they were before, so with ``ranks`` this rise is a trace, too. Noise in vectors
does not hide it; only noise in the counts does.

A low bound proves nothing: only this attack failed. ``audit_largest_bound`` is the bound if every guess is right: this
number of canaries cannot refute a larger claim.
"""

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.attacks._membership.training_data import (
    FeatureExtractor,
    LikelihoodRatio,
    shadow_tables,
    static_table,
)
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable
from leakboard.interfaces import Texts
from leakboard.suite.options import Count, attack
from leakboard.threats.canaries import Canaries, CanariesView, CanaryAttack


@attack(revision=2)
class CanaryAudit(CanaryAttack):
    unit: Literal["pair", "document", "user"] | None = None
    """Kind of a canary; null: the unit of the victim's claim, else users if the corpus names them, else documents."""
    canaries: Annotated[int, Field(ge=10)] = 1000
    """Number of canaries, planted or not; fewer if there are fewer pairs of words."""
    partners: Annotated[int, Field(ge=0)] = 0
    """Number of frequent words that alternate with rare words; 0: rare words alternate with each other."""
    repeats: Count = 20
    """Number of times that the two words alternate in a document or user."""
    shadows: Annotated[int, Field(ge=4, multiple_of=2)] = 8
    """Number of shadow models; each canary is in half of them."""
    ridge: Annotated[float, Field(gt=0)] = 1e-3
    """Penalty in the attacker's estimate of output vectors, divided by the mean square of a coordinate."""
    ranks: bool = False
    """Whether the score also uses how far a canary's words rise in the table; one more shadow model is trained."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    """Delta of the bound for a victim without a claim; a claim has a delta of its own."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an audit with few canaries."""
        return cls(canaries=40)

    def fit(self, view: CanariesView, seed: int) -> Canaries:
        """Choose the canaries, and train shadow models with and without them.

        Raises:
            NotApplicable: too few words are published.
        """
        auxiliary, rng = view.auxiliary, np.random.default_rng(seed)
        counts = Counter(word for text in auxiliary.texts("train") for word in words(text))
        ordered = sorted(view.words, key=lambda word: (counts[word], word))
        if self.partners:
            pairs = pairs_with_partners(ordered, self.partners, self.canaries, rng)
        else:
            pairs = rare_pairs(ordered, self.canaries, rng)
        times = 1 if view.unit == "pair" else self.repeats
        units = [Texts([" ".join([first, second] * times)]) for first, second in pairs]
        features_of = FeatureExtractor(auxiliary.texts("train"), 1, self.ridge)
        tables, included = shadow_tables(view.oracle, auxiliary, units, self.shadows, seed)
        of_shadow = features_of
        if self.ranks:
            without_canaries = static_table(view.oracle.train_shadow(seed), rng)
            of_shadow = replace(features_of, earlier=without_canaries.words)
            features_of = replace(features_of, earlier=view.words)
        ratio = LikelihoodRatio.of(np.stack([of_shadow(table, units) for table in tables]), included)
        return Canaries(units, lambda published: ratio(features_of(published, units)), self.delta)


def rare_pairs(ordered: list[str], canaries: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return pairs of words from the rarer half, each word in one pair.

    Args:
        ordered: published words, the rarest first.
        canaries: largest number of pairs.
        rng: draws the words of each pair.

    Raises:
        NotApplicable: there are fewer than 10 pairs.
    """
    count = min(2 * canaries, len(ordered) // 2)
    if count < 20:
        raise NotApplicable(f"canary_audit: {len(ordered)} published words; 10 canaries need 40, half of them rare")
    chosen = rng.permutation(ordered[:count])
    return list(zip(chosen[::2].tolist(), chosen[1::2].tolist(), strict=False))


def pairs_with_partners(
    ordered: list[str], partners: int, canaries: int, rng: np.random.Generator
) -> list[tuple[str, str]]:
    """Return pairs of a rare word and a partner: every rare word once, then again with other partners.

    Args:
        ordered: published words, the rarest first.
        partners: number of words at the end that are partners.
        canaries: largest number of pairs.
        rng: orders the rare words.

    Raises:
        NotApplicable: there are fewer than 10 pairs.
    """
    rare, frequent = ordered[:-partners], ordered[-partners:]
    if len(rare) * partners < 10:
        raise NotApplicable(f"canary_audit: {len(ordered)} published words make no 10 pairs with {partners} of them")
    chosen = rng.permutation(rare[:canaries]).tolist()
    turns = itertools.product(range(partners), enumerate(chosen))
    return [(word, frequent[(i + turn) % partners]) for turn, (i, word) in itertools.islice(turns, canaries)]
