"""Bag-of-words inversion: guess which words are in the text of a published vector.

The multi-label attack of Song and Raghunathan (2020, Information Leakage in Embedding Models, section 3): one linear
layer with a sigmoid for each word of the vocabulary, trained by binary cross entropy on the texts that the attacker
knows. The attacker names the words above a threshold. Dev chooses the threshold with the best token F1. The attacker
guesses neither the order nor the number of words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
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
    import torch


DEV_TEXTS = 2_000
"""Largest number of dev texts that choose the epoch and the threshold; also the number of texts guessed at once."""
LEAST_STEPS = 40
"""Fewest steps of an epoch: a pass over 1,000 texts has four, and 30 such passes learn little."""


Split = Callable[[Sequence[str]], list[list[str]]]
"""Splits texts into units."""


@attack(revision=2)
class BagOfWords(TextsAttack):
    vocabulary: Count = 5_000
    """Number of words that the attacker can name: the most frequent words of the texts that it knows."""
    hidden: Count | None = None
    """Number of ReLU units in a layer between vector and words; null: no such layer, as in the paper."""
    epochs: Count = 30
    """Largest number of epochs: passes over the attacker's texts; of few texts, as many passes as make 40 steps."""
    patience: Count = 2
    """Stop after this many epochs without a better dev loss."""
    batch_size: Count = 256
    """Texts in each step."""
    learning_rate: Annotated[float, Field(gt=0)] = 5e-3
    """Learning rate of Adam."""

    uses_gpu: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an attack that trains a narrow network for one epoch."""
        return cls(hidden=8, epochs=1, batch_size=16)

    def fit(self, view: TextsView, seed: int) -> "FittedBagOfWords":
        """Train on the texts that the attacker knows and on their vectors, and choose the threshold on dev."""
        return self.fit_units(view, seed, lambda texts: [words(text) for text in texts])

    def fit_units(self, view: TextsView, seed: int, split: Split) -> "FittedBagOfWords":
        """Train a bag of units, such as words or pieces of words, into which ``split`` splits texts."""
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits

        from leakboard.execution.devices import device
        from leakboard.metrics.measures import best_offset
        from leakboard.models.training import limit_remark, passes_for, shuffled, train

        scaling, vectors, dev_vectors = standardised_vectors(view)
        units, dev_units = (split(texts) for texts in (view.train.texts, view.dev.texts[:DEV_TEXTS]))
        vocabulary = Vocabulary.of(units, self.vocabulary)
        inputs, dev_inputs = (torch.from_numpy(part).to(device()) for part in (vectors, dev_vectors[:DEV_TEXTS]))
        codes, dev_codes = (vocabulary.codes(map(set, texts)) for texts in (units, dev_units))
        generator = torch.Generator().manual_seed(seed)
        passes = passes_for(LEAST_STEPS, len(inputs), self.batch_size)
        with seeded(seed):
            network = self._network(inputs.shape[1], vocabulary).to(device())
            optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate)

            def loss(batch: list[int]) -> torch.Tensor:
                present = _present([codes[i] for i in batch], len(vocabulary.units))
                return binary_cross_entropy_with_logits(network(inputs[batch]), present) * len(vocabulary.units)

            dev_present = _present(dev_codes, len(vocabulary.units))
            history = train(
                network,
                lambda: (batch.tolist() for batch in shuffled(len(inputs), self.batch_size, generator)),
                loss,
                lambda: binary_cross_entropy_with_logits(network(dev_inputs), dev_present).item(),
                optimiser=optimiser,
                epochs=passes * self.epochs,
                patience=passes * self.patience,
                log_epochs=True,
            )
        with torch.no_grad():
            margins = network(dev_inputs).cpu().numpy().ravel()
        offset = best_offset(margins, dev_present.cpu().numpy().ravel().astype(np.int64))
        return FittedBagOfWords(vocabulary, scaling, network, offset, limit_remark(history, passes * self.epochs))

    def _network(self, dimension: int, vocabulary: Vocabulary) -> "torch.nn.Module":
        """Return a network that predicts, before training, for every text the share of texts with each word."""
        import torch
        from scipy.special import logit

        output = torch.nn.Linear(self.hidden or dimension, len(vocabulary.units))
        with torch.no_grad():
            output.weight.zero_()
            output.bias.copy_(torch.from_numpy(logit(np.clip(vocabulary.shares, 1e-6, 1 - 1e-6))))
        if self.hidden is None:
            return output
        return torch.nn.Sequential(torch.nn.Linear(dimension, self.hidden), torch.nn.ReLU(), output)


def _present(texts: list[list[int]], size: int) -> "torch.Tensor":
    """Return whether each text has each word, float32 (texts, size), 0 or 1."""
    import torch

    from leakboard.execution.devices import device

    present = torch.zeros(len(texts), size)
    for row, codes in enumerate(texts):
        present[row, codes] = 1.0
    return present.to(device())


@dataclass(frozen=True)
class FittedBagOfWords:
    vocabulary: Vocabulary
    scaling: Scaling
    network: "torch.nn.Module"
    offset: float
    """Added to the log-odds of every word."""
    remark: str = ""
    """About the training; empty if there is none."""

    def __call__(self, vectors: Floats) -> TextGuesses:
        """Name the words of each text, the likeliest word first."""
        texts = []
        for start in range(0, len(vectors), DEV_TEXTS):
            for row in self.log_odds(vectors[start : start + DEV_TEXTS]) + self.offset:
                named = np.flatnonzero(row > 0)
                texts.append(" ".join(self.vocabulary.units[code] for code in named[np.argsort(-row[named])]))
        remark = f"{len(self.vocabulary.units)} words, threshold {1 / (1 + np.exp(self.offset)):.2f} chosen on dev"
        return TextGuesses(texts, ordered=False, details=remark + self.remark)

    def log_odds(self, vectors: Floats) -> Floats:
        """Return the log-odds that each word of the vocabulary is in a text, float32 (n, words)."""
        import torch

        from leakboard.execution.devices import device

        with torch.no_grad():
            odds: Floats = self.network(torch.from_numpy(self.scaling(vectors)).to(device())).cpu().numpy()
        return odds
