"""Encode a text into one vector of a bounded norm, and write the text of a vector: an auto-encoder of two LSTMs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from leakboard.data.tokens import words
from leakboard.interfaces import Floats
from leakboard.models.language_model import (
    FIRST_UNIT,
    LEAST_STEPS,
    LanguageModel,
    Reduction,
    TextLoss,
    coded,
    train_on_texts,
)
from leakboard.models.training import passes_for
from leakboard.models.vocabulary import Vocabulary
from leakboard.models.word_encoders import LstmEncoder
from leakboard.privacy.mechanisms.clipping import clipped


class AutoEncoder(torch.nn.Module):
    """An `LstmEncoder`, whose last state is clipped to an L2 norm, and a `LanguageModel` that writes its text.

    Both have the same words. The state's coordinates are in (-1, 1), since it is the output of an LSTM.

    Args:
        encoder: reads the words that the decoder can write.
        clipping_norm: largest 2-norm of a vector.
        embedding: width of the decoder's word vectors.
        hidden: width of the decoder's state.
    """

    def __init__(self, encoder: LstmEncoder, clipping_norm: float, embedding: int, hidden: int):
        super().__init__()
        self.encoder = encoder
        self.clipping_norm = clipping_norm
        self.decoder = LanguageModel(encoder.dimension, FIRST_UNIT + len(encoder.vocabulary), embedding, hidden)
        self.to(encoder.device)

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        vocabulary: int,
        embedding: int,
        dimension: int,
        hidden: int,
        clipping_norm: float,
        batch_size: int,
    ) -> AutoEncoder:
        """Return a random auto-encoder over the most frequent words of texts, drawn from torch's global generator.

        Args:
            texts: of train.
            vocabulary: largest number of words.
            embedding: width of the word vectors of encoder and decoder.
            dimension: width of a text's vector.
            hidden: width of the decoder's state.
            clipping_norm: largest 2-norm of a text's vector.
            batch_size: texts in each batch.
        """
        split = [words(text) for text in texts]
        counts = Counter(word for text in split for word in text)
        units = Vocabulary.of(split, vocabulary).units
        encoder = LstmEncoder({word: counts[word] for word in units}, embedding, dimension, 0.0, batch_size)
        return cls(encoder, clipping_norm, embedding, hidden)

    @property
    def units(self) -> list[str]:
        """The words, in the order of the decoder's codes."""
        return list(self.encoder.vocabulary)

    def loss(
        self, prepared: Sequence[torch.Tensor], codes: Sequence[torch.Tensor], reduction: Reduction
    ) -> torch.Tensor:
        """Return -ln P of the words of texts given their clipped vectors.

        Args:
            prepared: texts for the encoder.
            codes: the same texts for the decoder.
            reduction: of the words of the batch.
        """
        return self.decoder.loss(clipped(self.encoder(prepared), self.clipping_norm), codes, reduction)

    def learn(
        self, train: Sequence[str], dev: Sequence[str], *, longest: int, epochs: int, learning_rate: float, seed: int
    ) -> None:
        """Train on texts by Adam, and keep the epoch with the least loss on dev.

        Args:
            train: texts to learn from.
            dev: texts that choose the epoch.
            longest: number of words after which the decoder's texts are cut.
            epochs: passes over the texts; of few texts, as many passes as make 100 steps.
            learning_rate: of Adam.
            seed: of the batches.
        """
        parts = [
            (self.encoder.prepare(texts), coded((words(text)[:longest] for text in texts), self.units))
            for texts in (train, dev)
        ]

        def loss_of(prepared: Sequence[torch.Tensor], codes: Sequence[torch.Tensor]) -> TextLoss:
            return lambda rows, by: self.loss([prepared[row] for row in rows], [codes[row] for row in rows], by)

        train_on_texts(
            self,
            (loss_of(*parts[0]), loss_of(*parts[1])),
            (parts[0][1], parts[1][1]),
            batch_size=self.encoder.batch_size,
            generator=torch.Generator().manual_seed(seed),
            optimiser=torch.optim.Adam(self.parameters(), lr=learning_rate, fused=True),
            epochs=epochs * passes_for(LEAST_STEPS, len(train), self.encoder.batch_size),
            clipping_norm=5.0,
        )

    def states(self, texts: Sequence[str]) -> Floats:
        """Return one vector for each text before clipping, float32 (n, d) from -1 to 1."""
        return self.encoder.documents(texts)

    def save(self, folder: Path) -> None:
        """Write vocabulary (JSON) and weights (safetensors)."""
        self.encoder.save(folder / "encoder")
        save_file(
            {name: value.cpu() for name, value in self.decoder.state_dict().items()}, folder / "decoder.safetensors"
        )

    @classmethod
    def load(cls, folder: Path, clipping_norm: float, batch_size: int) -> AutoEncoder:
        """Return a saved auto-encoder."""
        weights = load_file(folder / "decoder.safetensors")
        sizes = weights["units.weight"].shape[1], weights["context.weight"].shape[0]
        encoder = LstmEncoder.load(folder / "encoder", 0.0, batch_size)
        model = cls(encoder, clipping_norm, *sizes)
        model.decoder.load_state_dict(weights)
        return model.eval()
