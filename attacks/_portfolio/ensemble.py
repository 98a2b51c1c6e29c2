"""Stack classifiers: for each secret, add the members' log-probabilities with weights that are chosen on dev.

If the victim's noise is known, Bayes' rule (`posterior`) and a network that sees fresh noise in each epoch are members.
With ``bayes: mixed`` Bayes' rule is no member (`mixture`). With ``made_texts`` each network on one publication has a
deeper twin, which also learns from texts that the attacker made (`made_texts`).

Stacking in the log-odds with weights of at least 0 (Wolpert 1992; Breiman 1996):

1. A scale calibrates each member.
2. The weights of the calibrated members minimise the log-loss on dev. A prior draws the weights towards each member's
   own likelihood on dev (as in Bayesian model averaging). If dev is small and cannot tell members apart, they get
   similar weights.
3. Members learn from growing parts of a large train. Members that cannot improve the pool stop early.
4. Members with enough weight are trained again on train and dev. Networks are not: dev decides when their training
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
from leakboard.attacks._portfolio.vector_inputs import AnyScaling, Rotated, Whitened
from leakboard.interfaces import Floats, Integers

Array = NDArray[np.float64]
Losses = Mapping[tuple[Family, str], float]
"""Calibrated log-losses on dev, summed over secrets, by the members' keys."""

CHEAP_FAMILIES: Sequence[Family] = ("logistic", "discriminant", "neighbours")
"""Families of classifiers that are trained on all inputs."""
COSTLY_FAMILIES: Sequence[Family] = ("mlp", "kernel", "svm")
"""Families that are trained on the inputs with the least loss of the cheap families."""
NETWORKS = 3
"""Largest number of inputs for networks."""
SMALLEST_PART = 2_500
"""Smallest number of texts in a part of train."""
GROWTH = 4
"""Each part of train has this many times the texts of the part before."""
MOST_TEXTS: Mapping[Family, int] = {
    **dict.fromkeys(("trees", "svm"), 100_000),
    **dict.fromkeys(("neighbours", "kernel", "logistic"), 200_000),
    "posterior": 20_000,
}
"""Largest part of train that a family learns from; networks and discriminants, which read it in blocks, have none."""
COUNTS = 0.05
"""A member counts if it has this share of the pooled scores' spread for at least one secret."""
FLAT = 0.002
"""A member stops learning if its loss on dev, summed over secrets, fell by less than this since the last part."""
DEV_SHARE = 0.1
"""Members learn from dev, too, if it has at least this share of train's texts."""
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
        most = max(member.texts for member in self.members)
        parts = [
            f"{member.name}{f' from {member.texts} texts' if member.texts < most else ''} ({share:.2f})"
            for member, share in zip(self.members, shares, strict=True)
        ]
        return "ensemble of " + ", ".join(parts[i] for i in np.argsort(-shares, kind="stable"))

    @property
    def on_dev(self) -> Scores:
        """The pooled scores on dev."""
        return self._pooled([member.on_dev for member in self.members])

    def __call__(self, vectors: Floats, publications: Floats | None = None) -> Scores:
        """Score published vectors, float32 (n, d), and all publications of each text, (n, m, d); None: there is one."""
        return self._pooled([member(vectors, publications) for member in self.members])

    def _pooled(self, scores: Sequence[Scores]) -> Scores:
        return {name: pool([member[name] for member in scores]) for name, pool in self.pools.items()}


def train_ensemble(trainer: Trainer, scalings: Sequence[AnyScaling]) -> Ensemble:
    """Let the members learn from growing parts of train, and pool those with enough weight.

    After each part the members are pooled, and `_learners` chooses those that learn from the next part. A member that
    stops learning stays in the pool with what it knows.
    """
    truth, sizes = trainer.task.dev.values, parts(len(trainer.task.train.vectors))
    members = _first_members(trainer, scalings, sizes[0])
    before: Losses = {}
    for left, size in zip(range(len(sizes) - 1, 0, -1), sizes[1:], strict=True):
        losses = {member.key: _loss(member, truth) for member in members}
        learners = [
            member
            for member in _learners(members, truth, losses, before, left)
            if size <= MOST_TEXTS.get(member.family, size)
        ]
        before = losses
        taught = trainer.members([(member.family, member.inputs) for member in learners], size)
        by_key = {member.key: member for member in taught}
        members = [by_key.get(member.key, member) for member in members]
    if trainer.task.made_texts is not None:
        networks = [member.inputs for member in members if member.family == "mlp"]
        members += trainer.members(("mlp with made texts", inputs) for inputs in networks)
    pools = _pools(members, truth)
    shares = np.max([pool.shares for pool in pools.values()], axis=0)
    kept = np.flatnonzero(shares >= MIN_SHARE) if shares.any() else np.array([0])
    kept_pools = {name: Pool(pool.weights[kept], pool.shares[kept]) for name, pool in pools.items()}
    return Ensemble(_with_dev(trainer, [members[i] for i in kept], shares[kept]), kept_pools)


