"""Fine-tune a pretrained transformer on the task: the non-private encoder of DPNR (Lyu, He and Li 2020, NON-PRIV).

The model is the encoder, dropout and one softmax layer. It is trained by AdamW with linear decay, and the epoch with
the best dev loss is kept. The victim publishes the pooled vector of each text, and the contextual vectors of its words.
It makes no privacy claim.

The vector of a text is by default the first token's. DPNR's code takes the pooler's: ``pooling: pooler``. A checkpoint
without weights of the pooler gets random ones, which are trained and saved with the others.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.interfaces import Corpus, Publication, PublishedWords, Texts
from leakboard.models import checkpoints
from leakboard.models.pretrained import PretrainedVictim
from leakboard.models.recipe import Recipe
from leakboard.models.trainable import FittedOnTask, TrainableVictim
from leakboard.suite.options import Count, victim

if TYPE_CHECKING:
    from leakboard.models.transformer import TransformerEncoder


class FittedBert(FittedOnTask):
    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Return the contextual vectors of the texts' words."""
        return self.encoder.words(texts)


@victim(revision=1)
class Bert(PretrainedVictim, TrainableVictim):
    max_tokens: Annotated[int, Field(ge=3)] = 128
    """Length at which longer texts are cut (tokens)."""
    epochs: Count = 4
    """Passes over train; the weights after the pass with the best dev loss are kept."""
    batch_size: Count = 64
    """Texts in each step."""
    learning_rate: Annotated[float, Field(gt=0)] = 5e-5
    """First learning rate of AdamW; it falls linearly to 0."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Rate of dropout before the softmax layer."""
    pooling: checkpoints.TrainedPooling = "cls"
    """Vector of a text: the first token's (cls), the same after BERT's dense layer and tanh (pooler), or the mean."""
    train_layers: Literal["all", "none"] | Count = "all"
    """Encoder layers to train: all, none, or the last k. The others are frozen, without dropout; poolers are not."""
    attend_masks: bool = True
    """Whether words attend to the mask tokens that replace hidden words; not so in DPNR's code."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words")
    fitted = FittedBert

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return one epoch of training a random BERT."""
        return replace(super().example(folder), epochs=1, batch_size=16, max_tokens=32)

    def build(self, corpus: Corpus) -> "TransformerEncoder":
        """Return the pretrained encoder."""
        return self.load_encoder(checkpoints.find(self.checkpoint, self.revision))

    def load_encoder(self, folder: Path) -> "TransformerEncoder":
        """Return the encoder in a folder."""
        from leakboard.models.transformer import TransformerEncoder

        encoder = TransformerEncoder(
            folder, self.max_tokens, self.pooling, self.precision, self.batch_size, self.attend_masks
        )
        encoder.freeze(self.train_layers)
        return encoder

    @property
    def recipe(self) -> Recipe:
        """Fused AdamW, linear decay, gradients clipped to norm 1."""
        from torch.optim import AdamW

        return Recipe(
            lambda trained: AdamW(trained, lr=self.learning_rate, eps=1e-8, weight_decay=0.0, fused=True),
            schedule=lambda step, steps: max(0.0, 1 - step / (self.epochs * steps)),
            epochs=self.epochs,
            dropout=self.dropout,
            clipping_norm=1.0,
        )
