"""Take the mean of static vectors of a text's tokens, from a public table: a sentence encoder without a network.

The default table is WordLlama's (`leakboard.models.static_vectors`). The victim trains nothing and makes no privacy
claim.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Coverage, FittedVictim, Floats, Texts, Victim
from leakboard.models import static_vectors
from leakboard.models.static_vectors import StaticVectors
from leakboard.store import file_checksum
from leakboard.suite.files import File, FileName
from leakboard.suite.options import victim


@victim(revision=1)
class StaticEncoder(Victim):
    folder: File | None = None
    """Folder with a table (.safetensors, one float array (tokens, d)) and ``tokenizer.json``; null: WordLlama's."""

    @classmethod
    def availability(cls) -> str:
        """Return whether WordLlama's files are installed."""
        return static_vectors.availability()

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a random table of the letters, which is written into the folder."""
        from safetensors.numpy import save_file
        from tokenizers import Tokenizer, models, pre_tokenizers

        letters = {letter: row for row, letter in enumerate("?abcdefghijklmnopqrstuvwxyz")}
        tokenizer = Tokenizer(models.WordLevel(letters, unk_token="?"))  # noqa: S106 (no password)
        tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
        tokenizer.save(str(folder / "tokenizer.json"))
        table = np.random.default_rng(0).standard_normal((len(letters), 8)).astype(np.float16)
        save_file({"table": table}, folder / "table.safetensors")
        return cls(folder=FileName(folder))

    def fingerprint(self) -> str:
        """Identify table and tokenizer by their bytes."""
        return " ".join(file_checksum(path) for path in self._files())

    def fit(self, corpus: Corpus, seed: int) -> "FittedStaticEncoder":
        """Read the table; nothing is trained.

        Raises:
            RequestError: a file is missing, or the table is not one float array with a row for each token.
        """
        return self._public()

    def load(self, folder: Path) -> "FittedStaticEncoder":
        """Read the table again."""
        return self._public()

    def _files(self) -> tuple[Path, Path]:
        """Return the files of table and tokenizer."""
        if self.folder is None:
            return static_vectors.wordllama()
        folder = Path(self.folder.located)
        tables, tokenizer = sorted(folder.glob("*.safetensors")), folder / "tokenizer.json"
        if len(tables) != 1 or not tokenizer.is_file():
            found = f"{len(tables)} .safetensors files and {'a' if tokenizer.is_file() else 'no'} tokenizer.json"
            raise RequestError(f"static_encoder.folder: {self.folder} has {found}; allowed: one of each")
        return tables[0], tokenizer

    def _public(self) -> "FittedStaticEncoder":
        return FittedStaticEncoder(StaticVectors.read(*self._files()))


@dataclass(frozen=True)
class FittedStaticEncoder(FittedVictim):
    vectors: StaticVectors

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return mean vectors; zeros for a text without a token."""
        return self.vectors.documents(texts)

    def coverage(self, texts: Texts) -> Coverage:
        """Return the share of texts without a token."""
        return Coverage(unknown=float(np.mean([not tokens for tokens in self.vectors.tokens(texts)])))

    def save(self, folder: Path) -> None:
        """Write nothing: the table is public."""
