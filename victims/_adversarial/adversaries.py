"""Terms that are trained into an encoder against an attacker: each an adversary, a penalty, or both.

An adversary learns to guess the secrets, or the text, from the encoder's vectors; the penalty rewards the encoder for
its failure. Whoever measures privacy trains attackers of their own: the adversary that an encoder was trained to fool
is not the one that it will meet.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from leakboard.interfaces import Corpus
from leakboard.models.training import Adversary, Vectors
from leakboard.randomness import derived_seed, seeded

Penalty = Callable[[Vectors, list[int]], torch.Tensor]


@dataclass(frozen=True)
class AdversaryContext:
    """What a term is made of."""

    corpus: Corpus
    dimension: int
    """Of the encoder's vectors."""
    device: torch.device
    encode: Callable[[Sequence[int], str], Vectors]
    """Encodes rows of a split."""
    batches: Callable[[torch.Generator], Iterator[list[int]]]
    """Yields the rows of train once, in random batches that the encoder takes well."""
    seed: int
    hidden: int
    """ReLU units of an adversary."""
    learning_rate: float
    """Adam's, of an adversary."""
    characters: int
    """Longest text that a generator reads (characters)."""

    def secrets(self) -> torch.Tensor:
        """Return the secrets of train, int64 (n, secrets)."""
        columns = [self.corpus.column("train", secret.name) for secret in self.corpus.secrets]
        return torch.from_numpy(np.stack(columns, axis=1)).to(self.device)

    def adversary(self, module: torch.nn.Module, loss: Callable[[Vectors, list[int]], torch.Tensor]) -> Adversary:
        """Return a module that learns by an Adam of its own."""
        module.to(self.device)
        return Adversary(module, loss, torch.optim.Adam(module.parameters(), lr=self.learning_rate))


def _classifier(context: AdversaryContext, sizes: Sequence[int]) -> torch.nn.Sequential:
    outputs = torch.nn.Linear(context.hidden, sum(sizes))
    return torch.nn.Sequential(torch.nn.Linear(context.dimension, context.hidden), torch.nn.ReLU(), outputs)


def _sizes(context: AdversaryContext) -> list[int]:
    return [len(secret.values) for secret in context.corpus.secrets]


def multidetasking(context: AdversaryContext) -> tuple[Adversary | None, Penalty]:
    """An adversary is trained along, and the encoder rewarded where it predicts flipped secrets (Coavoux et al. 2018).

    The adversary minimises -log P(z | r); encoder and head minimise -log P(not z | r) beside the task. Of a binary
    secret "not z" is the flipped bit, as in the paper; of one with more values it is any but the true one.
    """
    truth, sizes = context.secrets(), _sizes(context)
    with seeded(derived_seed(context.seed, "adversary")):
        network = _classifier(context, sizes)

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


def gradient_reversal(context: AdversaryContext) -> tuple[Adversary | None, Penalty]:
    """Min over encoder and head, max over discriminators, one a secret, of the task's loss less theirs.

    Li, Baldwin and Cohn (2018); here the discriminators step first.
    """
    truth, sizes = context.secrets(), _sizes(context)
    with seeded(derived_seed(context.seed, "adversary")):
        networks = torch.nn.ModuleList(_classifier(context, [size]) for size in sizes)

    def loss(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        parts = (cross_entropy(network(vectors), truth[rows, i]) for i, network in enumerate(networks))
        return sum(parts, torch.zeros((), device=vectors.device))

    return context.adversary(networks, loss), lambda vectors, rows: -loss(vectors, rows)


class CharacterModel(torch.nn.Module):
    """A language model of characters whose LSTM starts from the vector as its cell state (Coavoux et al.'s code)."""

    def __init__(self, characters: int, dimension: int):
        super().__init__()
        self.characters = torch.nn.Embedding(characters, 32)
        self.lstm = torch.nn.LSTM(32, dimension, batch_first=True)
        self.output = torch.nn.Linear(dimension, characters)

    def forward(self, vectors: Vectors, texts: torch.Tensor) -> torch.Tensor:
        """Return the mean of -ln P(character | those before, vector); texts are int64 (n, length), padded with 0."""
        cell = vectors.unsqueeze(0)
        states, _ = self.lstm(self.characters(texts[:, :-1]), (torch.zeros_like(cell), cell.contiguous()))
        return cross_entropy(self.output(states).flatten(0, 1), texts[:, 1:].flatten(), ignore_index=0)


def generation(context: AdversaryContext) -> tuple[Adversary | None, Penalty]:
    """A generator learns to write the text from its vector, and the encoder to make that hard (Coavoux et al. 2018).

    It needs no secrets. The paper sums the losses of all of a text's characters; here the first ones' are averaged, so
    that long texts do not outweigh the task: its weight of 1 is about one of 100 here. The gain has no bound.
    """
    texts = [text[: context.characters] for text in context.corpus.texts("train")]
    alphabet = {character: code for code, character in enumerate(sorted(set().union(*texts)), 3)}
    coded = [torch.tensor([1, *(alphabet[character] for character in text), 2]) for text in texts]
    with seeded(derived_seed(context.seed, "adversary")):
        network = CharacterModel(len(alphabet) + 3, context.dimension)

    def loss(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        padded = torch.nn.utils.rnn.pad_sequence([coded[row] for row in rows], batch_first=True)
        losses: torch.Tensor = network(vectors, padded.to(vectors.device))
        return losses

    return context.adversary(network, loss), lambda vectors, rows: -loss(vectors, rows)


def declustering(context: AdversaryContext) -> tuple[Adversary | None, Penalty]:
    """Texts with like secrets are pushed apart, texts with unlike ones pulled together (Coavoux et al. 2018).

    The term is (0.5 - l(z, z')) ||r - r'||^2 with r' of a random text of train, whatever the first. The paper names l
    the Hamming distance, under which the sign would do the opposite of what it says; its code takes the share of
    agreeing secrets, as here. The term is bounded below only where the vectors are, as an LSTM's.
    """
    truth = context.secrets()
    generator = torch.Generator().manual_seed(derived_seed(context.seed, "pairs"))
    # Drawn by batches of like length, since the padding of unlike ones would cost more than the rest
    endless = itertools.chain.from_iterable(context.batches(generator) for _ in itertools.count())

    def penalty(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        others = list(itertools.islice(itertools.cycle(next(endless)), len(rows)))
        agree = (truth[rows] == truth[others]).float().mean(1)
        distance = (vectors - context.encode(others, "train")).square().sum(1)
        return ((0.5 - agree) * distance).mean()

    return None, penalty


TERMS: Mapping[str, Callable[[AdversaryContext], tuple[Adversary | None, Penalty]]] = {
    "multidetasking": multidetasking,
    "gradient_reversal": gradient_reversal,
    "generation": generation,
    "declustering": declustering,
}
"""What each method trains in."""
