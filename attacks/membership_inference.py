"""Membership inference: was this user's (document's, pair's) text among those that a word table was trained on?

The attacker holds the published table, the text in question, texts of its own, and the victim's recipe. Two scores:

- ``loss``: the loss of skip-gram on the text under the attacker's own model of the recipe minus that under the
  published table (the difference calibrates for texts that are easy anyway; Watson et al. 2022).
- ``likelihood_ratio``: shadow models of the recipe are trained with and without each text, and tell how likely its
  loss and the norms of its words are in either case (LiRA, online; Carlini et al. 2022).

Candidates are as many units of train as of test, which the victim never saw, drawn by the same rule on both sides; the
attacker's own texts hold none of them, nor any other text of a candidate user (of a document's author it may
have others). Pairs are neighbouring words that occur once in both splits together.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from leakboard.attacks._membership.training_data import FeatureExtractor, LikelihoodRatio, shadow_features, table
from leakboard.suite.options import Count, attack
from leakboard.threats.membership import MembershipAttack, MembershipScorer, MembershipView

Even = Annotated[int, Field(ge=2, multiple_of=2)]


@attack(revision=1)
class MembershipInference(MembershipAttack):
    unit: Literal["pair", "document", "user"] | None = None
    """What a candidate is; null: what the victim's claim protects, else users where there are any, else documents."""
    candidates: Even = 4000
    """How many candidates there are at most, half of them members."""
    score: Literal["loss", "likelihood_ratio"] = "loss"
    """The difference of losses, or a likelihood ratio with shadow models."""
    shadows: Annotated[int, Field(ge=4, multiple_of=2)] = 8
    """Shadow models of the likelihood ratio; each unit is in half of them."""
    window: Count = 1
    """Distance of the pairs whose loss is taken (words)."""
    ridge: Annotated[float, Field(gt=0)] = 1e-3
    """Penalty of the output vectors that the attacker makes, over the mean square of a coordinate."""

    def fit(self, view: MembershipView, seed: int) -> MembershipScorer:
        """Train the attacker's own models."""
        auxiliary = view.auxiliary
        features_of = FeatureExtractor(auxiliary.texts("train"), self.window, self.ridge)
        if self.score == "loss":
            reference = features_of(
                table(view.oracle.train_shadow(seed, private=False), np.random.default_rng(seed)), view.candidates
            )
            return lambda published: reference[:, 0] - features_of(published, view.candidates)[:, 0]
        ratio = LikelihoodRatio.of(
            *shadow_features(view.oracle, auxiliary, view.candidates, features_of, self.shadows, seed)
        )
        return lambda published: ratio(features_of(published, view.candidates))
