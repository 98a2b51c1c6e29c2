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
Encode = Callable[[Texts], Floats]


def questions(view: TextsView) -> tuple[Encode | None, str]:
    """Return how to encode texts, and who answers; or None, and the reason.

    | the attacker | encodes by |
    |---|---|
    | is a thief, whose known texts have vectors in the public encoder's space | the public encoder |
    | may ask the victim, and its answers are as near to vectors before the protection as to each other | the encoder |
    | may ask the victim, for instance under a secret key | the victim |
    | may not ask the victim, but each known text is nearest to its own published vector | the encoder |

    Vectors before the protection are better, since noise and rounding then disturb a comparison once, not twice.
    """
    known = Texts(view.train.texts[:SAMPLE])
    sample = Texts([" ".join(reversed(text.split())) for text in known])  # new texts, in no split
    public = _answer(view.oracle.unprotected, sample)
    if view.known_encoder:
        return (None, public) if isinstance(public, str) else (view.oracle.unprotected, "the public encoder")
    before = (view.oracle.unprotected, "the encoder without the protection")
    first, second = (_answer(view.oracle.encode, sample) for _ in range(2))
    if isinstance(first, str) or isinstance(second, str):
        is_public = not isinstance(public, str) and _agree(view.oracle.unprotected(known), view.train.vectors[:SAMPLE])
        return before if is_public else (None, str(first))
    if not isinstance(public, str) and public.shape == first.shape:
        without, with_protection = (_cosines(first, other).diagonal().mean() for other in (public, second))
        if without > with_protection - ROUNDING:
            return before
    return view.oracle.encode, "the victim"


def _answer(encode: Encode, texts: Texts) -> Floats | str:
    """Return vectors, float32 (n, d), or why there are none."""
    try:
        return encode(texts)
    except (NotApplicable, RequestError) as error:
        return str(error)


def _agree(vectors: Floats, published: Floats) -> bool:
    """Return whether most texts are nearest to their own published vectors."""
    if vectors.shape != published.shape:
        return False
    return bool(np.mean(_cosines(vectors, published).argmax(1) == np.arange(len(vectors))) > 0.5)


def _cosines(first: Floats, second: Floats) -> Floats:
    """Return all cosines, float32 (n, m)."""
    found: Floats = normalised(first) @ normalised(second).T
    return found
