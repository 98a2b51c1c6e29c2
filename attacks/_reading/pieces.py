"""Split texts into pieces of words that are learned from the attacker's own texts.

Pieces are those of byte-level byte pair encoding (Sennrich et al. 2016, Radford et al. 2019), as the package tokenizers
trains them. A word or number that the attacker has never seen can be written if its pieces are in the attacker's texts.
"""

from collections.abc import Iterable, Sequence

from leakboard.data.tokens import words


class Pieces:
    """Pieces of texts whose words are those of `leakboard.data.tokens`.

    Args:
        texts: to learn from.
        size: largest number of pieces; the 256 bytes are always among them.
    """

    def __init__(self, texts: Iterable[str], size: int):
        from tokenizers import Tokenizer
        from tokenizers.models import BPE
        from tokenizers.pre_tokenizers import ByteLevel
        from tokenizers.trainers import BpeTrainer

        self._tokenizer = Tokenizer(BPE())
        self._tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=True, use_regex=True)
        trainer = BpeTrainer(vocab_size=size, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
        self._tokenizer.train_from_iterator((" ".join(words(text)) for text in texts), trainer)

    def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the pieces of each text."""
        return [found.tokens for found in self._tokenizer.encode_batch([" ".join(words(text)) for text in texts])]


def joined(pieces: Iterable[str]) -> str:
    """Return the text of pieces; bytes that make no character become U+FFFD."""
    from tokenizers.decoders import ByteLevel

    text: str = ByteLevel().decode(list(pieces))
    return text.strip()
