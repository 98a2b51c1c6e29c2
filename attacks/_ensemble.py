"""A stacked ensemble: for each secret the members' log-probabilities, weighted by what helps on dev.

Stacking with weights that are not negative (Wolpert 1992; Breiman 1996) in the log-odds: each member is calibrated by
a scale and a shift of each value, and the calibrated ones are added with weights that minimise the log-loss on dev. A
prior draws the weights towards equal ones, so that a small dev decides little.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._denoising import Scaling
from leakboard.attacks._members import CHEAP, NETWORKS, Member, Rotated, Scores, Trainer
from leakboard.interfaces import Floats, Integers

Array = NDArray[np.float64]

STRENGTH = 1.0
"""Of the prior on the weights and shifts."""


@dataclass(frozen=True)
class Pool:
    """Weights of the members, and a shift of each value, for one secret."""

    weights: Array
    """float64 (members,), from 0: with the members' calibration in them."""
    shifts: Array
    """float64 (values,)."""
    shares: Array
    """float64 (members,): how much of the scores' spread on dev is each member's; they add up to 1."""
    loss: float
    """Mean log-loss on dev."""

    def __call__(self, scores: Sequence[Floats]) -> Floats:
        """Return log-probabilities, float32 (n, values), of the members' scores, each float32 (n, values)."""
        return _log_softmax(np.tensordot(self.weights, np.stack(scores), 1) + self.shifts).astype(np.float32)


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
    """Train the cheap families on all inputs and the others where those do best, and pool what counts."""
    truth = trainer.dev.values
    members = trainer.members((family, scaling) for scaling in scalings for family in CHEAP)
    losses = {scaling.name: np.inf for scaling in scalings}
    for member in members:
        loss = sum(pooled([member.on_dev[name]], truth[name]).loss for name in truth)
        losses[member.inputs.name] = min(loss, losses[member.inputs.name])
    best = sorted(scalings, key=lambda scaling: losses[scaling.name])
    members += trainer.members(("mlp", scaling) for scaling in best[:NETWORKS])
    members += trainer.members(("trees", s) for s in (scalings[0], Rotated.of(best[0], trainer.train.vectors)))
    if not members:
        raise trainer.error
    pools = {name: pooled([member.on_dev[name] for member in members], truth[name]) for name in truth}
    counting = [i for i in range(len(members)) if any(pool.weights[i] > 0 for pool in pools.values())] or [0]
    kept = {name: Pool(p.weights[counting], p.shifts, p.shares[counting], p.loss) for name, p in pools.items()}
    return Ensemble([members[i] for i in counting], kept)


def pooled(scores: Sequence[Floats], truth: Integers) -> Pool:
    """Return the pool of members that does best on dev.

    Args:
        scores: of each member on dev, float32 (n, values): log-probabilities, or what is like them up to a scale.
        truth: int64 (n,).
    """
    calibrated, scales = [], []
    for member in scores:
        centred = member.astype(np.float64) - member.mean(dtype=np.float64)
        scale = 1 / (float(centred.std()) or 1.0)
        weight, shifts, _ = _fitted(scale * centred[None], truth, np.zeros(1))
        calibrated.append(weight * scale * centred + shifts)
        scales.append((float(weight[0]) * scale, shifts - weight * scale * float(member.mean(dtype=np.float64))))
    equal = np.full(len(scores), 1 / len(scores))
    counts, shifts, loss = _fitted(np.stack(calibrated), truth, equal)
    weights = counts * [scale for scale, _ in scales]
    shifts = shifts + sum(count * own for count, (_, own) in zip(counts, scales, strict=True))
    spread = counts * [np.ptp(member, axis=1).std() for member in calibrated]
    return Pool(weights, shifts, spread / (spread.sum() or 1.0), loss)


def _fitted(members: Array, truth: Integers, prior: Array) -> tuple[Array, Array, float]:
    """Return weights and shifts of least penalised log-loss, and the mean log-loss, of members (m, n, values)."""
    from scipy import optimize

    m, n, values = members.shape
    rows = np.arange(n)
    own = members[:, rows, truth].sum(1)
    seen = np.bincount(truth, minlength=values)
    strength = STRENGTH * np.concatenate([np.full(m, float(m)), np.ones(values)])
    centre = np.concatenate([prior, np.zeros(values)])

    def objective(parameters: Array) -> tuple[float, Array]:
        logs = _log_softmax(np.tensordot(parameters[:m], members, 1) + parameters[m:])
        chances, away = np.exp(logs), parameters - centre
        loss = -logs[rows, truth].sum()
        slopes = np.concatenate([(members * chances).sum((1, 2)) - own, chances.sum(0) - seen])
        return loss + float(strength @ away**2) / 2, slopes + strength * away

    bounds = [(0.0, None)] * m + [(None, None)] * values
    start = np.concatenate([np.maximum(prior, 1 / m), np.zeros(values)])
    found = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    logs = _log_softmax(np.tensordot(found[:m], members, 1) + found[m:])
    return found[:m], found[m:], -float(logs[rows, truth].mean())


def _log_softmax(logits: Array) -> Array:
    logits = logits - logits.max(1, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(1, keepdims=True)))
