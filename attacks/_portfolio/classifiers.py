"""The classifiers of the portfolio: logistic regression a secret, and an MLP with a head for each."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from leakboard.attacks._portfolio.members import Scores, Trained
from leakboard.execution import devices
from leakboard.interfaces import Floats, Secret
from leakboard.models.training import shuffled, train
from leakboard.threats.secrets import KnownTexts

if TYPE_CHECKING:
    from leakboard.attacks._portfolio.portfolio import PortfolioAttack


def fit_logistic(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return the scores of a logistic regression a secret, and a remark where one did not converge."""
    return _logistic(train, secrets)._replace(again=lambda texts: _logistic(texts, secrets))


def _logistic(texts: KnownTexts, secrets: tuple[Secret, ...]) -> Trained:
    models: dict[str, LogisticRegression] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        for secret in secrets:
            if len(np.unique(texts.values[secret.name])) > 1:
                models[secret.name] = LogisticRegression(max_iter=200).fit(texts.vectors, texts.values[secret.name])

    def scores(vectors: Floats) -> Scores:
        result = {}
        for secret in secrets:
            result[secret.name] = full = np.full((len(vectors), len(secret.values)), -30.0, np.float32)
            if secret.name in models:
                with np.errstate(divide="ignore"):  # a probability of 0 is clipped like all below e**-30
                    full[:, models[secret.name].classes_] = models[secret.name].predict_log_proba(vectors).clip(-30)
            else:
                full[:, texts.values[secret.name][0]] = 0.0
        return result

    stopped = any(issubclass(entry.category, ConvergenceWarning) for entry in caught)
    return Trained(scores, remark=" (stopped at 200 iterations)" if stopped else "")


class _Heads(torch.nn.Module):
    """Hidden ReLU layer and one softmax head a secret, as one matrix with unused columns masked."""

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


def fit_mlp(
    texts: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return the log-probabilities of a network that was stopped at its best epoch on dev."""
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = _tensors(texts, secrets)
    dev_inputs, dev_targets = _tensors(dev, secrets)
    network = _Heads(inputs.shape[1], options.hidden, [len(secret.values) for secret in secrets]).to(inputs.device)
    optimiser = torch.optim.Adam(network.parameters(), lr=options.learning_rate, fused=True)

    def cross_entropy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(network(x).flatten(0, 1), y.flatten())

    train(
        network,
        lambda: shuffled(len(inputs), options.batch_size, generator),
        lambda batch: cross_entropy(inputs[batch], targets[batch]),
        lambda: cross_entropy(dev_inputs, dev_targets).item(),
        optimiser=optimiser,
        epochs=options.epochs,
        patience=options.patience,
    )

    @torch.no_grad()
    def scores(vectors: Floats) -> Scores:
        logits = torch.log_softmax(network(_placed(vectors)), 2).cpu().numpy()
        return {s.name: logits[:, i, : len(s.values)] for i, s in enumerate(secrets)}

    return Trained(scores)


def _tensors(texts: KnownTexts, secrets: tuple[Secret, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    targets = np.stack([texts.values[secret.name] for secret in secrets], axis=1)
    return _placed(texts.vectors), _placed(targets)


def _placed(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(devices.device())
