"""Take the mean of static vectors of a text's tokens, from a public table: a sentence encoder without a network.

The default table is WordLlama's (https://github.com/dleemiller/WordLlama, MIT): 32,000 tokens of Llama 2, 256
dimensions, from the package ``wordllama``. Only its two files are read; its code is never imported. As there, special
tokens are left out, and texts are read in full. The victim trains nothing and makes no privacy claim.
"""

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Coverage, FittedVictim, Floats, Texts, Victim
from leakboard.store import file_checksum
from leakboard.suite.files import File, FileName
from leakboard.suite.options import victim

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "wordllama"
TABLE, TOKENIZER = "l2_supercat_256.safetensors", "l2_supercat_tokenizer_config.json"
HOW_TO_GET = f"pip install {PACKAGE} (or --no-deps: its dependencies are not used)"
BATCH = 1_000
"""Texts that are tokenised at once."""


@victim(revision=1)
class StaticEncoder(Victim):
    folder: File | None = None
    """Folder with a table (.safetensors, one float array (tokens, d)) and ``tokenizer.json``; null: WordLlama's."""

    @classmethod
    def availability(cls) -> str:
        """Return whether WordLlama's files are installed."""
        return "ready" if _installed() else f"{PACKAGE} is missing: {HOW_TO_GET}"

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
            if not (installed := _installed()):
                raise RequestError(f"static_encoder: {PACKAGE} is not installed; {HOW_TO_GET}")
            return installed
        folder = Path(self.folder.located)
        tables, tokenizer = sorted(folder.glob("*.safetensors")), folder / "tokenizer.json"
        if len(tables) != 1 or not tokenizer.is_file():
            found = f"{len(tables)} .safetensors files and {'a' if tokenizer.is_file() else 'no'} tokenizer.json"
            raise RequestError(f"static_encoder.folder: {self.folder} has {found}; allowed: one of each")
        return tables[0], tokenizer

    def _public(self) -> "FittedStaticEncoder":
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        table, tokens = self._files()
        arrays, tokenizer = list(load_file(table).values()), Tokenizer.from_file(str(tokens))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if [array.shape[:-1] for array in arrays] != [(tokenizer.get_vocab_size(),)]:
            shapes = ", ".join(str(array.shape) for array in arrays)
            expected = f"one array of shape ({tokenizer.get_vocab_size()}, d)"
            raise RequestError(f"static_encoder: {table.name} has arrays of shape {shapes}; allowed: {expected}")
        return FittedStaticEncoder(tokenizer, arrays[0].astype(np.float32))


def _installed() -> tuple[Path, Path] | None:
    """Return WordLlama's table and tokenizer, or None."""
    try:
        files = importlib.metadata.distribution(PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = {file.name: Path(str(file.locate())) for file in files}
    paths = found.get(TABLE, Path()), found.get(TOKENIZER, Path())
    return paths if all(map(Path.is_file, paths)) else None


@dataclass(frozen=True)
class FittedStaticEncoder(FittedVictim):
    tokenizer: "Tokenizer"
    table: Floats
    """float32 (tokens, d)."""

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return mean vectors; zeros for a text without a token."""
        means = np.zeros((len(texts), self.table.shape[1]), np.float32)
        for i, tokens in enumerate(self._tokens(texts)):
            if tokens:
                means[i] = self.table[tokens].mean(0)
        return means

    def coverage(self, texts: Texts) -> Coverage:
        """Return the share of texts without a token."""
        return Coverage(unknown=float(np.mean([not tokens for tokens in self._tokens(texts)])))

    def _tokens(self, texts: Texts) -> list[list[int]]:
        """Return the rows of each text's tokens."""
        batches = (list(texts)[start : start + BATCH] for start in range(0, len(texts), BATCH))
        encoded = (self.tokenizer.encode_batch(batch, add_special_tokens=False) for batch in batches)
        return [text.ids for batch in encoded for text in batch]

    def save(self, folder: Path) -> None:
        """Write nothing: the table is public."""
