"""State what the thief of a user's vector store knows of its encoder.

A thief encodes texts by a victim of LeakBoard, or has what another encoder gives for the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leakboard.errors import RequestError, plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Encoder = str | Mapping[str, Any] | Callable[[list[str]], Any]
"""A victim's name, a name with options, or a function that returns numbers (n, e) for n texts."""
ENCODER = "encoder(texts)"
"""Name of a function's answer in messages."""


def check_encoder(encoder: Any, has_texts: bool, has_secrets: bool) -> None:
    """Refuse an encoder of another kind, one without texts, and neither texts nor secrets.

    Raises:
        RequestError: one line names the argument, and what is allowed.
    """
    if encoder is None:
        if not (has_secrets or has_texts):
            allowed = "texts=, to read texts from vectors, and encoder= besides, to link stored vectors"
            raise RequestError(f"secrets: there are none to guess; allowed without them: {allowed}")
        return
    if not (isinstance(encoder, str | Mapping) or callable(encoder)):
        allowed = "a victim's name, a name with options, or a function of texts"
        raise RequestError(f"encoder: {plain(repr(encoder), 200)} is not allowed: {allowed}")
    if not has_texts:
        raise RequestError("encoder: it has no texts to encode; allowed: an encoder together with texts")


def encode(encoder: Callable[[list[str]], Any], texts: Sequence[str]) -> NDArray[np.float32]:
    """Return what a user's function gives for the texts, float32 (n, e).

    Raises:
        RequestError: it is not a finite vector for each text.
    """
    from leakboard.api.inputs import matrix

    return matrix(ENCODER, encoder(list(texts)), len(texts))
