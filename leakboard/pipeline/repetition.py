"""Publish a few texts again, and find faults of a victim that would make its numbers wrong in silence.

- Two publications with claimed noise are equal. Then the noise is no secret.
- The vectors do not belong to their texts: a victim that sorts its texts, to encode those of one length together, must
  restore their order. If it forgets to, every attack fails, which looks like perfect privacy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from leakboard.claims import ReleaseClaim
from leakboard.interfaces import FittedVictim, Floats, Texts, Victim
from leakboard.randomness import Streams

REPEATED = 100
"""Largest number of texts that are published again with claimed noise."""
REORDERED = 16
"""Largest number of texts that are published again in another order."""
NEAR = 0.1
"""Vectors are the same if they differ by this share of the texts' standard deviation: encoders round."""
PERMUTATIONS = 999
NO_MATCH = 0.01
"""P-value above which vectors match no better than by chance."""
SURE = 0.002
"""P-value below which vectors surely match."""


def find_faults(victim: Victim, load: Callable[[], FittedVictim], texts: Texts, streams: Streams) -> tuple[str, ...]:
    """Return the names of the promises that a victim breaks: ``fresh_noise``, ``order_kept``.

    Args:
        victim: the victim's recipe; it publishes documents or words.
        load: returns the fitted victim, loaded anew at each call.
        texts: the test texts.
        streams: random streams of the victim.
    """
    has_noise = isinstance(load().claim, ReleaseClaim)
    few = texts.take(range(min(REPEATED, len(texts))))

    def publish(texts: Texts, name: str) -> Floats:
        fitted, rng = load(), streams.stream(name)
        if "documents" in victim.publishes:
            return fitted.publish_documents(texts, rng)
        return fitted.publish_words(texts, rng).vectors

    broken = []
    if has_noise:
        first, second = publish(few, "publish again"), publish(few, "publish once more")
        if len(np.unique(first, axis=0)) > 1 and np.array_equal(first, second):
            broken.append("fresh_noise")
    if not broken and "documents" in victim.publishes and victim.encodes_texts:
        distinct = few.distinct()
        chosen = distinct.take(range(min(REORDERED, len(distinct))))
        if mixes_up(publish, chosen, streams.stream("order of texts")):
            broken.append("order_kept")
    return tuple(broken)


def mixes_up(publish: Callable[[Texts, str], Floats], texts: Texts, rng: np.random.Generator) -> bool:
    """Return whether vectors do not belong to their texts: the same texts in another order have other vectors.

    - Without randomness each text must have the same vector again.
    - With randomness, vectors must not surely match by place while they match by text no better than by chance.

    Only the first texts are tried, so a victim that mixes up larger batches alone is not found.

    Args:
        publish: publishes texts, float32 (n, d), with a random stream of a name.
        texts: distinct texts.
        rng: draws the other order, and the permutations of the test.
    """
    order = rng.permutation(len(texts))
    first, second = publish(texts, "publish in order"), publish(texts.take(order.tolist()), "publish in another order")
    if len(np.unique(first, axis=0)) < 2 or are_near(first[order], second):
        return False
    if are_near(first, publish(texts, "publish in order again")):
        return True
    by_text, by_place = _match_p_value(first[order], second, rng), _match_p_value(first, second, rng)
    return by_text > NO_MATCH and by_place <= SURE


def are_near(first: Floats, second: Floats) -> bool:
    """Return whether two publications of the same texts, float32 (n, d), are the same but for rounding."""
    return bool(np.abs(first - second).mean() <= NEAR * first.std(0).mean())


def _match_p_value(first: Floats, second: Floats, rng: np.random.Generator) -> float:
    """Return the share of permutations under which the vectors are as near to each other as they are in order."""
    distances = scipy.spatial.distance.cdist(first, second)
    rows = np.arange(len(first))
    drawn = [distances[rows, rng.permutation(rows)].mean() for _ in range(PERMUTATIONS)]
    return float((1 + np.sum(np.array(drawn) <= distances[rows, rows].mean() + 1e-12)) / (1 + PERMUTATIONS))
