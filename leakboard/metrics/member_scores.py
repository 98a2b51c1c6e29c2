"""Score membership inference: which of the candidate texts was the victim trained on?

The headline is the area under the ROC curve: the probability that a member scores above a non-member, with ties counted
half (Mann and Whitney 1947). The true positive rate at a low false positive rate is next to it (Carlini et al. 2022,
Membership inference attacks from first principles). An attack that is sure of a few members is a leak, and an average
over all candidates hides it.

An area of one half does not prove privacy: only this attack failed. If members and non-members differ in topic or in
date, an attack can tell them apart without any leak.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.errors import RequestError
from leakboard.interfaces import Integers
from leakboard.metrics.areas import CHANCE_AREA, Area, Ranking
from leakboard.metrics.measures import Metric
from leakboard.metrics.rates import true_positive_rate_at

PARTS = 5
"""Number of parts of the candidates; a classifier of texts scores each part after it learned from the others."""
TARGETS = (0.001, 0.01)
"""False positive rates at which the true positive rate is reported."""


def membership_metrics(scores: NDArray[Any], members: NDArray[Any], units: Integers | None = None) -> list[Metric]:
    """Return the metrics of an attack's scores.

    - ``attack_score`` and ``attack_auc``: the area under the ROC curve; ``attack_advantage``: 2 area - 1.
    - ``empirical_privacy``: 1 - the area, or 1 - `CHANCE_AREA` if the area is smaller.
    - ``privacy_best_constant``: 1 - `CHANCE_AREA`.
    - ``tpr@fpr=...``: the share of members found at `TARGETS`.

    Args:
        scores: float64 (n,), higher for a likelier member.
        members: bool or 0 and 1 (n,), the truth.
        units: int64 (n,), the independent unit of each candidate (its author); None: the candidate itself.

    Raises:
        RequestError: scores are not finite or of a wrong shape, or all candidates are of one kind.
    """
    scores, members = _checked(scores, members, units)
    n = len(scores)
    area = Area.of([Ranking(scores, members)], units)
    low, high = area.interval()
    left, least, most = (1 - max(end, CHANCE_AREA) for end in (area.value, high, low))  # in this order NaN stays NaN
    return [
        Metric("attack_score", area.value, low=low, high=high, n=n),
        Metric("empirical_privacy", left, low=least, high=most, n=n),
        Metric("privacy_best_constant", 1 - CHANCE_AREA, n=n),
        *area.metrics(),
        *(true_positive_rate_at(target, scores, members, units) for target in TARGETS),
    ]


def text_only_area(texts: Sequence[str], members: NDArray[Any], units: Integers) -> Metric:
    """Return the area that a classifier of the texts alone reaches, ``presence_without_store``.

    Members and non-members may differ in topic. The classifier is a logistic regression on TF-IDF. It scores each of
    five parts after it has learned from the others; no author is in two parts.

    Args:
        texts: candidate texts.
        members: bool (n,), the truth.
        units: int64 (n,), the author of each text.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    classifier = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=1000))
    try:
        folds = StratifiedGroupKFold(min(PARTS, len(np.unique(units))), shuffle=True, random_state=0)
        scores = cross_val_predict(
            classifier, np.array(texts, dtype=object), members, groups=units, cv=folds, method="decision_function"
        )
    except ValueError as error:  # no words, or too few authors
        return Metric("presence_without_store", None, n=len(texts), status=f"no classifier of the texts: {error}")
    area = Area.of([Ranking(scores, members)], units)
    low, high = area.interval()
    return Metric("presence_without_store", area.value, low=low, high=high, n=len(texts))


def _checked(
    scores: NDArray[Any], members: NDArray[Any], units: Integers | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values, truth = np.asarray(scores, np.float64), np.asarray(members)
    if truth.ndim != 1 or not np.isin(truth, (0, 1)).all():
        raise RequestError(f"members of shape {truth.shape} are not one bool for each candidate")
    if values.shape != truth.shape:
        raise RequestError(f"scores of membership have shape {values.shape}, not {truth.shape}")
    if units is not None and np.shape(units) != truth.shape:
        raise RequestError(f"units of membership have shape {np.shape(units)}, not {truth.shape}")
    if not np.isfinite(values).all():
        raise RequestError("scores of membership are not finite")
    inside = np.count_nonzero(truth)
    if inside in (0, len(truth)):
        raise RequestError(f"{inside} of {len(truth)} candidates are members: an attack needs members and others")
    return values, truth.astype(bool)
