"""Reconstruction: write the text of a published vector, word by word or character by character.

The attacker is the generator of Coavoux et al. (2018, section 3.2): a language model conditioned on the vector, trained
on the texts that the attacker knows.

- Their generator is a character LSTM that starts from the vector, and it is only a defence.
- Here the standardised vector gives the first state of the LSTM, and is also an input with every unit.
- The text is written greedily: each unit is the likeliest one after the units before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field

from leakboard.attacks._portfolio.vector_inputs import Scaling
from leakboard.attacks._reading.known_vectors import standardised_vectors
from leakboard.data.tokens import words
from leakboard.interfaces import Floats
from leakboard.models.vocabulary import Vocabulary
from leakboard.randomness import seeded
from leakboard.suite.options import Count, attack
from leakboard.threats.texts import TextGuesses, TextsAttack, TextsView

if TYPE_CHECKING:
    from leakboard.models.language_model import LanguageModel


@attack(revision=2)
class Reconstruction(TextsAttack):
    unit: Literal["words", "characters"] = "words"
    """Units of the written text; ``characters``: characters of the lower-cased words, and blanks."""
    vocabulary: Count = 5_000
    """Number of units that the attacker can write: the most frequent units of the texts that it knows."""
    longest: Count = 64
    """Longest text that the attacker learns from and writes (units)."""
    hidden: Annotated[int, Field(ge=4)] = 128
    """Width of the LSTM's state."""
    embedding: Count = 64
    """Width of the units' vectors."""
    epochs: Count = 10
    """Largest number of epochs: passes over the attacker's texts; of few texts, as many passes as make 100 steps."""
    patience: Count = 2
    """Stop after this many epochs without a better dev loss."""
    batch_size: Count = 64
    """Texts in each step."""
    learning_rate: Annotated[float, Field(gt=0)] = 3e-3
    """Learning rate of Adam."""

    uses_gpu: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an attack that trains a narrow network for one epoch."""
        return cls(hidden=8, epochs=1, batch_size=16)

    def fit(self, view: TextsView, seed: int) -> "FittedReconstruction":
        """Train on the texts that the attacker knows and on their vectors; keep the epoch with the least dev loss."""
        import torch

        from leakboard.execution.devices import device
        from leakboard.models.language_model import (
            FIRST_UNIT,
            LEAST_STEPS,
            LanguageModel,
            TextLoss,
            coded,
            train_on_texts,
        )
        from leakboard.models.training import limit_remark, passes_for

        scaling, vectors, dev_vectors = standardised_vectors(view)
        vocabulary = Vocabulary.of([self._units(text) for text in view.train.texts], self.vocabulary)
        train_codes, dev_codes = (
            coded((self._units(text)[: self.longest] for text in texts), vocabulary.units)
            for texts in (view.train.texts, view.dev.texts)
        )
        inputs, dev_inputs = (torch.from_numpy(part).to(device()) for part in (vectors, dev_vectors))
        generator = torch.Generator().manual_seed(seed)
        passes = passes_for(LEAST_STEPS, len(inputs), self.batch_size)
        with seeded(seed):
            model = LanguageModel(inputs.shape[1], FIRST_UNIT + len(vocabulary.units), self.embedding, self.hidden)
            model.to(device())

            def loss_of(vectors: torch.Tensor, codes: Sequence[torch.Tensor]) -> TextLoss:
                return lambda batch, by: model.loss(vectors[batch], [codes[i] for i in batch], by)

            history = train_on_texts(
                model,
                (loss_of(inputs, train_codes), loss_of(dev_inputs, dev_codes)),
                (train_codes, dev_codes),
                batch_size=self.batch_size,
                generator=generator,
                optimiser=torch.optim.Adam(model.parameters(), lr=self.learning_rate, fused=True),
                epochs=passes * self.epochs,
                patience=passes * self.patience,
                clipping_norm=5.0,
            )
        return FittedReconstruction(self, vocabulary, scaling, model, limit_remark(history, passes * self.epochs))

    def _units(self, text: str) -> Sequence[str]:
        return words(text) if self.unit == "words" else " ".join(words(text))


@dataclass(frozen=True)
class FittedReconstruction:
    options: Reconstruction
    vocabulary: Vocabulary
    scaling: Scaling
    model: "LanguageModel"
    remark: str = ""
    """About the training; empty if there is none."""

    def __call__(self, vectors: Floats) -> TextGuesses:
        """Write the text of each vector."""
        from leakboard.models.language_model import write_texts

        separator, units = " " if self.options.unit == "words" else "", self.vocabulary.units
        written = write_texts(self.model, self.scaling(vectors), units, self.options.longest)
        texts = [separator.join(text) for text in written]
        return TextGuesses(texts, details=f"{self.options.unit} of a vocabulary of {len(units)}{self.remark}")
