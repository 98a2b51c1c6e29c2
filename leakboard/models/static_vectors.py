"""Encode a text by the mean of static vectors of its tokens: a public table and its tokenizer, without a network.

The default table is WordLlama's (https://github.com/dleemiller/WordLlama, MIT): 32,000 tokens of Llama 2, 256
dimensions, from the package ``wordllama``. Only its two files are read; its code is never imported. As there, special
tokens are left out, and texts are read in full.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Floats

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "wordllama"
TABLE, TOKENIZER = "l2_supercat_256.safetensors", "l2_supercat_tokenizer_config.json"
HOW_TO_GET = f"pip install {PACKAGE} (or --no-deps: its dependencies are not used)"
BATCH = 1_000
"""Texts that are tokenised at once."""


@dataclass(frozen=True)
class StaticVectors:
    """A table of vectors, and the tokenizer that finds their rows."""

    tokenizer: Tokenizer
    table: Floats
    """float32 (tokens, d)."""

    @classmethod
    def read(cls, table: Path, tokens: Path) -> StaticVectors:
        """Read a table (.safetensors) and its tokenizer.

        Raises:
            RequestError: the table is not one float array with a row for each token.
        """
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        arrays, tokenizer = list(load_file(table).values()), Tokenizer.from_file(str(tokens))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if [array.shape[:-1] for array in arrays] != [(tokenizer.get_vocab_size(),)]:
            shapes = ", ".join(str(array.shape) for array in arrays)
            expected = f"one array of shape ({tokenizer.get_vocab_size()}, d)"
            raise RequestError(f"{table.name} has arrays of shape {shapes}; allowed: {expected}")
        return cls(tokenizer, arrays[0].astype(np.float32))

    def documents(self, texts: Sequence[str]) -> Floats:
        """Return mean vectors, float32 (n, d); zeros for a text without a token."""
        means = np.zeros((len(texts), self.table.shape[1]), np.float32)
        for i, tokens in enumerate(self.tokens(texts)):
            if tokens:
                means[i] = self.table[tokens].mean(0)
        return means

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows of each text's tokens."""
        batches = (list(texts)[start : start + BATCH] for start in range(0, len(texts), BATCH))
        encoded = (self.tokenizer.encode_batch(batch, add_special_tokens=False) for batch in batches)
        return [text.ids for batch in encoded for text in batch]


def wordllama() -> tuple[Path, Path]:
    """Return WordLlama's table and tokenizer.

    Raises:
        RequestError: the package is not installed.
    """
    if not (installed := _installed()):
        raise RequestError(f"{PACKAGE} is not installed; {HOW_TO_GET}")
    return installed


def availability() -> str:
    """Return ``ready``, or how to install WordLlama's files."""
    return "ready" if _installed() else f"{PACKAGE} is missing: {HOW_TO_GET}"


def _installed() -> tuple[Path, Path] | None:
    """Return WordLlama's table and tokenizer, or None."""
    try:
        files = importlib.metadata.distribution(PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = {file.name: Path(str(file.locate())) for file in files}
    paths = found.get(TABLE, Path()), found.get(TOKENIZER, Path())
    return paths if all(map(Path.is_file, paths)) else None
