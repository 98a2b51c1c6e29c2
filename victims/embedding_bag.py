"""Train the mean of word and bigram vectors on the task: the encoder of the noise study (Zouhri and Abecidan 2021).

It is their classifier B1: n-grams of up to two words, first weights uniform in (-0.5, 0.5), and one linear layer. The
learning rate of SGD falls by a tenth after every epoch, and nothing is selected on dev. It makes no privacy claim.

The study normalises every vector to [0, 1]. In LeakBoard the defence does this. So the study's non-private model is
``dpnr`` on this encoder with ``epsilon: null``.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field

from leakboard.interfaces import Corpus
from leakboard.models.recipe import Recipe
from leakboard.models.trainable import TrainableVictim
from leakboard.suite.options import Count, victim

if TYPE_CHECKING:
    from leakboard.models.word_encoders import BagEncoder


@victim(revision=1)
class EmbeddingBag(TrainableVictim):
    dimension: Annotated[int, Field(ge=2)] = 32
    """Dimensions of the vectors (in the study: 32 and 64)."""
    ngrams: Count = 2
    """Longest run of words that has its own vector (words)."""
    min_count: Count = 1
    """Least number of occurrences of an n-gram with a vector of its own."""
    epochs: Count = 5
    """Passes over train; the weights after the last pass are kept."""
    batch_size: Count = 64
    """Texts in each step."""
    learning_rate: Annotated[float, Field(gt=0)] = 2.0
    """First learning rate of SGD."""
    decay: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Factor of the learning rate after every epoch."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return one epoch of training."""
        return cls(epochs=1, min_count=2, batch_size=16)

    def build(self, corpus: Corpus) -> "BagEncoder":
        """Return random vectors for the n-grams of train, drawn from torch's global generator."""
        from leakboard.models.word_encoders import BagEncoder

        texts = corpus.texts("train")
        return BagEncoder.of(texts, self.dimension, self.ngrams, self.min_count, self.batch_size)

    def load_encoder(self, folder: Path) -> "BagEncoder":
        """Return a saved encoder."""
        from leakboard.models.word_encoders import BagEncoder

        return BagEncoder.load(folder, self.ngrams, self.batch_size)

    @property
    def recipe(self) -> Recipe:
        """Plain SGD, and a rate that falls after every epoch."""
        from torch.optim import SGD

        return Recipe(
            lambda trained: SGD(trained, lr=self.learning_rate),
            schedule=lambda step, steps: self.decay ** (step // steps),
            epochs=self.epochs,
            keep="last",
        )
