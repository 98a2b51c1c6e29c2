"""Audit of training from one run: plant canaries, train once, and tell from the table which were there.

Steinke, Nasr and Jagielski (2023): half of the canaries, by LeakBoard's coin tosses, are added to the training data.
The attack scores each by what is published, and LeakBoard turns the number of right guesses into a lower bound on
epsilon (`leakboard.privacy.auditing.one_run_curve.epsilon_bound`). Every guess counts, so one training run is enough.

A canary is one unit: a text in which two words take turns, published ones of the rarer half, each in no other canary.
Without noise they leave a trace that shadow models with and without them make plain. For a claim about pairs the text
is the two words, which is two pairs (a, b) and (b, a): a group of two, which the bound accounts for; how many pairs
there are changes with the coins by as many. A victim that claims nothing is audited all the same: its bound says what
no claim could be.

Under noise such a trace is lost: what a step adds to a word's vector is the output vector of its neighbour, which is
noise where both are rare. With ``partners`` each rare word takes turns with a frequent one, whose output vector many
texts have shaped and the attacker can estimate; so the gradients of a canary point where it looks. A canary then needs
one rare word, not two, and where words are few they serve in several canaries, each time with another partner: the
coins stay independent, which is all that the bound asks of canaries.

A low bound proves nothing: this attack failed. ``audit_largest_bound`` is the bound where every guess is right: what is
claimed beyond it, so many canaries cannot refute.
"""

import itertools
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.attacks._membership.training_data import FeatureExtractor, LikelihoodRatio, shadow_features
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable
from leakboard.interfaces import Texts
from leakboard.suite.options import Count, attack
from leakboard.threats.canaries import Canaries, CanariesView, CanaryAttack


@attack(revision=1)
class CanaryAudit(CanaryAttack):
    unit: Literal["pair", "document", "user"] | None = None
    """What a canary is; null: what the victim's claim protects, else users where there are any, else documents."""
    canaries: Annotated[int, Field(ge=10)] = 1000
    """How many are planted or not; fewer where there are not as many pairs of words."""
    partners: Annotated[int, Field(ge=0)] = 0
    """How many of the most frequent words take turns with rarer ones; 0: rare words with each other (words)."""
    repeats: Count = 20
    """How often the two words take turns in a document or user."""
    shadows: Annotated[int, Field(ge=4, multiple_of=2)] = 8
    """Shadow models that the attacker trains; each canary is in half of them."""
    ridge: Annotated[float, Field(gt=0)] = 1e-3
    """Penalty of the output vectors that the attacker makes, over the mean square of a coordinate."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    """Of the bound where the victim claims nothing; else the claim's counts."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an audit by few canaries."""
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
        ratio = LikelihoodRatio.of(*shadow_features(view.oracle, auxiliary, units, features_of, self.shadows, seed))
        return Canaries(units, lambda published: ratio(features_of(published, units)), self.delta)


def rare_pairs(ordered: list[str], canaries: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return pairs of words of the rarer half, each word in one.

    Args:
        ordered: published words, the rarest first.
        canaries: how many pairs, where there are as many.
        rng: draws who meets whom.

    Raises:
        NotApplicable: fewer than 10 can be made.
    """
    most = min(2 * canaries, len(ordered) // 2)
    if most < 20:
        raise NotApplicable(f"canary_audit: {len(ordered)} published words; 10 canaries need 40, half of them rare")
    chosen = rng.permutation(ordered[:most])
    return list(zip(chosen[::2].tolist(), chosen[1::2].tolist(), strict=False))


def pairs_with_partners(
    ordered: list[str], partners: int, canaries: int, rng: np.random.Generator
) -> list[tuple[str, str]]:
    """Return pairs of a rarer word and a partner: the rarest words once, then again with other partners.

    Args:
        ordered: published words, the rarest first.
        partners: how many of the last take turns with the others.
        canaries: how many pairs, where there are as many.
        rng: draws who meets whom.

    Raises:
        NotApplicable: fewer than 10 can be made.
    """
    rare, frequent = ordered[:-partners], ordered[-partners:]
    if len(rare) * partners < 10:
        raise NotApplicable(f"canary_audit: {len(ordered)} published words make no 10 pairs with {partners} of them")
    chosen = rng.permutation(rare[:canaries]).tolist()
    turns = itertools.product(range(partners), enumerate(chosen))
    return [(word, frequent[(i + turn) % partners]) for turn, (i, word) in itertools.islice(turns, canaries)]
