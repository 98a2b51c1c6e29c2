"""Build the defences that are trained into an encoder: each has a penalty, and most have an adversary.

An adversary learns to guess the secrets, or the text, from the encoder's vectors. The penalty rewards the encoder when
the adversary fails. Privacy must be measured by newly trained attackers: an encoder that fools the adversary of its
training may not fool another attacker.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from leakboard.interfaces import Corpus
from leakboard.models.encoder import Encoder
from leakboard.models.recipe import Batches, Encode
from leakboard.models.training import Adversary, Vectors
from leakboard.randomness import derived_seed, seeded

Penalty = Callable[[Vectors, list[int]], torch.Tensor]
"""Returns a scalar, given the encoder's vectors of some train texts and their rows."""
Term = tuple[Adversary | None, Penalty]


@dataclass(frozen=True)
class AdversaryContext:
    """Everything that a defence is built from."""

    corpus: Corpus
    encoder: Encoder
    encode: Encode
    batches: Batches
    seed: int
    hidden: int
    """ReLU units of the adversary."""
    learning_rate: float
    """Learning rate of the adversary (Adam)."""
    characters: int
    """Longest text that the generator reads (characters)."""

    def secrets(self) -> torch.Tensor:
        """Return the secrets of train, int64 (n, secrets)."""
        columns = [self.corpus.column("train", secret.name) for secret in self.corpus.secrets]
        return torch.from_numpy(np.stack(columns, axis=1)).to(self.encoder.device)

    def value_counts(self) -> list[int]:
        """Return the number of values of each secret."""
        return [len(secret.values) for secret in self.corpus.secrets]

    def classifier(self, outputs: int) -> torch.nn.Sequential:
        """Return an untrained network with one ReLU layer, from vectors to ``outputs`` logits."""
        output = torch.nn.Linear(self.hidden, outputs)
        return torch.nn.Sequential(torch.nn.Linear(self.encoder.dimension, self.hidden), torch.nn.ReLU(), output)

    def adversary(self, module: torch.nn.Module, loss: Penalty) -> Adversary:
        """Return an adversary that trains the module by its own Adam."""
        module.to(self.encoder.device)
        return Adversary(module, loss, torch.optim.Adam(module.parameters(), lr=self.learning_rate))


def multidetasking(context: AdversaryContext) -> Term:
    """Train an adversary, and reward the encoder if it predicts flipped secrets (Coavoux et al. 2018).

    The adversary minimises -log P(z | r). Encoder and head minimise the task's loss and -log P(not z | r). If the
    secret is binary, "not z" is the flipped bit, as in the paper; otherwise it is any value but the true one.
    """
    truth, sizes = context.secrets(), context.value_counts()
    with seeded(derived_seed(context.seed, "adversary")):
        network = context.classifier(sum(sizes))

    def loss(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        parts = network(vectors).split(sizes, dim=1)
        losses = (cross_entropy(part, truth[rows, i]) for i, part in enumerate(parts))
        return sum(losses, torch.zeros((), device=vectors.device))

    def penalty(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        total = torch.zeros((), device=vectors.device)
        for i, part in enumerate(network(vectors).split(sizes, dim=1)):
            others = part.scatter(1, truth[rows, i : i + 1], -torch.inf)
            total = total + (part.logsumexp(1) - others.logsumexp(1)).mean()
        return total

    return context.adversary(network, loss), penalty


def gradient_reversal(context: AdversaryContext) -> Term:
    """Minimise over encoder and head, and maximise over the discriminators, the task's loss minus the discriminators'.

    There is one discriminator for each secret (Li, Baldwin and Cohn 2018). Here the discriminators step first.
    """
    truth = context.secrets()
    with seeded(derived_seed(context.seed, "adversary")):
        networks = torch.nn.ModuleList(context.classifier(count) for count in context.value_counts())

    def loss(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        parts = (cross_entropy(network(vectors), truth[rows, i]) for i, network in enumerate(networks))
        return sum(parts, torch.zeros((), device=vectors.device))

    return context.adversary(networks, loss), lambda vectors, rows: -loss(vectors, rows)


class CharacterModel(torch.nn.Module):
    """A language model of characters: the vector is the first cell state of its LSTM (code of Coavoux et al.)."""

    def __init__(self, characters: int, dimension: int):
        super().__init__()
        self.characters = torch.nn.Embedding(characters, 32)
        self.lstm = torch.nn.LSTM(32, dimension, batch_first=True)
        self.output = torch.nn.Linear(dimension, characters)

    def forward(self, vectors: Vectors, texts: torch.Tensor) -> torch.Tensor:
        """Return the mean of -ln P(character | earlier characters, vector); texts: int64 (n, length), padded with 0."""
        cell = vectors.unsqueeze(0)
        states, _ = self.lstm(self.characters(texts[:, :-1]), (torch.zeros_like(cell), cell.contiguous()))
        return cross_entropy(self.output(states).flatten(0, 1), texts[:, 1:].flatten(), ignore_index=0)


def generation(context: AdversaryContext) -> Term:
    """Train a generator to write the text from its vector, and the encoder to prevent this (Coavoux et al. 2018).

    This needs no secrets. The paper sums the losses of all characters of a text. Here the losses of the first
    characters are averaged, so that long texts do not outweigh the task. The paper's weight of 1 is about 100 here. The
    loss that the encoder can cause has no bound.
    """
    texts = [text[: context.characters] for text in context.corpus.texts("train")]
    alphabet = {character: code for code, character in enumerate(sorted(set().union(*texts)), 3)}
    coded = [torch.tensor([1, *(alphabet[character] for character in text), 2]) for text in texts]
    with seeded(derived_seed(context.seed, "adversary")):
        network = CharacterModel(len(alphabet) + 3, context.encoder.dimension)

    def loss(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        padded = torch.nn.utils.rnn.pad_sequence([coded[row] for row in rows], batch_first=True)
        losses: torch.Tensor = network(vectors, padded.to(vectors.device))
        return losses

    return context.adversary(network, loss), lambda vectors, rows: -loss(vectors, rows)


def declustering(context: AdversaryContext) -> Term:
    """Push texts with equal secrets apart, and pull texts with different secrets together (Coavoux et al. 2018).

    The penalty is (0.5 - l(z, z')) ||r - r'||^2, where r' is the vector of a random text of train. The paper calls l
    the Hamming distance, but the penalty would then do the opposite. In its code, as here, l is the share of equal
    secrets. The penalty has a lower bound only if the vectors are bounded, like those of an LSTM.
    """
    truth = context.secrets()
    generator = torch.Generator().manual_seed(derived_seed(context.seed, "pairs"))
    # batches of similar length: padding would otherwise cost more than everything else
    endless = itertools.chain.from_iterable(context.batches(generator) for _ in itertools.count())

    def penalty(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        others = list(itertools.islice(itertools.cycle(next(endless)), len(rows)))
        agree = (truth[rows] == truth[others]).float().mean(1)
        distance = (vectors - context.encode(others, "train")).square().sum(1)
        return ((0.5 - agree) * distance).mean()

    return None, penalty


TERMS: Mapping[str, Callable[[AdversaryContext], Term]] = {
    "multidetasking": multidetasking,
    "gradient_reversal": gradient_reversal,
    "generation": generation,
    "declustering": declustering,
}
"""Builds the defence of each method that is trained into the encoder."""