def _learners(
    members: Sequence[Member], truth: Mapping[str, Integers], losses: Losses, before: Losses, left: int
) -> list[Member]:
    """Return the members that learn from the next part of train (successive halving, with learning curves).

    A member goes on if its loss on dev still falls, and if it counts in the pool or would come below the pool's loss by
    falling as fast on each of the parts that are left. After the first part no fall is known: then the members that
    count go on, and the best of each family.

    Args:
        members: all members.
        truth: the secrets of dev.
        losses: of the members on dev.
        before: losses after the part before; empty after the first part.
        left: number of larger parts.
    """
    pools = _pools(members, truth)
    goal = sum(log_loss(pool([m.on_dev[name] for m in members]), truth[name]) for name, pool in pools.items())
    learners = []
    for position, member in enumerate(members):
        loss, counts = losses[member.key], max(pool.shares[position] for pool in pools.values()) >= COUNTS
        if before:
            fall = before.get(member.key, loss) - loss
            goes_on = fall >= FLAT and (counts or loss - left * fall < goal)
        else:
            goes_on = counts or loss == min(losses[m.key] for m in members if m.family == member.family)
        if goes_on:
            learners.append(member)
    return learners


def parts(texts: int) -> list[int]:
    """Return the sizes of the growing parts of train; the last is the whole."""
    sizes = [texts]
    while sizes[0] >= GROWTH * SMALLEST_PART:
        sizes.insert(0, sizes[0] // GROWTH)
    return sizes


def _first_members(trainer: Trainer, scalings: Sequence[AnyScaling], size: int) -> list[Member]:
    """Train the cheap families on all inputs, and the others on the best inputs.

    One network is trained on the best inputs, another on these inputs whitened; further inputs follow only if the first
    of them counts. One forest is trained on the vectors as they are, another on the best inputs along their principal
    axes.
    """
    truth = trainer.task.dev.values
    members = trainer.members(((family, scaling) for scaling in scalings for family in CHEAP_FAMILIES), size)
    trainer.require(members)
    losses = {scaling.name: np.inf for scaling in scalings}
    for member in members:
        losses[member.inputs.name] = min(_loss(member, truth), losses[member.inputs.name])
    best = sorted(scalings, key=lambda scaling: losses[scaling.name])
    rotated = trainer.attempt("rotated inputs", lambda: Rotated.of(best[0], trainer.task.train.vectors))
    forests = [("trees", inputs) for inputs in (scalings[0], *rotated)]
    whitened = trainer.attempt("whitened inputs", lambda: Whitened.of(best[0], trainer.task.train.vectors))
    networks = [("mlp", inputs) for inputs in whitened]
    members += trainer.members([*((family, best[0]) for family in COSTLY_FAMILIES), *networks, *forests], size)
    if trainer.task.train.inputs is not None:
        standard = [scaling for scaling in scalings if scaling.name == "standardised"]
        rule: list[tuple[Family, AnyScaling]] = (
            [("posterior", scalings[0])] if trainer.task.options.bayes == "member" else []
        )
        members += trainer.members([*rule, *(("mlp under fresh noise", s) for s in standard)], size)
    pools = _pools(members, truth)
    first = next((i for i, member in enumerate(members) if member.key == ("mlp", best[0].name)), None)
    if first is not None and any(pool.shares[first] >= COUNTS for pool in pools.values()):
        members += trainer.members([("mlp", scaling) for scaling in best[1:NETWORKS]], size)
    return members


def _with_dev(trainer: Trainer, members: Sequence[Member], shares: Array) -> list[Member]:
    """Train members on train and dev: all if train is small, else those that count and learned from all of train.

    No member is trained again if dev is too small to matter, and no forest of a large train: dev would double its cost.
    """
    known = len(trainer.task.train.vectors)
    if len(trainer.task.dev.vectors) < DEV_SHARE * known:
        return list(members)
    chosen = list(range(len(members)))
    if len(parts(known)) > 1:
        counting = [i for i in chosen if members[i].texts == known and shares[i] >= COUNTS]
        chosen = [i for i in counting if members[i].family != "trees"]
    retrained = dict(zip(chosen, trainer.retrain_with_dev([members[i] for i in chosen]), strict=True))
    return [retrained.get(i, member) for i, member in enumerate(members)]


def _pools(members: Sequence[Member], truth: Mapping[str, Integers]) -> dict[str, Pool]:
    return {name: pooled([member.on_dev[name] for member in members], codes) for name, codes in truth.items()}


def _loss(member: Member, truth: Mapping[str, Integers]) -> float:
    """Return the calibrated log-loss on dev, summed over secrets."""
    return sum(calibrated(member.on_dev[name], codes)[1] for name, codes in truth.items())


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
