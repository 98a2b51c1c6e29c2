"""A stacked ensemble: for each secret the members' log-probabilities, weighted by what helps on dev.

Stacking with weights that are not negative (Wolpert 1992; Breiman 1996) in the log-odds: each member is calibrated by
a scale, and the calibrated ones are added with weights that minimise the log-loss on dev. A prior draws the weights
towards what each member's likelihood on dev alone says (as in Bayesian model averaging), so that a small dev spreads
them over the members that it cannot tell apart. Nothing is shifted: how frequent each value is, members know from
train, and a dev of a few authors would tell them wrong. Members that count then learn from dev, too, but for networks,
which stop where dev says.

What the ensemble scores on dev is a little too good, since its weights were found there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._portfolio.inputs import Rotated, Scaling
from leakboard.attacks._portfolio.members import Family, Member, Scores, log_loss
from leakboard.attacks._portfolio.trainer import Trainer
from leakboard.interfaces import Floats, Integers

Array = NDArray[np.float64]

CHEAP: Sequence[Family] = ("logistic", "discriminant", "neighbours")
"""Families that are tried on all inputs."""
ON_BEST_INPUTS: Mapping[Family, int] = {"svm": 1, "kernel": 1, "mlp": 3}
"""On how many inputs the others are tried: those on which the cheap ones do best."""
STRENGTH = 1.0
"""Of the prior on the weights: with m members, STRENGTH m |weights - prior|^2 / 2 is added to the summed log-loss."""
LEAST_SHARE = 0.01
"""Share of the pooled scores' spread that a member must have for at least one secret; others are left out."""
NUMBERS = 20_000_000
"""Most scores that weights are found from: of all members, dev texts and values of a secret (160 MB)."""


@dataclass(frozen=True)
class Pool:
    """Weights of the members for one secret."""

    weights: Array
    """float64 (members,), from 0: with the members' calibration in them."""
    shares: Array
    """float64 (members,): how much of the scores' spread on dev is each member's, before any was left out."""

    def __call__(self, scores: Sequence[Floats]) -> Floats:
        """Return log-probabilities, float32 (n, values), of the members' scores, each float32 (n, values)."""
        logits = np.zeros(scores[0].shape)
        for weight, of_member in zip(self.weights, scores, strict=True):
            logits += weight * of_member
        return _log_softmax(logits).astype(np.float32)


@dataclass(frozen=True)
class Ensemble:
    """Members whose scores are pooled, for each secret by weights of its own."""

    members: Sequence[Member]
    pools: Mapping[str, Pool]

    @property
    def name(self) -> str:
        """The members, by how much they count for the mean secret."""
        shares = np.mean([pool.shares for pool in self.pools.values()], axis=0)
        order = np.argsort(-shares, kind="stable")
        return "ensemble of " + ", ".join(f"{self.members[i].name} ({shares[i]:.2f})" for i in order)

    @property
    def on_dev(self) -> Scores:
        """The pooled scores on dev."""
        return self._pooled([member.on_dev for member in self.members])

    def __call__(self, vectors: Floats) -> Scores:
        return self._pooled([member(vectors) for member in self.members])

    def _pooled(self, scores: Sequence[Scores]) -> Scores:
        return {name: pool([of_member[name] for of_member in scores]) for name, pool in self.pools.items()}


def stacked(trainer: Trainer, scalings: Sequence[Scaling]) -> Ensemble:
    """Train the cheap families on all inputs, the others where those do best, and pool what counts.

    One forest is of the vectors as they come, the other of the best inputs along their principal axes.
    """
    truth = trainer.dev.values
    members = trainer.members((family, scaling) for scaling in scalings for family in CHEAP)
    trainer.require(members)
    losses = {scaling.name: np.inf for scaling in scalings}
    for member in members:
        loss = sum(calibrated(member.on_dev[name], truth[name])[1] for name in truth)
        losses[member.inputs.name] = min(loss, losses[member.inputs.name])
    best = sorted(scalings, key=lambda scaling: losses[scaling.name])
    members += trainer.members((family, scaling) for family, most in ON_BEST_INPUTS.items() for scaling in best[:most])
    axes = trainer.attempt("rotated inputs", lambda: Rotated.of(best[0], trainer.train.vectors))
    members += trainer.members(("trees", inputs) for inputs in (scalings[0], *axes))
    pools = {name: pooled([member.on_dev[name] for member in members], truth[name]) for name in truth}
    shares = np.max([pool.shares for pool in pools.values()], axis=0)
    counting = np.flatnonzero(shares >= LEAST_SHARE) if shares.any() else [0]
    kept = {name: Pool(pool.weights[counting], pool.shares[counting]) for name, pool in pools.items()}
    return Ensemble(trainer.again(members[i] for i in counting), kept)


def calibrated(scores: Floats, truth: Integers) -> tuple[float, float]:
    """Return the scale of a member's scores that does best on dev, drawn towards 0, and its mean log-loss there.

    Args:
        scores: float32 (n, values): log-probabilities, or what is like them up to a scale.
        truth: int64 (n,).
    """
    odds = scores - scores.mean(1, keepdims=True, dtype=np.float64)
    unit = 1 / (float(odds.std()) or 1.0)
    scale = unit * float(_weights(unit * odds[None], truth, np.zeros(1))[0])
    return scale, log_loss(_log_softmax(scale * odds), truth)


def pooled(scores: Sequence[Floats], truth: Integers) -> Pool:
    """Return the pool of members that does best on dev.

    Args:
        scores: of each member on dev, as `calibrated` takes them.
        truth: int64 (n,).
    """
    every = -(-len(scores) * scores[0].size // NUMBERS)  # of a large dev every second text, or third, ...
    truth = truth[::every]
    scales, losses = np.array([calibrated(member[::every], truth) for member in scores]).T
    odds = np.stack([member[::every] for member in scores]).astype(np.float64)
    odds = scales[:, None, None] * (odds - odds.mean(2, keepdims=True))
    evidence = np.exp(len(truth) * (losses.min() - losses))
    counts = _weights(odds, truth, evidence / evidence.sum())
    spread = counts * odds.std((1, 2))
    return Pool(counts * scales, spread / (spread.sum() or 1.0))


def _weights(members: Array, truth: Integers, prior: Array) -> Array:
    """Return the weights from 0 of least log-loss of members (m, n, values), drawn towards a prior, float64 (m,)."""
    from scipy import optimize

    m, rows = len(members), np.arange(len(truth))
    right = members[:, rows, truth].sum(1)

    def objective(weights: Array) -> tuple[float, Array]:
        logs = _log_softmax(np.tensordot(weights, members, 1))
        away = weights - prior
        loss = -logs[rows, truth].sum() + STRENGTH * m * (away @ away) / 2
        return float(loss), (members * np.exp(logs)).sum((1, 2)) - right + STRENGTH * m * away

    start = np.maximum(prior, 1 / m)
    return optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * m).x


def _log_softmax(logits: Array) -> Array:
    logits = logits - logits.max(1, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(1, keepdims=True)))
