"""Read the distance of a claim from the arguments of `leakboard.audit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from leakboard.errors import RequestError

if TYPE_CHECKING:
    from leakboard.privacy.auditing.distances import DistanceFunction
    from leakboard.privacy.auditing.events import Pair

DistanceName = Literal["euclidean", "l1", "angular", "words"]
"""Distances by name: of two vectors, and the number of words in which two texts differ."""
WORDS_NAME = "differing words"
"""Name of the distance ``words`` in sentences."""


@dataclass(frozen=True)
class ClaimedDistance:
    """A distance, and its name in sentences."""

    name: str
    function: DistanceFunction

    def measure(self, pair: Pair, first: Any, second: Any) -> Pair:
        """Return the pair with the distance of two inputs.

        Raises:
            RequestError: the inputs have no distance, or it is not a finite number from 0.
        """
        from leakboard.privacy.auditing.distances import measured

        try:
            return measured(pair, lambda *_: self.function(first, second))
        except (TypeError, ValueError, AttributeError) as error:
            raise RequestError(f"distance: {error} (for {pair.name})") from None


def claimed_distance(distance: object, *, of_texts: bool) -> ClaimedDistance | None:
    """Return the distance that an argument names; None: the claim has no distance.

    Raises:
        RequestError: an unknown name, or neither a name nor a function.
    """
    from leakboard.privacy.auditing.distances import DISTANCES, differing_words

    known: Mapping[str, DistanceFunction] = {**DISTANCES, **({"words": differing_words} if of_texts else {})}
    if distance is None:
        return None
    if callable(distance):
        name = getattr(distance, "__name__", "<lambda>")
        return ClaimedDistance("distance" if name == "<lambda>" else f"{name} distance", distance)
    if isinstance(distance, str) and distance in known:
        names = {"angular": "angle (radians)", "words": WORDS_NAME}
        return ClaimedDistance(names.get(distance, f"{distance} distance"), known[distance])
    allowed = f"{', '.join(known)}, a function of two inputs, or None"
    raise RequestError(f"distance: {distance!r} is not allowed: {allowed}")
