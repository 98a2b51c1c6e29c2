"""Score linking: which of the candidate texts does a stored vector belong to, or to none of them?

Some stored vectors have their text among the candidates (present), the others have not (absent). A present vector is
linked if its first candidate is the right text, and if the attacker's score is above a threshold. The threshold is so
high that at most 1 % of the absent vectors reach it: these links would be false.

A share near 0 does not prove that vectors cannot be linked: only this attack failed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from leakboard.errors import RequestError
from leakboard.interfaces import Floats, Integers
from leakboard.metrics.measures import Metric, Ratio
from leakboard.metrics.rates import true_positive_rate_at

FALSE_LINKS = 0.01
"""Share of the absent vectors that may be linked to a text."""
HEADLINE = "linked_at_1_percent_false_links"
DEPTH = 10
"""Number of first candidates that the recall counts."""
ABSENT, NO_CANDIDATE = -1, -1
"""Marks instead of an index: the vector's text is not among the candidates; the attacker has no candidate."""


@dataclass(frozen=True)
class Links:
    """Candidate texts of stored vectors, the likeliest first."""

    candidates: Integers
    """Indices of the view's candidate texts, int64 (n, k); -1: no candidate."""
    scores: Floats
    """How sure the attacker is of each candidate, float32 (n, k); comparable between vectors."""
    details: str = ""


def link_metrics(links: Links, truth: Integers, candidates: int) -> list[Metric]:
    """Return the share linked at 1 % false links (headline), top-1 accuracy, and recall at 10.

    The advantage is (s - c) / (1 - c) for the headline s and the share c that links at random reach. The attacker may
    know which candidates are no test texts. So links at random are drawn from the right candidates alone. The p-value
    is that of the number of right first candidates, if each were drawn so.

    Args:
        links: one row for each stored vector.
        truth: index of the right candidate of each vector, int64 (n,); -1: its text is not among the candidates.
        candidates: number of candidate texts.

    Raises:
        RequestError: the links have a wrong shape, name a candidate that does not exist, or have scores that are not
            finite.
    """
    ranked, first, scores = _checked(links, len(truth), candidates)
    present = truth != ABSENT
    n = int(present.sum())
    right = first == truth
    # a wrong link of a present vector never counts, whatever its score
    counted = np.where(present & ~right, -np.inf, scores)
    linked = true_positive_rate_at(FALSE_LINKS, counted, present)
    chance = FALSE_LINKS / n
    found = (ranked[:, :DEPTH] == truth[:, None]).any(1)
    top, recall = (Ratio(hits[present].astype(np.float64), np.ones(n)) for hits in (right, found))
    low, value, high = linked.low, linked.value, linked.high
    gains = [None if end is None else (end - chance) / (1 - chance) for end in (low, value, high)]
    left = [None if end is None else 1 - max(end, chance) for end in (high, value, low)]
    p_value = float(scipy.stats.binom.sf(int(right[present].sum()) - 1, n, 1 / n))
    return [
        Metric("attack_score", value, low=low, high=high, n=n, status=linked.status),
        Metric("empirical_privacy", left[1], low=left[0], high=left[2], n=n),
        Metric("attack_advantage", gains[1], low=gains[0], high=gains[2], n=n),
        Metric("attack_advantage_p", p_value, n=n),
        Metric("privacy_best_constant", 1 - chance, n=n),
        Metric(HEADLINE, value, low=low, high=high, n=n, status=linked.status),
        top.metric("linked_first"),
        recall.metric(f"linked_among_{DEPTH}"),
        Metric("candidate_texts", float(candidates)),
        Metric("absent_vectors", float(len(truth) - n)),
    ]


def _checked(links: Links, vectors: int, candidates: int) -> tuple[Integers, Integers, Floats]:
    """Return all candidates, int64 (n, k), the first of each vector, int64 (n,), and its score, float64 (n,)."""
    ranked, scores = np.asarray(links.candidates), np.asarray(links.scores, np.float64)
    if ranked.ndim != 2 or ranked.shape[0] != vectors or not ranked.shape[1] or ranked.dtype.kind != "i":
        raise RequestError(f"links are {ranked.dtype} of shape {ranked.shape}, not whole numbers of ({vectors}, k)")
    if scores.shape != ranked.shape or not np.isfinite(scores).all():
        raise RequestError("scores of links are not one finite number for each candidate")
    if not NO_CANDIDATE <= ranked.min(initial=0) <= ranked.max(initial=0) < candidates:
        raise RequestError(f"links name candidates outside 0 to {candidates - 1}")
    unlinked = ranked[:, 0] == NO_CANDIDATE
    return ranked, np.where(unlinked, candidates, ranked[:, 0]), np.where(unlinked, -np.inf, scores[:, 0])
