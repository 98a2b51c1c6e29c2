"""Train a recurrent encoder on the task: a text's vector is the last state of an LSTM (Coavoux et al. 2018).

The model is word vectors, an LSTM of one layer and one direction, a ReLU layer and a softmax layer. It is trained by
Adam, and the epoch with the best dev accuracy is kept. As in their code, training replaces some words by the unknown
word, with new draws at each visit. The probability for a word that occurs f times is 0.8375 / (0.8375 + f). This trains
the vector of unknown words.

| | their code | here |
|---|---|---|
| a step of the optimiser | after every text | after every batch |
| punctuation | read | left out |
| dropout | of states, inside the recurrence | of word vectors (one mask for each text) and of the last state |

It makes no privacy claim.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field

from leakboard.interfaces import Corpus
from leakboard.models.recipe import Recipe
from leakboard.models.trainable import TrainableVictim
from leakboard.suite.options import Count, victim

if TYPE_CHECKING:
    from leakboard.models.word_encoders import LstmEncoder

Dimension = Annotated[int, Field(ge=2)]


@victim(revision=1)
class Lstm(TrainableVictim):
    dimension: Dimension | Annotated[tuple[Dimension, ...], Field(strict=False, min_length=1)] = 32
    """Dimensions of the state. From a list, the best on dev is kept (in the paper: 8, 16, 32, 64 and 128)."""
    word_dimension: Count = 32
    """Dimensions of the word vectors."""
    hidden: Count = 64
    """ReLU units between the state and the softmax layer."""
    min_count: Count = 1
    """Least number of occurrences of a word with a vector of its own."""
    epochs: Count = 16
    """Passes over train (in the paper: 8 for sentiment, 16 for topics); the pass with the best dev accuracy is kept."""
    batch_size: Count = 32
    """Texts in each step (in the paper: 1)."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Learning rate of Adam."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Rate of dropout of the word vectors, and of the state before the ReLU layer."""

    uses_gpu: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return one epoch of training, with few hidden units."""
        return cls(epochs=1, min_count=2, hidden=8, batch_size=16)

    def build(self, corpus: Corpus) -> "LstmEncoder":
        """Return a random LSTM over the words of train, drawn from torch's global generator."""
        from leakboard.models.word_encoders import LstmEncoder

        assert isinstance(self.dimension, int), "each candidate has one dimension"
        sizes = self.min_count, self.word_dimension, self.dimension
        return LstmEncoder.of(corpus.texts("train"), *sizes, self.dropout, self.batch_size)

    def load_encoder(self, folder: Path) -> "LstmEncoder":
        """Return a saved encoder."""
        from leakboard.models.word_encoders import LstmEncoder

        return LstmEncoder.load(folder, self.dropout, self.batch_size)

    @property
    def candidates(self) -> "tuple[Lstm, ...]":
        """One LSTM for each dimension."""
        dimensions = self.dimension if isinstance(self.dimension, tuple) else (self.dimension,)
        return tuple(replace(self, dimension=dimension) for dimension in dimensions)

    @property
    def recipe(self) -> Recipe:
        """Adam at a constant rate, gradients clipped to norm 5."""
        from torch.optim import Adam

        return Recipe(
            lambda trained: Adam(trained, lr=self.learning_rate, fused=True),
            schedule=lambda step, steps: 1.0,
            epochs=self.epochs,
            dropout=self.dropout,
            hidden=self.hidden,
            clipping_norm=5.0,
            select="accuracy",
        )
