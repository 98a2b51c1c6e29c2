"""Write the text of a vector with a transformer that is guided by a bag of pieces, and correct what was written.

The transformer is a GPT-2 of Hugging Face (Radford et al. 2019), trained from scratch. It reads, in order:

1. `PREFIX` positions, linear in the target, in the vector of the hypothesis, and in their difference;
2. the hypothesis, if there is one: a text that was written before (Morris et al. 2023, section 3);
3. the text so far.

The logits of the next piece are those of the transformer, plus the evidence for the likeliest pieces::

    logits = E h + a(h) * evidence - b(h) * (evidence of the pieces that the text has already)

The evidence starts from the log-odds of each piece by a bag of pieces of the target, plus a learned multiple of their
difference to the log-odds of the hypothesis's own vector. It is what the `GUIDED` likeliest pieces have above the next
one; other pieces have none. The model learns the weights a and b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy, softplus
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, GPT2Config, GPT2Model

from leakboard.models.language_model import END, FIRST_UNIT, PADDING, START, UNKNOWN, Reduction

PREFIX = 4
"""Positions of the vectors."""
GUIDED = 256
"""Number of pieces with evidence. A text has fewer; evidence for all pieces would be as large as the logits."""
HEAD = 64
"""Width of an attention head."""
EAGER: dict[str, Any] = {"attn_implementation": "eager"}
"""On a CPU the fused kernel multiplies head by head."""
DROPOUT = 0.1
"""After embeddings and layers; attention weights have none."""


@dataclass(frozen=True)
class Hints:
    """What the model is given about n texts."""

    targets: torch.Tensor
    """Scaled vectors, float32 (n, d)."""
    hypotheses: Sequence[torch.Tensor] = ()
    """Codes of a text written before for each target, int64; empty: there are none."""
    reached: torch.Tensor | None = None
    """Scaled vectors of the hypotheses, float32 (n, d)."""

    def __getitem__(self, rows: Sequence[int]) -> Hints:
        reached = None if self.reached is None else self.reached[rows]
        return Hints(self.targets[rows], [self.hypotheses[row] for row in rows] if self.hypotheses else (), reached)


@dataclass(frozen=True)
class Evidence:
    """Evidence for pieces of n texts."""

    pieces: torch.Tensor
    """Codes, int64 (n, k)."""
    values: torch.Tensor
    """float32 (n, k)."""

    def __getitem__(self, rows: torch.Tensor) -> Evidence:
        return Evidence(self.pieces[rows], self.values[rows])


class Decoder(torch.nn.Module):
    """P(piece | pieces before it, vector, hypothesis).

    Args:
        bag: gives the log-odds of each piece for scaled vectors, float32 (n, d) to (n, pieces); it is not trained.
        dimension: width of the vectors.
        pieces: size of the vocabulary.
        width: of the transformer's states, a multiple of `HEAD`.
        layers: of the transformer.
        longest: longest text (pieces).
    """

    def __init__(self, bag: torch.nn.Module, dimension: int, pieces: int, width: int, layers: int, longest: int):
        super().__init__()
        config = GPT2Config(
            vocab_size=FIRST_UNIT + pieces,
            n_positions=PREFIX + longest + 2,
            n_embd=width,
            n_layer=layers,
            n_head=width // HEAD,
            activation_function="gelu",
            embd_pdrop=DROPOUT,
            resid_pdrop=DROPOUT,
            attn_pdrop=0.0,
            **EAGER,
            bos_token_id=START,
            eos_token_id=END,
        )
        self.transformer = GPT2Model(config)
        self.vectors = torch.nn.Linear(3 * dimension, PREFIX * width)
        self.kind = torch.nn.Parameter(torch.zeros(width))
        """Added to the embeddings of the hypothesis."""
        self.gates = torch.nn.Linear(width, 2)
        self.correction = torch.nn.Parameter(torch.ones(()))
        self.bag = bag.requires_grad_(False)

    def trainable(self) -> Iterator[torch.nn.Parameter]:
        """Yield the parameters that are trained."""
        return (parameter for parameter in self.parameters() if parameter.requires_grad)

    def loss(self, hints: Hints, texts: Sequence[torch.Tensor], reduction: Reduction = "mean") -> torch.Tensor:
        """Return -ln P of the pieces of coded texts and of their ends: mean or sum, a scalar."""
        padded = pad_sequence(list(texts), batch_first=True, padding_value=PADDING).to(hints.targets.device)
        inputs, following = padded[:, :-1], padded[:, 1:]
        is_piece = following != PADDING
        states = self._states(hints, inputs)
        evidence = self._evidence(hints)
        is_written = (inputs[:, :, None] == evidence.pieces[:, None, :]).cumsum(1) > 0
        rows = torch.arange(len(inputs), device=inputs.device)[:, None].expand_as(inputs)[is_piece]
        logits = self._logits(states[is_piece], evidence[rows], is_written[is_piece])
        return cross_entropy(logits, following[is_piece], reduction=reduction)

    @torch.no_grad()
    def write(
        self, hints: Hints, longest: int, temperature: float = 0.0, generator: torch.Generator | None = None
    ) -> list[torch.Tensor]:
        """Write a text of at most ``longest`` pieces for each target; return the codes, int64, without marks.

        Args:
            hints: about the texts.
            longest: longest text (pieces).
            temperature: of the draw of each piece; 0: the likeliest piece.
            generator: draws the pieces, on the processor.
        """
        n, on = len(hints.targets), hints.targets.device
        evidence, cache = self._evidence(hints), DynamicCache()
        written = torch.full((n, 1), START, device=on)
        has_ended = torch.zeros(n, dtype=torch.bool, device=on)
        for _ in range(longest):
            states = self._states(hints, written, cache)
            is_written = (written[:, :, None] == evidence.pieces[:, None, :]).any(1)
            logits = self._logits(states[:, -1], evidence, is_written)
            logits[:, [PADDING, START, UNKNOWN]] = -torch.inf
            if temperature:
                exponential = torch.empty(logits.shape).exponential_(generator=generator).to(on)
                logits = logits / temperature - exponential.log()
            following = torch.where(has_ended, PADDING, logits.argmax(1))
            has_ended = has_ended | (following == END)
            if has_ended.all():
                break
            written = torch.cat([written, following[:, None]], dim=1)
        return [row[(row != PADDING) & (row != START) & (row != END)] for row in written.cpu()]

    def _evidence(self, hints: Hints) -> Evidence:
        """Return the evidence for the likeliest pieces of each text."""
        odds: torch.Tensor = self.bag(hints.targets)
        if hints.reached is not None:
            odds = odds + self.correction * (odds - self.bag(hints.reached))
        values, pieces = odds.topk(min(GUIDED + 1, odds.shape[1]), dim=1)
        return Evidence(FIRST_UNIT + pieces, values - values[:, -1:])

    def _states(self, hints: Hints, codes: torch.Tensor, cache: DynamicCache | None = None) -> torch.Tensor:
        """Return the last states of the text, float32 (n, t, width); with a filled cache, of the last piece alone."""
        n, length = codes.shape
        hypotheses = self._hypotheses(hints)
        steps = torch.arange(length, device=codes.device)
        embedded, positions = self.transformer.wte(codes), PREFIX + steps
        if cache is not None and cache.get_seq_length():
            embedded, positions = embedded[:, -1:], positions[-1:]
        else:
            reached = hints.targets if hints.reached is None else hints.reached
            triples = torch.cat([hints.targets, reached, hints.targets - reached], dim=1)
            prefix = self.vectors(triples).view(n, PREFIX, -1)
            guessed = self.transformer.wte(hypotheses) + self.kind
            embedded = torch.cat([prefix, guessed, embedded], dim=1)
            before = torch.arange(PREFIX + hypotheses.shape[1], device=codes.device)
            positions = torch.cat([before, positions])
        mask = None
        if hypotheses.shape[1]:
            is_read = [torch.ones(n, PREFIX, dtype=torch.bool, device=codes.device), hypotheses != PADDING]
            mask = torch.cat([*is_read, torch.ones_like(codes, dtype=torch.bool)], dim=1)
        states = self.transformer(
            inputs_embeds=embedded,
            position_ids=positions.expand(n, -1),
            attention_mask=mask,
            past_key_values=cache,
            use_cache=cache is not None,
        ).last_hidden_state
        result: torch.Tensor = states[:, -min(length, states.shape[1]) :]
        return result

    def _hypotheses(self, hints: Hints) -> torch.Tensor:
        """Return padded codes, int64 (n, longest); (n, 0) without hypotheses."""
        if not hints.hypotheses:
            return torch.empty(len(hints.targets), 0, dtype=torch.int64, device=hints.targets.device)
        padded = pad_sequence(list(hints.hypotheses), batch_first=True, padding_value=PADDING)
        return padded.to(hints.targets.device)

    def _logits(self, states: torch.Tensor, evidence: Evidence, is_written: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next code, float32 (m, codes).

        Args:
            states: float32 (m, width).
            evidence: for the likeliest pieces of each text, (m, k).
            is_written: whether the text has each of these pieces already, bool (m, k).
        """
        logits = states @ self.transformer.wte.weight.T
        new, old = softplus(self.gates(states)).split(1, dim=1)
        return logits.scatter_add_(1, evidence.pieces, evidence.values * (new - old * is_written))
