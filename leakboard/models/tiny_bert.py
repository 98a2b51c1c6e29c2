"""Write a random BERT of two layers, for tests and examples that need no pretrained weights."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from leakboard.randomness import seeded


def write_tiny_bert(folder: Path, texts: Iterable[str] = ()) -> Path:
    """Write weights and tokenizer, the same every time, and return the folder.

    Args:
        folder: to write into; created if missing.
        texts: their words of two to six letters are in the vocabulary; other words are split into letters.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    distinct = {word for text in texts for word in text.lower().split() if word.isalpha()}
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *",.!?:;'()-", *letters, *(f"##{c}" for c in letters)]
    pieces += sorted(word for word in distinct if 1 < len(word) <= 6)
    vocabulary = {piece: code for code, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    with seeded(0):
        model = BertModel(
            BertConfig(
                vocab_size=len(vocabulary),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=64,
                max_position_embeddings=160,
            )
        )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    model.save_pretrained(folder)
    return folder
