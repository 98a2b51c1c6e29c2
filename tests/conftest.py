"""Fixtures that several test files share."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakboard.corpora import build_corpus
from leakboard.interfaces import Secret

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Tests run side by side; threads that wait for each other on shared cores are slower than one."""

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def real_data():
    """Return the folder of the published files, or skip."""
    folder = Path(os.environ.get("LEAKBOARD_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is missing (set LEAKBOARD_DATA)")
    return folder


@pytest.fixture(scope="session")
def make_corpus():
    """Build a small corpus whose columns are given, split by split."""

    def make(splits, secrets, labels=("no", "yes")):
        frames, row = {}, 0
        for name, columns in splits.items():
            n = len(next(iter(columns.values())))
            known = {"text": [f"text {row + i}" for i in range(n)], "row": np.arange(row, row + n)}
            frames[name] = pd.DataFrame(known | {key: list(value) for key, value in columns.items()})
            row += n
        has_labels = "label" in splits["train"]
        kinds = [secret if isinstance(secret, Secret) else Secret(*secret) for secret in secrets]
        return build_corpus("made", frames, kinds, labels if has_labels else None)

    return make


@pytest.fixture(scope="session")
def reviews():
    """Return 300 generated reviews of 60 users that show their secrets as strongly as they can."""
    from leakboard.datasets.generated_reviews import GeneratedReviews

    return GeneratedReviews(users=60, leak=1.0).load()


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory, reviews):
    """Write a random BERT of two layers whose vocabulary splits words of more than six letters into pieces."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    counts = Counter(word for text in reviews.texts("train") for word in text.lower().split() if word.isalpha())
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *",.!?:;'()-", *letters, *(f"##{c}" for c in letters)]
    pieces += sorted(word for word in counts if 1 < len(word) <= 6)
    vocabulary = {piece: code for code, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    with torch.random.fork_rng():
        torch.manual_seed(0)
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
    folder = tmp_path_factory.mktemp("tiny_bert")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    model.save_pretrained(folder)
    return folder
