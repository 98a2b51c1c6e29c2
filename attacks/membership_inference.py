"""Infer membership: whether a user's (document's, pair's) text was in the training data of a word table.

The attacker has the published table, the candidate text, auxiliary texts, and the victim's recipe. It computes one of
three scores:

- ``loss``: the loss of skip-gram on the text under a model that the attacker trains, minus the loss under the published
  table. So texts that are easy for every model get no high score (Watson et al. 2022).
- ``likelihood_ratio``: the attacker trains shadow models with and without each text. The models show how likely the
  text's loss and the norms of its words are in both cases (LiRA, online; Carlini et al. 2022).
- ``learned``: a classifier learns from such shadow models what a text that was trained on looks like (Shokri et al.
  2017, "Membership inference attacks against machine learning models"; see `leakboard.attacks._membership.learned`).

Many tables are sorted by how often words are in the training data. With ``ranks``, the log likelihood ratio of these
counts is added to the second or third score (`leakboard.attacks._membership.word_counts`).

Half of the candidates are units of train. The other half are units of test: the victim never saw them. One rule draws
both halves. The auxiliary texts contain no candidate, and no other text of a candidate user. They may contain other
texts by the author of a candidate document. A pair is two neighbouring words that occur as neighbours only once in
train and test together.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from leakboard.attacks._membership.learned import LearnedScore, UnitPairs
from leakboard.attacks._membership.training_data import (
    FeatureExtractor,
    LikelihoodRatio,
    shadow_tables,
    static_table,
)
from leakboard.attacks._membership.word_counts import CountRatio
from leakboard.errors import RequestError
from leakboard.suite.options import Count, attack
from leakboard.threats.membership import MembershipAttack, MembershipScorer, MembershipView

Even = Annotated[int, Field(ge=2, multiple_of=2)]


@attack(revision=1)
class MembershipInference(MembershipAttack):
    unit: Literal["pair", "document", "user"] | None = None
    """Kind of a candidate; null: the unit of the victim's claim, else user if the corpus names users, else document."""
    candidates: Even = 4000
    """Largest number of candidates, half of them members."""
    score: Literal["loss", "likelihood_ratio", "learned"] = "loss"
    """loss: difference of two losses; likelihood_ratio: ratio from shadow models; learned: a classifier on them."""
    shadows: Annotated[int, Field(ge=4, multiple_of=2)] = 8
    """Number of shadow models; each candidate is in half of them. A loss needs one model without candidates."""
    window: Count = 1
    """Largest distance between the words of a pair (words); ``learned`` looks at 1, 2 and 5."""
    ridge: Annotated[float, Field(gt=0)] = 1e-3
    """Penalty in the attacker's estimate of output vectors, divided by the mean square of a coordinate."""
    ranks: bool = False
    """Whether the score also uses word counts, which the order of the table reveals; not with ``loss``."""

    def __post_init__(self) -> None:
        """Refuse ranks with a loss.

        Raises:
            RequestError: the score is ``loss``, whose shadow model was trained on no candidate.
        """
        if self.ranks and self.score == "loss":
            raise RequestError("ranks: true is not allowed with score: loss; allowed: likelihood_ratio, learned")

    def fit(self, view: MembershipView, seed: int) -> MembershipScorer:
        """Train the attacker's models."""
        texts, units = view.auxiliary.texts("train"), view.candidates
        features_of = FeatureExtractor(texts, self.window, self.ridge)
        if self.score == "loss":
            shadow = view.oracle.train_shadow(seed, private=False)
            reference = features_of(static_table(shadow, np.random.default_rng(seed)), units)
            return lambda published: reference[:, 0] - features_of(published, units)[:, 0]
        tables, included = shadow_tables(view.oracle, view.auxiliary, units, self.shadows, seed)
        scores: list[MembershipScorer] = []
        if self.score == "learned":
            unit_pairs = UnitPairs.of(texts, units, self.ridge)
            scores.append(LearnedScore(unit_pairs, [unit_pairs.values(table) for table in tables], included))
        else:
            ratio = LikelihoodRatio.of(np.stack([features_of(table, units) for table in tables]), included)
            scores.append(lambda published: ratio(features_of(published, units)))
        if self.ranks:
            scores.append(CountRatio.of(texts, units, tables, included))
        return lambda published: np.sum([score(published) for score in scores], axis=0)
