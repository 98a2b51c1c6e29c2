"""Stack classifiers: for each secret, add the members' log-probabilities with weights that are chosen on dev.

Stacking in the log-odds with weights of at least 0 (Wolpert 1992; Breiman 1996):

1. A scale calibrates each member.
2. The weights of the calibrated members minimise the log-loss on dev. A prior draws the weights towards each member's
   own likelihood on dev (as in Bayesian model averaging). If dev is small and cannot tell members apart, they get
   similar weights.
3. Members with enough weight are trained again on train and dev. Networks are not: dev decides when their training
   stops.

No member's scores are shifted. The members know from train how frequent each value is; a dev of a few authors would
mislead them. The ensemble's score on dev is a little too high, since dev chose its weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._portfolio.members import Family, Member, Scores, log_loss
from leakboard.attacks._portfolio.trainer import Trainer
from leakboard.attacks._portfolio.vector_inputs import Rotated, Scaling
from leakboard.interfaces import Floats, Integers

Array = NDArray[np.float64]

CHEAP_FAMILIES: Sequence[Family] = ("logistic", "discriminant", "neighbours")
"""Families of classifiers that are trained on all inputs."""
BEST_INPUTS: Mapping[Family, int] = {"svm": 1, "kernel": 1, "mlp": 3}
"""Number of inputs that each costly family is trained on: the inputs with the least loss of the cheap families."""
PRIOR_STRENGTH = 1.0
"""With m members, PRIOR_STRENGTH m |weights - prior|^2 / 2 is added to the summed log-loss."""
MIN_SHARE = 0.01
"""A member is kept if it has this share of the pooled scores' spread for at least one secret."""
MAX_SCORES = 20_000_000
"""Largest number of scores that choose the weights: members x dev texts x values of a secret (160 MB)."""


@dataclass(frozen=True)
class Pool:
    """Weights of the members for one secret."""

    weights: Array
    """float64 (members,), at least 0: they include the members' calibration."""
    shares: Array
    """float64 (members,): each member's share of the scores' spread on dev, before any member was left out."""

    def __call__(self, scores: Sequence[Floats]) -> Floats:
        """Return log-probabilities, float32 (n, values), from the members' scores, float32 (n, values) each."""
        logits = np.zeros(scores[0].shape)
        for weight, member_scores in zip(self.weights, scores, strict=True):
            logits += weight * member_scores
        return _log_softmax(logits).astype(np.float32)


@dataclass(frozen=True)
class Ensemble:
    """Trained members, with weights for each secret."""

    members: Sequence[Member]
    pools: Mapping[str, Pool]

    @property
    def name(self) -> str:
        """The members, in the order of their mean share over all secrets."""
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
        return {name: pool([member[name] for member in scores]) for name, pool in self.pools.items()}


def train_ensemble(trainer: Trainer, scalings: Sequence[Scaling]) -> Ensemble:
    """Train the cheap families on all inputs, the others on the best inputs, and pool the members with enough weight.

    One forest is trained on the vectors as they are, another on the best inputs along their principal axes.
    """
    truth = trainer.task.dev.values
    members = trainer.members((family, scaling) for scaling in scalings for family in CHEAP_FAMILIES)
    trainer.require(members)
    losses = {scaling.name: np.inf for scaling in scalings}
    for member in members:
        loss = sum(calibrated(member.on_dev[name], truth[name])[1] for name in truth)
        losses[member.inputs.name] = min(loss, losses[member.inputs.name])
    best = sorted(scalings, key=lambda scaling: losses[scaling.name])
    members += trainer.members((family, scaling) for family, count in BEST_INPUTS.items() for scaling in best[:count])
    rotated = trainer.attempt("rotated inputs", lambda: Rotated.of(best[0], trainer.task.train.vectors))
    members += trainer.members(("trees", inputs) for inputs in (scalings[0], *rotated))
    pools = {name: pooled([member.on_dev[name] for member in members], truth[name]) for name in truth}
    shares = np.max([pool.shares for pool in pools.values()], axis=0)
    kept = np.flatnonzero(shares >= MIN_SHARE) if shares.any() else [0]
    kept_pools = {name: Pool(pool.weights[kept], pool.shares[kept]) for name, pool in pools.items()}
    return Ensemble(trainer.retrain_with_dev(members[i] for i in kept), kept_pools)


def calibrated(scores: Floats, truth: Integers) -> tuple[float, float]:
    """Return the scale of a member's scores with the least log-loss on dev, drawn towards 0, and that mean log-loss.

    Args:
        scores: float32 (n, values): log-probabilities, up to a scale and a shift of each row.
        truth: int64 (n,).
    """
    odds = scores - scores.mean(1, keepdims=True, dtype=np.float64)
    unit = 1 / (float(odds.std()) or 1.0)
    scale = unit * float(_weights(unit * odds[None], truth, np.zeros(1))[0])
    return scale, log_loss(_log_softmax(scale * odds), truth)


def pooled(scores: Sequence[Floats], truth: Integers) -> Pool:
    """Return the pool of members with the least log-loss on dev.

    Args:
        scores: each member's scores on dev, in the form that `calibrated` takes.
        truth: int64 (n,).
    """
    step = -(-len(scores) * scores[0].size // MAX_SCORES)  # from a large dev take only every second text, or third, ...
    truth = truth[::step]
    scales, losses = np.array([calibrated(member[::step], truth) for member in scores]).T
    odds = np.stack([member[::step] for member in scores]).astype(np.float64)
    odds = scales[:, None, None] * (odds - odds.mean(2, keepdims=True))
    likelihoods = np.exp(len(truth) * (losses.min() - losses))
    weights = _weights(odds, truth, likelihoods / likelihoods.sum())
    spread = weights * odds.std((1, 2))
    return Pool(weights * scales, spread / (spread.sum() or 1.0))


def _weights(members: Array, truth: Integers, prior: Array) -> Array:
    """Return the weights, float64 (m,) and at least 0, of least log-loss of members (m, n, values), near the prior."""
    from scipy import optimize

    m, rows = len(members), np.arange(len(truth))
    right = members[:, rows, truth].sum(1)

    def objective(weights: Array) -> tuple[float, Array]:
        logs = _log_softmax(np.tensordot(weights, members, 1))
        away = weights - prior
        loss = -logs[rows, truth].sum() + PRIOR_STRENGTH * m * (away @ away) / 2
        return float(loss), (members * np.exp(logs)).sum((1, 2)) - right + PRIOR_STRENGTH * m * away

    start = np.maximum(prior, 1 / m)
    return optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * m).x


def _log_softmax(logits: Array) -> Array:
    logits = logits - logits.max(1, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(1, keepdims=True)))
