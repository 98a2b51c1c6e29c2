"""Encode texts by a public encoder, for attackers who do not know the victim's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from leakboard.interfaces import Floats, Texts

PublicEncoder = Literal["MiniLM", "WordLlama"]
TOKENS, BATCH = 256, 64
"""Length at which MiniLM cuts longer texts (tokens); texts that it encodes at once."""


def files_of(name: PublicEncoder) -> str:
    """Identify the encoder's files by their checksums.

    Raises:
        RequestError: the encoder's package is not installed.
    """
    from leakboard.models import checkpoints, static_vectors
    from leakboard.store import file_checksum

    if name == "WordLlama":
        return " ".join(map(file_checksum, static_vectors.wordllama()))
    checkpoints.find(checkpoints.MINILM, None)
    return checkpoints.identity(checkpoints.MINILM, None)


def public_encoder(name: PublicEncoder) -> Callable[[Texts], Floats]:
    """Return a function from texts to vectors of length 1, float32 (n, d): d is 384 for MiniLM, 256 for WordLlama.

    Raises:
        RequestError: the encoder's package is not installed.
    """
    from leakboard.models import checkpoints, static_vectors
    from leakboard.models.search import normalised

    if name == "WordLlama":
        table = static_vectors.StaticVectors.read(*static_vectors.wordllama())
        return lambda texts: normalised(table.documents(texts))
    from leakboard.models.transformer import TransformerEncoder

    minilm = TransformerEncoder(checkpoints.find(checkpoints.MINILM, None), TOKENS, "mean", "auto", BATCH)
    return lambda texts: normalised(minilm.shared_documents(texts))
