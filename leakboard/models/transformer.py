"""Encode texts by a pretrained transformer, to document vectors and to contextual word vectors.

Batches are sorted by length, so that little is computed on padding, and run in bfloat16 if the processor has it. The
output of frozen layers is cached (`frozen_states`): a corpus passes them once, not in every epoch of every victim.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch

from leakboard.errors import RequestError
from leakboard.execution import devices
from leakboard.execution.devices import has_bfloat16
from leakboard.interfaces import Coverage, Floats, PublishedWords, Texts
from leakboard.models import frozen_states
from leakboard.models.bert_layers import AttentionMask, BertLayers, HiddenStates
from leakboard.models.checkpoints import Precision, TrainedPooling
from leakboard.models.encoder import Encoder
from leakboard.workspace import shared_rows

if TYPE_CHECKING:
    from tokenizers import Encoding

TrainedLayers = Literal["all", "none"] | int
"""Layers to train: all and the embeddings, none, or the last k."""

LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Options of every load: local files only, and no code from them."""
ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout")
"""Options that are set to 0: drawing the masks of all attention weights costs a tenth of a training step."""
ATTENTION = {"cuda": "sdpa", "cpu": "eager"}
"""Kernel by device: on a CPU the fused kernel multiplies head by head, and a training step takes a quarter longer."""


@dataclass(frozen=True)
class Prepared:
    """A tokenised text, with its states after the frozen layers."""

    encoding: Encoding
    states: torch.Tensor | None = None
    """Output of the frozen layers, float32 (tokens, d); None without frozen layers, or if too large to cache."""

    def __len__(self) -> int:
        return len(self.encoding.ids)


