"""Terms that are trained into an encoder against an attacker: each an adversary, a penalty, or both.

An adversary learns to guess the secrets, or the text, from the encoder's vectors; the penalty rewards the encoder for
its failure. Whoever measures privacy trains attackers of their own: the adversary that an encoder was trained to fool
is not the one that it will meet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.metrics import f1_score
from torch.nn.functional import cross_entropy

from leakboard.classifier import LinearClassifier
from leakboard.interfaces import Corpus
from leakboard.randomness import derived_seed, seeded
from leakboard.task_model import Adversary, Vectors

BATCH = 256
"""Texts that are encoded at once for an attacker (texts)."""

Penalty = Callable[[Vectors, list[int]], torch.Tensor]


@dataclass(frozen=True)
class Setting:
    """What a term is made of."""

    corpus: Corpus
    dimension: int
    """Of the encoder's vectors."""
    device: torch.device
    encode: Callable[[Sequence[int], str], Vectors]
    """Encodes rows of a split."""
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


def _classifier(setting: Setting, sizes: Sequence[int]) -> torch.nn.Sequential:
    outputs = torch.nn.Linear(setting.hidden, sum(sizes))
    return torch.nn.Sequential(torch.nn.Linear(setting.dimension, setting.hidden), torch.nn.ReLU(), outputs)


def _sizes(setting: Setting) -> list[int]:
    return [len(secret.values) for secret in setting.corpus.secrets]


def multidetasking(setting: Setting) -> tuple[Adversary | None, Penalty]:
    """An attacker is trained along, and the encoder towards what it does not say (Coavoux et al. 2018, section 3.1).

    The adversary minimises -log P(z | r); encoder and head minimise -log P(not z | r) beside the task. Of a binary
    secret "not z" is the flipped bit, as in the paper; of one with more values it is any but the true one.
    """
    truth, sizes = setting.secrets(), _sizes(setting)
    with seeded(derived_seed(setting.seed, "adversary")):
        network = _classifier(setting, sizes)

    def loss(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        parts = network(vectors).split(sizes, dim=1)
        return sum((cross_entropy(part, truth[rows, i]) for i, part in enumerate(parts)), torch.zeros(()))

    def penalty(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        total = torch.zeros((), device=vectors.device)
        for i, part in enumerate(network(vectors).split(sizes, dim=1)):
            others = part.scatter(1, truth[rows, i : i + 1], -torch.inf)
            total = total + (part.logsumexp(1) - others.logsumexp(1)).mean()
        return total

    return setting.adversary(network, loss), penalty


def gradient_reversal(setting: Setting) -> tuple[Adversary | None, Penalty]:
    """Min over encoder and head, max over discriminators, one a secret, of the task's loss less theirs.

    Li, Baldwin and Cohn (2018, equation 1), where the discriminators step first.
    """
    truth, sizes = setting.secrets(), _sizes(setting)
    with seeded(derived_seed(setting.seed, "adversary")):
        networks = torch.nn.ModuleList(_classifier(setting, [size]) for size in sizes)

    def loss(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        parts = (cross_entropy(network(vectors), truth[rows, i]) for i, network in enumerate(networks))
        return sum(parts, torch.zeros((), device=vectors.device))

    return setting.adversary(networks, loss), lambda vectors, rows: -loss(vectors, rows)


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


def generation(setting: Setting) -> tuple[Adversary | None, Penalty]:
    """A generator learns to write the text from its vector, and the encoder to make that hard (section 3.2).

    It needs no secrets. The paper sums the losses of a text's characters; here they are averaged, so that long texts
    do not outweigh the task. What the encoder can win is not bounded.
    """
    texts = [text[: setting.characters] for text in setting.corpus.texts("train")]
    alphabet = {character: code for code, character in enumerate(sorted(set().union(*texts)), 3)}
    coded = [torch.tensor([1, *(alphabet[character] for character in text), 2]) for text in texts]
    with seeded(derived_seed(setting.seed, "adversary")):
        network = CharacterModel(len(alphabet) + 3, setting.dimension)

    def loss(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        padded = torch.nn.utils.rnn.pad_sequence([coded[row] for row in rows], batch_first=True)
        found: torch.Tensor = network(vectors, padded.to(vectors.device))
        return found

    return setting.adversary(network, loss), lambda vectors, rows: -loss(vectors, rows)


def declustering(setting: Setting) -> tuple[Adversary | None, Penalty]:
    """Texts with like secrets are pushed apart, texts with unlike ones pulled together (section 3.3).

    The term is (0.5 - l(z, z')) ||r - r'||^2 with r' of a random text of train. The paper names l the Hamming
    distance, under which the sign would do the opposite of what it says; its code takes the share of agreeing secrets,
    as here. The term is bounded below only where the vectors are.
    """
    truth = setting.secrets()
    generator = torch.Generator().manual_seed(derived_seed(setting.seed, "pairs"))

    def penalty(vectors: Vectors, rows: list[int]) -> torch.Tensor:
        others = torch.randint(len(truth), (len(rows),), generator=generator).tolist()
        agree = (truth[rows] == truth[others]).float().mean(1)
        distance = (vectors - setting.encode(others, "train")).square().sum(1)
        return ((0.5 - agree) * distance).mean()

    return None, penalty


TERMS: Mapping[str, Callable[[Setting], tuple[Adversary | None, Penalty]]] = {
    "multidetasking": multidetasking,
    "gradient_reversal": gradient_reversal,
    "generation": generation,
    "declustering": declustering,
}


def dev_privacy(corpus: Corpus, encode: Callable[[Sequence[int], str], Vectors]) -> float:
    """Return what fresh linear attackers, trained on the vectors of train, leave on dev: 1 - score.

    The score is the mean accuracy over attributes, or the micro F1 over entities, whichever is higher.
    """
    vectors = {
        split: np.concatenate(
            [encode(rows.tolist(), split).cpu().numpy() for rows in torch.arange(len(corpus.texts(split))).split(BATCH)]
        )
        for split in ("train", "dev")
    }
    scores = []
    for kind in ("attribute", "entity"):
        if names := [secret.name for secret in corpus.secrets if secret.kind == kind]:
            attackers = [LinearClassifier.fit(vectors["train"], corpus.column("train", name)) for name in names]
            guessed = np.stack([attacker.predict(vectors["dev"]) for attacker in attackers])
            truth = np.stack([corpus.column("dev", name) for name in names])
            entity = kind == "entity"
            scores.append(f1_score(truth.ravel(), guessed.ravel()) if entity else np.mean(truth == guessed))
    return 1.0 - float(max(scores))
