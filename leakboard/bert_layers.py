"""A BERT run in parts: frozen layers apart from those that are trained, and the last layer for the first token alone.

What a classifier reads of the last layer is the first token's vector. Its keys and values need no products of their own
then: with query q and states x_t, q . (W x_t + b) = (W^T q) . x_t + q . b, where q . b shifts all scores alike and the
softmax takes no notice; and sum_t a_t (V x_t + c) = V (sum_t a_t x_t) + c, since the weights a sum to one. The result
is the same; the layer's cost falls from that of all tokens to about that of one.
"""

from __future__ import annotations

from typing import Any

import torch

States = torch.Tensor
"""Vectors of tokens, float32 (texts, tokens, d)."""


class BertLayers:
    """The embeddings and layers of a `transformers` BERT or RoBERTa.

    Args:
        model: as `of` accepts it.
    """

    def __init__(self, model: Any):
        self.embeddings = model.embeddings
        self.layers = model.encoder.layer

    @classmethod
    def of(cls, model: Any) -> BertLayers | None:
        """Return the parts of a model, None for an architecture that is not BERT's."""
        from transformers import BertModel, RobertaModel

        known = type(model) in (BertModel, RobertaModel) and not model.config.is_decoder
        absolute = getattr(model.config, "position_embedding_type", "absolute") == "absolute"
        return cls(model) if known and absolute else None

    def below(self, ids: torch.Tensor, mask: torch.Tensor, count: int) -> States:
        """Return what leaves the first ``count`` layers.

        Args:
            ids: of tokens, int64 (texts, tokens).
            mask: 1 where there is a token, 0 where there is padding, (texts, tokens).
            count: of layers, from the first.
        """
        return self._run(self.embeddings(input_ids=ids), mask, self.layers[:count])

    def above(self, states: States, mask: torch.Tensor, count: int) -> States:
        """Return what leaves the last layer, given what left the first ``count``."""
        return self._run(states, mask, self.layers[count:])

    def first_tokens(self, states: States, mask: torch.Tensor, count: int) -> torch.Tensor:
        """Return `above`'s vectors of the first tokens alone, (texts, d)."""
        if count == len(self.layers):
            return states[:, 0]
        last = self.layers[-1]
        return _first_tokens(last, self._run(states, mask, self.layers[count:-1]), mask)

    @staticmethod
    def _run(states: States, mask: torch.Tensor, layers: Any) -> States:
        bias = _bias(mask, states)[:, None, None]
        for layer in layers:
            output = layer(states, bias)
            states = output[0] if isinstance(output, tuple) else output
        return states


def _bias(mask: torch.Tensor, states: States) -> torch.Tensor:
    """Return what is added to the scores: the lowest number where there is no token."""
    return (1 - mask.to(states.dtype)) * torch.finfo(states.dtype).min


def _first_tokens(layer: Any, states: States, mask: torch.Tensor) -> torch.Tensor:
    attention, first = layer.attention.self, states[:, 0]
    heads = (attention.num_attention_heads, attention.attention_head_size)
    keys, values = (part.weight.unflatten(0, heads) for part in (attention.key, attention.value))
    query = attention.query(first).unflatten(1, heads) / attention.attention_head_size**0.5
    scores = torch.einsum("nhe,hed->nhd", query, keys) @ states.transpose(1, 2)
    weights = torch.softmax(scores + _bias(mask, states)[:, None], dim=-1)
    mixed = torch.einsum("nhd,hed->nhe", weights.to(states.dtype) @ states, values).flatten(1) + attention.value.bias
    attended = layer.attention.output(mixed, first)
    return layer.output(layer.intermediate(attended), attended)
