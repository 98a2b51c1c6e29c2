"""Train an MLP with one head for each secret, as in Coavoux et al. (2018) and DPNR (Lyu, He and Li 2020)."""

from collections.abc import Sequence
from threading import Lock

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from leakboard.attacks._portfolio.members import Scores, Task, Trained
from leakboard.execution import devices
from leakboard.interfaces import Floats, Secret
from leakboard.models.training import shuffled, train
from leakboard.randomness import seeded
from leakboard.threats.secrets import KnownTexts

_INITIALISING = Lock()


class _Heads(torch.nn.Module):
    """A hidden ReLU layer and one softmax head for each secret; one matrix holds all heads and masks unused columns."""

    mask: torch.Tensor

    def __init__(self, inputs: int, hidden: int, sizes: Sequence[int]):
        super().__init__()
        self.shape = (len(sizes), max(sizes))
        self.hidden = torch.nn.Linear(inputs, hidden)
        self.output = torch.nn.Linear(hidden, len(sizes) * max(sizes))
        unused = torch.arange(max(sizes)) >= torch.tensor(sizes).unsqueeze(1)
        self.register_buffer("mask", torch.zeros(self.shape).masked_fill(unused, -1e9))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return logits, float32 (n, secrets, values)."""
        return self.output(torch.relu(self.hidden(vectors))).unflatten(1, self.shape) + self.mask


def fit_mlp(task: Task) -> Trained:
    """Train a network, and keep the epoch of least loss on dev; its scores are log-probabilities."""
    options, secrets = task.options, task.secrets
    generator = torch.Generator().manual_seed(task.seed)
    inputs, targets = _tensors(task.train, secrets)
    dev_inputs, dev_targets = _tensors(task.dev, secrets)
    with _INITIALISING, seeded(task.seed):  # layers draw their weights from torch's global generator
        network = _Heads(inputs.shape[1], options.hidden, [len(secret.values) for secret in secrets])
    network.to(inputs.device)

    def loss(vectors: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return cross_entropy(network(vectors).flatten(0, 1), values.flatten())

    train(
        network,
        lambda: shuffled(len(inputs), options.batch_size, generator),
        lambda batch: loss(inputs[batch], targets[batch]),
        lambda: loss(dev_inputs, dev_targets).item(),
        optimiser=torch.optim.Adam(network.parameters(), lr=options.learning_rate, fused=True),
        epochs=options.epochs,
        patience=options.patience,
    )

    @torch.no_grad()
    def scorer(vectors: Floats) -> Scores:
        logits = torch.log_softmax(network(_tensor(vectors)), 2).cpu().numpy()
        return {s.name: logits[:, i, : len(s.values)] for i, s in enumerate(secrets)}

    return Trained(scorer)


def _tensors(texts: KnownTexts, secrets: tuple[Secret, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    targets = np.stack([texts.values[secret.name] for secret in secrets], axis=1)
    return _tensor(texts.vectors), _tensor(targets)


def _tensor(array: np.ndarray) -> torch.Tensor:
    """Return a tensor on the device in force."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(devices.device())
