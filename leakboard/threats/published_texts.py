"""Give attackers the published words of the test texts of a victim that publishes texts."""

from __future__ import annotations

from leakboard.threats.threat import VictimSide

NO_CHANNEL = "the victim rewrites whole texts, so no rule that replaces words is known"

Releases = tuple[list[str], ...]
"""The published words of one text, once for each publication of it."""


def releases(side: VictimSide, times: int) -> list[Releases]:
    """Return the words of each publication of each test text, in the order of the test texts.

    Args:
        side: of a victim that publishes texts.
        times: number of publications.
    """
    assert side.published.texts is not None, "attacks on published texts meet only victims that publish texts"
    texts, rng = side.corpus.texts("test"), side.streams.stream("observe")
    more = [side.fitted().publish_texts(texts, rng) for _ in range(times - 1)]
    return [tuple(text.split() for text in one) for one in zip(side.published.texts, *more, strict=True)]
