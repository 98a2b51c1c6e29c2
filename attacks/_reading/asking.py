"""Choose how an attacker encodes texts that it made, so that their vectors compare with the published ones."""

from collections.abc import Callable

import numpy as np

from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats, Texts
from leakboard.models.search import normalised
from leakboard.threats.texts import TextsView

SAMPLE = 20
"""Number of texts on which ways to encode are compared."""
ROUNDING = 1e-4


def questions(view: TextsView) -> tuple[Callable[[Texts], Floats] | None, str]:
    """Return how to encode texts, or None, and the reason in words.

    A thief knows the public encoder, and its known texts have vectors in that space. Any other attacker may ask the
    victim, whose answers have fresh noise. If vectors without the protection are as near to such answers as these are
    to each other, the attacker computes these: noise and rounding then disturb the comparison once, not twice.
    """
    known = view.train.texts[:SAMPLE]
    sample = Texts([" ".join(reversed(text.split())) for text in known])  # new texts, in no split
    try:
        public = view.oracle.unprotected(sample)
    except (NotApplicable, RequestError) as error:
        if view.known_encoder:
            return None, str(error)
        public = None
    if view.known_encoder:
        return view.oracle.unprotected, "the public encoder"
    try:
        first, second = (view.oracle.encode(sample) for _ in range(2))
    except (NotApplicable, RequestError) as error:
        return None, str(error)
    if public is not None and public.shape == first.shape:
        without, with_protection = (_cosine(first, other) for other in (public, second))
        if without > with_protection - ROUNDING:
            return view.oracle.unprotected, "the encoder without the protection"
    return view.oracle.encode, "the victim"


def _cosine(first: Floats, second: Floats) -> float:
    return float(np.mean((normalised(first) * normalised(second)).sum(1)))
