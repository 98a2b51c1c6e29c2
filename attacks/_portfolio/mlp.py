"""Train an MLP with one head for each secret (Coavoux et al. 2018), or one for each secret (Lyu, He and Li 2020)."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Lock

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from leakboard.attacks._portfolio.members import Release, Scorer, Scores, Task, Trained
from leakboard.execution import devices
from leakboard.interfaces import Floats, Integers
from leakboard.models.training import shuffled, train
from leakboard.randomness import seeded
from leakboard.threats.secrets import KnownTexts

Batches = Callable[[], Iterator[tuple[torch.Tensor, torch.Tensor]]]
"""Yields the batches of the next epoch: inputs, float32 (n, d), and secrets, int64 (n, secrets)."""
_INITIALISING = Lock()
EPOCH = 65_536
"""Largest number of texts in an epoch. Of more texts, each epoch has the next part, until all had their turn."""


class _Heads(torch.nn.Module):
    """Hidden ReLU layers and one softmax head for each secret; one matrix holds all heads and masks unused columns."""

    mask: torch.Tensor

    def __init__(self, inputs: int, hidden: int, sizes: Sequence[int], layers: int):
        super().__init__()
        self.shape = (len(sizes), max(sizes))
        widths = [inputs, *[hidden] * layers]
        self.hidden = torch.nn.ModuleList(torch.nn.Linear(*pair) for pair in itertools.pairwise(widths))
        self.output = torch.nn.Linear(hidden, len(sizes) * max(sizes))
        unused = torch.arange(max(sizes)) >= torch.tensor(sizes).unsqueeze(1)
        self.register_buffer("mask", torch.zeros(self.shape).masked_fill(unused, -1e9))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return logits, float32 (n, secrets, values)."""
        for layer in self.hidden:
            vectors = torch.relu(layer(vectors))
        return self.output(vectors).unflatten(1, self.shape) + self.mask


def fit_mlp(task: Task) -> Trained:
    """Train a network for all secrets, or one for each if ``portfolio`` is ``lyu``; scores are log-probabilities."""
    if task.options.portfolio != "lyu":
        return Trained(_fit_network(task))
    scorers = [_fit_network(replace(task, secrets=(secret,))) for secret in task.secrets]
    return Trained(lambda vectors: {name: one for scorer in scorers for name, one in scorer(vectors).items()})


def fit_mlp_under_noise(task: Task) -> Trained:
    """Train a network that sees its texts with fresh noise in each epoch; the inputs of the mechanism are known.

    Raises:
        ValueError: the inputs of the known texts, or the mechanism, are unknown.
    """
    if task.release is None or task.train.inputs is None:
        raise ValueError("the vectors before the noise are unknown")
    return Trained(_fit_network(task, task.release))


def fit_mlp_with_made_texts(task: Task) -> Trained:
    """Train a network with two hidden layers on known and on made texts, with fresh noise if all inputs are known."""
    assert task.made_texts is not None, "this member needs made texts"
    both = KnownTexts.joined([task.train, task.made_texts])
    return Trained(_fit_network(replace(task, train=both), task.release if both.inputs is not None else None, layers=2))


def _fit_network(task: Task, release: Release | None = None, layers: int = 1) -> Scorer:
    """Train a network, and keep the epoch of least loss on dev.

    Args:
        task: its texts and secrets.
        release: adds fresh noise to the texts' inputs in each epoch; None: the network sees one publication.
        layers: number of hidden layers.
    """
    options, secrets = task.options, task.secrets
    generator = torch.Generator().manual_seed(task.seed)
    dev = _tensors(task, task.dev)
    with _INITIALISING, seeded(task.seed):  # layers draw their weights from torch's global generator
        network = _Heads(dev[0].shape[1], options.hidden, [len(secret.values) for secret in secrets], layers)
    network.to(dev[0].device)

    def loss(batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        vectors, values = batch
        return cross_entropy(network(vectors).flatten(0, 1), values.flatten())

    train(
        network,
        _noisy_epochs(task, generator, release) if release else _epochs(task, generator),
        loss,
        lambda: loss(dev).item(),
        optimiser=torch.optim.Adam(network.parameters(), lr=options.learning_rate, fused=True),
        epochs=options.epochs,
        patience=options.patience,
    )

    @torch.no_grad()
    def scorer(vectors: Floats) -> Scores:
        logits = torch.log_softmax(network(_tensor(task.inputs(vectors))), 2).cpu().numpy()
        return {s.name: logits[:, i, : len(s.values)] for i, s in enumerate(secrets)}

    return scorer


def _epochs(task: Task, generator: torch.Generator) -> Batches:
    """Return a function that yields the next epoch's batches: all of train in random order, or the next part of it."""
    count, size = len(task.train.vectors), task.options.batch_size
    if count <= EPOCH:
        inputs, targets = _tensors(task, task.train)
        return lambda: ((inputs[rows], targets[rows]) for rows in shuffled(count, size, generator))

    def parts() -> Iterator[torch.Tensor]:
        while True:
            yield from torch.randperm(count, generator=generator).chunk(-(-count // EPOCH))

    remaining = parts()

    def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        inputs, targets = _tensors(task, task.train, next(remaining).numpy())
        return zip(inputs.split(size), targets.split(size), strict=True)

    return batches


def _noisy_epochs(task: Task, generator: torch.Generator, release: Release) -> Batches:
    """Return a function that yields batches of at most `EPOCH` random texts, with fresh noise at each call."""
    rng = np.random.default_rng(task.seed)

    def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        assert task.train.inputs is not None
        rows = torch.randperm(len(task.train.vectors), generator=generator)[:EPOCH].numpy()
        noisy = release(task.train.inputs[rows], rng).astype(np.float32)
        inputs, targets, size = _tensor(task.inputs(noisy)), _targets(task, task.train, rows), task.options.batch_size
        return zip(inputs.split(size), targets.split(size), strict=True)

    return batches


def _tensors(task: Task, texts: KnownTexts, rows: Integers | slice = slice(None)) -> tuple[torch.Tensor, torch.Tensor]:
    return _tensor(task.inputs(texts.vectors[rows])), _targets(task, texts, rows)


def _targets(task: Task, texts: KnownTexts, rows: Integers | slice) -> torch.Tensor:
    return _tensor(np.stack([texts.values[secret.name][rows] for secret in task.secrets], axis=1))


def _tensor(array: np.ndarray) -> torch.Tensor:
    """Return a tensor on the device in force."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(devices.device())
