"""Train the transformer of `decoder` on known texts, and write texts with it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from leakboard.attacks._reading.decoder import Decoder, Hints
from leakboard.attacks._reading.pieces import Pieces, joined
from leakboard.attacks.bag_of_words import FittedBagOfWords
from leakboard.execution.devices import device
from leakboard.interfaces import Floats, Texts
from leakboard.models.language_model import FIRST_UNIT, LEAST_STEPS, TextLoss, coded, train_on_texts
from leakboard.models.training import passes_for
from leakboard.models.training_state import TrainingState
from leakboard.randomness import seeded
from leakboard.threats.secrets import KnownTexts
from leakboard.workspace import resume_dir

WARM_UP = 0.1
"""Share of the steps in which the learning rate rises; then it falls to 0 as a cosine (Smith and Topin 2019)."""
TEXTS_AT_ONCE = 1_000
"""Number of texts that are written at once."""


@dataclass(frozen=True)
class Hypotheses:
    """Texts that were written before, one for each vector."""

    texts: Sequence[str]
    vectors: Floats
    """Of these texts, float32 (n, d)."""


@dataclass(frozen=True)
class Training:
    """How a transformer is trained."""

    epochs: int
    """Passes over the texts; of few texts, `LEAST_STEPS` steps are a pass."""
    batch_size: int
    learning_rate: float
    """The largest one of AdamW."""


@dataclass(frozen=True)
class Writer:
    """A transformer, and what turns vectors into its inputs and its codes into texts."""

    pieces: Pieces
    bag: FittedBagOfWords
    decoder: Decoder
    longest: int
    """Longest text (pieces)."""

    @classmethod
    def new(
        cls, pieces: Pieces, bag: FittedBagOfWords, dimension: int, width: int, layers: int, longest: int
    ) -> Writer:
        """Return a writer that is not trained; torch's global generator draws its weights."""
        decoder = Decoder(bag.network, dimension, len(bag.vocabulary.units), width, layers, longest)
        return cls(pieces, bag, decoder.to(device()), longest)

    def trained(
        self,
        known: tuple[KnownTexts, KnownTexts],
        training: Training,
        seed: int,
        hypotheses: tuple[Hypotheses | None, Hypotheses | None] = (None, None),
        *,
        name: str = "writer",
    ) -> Writer:
        """Return a copy that has learned from known texts of train; those of dev choose the epoch.

        Args:
            known: texts of train and dev.
            training: how to train.
            seed: of the batches and the dropout.
            hypotheses: about the texts of train and dev; None: the copy writes without.
            name: of the training's saved state; another training of the same attack has another one.
        """
        decoder = copy.deepcopy(self.decoder)
        hints, dev_hints = (self.hints(part.vectors, guess) for part, guess in zip(known, hypotheses, strict=True))
        codes, dev_codes = (self._coded(part.texts) for part in known)
        generator = torch.Generator().manual_seed(seed)
        epochs = training.epochs * passes_for(LEAST_STEPS, len(codes), training.batch_size)
        optimiser = torch.optim.AdamW(decoder.trainable(), lr=training.learning_rate, fused=True)
        steps = epochs * -(-len(codes) // training.batch_size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, training.learning_rate, total_steps=steps + 1, pct_start=WARM_UP, cycle_momentum=False
        )
        folder, parts = resume_dir("attack"), (decoder, optimiser, schedule, generator)
        state = TrainingState(folder / f"{name}.safetensors", *parts) if folder else None

        def loss_of(hints: Hints, codes: Sequence[torch.Tensor]) -> TextLoss:
            return lambda rows, by: decoder.loss(hints[rows], [codes[row] for row in rows], by)

        with seeded(seed):
            train_on_texts(
                decoder,
                (loss_of(hints, codes), loss_of(dev_hints, dev_codes)),
                (codes, dev_codes),
                batch_size=training.batch_size,
                generator=generator,
                optimiser=optimiser,
                epochs=epochs,
                scheduler=schedule,
                clipping_norm=1.0,
                state=state,
            )
        return replace(self, decoder=decoder)

    def write(
        self,
        vectors: Floats,
        hypotheses: Hypotheses | None = None,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> list[str]:
        """Write the text of each vector, float32 (n, d), if wanted from a hypothesis about it.

        Args:
            vectors: not scaled yet.
            hypotheses: one for each vector, or none at all.
            temperature: of the draw of each piece; 0: the likeliest piece.
            generator: draws the pieces, on the processor.
        """
        hints, units = self.hints(vectors, hypotheses), self.bag.vocabulary.units
        written = []
        for rows in torch.arange(len(vectors)).split(TEXTS_AT_ONCE):
            for codes in self.decoder.write(hints[rows.tolist()], self.longest, temperature, generator):
                written.append(joined(units[code - FIRST_UNIT] for code in codes))
        return written

    def hints(self, vectors: Floats, hypotheses: Hypotheses | None = None) -> Hints:
        """Return what the transformer is given about vectors, float32 (n, d)."""
        targets = self._scaled(vectors)
        if hypotheses is None:
            return Hints(targets)
        codes = [text[1:-1] for text in self._coded(Texts(hypotheses.texts))]
        return Hints(targets, codes, self._scaled(hypotheses.vectors))

    def _scaled(self, vectors: Floats) -> torch.Tensor:
        return torch.from_numpy(self.bag.scaling(vectors)).to(device())

    def _coded(self, texts: Sequence[str]) -> list[torch.Tensor]:
        return coded((pieces[: self.longest] for pieces in self.pieces.split(texts)), self.bag.vocabulary.units)