class TransformerEncoder(Encoder):
    """A Hugging Face encoder with its tokenizer.

    Args:
        folder: configuration, tokenizer and safetensors weights.
        max_tokens: longer texts are cut (tokens, special ones included).
        pooling: ``cls`` takes the first token's vector, ``pooler`` passes it through BERT's dense layer and tanh, and
            ``mean`` takes the mean over the text's tokens. Missing weights of the dense layer are drawn by torch's
            global generator.
        precision: ``auto`` takes bfloat16 if the processor has it.
        batch_size: texts in each batch.
        attends_masks: whether tokens attend to masks (`mask`), and whether means include them.

    Raises:
        RequestError: ``pooling`` is ``pooler``, but the architecture has none.
    """

    def __init__(
        self,
        folder: Path,
        max_tokens: int,
        pooling: TrainedPooling,
        precision: Precision,
        batch_size: int,
        attends_masks: bool = True,
    ):
        super().__init__()
        from transformers import AutoConfig, AutoModel, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), **LOCAL)
        config = AutoConfig.from_pretrained(str(folder), **LOCAL)
        for name in ATTENTION_DROPOUT:
            if hasattr(config, name):
                setattr(config, name, 0.0)
        self.device = devices.device()
        self.model: Any = AutoModel.from_pretrained(
            str(folder),
            config=config,
            use_safetensors=True,
            attn_implementation=ATTENTION[self.device.type],
            **LOCAL,
        ).float()
        self.pooling = pooling
        if pooling == "pooler" and not hasattr(getattr(self.model, "pooler", None), "dense"):
            raise RequestError(f"pooling: {type(self.model).__name__} has no pooler; allowed: cls, mean")
        self.batch_size = batch_size
        self.unattended = None if attends_masks else self.tokenizer.backend_tokenizer.token_to_id(self.mask)
        self.max_tokens = min(max_tokens, getattr(self.model.config, "max_position_embeddings", max_tokens))
        self.to(self.device)
        uses_bfloat16 = precision == "bfloat16" or (precision == "auto" and has_bfloat16(self.device))
        self.autocast_type = torch.bfloat16 if uses_bfloat16 else None
        self.parts = BertLayers.of(self.model)
        """The lower layers are the frozen ones; None if the architecture cannot be split."""
        self._trained: tuple[Any, ...] = (self.model,)  # a ModuleList would be saved twice

    @property
    def dimension(self) -> int:
        """Width of the vectors."""
        return int(self.model.config.hidden_size)

    @property
    def mask(self) -> str:
        """The word that is written in the place of a hidden word: the mask token, or without one the unknown token.

        Raises:
            RequestError: the tokenizer has neither.
        """
        if token := self.tokenizer.mask_token or self.tokenizer.unk_token:
            return str(token)
        raise RequestError(f"{type(self.tokenizer).__name__} has neither a mask nor an unknown token to hide words by")

    def save(self, folder: Path) -> None:
        """Write encoder and tokenizer (safetensors, JSON)."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def layers(self) -> torch.nn.ModuleList:
        """Return the encoder's layers, first to last.

        Raises:
            RequestError: the architecture has no list of its layers.
        """
        count = getattr(self.model.config, "num_hidden_layers", None)
        for module in self.model.modules():
            if isinstance(module, torch.nn.ModuleList) and len(module) == count:
                return module
        raise RequestError(f"train_layers: {type(self.model).__name__} has no list of layers; allowed: all, none")

    def tokenise(self, texts: Sequence[str]) -> list[Encoding]:
        """Return one encoding a text, cut to ``max_tokens``."""
        backend = self.tokenizer.backend_tokenizer
        backend.enable_truncation(self.max_tokens)
        backend.no_padding()
        return backend.encode_batch(list(texts))

    def coverage(self, texts: Sequence[str]) -> Coverage:
        """Return the share of texts that are longer than ``max_tokens``."""
        return Coverage(cut=float(np.mean([bool(encoding.overflowing) for encoding in self.tokenise(texts)])))

    def freeze(self, trained: TrainedLayers) -> None:
        """Freeze the embeddings and all but the ``trained`` layers: no gradient, and no dropout. A pooler is trained.

        Raises:
            RequestError: ``trained`` is a number, but the architecture has no list of its layers.
        """
        if trained == "all":
            return
        self.model.requires_grad_(False)
        if self.pooling == "pooler":
            self.model.pooler.requires_grad_(True)
        self._trained = tuple(self.layers()[-trained:]) if isinstance(trained, int) else ()
        for layer in self._trained:
            layer.requires_grad_(True)
        self.train(self.training)
        if self.parts is not None:
            upper = len(self._trained) or int(self.pooling != "mean")  # the last layer is cheap for the first token
            self.parts = BertLayers.of(self.model, len(self.layers()) - upper)

    def train(self, mode: bool = True) -> Self:
        """Set the layers that are not frozen to training or evaluation."""
        super().train(mode)
        self.model.train(False)
        for part in self._trained:
            part.train(mode)
        return self

    def prepare(self, texts: Sequence[str]) -> list[Prepared]:
        """Tokenise texts, and run the frozen layers on them unless their states are cached."""
        encodings = self.tokenise(texts)
        if self.parts is None or self._trained == (self.model,):
            return [Prepared(encoding) for encoding in encodings]
        distinct = {tuple(encoding.ids): Prepared(encoding) for encoding in encodings}
        lengths = [len(ids) for ids in distinct]
        identity = {
            "layers": self._lower_weights,
            "precision": str(self.autocast_type),
            "batch_size": self.batch_size,
            "tokens": hashlib.sha256(repr(list(distinct)).encode()).hexdigest(),
            "device": self.device.type,
            "threads": torch.get_num_threads(),
        } | ({} if self.unattended is None else {"unattended": self.unattended})
        states = frozen_states.obtain(
            identity,
            texts,
            4 * sum(lengths) * self.dimension,
            lambda: self._lower_states(list(distinct.values())),
        )
        if states is None:
            return [Prepared(encoding) for encoding in encodings]
        states_of = dict(zip(distinct, states.split(lengths), strict=True))
        return [Prepared(encoding, states_of[tuple(encoding.ids)]) for encoding in encodings]

    @cached_property
    def _lower_weights(self) -> str:
        """A digest of the frozen layers, cached because they never change."""
        assert self.parts is not None
        config = self.model.config
        settings = (type(self.model), config.num_attention_heads, config.hidden_act, config.layer_norm_eps)
        return _digest(repr(settings), self.parts.embeddings, *self.parts.lower_layers)

    def shared_documents(self, texts: Texts) -> Floats:
        """Return the vectors of documents, float32 (n, d); texts that other work needs too are encoded once."""
        distinct, places = texts.coded()
        return shared_rows("documents", self.identity, distinct, self.documents)[places]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that the vectors of documents depend on, except the texts, as JSON values; of a frozen encoder."""
        return {
            "weights": _digest(repr(self.model.config.to_diff_dict()), self.model),
            "tokenizer": hashlib.sha256(self.tokenizer.backend_tokenizer.to_str().encode()).hexdigest(),
            "max_tokens": self.max_tokens,
            "pooling": self.pooling,
            "precision": str(self.autocast_type),
            "batch_size": self.batch_size,
            "device": self.device.type,
            "threads": torch.get_num_threads(),
        } | ({} if self.unattended is None else {"unattended": self.unattended})

    @torch.no_grad()
    def _lower_states(self, prepared: Sequence[Prepared]) -> torch.Tensor:
        """Return the frozen layers' output, float32 (tokens, d), one text after the other, in main memory."""
        lengths = [len(entry) for entry in prepared]
        states = torch.empty((sum(lengths), self.dimension))
        states_of_text = states.split(lengths)
        for batch in self.batches(prepared):
            padded, _ = self._after_lower([prepared[i] for i in batch])
            for row, i in enumerate(batch):
                states_of_text[i].copy_(padded[row, : lengths[i]])
        return states

    def _after_lower(self, prepared: Sequence[Prepared]) -> tuple[HiddenStates, AttentionMask]:
        """Return the lower layers' output, cached or computed."""
        assert self.parts is not None
        ids, mask = self._padded(prepared)
        cached = [entry.states for entry in prepared if entry.states is not None]
        if len(cached) == len(prepared):
            return torch.nn.utils.rnn.pad_sequence(cached, batch_first=True).to(self.device), mask
        with self._autocast():
            return self.parts.lower(ids, mask).float(), mask

    def _padded(self, prepared: Sequence[Prepared]) -> tuple[torch.Tensor, AttentionMask]:
        """Return token ids, int64 (texts, tokens), and their mask."""
        longest = max(map(len, prepared))
        ids = torch.full((len(prepared), longest), self.tokenizer.pad_token_id or 0)
        mask = torch.zeros_like(ids)
        for row, entry in enumerate(prepared):
            ids[row, : len(entry)] = torch.tensor(entry.encoding.ids)
            mask[row, : len(entry)] = 1
        if self.unattended is not None:
            mask[ids == self.unattended] = 0
        return ids.to(self.device), mask.to(self.device)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, dtype=self.autocast_type, enabled=self.autocast_type is not None)

    def states(self, prepared: Sequence[Prepared]) -> tuple[HiddenStates, AttentionMask]:
        """Return the last layer's vectors."""
        if self.parts is None:
            ids, mask = self._padded(prepared)
            with self._autocast():
                return self.model(input_ids=ids, attention_mask=mask).last_hidden_state.float(), mask
        states, mask = self._after_lower(prepared)
        with self._autocast():
            return self.parts.upper(states, mask).float(), mask

    def forward(self, prepared: Sequence[Prepared]) -> torch.Tensor:
        """Return pooled vectors, float32 (batch, d)."""
        if self.pooling == "mean":
            states, mask = self.states(prepared)
            weights = mask.unsqueeze(-1).float()
            return (states * weights).sum(1) / weights.sum(1).clamp(min=1)
        first = self._first_tokens(prepared)
        return self.model.pooler(first.unsqueeze(1)) if self.pooling == "pooler" else first

    def _first_tokens(self, prepared: Sequence[Prepared]) -> torch.Tensor:
        """Return the first tokens' vectors of the last layer, float32 (batch, d)."""
        if self.parts is None:
            return self.states(prepared)[0][:, 0]
        states, mask = self._after_lower(prepared)
        with self._autocast():
            return self.parts.first_tokens(states, mask).float()

    @torch.no_grad()
    def words(self, texts: Texts) -> PublishedWords:
        """Return the contextual vector of every word occurrence: the mean over its word pieces.

        The tokenizer splits texts into words (at blanks and punctuation). Words are in lower case; words without a
        letter or digit are left out.
        """
        self.eval()
        prepared = self.prepare(texts)
        words_of_text: list[list[tuple[str, Floats]]] = [[] for _ in prepared]
        for batch in self.batches(prepared):
            states, _ = self.states([prepared[i] for i in batch])
            for row, i in enumerate(batch):
                words_of_text[i] = _pool_words(texts[i], prepared[i].encoding, states[row].cpu().numpy())
        words = [word for pooled in words_of_text for word, _ in pooled]
        vectors = np.array([vector for pooled in words_of_text for _, vector in pooled], np.float32)
        text_index = np.array([i for i, pooled in enumerate(words_of_text) for _ in pooled], np.int64)
        return PublishedWords(words, vectors.reshape(len(words), self.dimension), text_index)


def _digest(settings: str, *parts: torch.nn.Module) -> str:
    """Return the SHA-256 of settings and weights."""
    digest = hashlib.sha256(settings.encode())
    for part in parts:
        for value in part.state_dict().values():
            digest.update(value.cpu().numpy().tobytes())
    return digest.hexdigest()


def _pool_words(text: str, encoding: Encoding, states: Floats) -> list[tuple[str, Floats]]:
    """Return the words of a text with their mean vectors, in reading order."""
    pooled = []
    for index in sorted({word for word in encoding.word_ids if word is not None}):
        characters, pieces = encoding.word_to_chars(index), encoding.word_to_tokens(index)
        assert characters is not None
        assert pieces is not None
        word = text[slice(*characters)].lower()
        if any(character.isalnum() for character in word):
            pooled.append((word, states[slice(*pieces)].mean(0)))
    return pooled
