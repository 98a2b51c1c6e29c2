"""Align stored vectors with the attacker's own: choose a method, fit it, and judge it without the truth.

| method | undoes | needs |
|---|---|---|
| identity | nothing; truncation to the first coordinates | at most the own dimension |
| scale | a factor, and a shift of the mean | the same |
| permutation | a factor, noise and an order of coordinates | equal dimensions |
| rotation | a factor, noise and any rotation or reflection | equal dimensions |
| unwhitened | whitening to principal components, without pairs; ``auto`` does not try it | at most the own dimension |
| procrustes | the same, by pairs alone | equal dimensions, pairs |
| least_squares | any linear map, by pairs alone | pairs |
| whitened | any invertible linear map, by pairs and neighbourhoods | equal dimensions, pairs |
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from leakboard.attacks._alignment.alignment import Alignment, Pairs, linear
from leakboard.attacks._alignment.criterion import closeness, pair_likeness, pair_margin
from leakboard.attacks._alignment.linear_maps import ridge, whitened_rotation
from leakboard.attacks._alignment.moments import scale_and_noise
from leakboard.attacks._alignment.permutation import chance_likeness, find_order, partial_likeness
from leakboard.attacks._alignment.rotation import STARTS, find_components, find_rotation, procrustes
from leakboard.errors import RequestError
from leakboard.interfaces import Floats

Method = Literal[
    "auto", "identity", "scale", "permutation", "rotation", "unwhitened", "procrustes", "least_squares", "whitened"
]
MIN_ROWS = 50
"""Fewer stored or own vectors have no shape to be aligned without pairs."""
LEFT_OUT_PAIRS = 100
"""Largest number of pairs that judge and do not fit; a third of the pairs, if there are enough."""
FEWEST_PAIRS, FEWEST_PAIRS_OF_LINKS = 6, 60
"""Fewer pairs judge nothing. The margins of few pairs are mostly noise, so links need more of them."""
TOLERANCE = 0.03
"""``auto`` tries simple methods first. A later method must beat the best criterion so far by this much."""


@dataclass(frozen=True)
class Problem:
    """Inputs of an alignment."""

    own: Floats
    stored: Floats
    pairs: Pairs | None
    held_out: Floats
    """Stored vectors that judge shifts and unsupervised maps; they fit no map."""
    seed: int
    for_links: bool
    """Whether mapped vectors are compared with those of texts, instead of classified."""
    starts: int = STARTS
    """Largest number of patterns of signs from which a rotation is sought."""

    @cached_property
    def scale_and_noise(self) -> tuple[float, float]:
        """Factor of the stored vectors, and noise of a coordinate in the own scale."""
        scale, noise = scale_and_noise(self.own[:, : self.stored.shape[1]], self.stored, self.seed)
        return scale, noise / scale

    @cached_property
    def unscaled(self) -> "Problem":
        """The same problem in the scale of the own vectors."""
        factor = np.float32(1 / self.scale_and_noise[0])
        pairs = self.pairs and Pairs(self.pairs.own, self.pairs.stored * factor)
        return replace(self, stored=self.stored * factor, held_out=self.held_out * factor, pairs=pairs)

    def centred(self) -> tuple[Floats, Floats]:
        """Return the means of the own and of the stored vectors: with pairs, those of the pairs if they are many."""
        if self.pairs and len(self.pairs) > 2 * self.own.shape[1]:
            return self.pairs.own.mean(0), self.pairs.stored.mean(0)
        return self.own.mean(0), self.stored.mean(0)


def align(
    own: Floats,
    stored: Floats,
    pairs: Pairs | None = None,
    method: Method = "auto",
    seed: int = 0,
    *,
    for_links: bool = False,
    starts: int = STARTS,
) -> Alignment:
    """Return a map from stored vectors to the space of the attacker's own vectors.

    With enough pairs (`FEWEST_PAIRS`) left-out pairs judge. The criterion is their mean cosine about the own mean. With
    ``for_links`` it is their margin to other texts, since a map that shrinks noise away has a high cosine but mixes up
    texts. With fewer pairs it is `closeness`, or the likeness of partial correlations, if that is far above chance:
    another corpus hardly lowers it.

    Args:
        own: vectors of the attacker's own texts, float32 (m, d).
        stored: stolen vectors of other texts, float32 (n, e).
        pairs: known pairs; None: none.
        method: a name of ``METHODS``, or ``auto``: the best, where a simpler method wins a tie (`TOLERANCE`).
        seed: draws the rows that fit and those that judge.
        for_links: whether mapped vectors are compared with those of texts, instead of classified.
        starts: largest number of patterns of signs from which a rotation is sought.

    Raises:
        RequestError: the method is unknown, or does not fit the dimensions, the rows or the pairs.
    """
    pairs = pairs if pairs is not None and len(pairs) else None
    reasons = {name: _why_not(name, own, stored, pairs) for name in METHODS}
    if method != "auto" and reasons.get(method, "unknown"):
        raise RequestError(f"method {method!r}: {reasons.get(method) or 'allowed: auto, ' + ', '.join(METHODS)}")
    names = [name for name in METHODS if method == name or (method == "auto" and name in AUTO and not reasons[name])]
    if not names:
        zeros = linear(np.zeros((stored.shape[1], own.shape[1]), np.float32))
        return replace(zeros, method="none", details=reasons["permutation"] or reasons["identity"])
    order = np.random.default_rng(seed).permutation(len(stored))
    judges = order[: max(1, min(500, len(stored) // 5))]
    fitting = stored[order[len(judges) :]] if len(stored) > 1 else stored
    problem = Problem(own, fitting, pairs, stored[judges], seed, for_links, starts)
    fewest = FEWEST_PAIRS_OF_LINKS if for_links else FEWEST_PAIRS
    left_out = min(len(pairs) // 3, LEFT_OUT_PAIRS) if pairs and len(pairs) >= fewest else 0
    best: Alignment | None = None
    for name in names:
        if method == "auto" and name == "identity" and not _same_size(problem):
            continue
        found = _judged(name, problem, left_out)
        if best is None or found.criterion > best.criterion + TOLERANCE:
            best = found
        if left_out and best.criterion + TOLERANCE >= 1:  # no cosine and no margin can beat it
            break
        if name in ("scale", "permutation") and not left_out and (likeness := _conclusive_likeness(problem, found)):
            best = replace(found if name == "permutation" else best, criterion=max(likeness, best.criterion))
            break
    assert best is not None
    chosen = METHODS[best.method](problem) if left_out else best
    kind = f"{'margin' if for_links else 'cosine'} of left-out pairs" if left_out else "closeness or likeness"
    details = f"{best.method}, {len(pairs) if pairs else 0} pairs, criterion {best.criterion:.3f} ({kind})"
    return replace(chosen, method=best.method, criterion=best.criterion, details=details)


def _judged(name: str, problem: Problem, left_out: int) -> Alignment:
    """Fit a method without the left-out pairs, and judge it on them; without such pairs judge its closeness."""
    if left_out and problem.pairs:
        fitted = METHODS[name](replace(problem, pairs=problem.pairs.take(slice(left_out, None))))
        judges = problem.pairs.take(slice(left_out))
        criterion = (
            pair_margin(fitted, judges, problem.own, problem.seed)
            if problem.for_links
            else pair_likeness(fitted, judges, problem.own.mean(0))
        )
    else:
        fitted = METHODS[name](problem)
        criterion = closeness(fitted, problem.own, problem.held_out, problem.seed)
    return replace(fitted, method=name, criterion=criterion)


def _conclusive_likeness(problem: Problem, found: Alignment) -> float:
    """Return the likeness of the partial correlations of matched coordinates; 0: it may be chance."""
    d, e = problem.own.shape[1], problem.stored.shape[1]
    if d != e or min(len(problem.own), len(problem.stored)) < MIN_ROWS:
        return 0.0
    noise = problem.scale_and_noise[1]
    likeness = partial_likeness(problem.own, problem.unscaled.stored, noise, found.matrix.argmax(0))
    return likeness if likeness > 1.5 * chance_likeness(d) else 0.0


def _why_not(name: str, own: Floats, stored: Floats, pairs: Pairs | None) -> str:
    """Return why a method does not fit, or an empty string."""
    d, e = own.shape[1], stored.shape[1]
    if name in ("procrustes", "least_squares", "whitened") and not pairs:
        return "it needs pairs"
    if name in ("identity", "scale", "unwhitened") and e > d:
        return f"{e} stored dimensions are more than the {d} own ones"
    if name in ("permutation", "rotation", "procrustes", "whitened") and e != d:
        return f"{e} stored dimensions, {d} own ones: only pairs or truncation help"
    if name in ("permutation", "rotation", "unwhitened", "whitened") and min(len(own), len(stored)) < MIN_ROWS:
        return f"{len(own)} own and {len(stored)} stored vectors; it needs {MIN_ROWS} of each"
    return ""


def _identity(problem: Problem) -> Alignment:
    return linear(np.eye(problem.stored.shape[1], problem.own.shape[1]))


def _scale(problem: Problem) -> Alignment:
    return _scaled(problem, np.eye(problem.stored.shape[1], problem.own.shape[1], dtype=np.float32))


def _permutation(problem: Problem) -> Alignment:
    plain, noise = problem.unscaled, problem.scale_and_noise[1]
    order = find_order(plain.own, plain.stored, noise, plain.pairs)
    return _scaled(problem, np.eye(len(order), dtype=np.float32)[:, order])


def _rotation(problem: Problem) -> Alignment:
    plain, noise = problem.unscaled, problem.scale_and_noise[1]
    return _scaled(problem, find_rotation(plain.own, plain.stored, noise, plain.pairs, plain.seed, plain.starts))


def _unwhitened(problem: Problem) -> Alignment:
    matrix = find_components(problem.own, problem.stored, problem.seed, problem.starts)
    return Alignment(matrix, problem.stored.mean(0), problem.own.mean(0))


def _procrustes(problem: Problem) -> Alignment:
    pairs = problem.unscaled.pairs
    assert pairs
    return _scaled(problem, procrustes(pairs.stored, pairs.own))


def _least_squares(problem: Problem) -> Alignment:
    own, stored = problem.centred()
    assert problem.pairs
    matrix = ridge(Pairs(problem.pairs.own - own, problem.pairs.stored - stored))
    return Alignment(matrix, stored, own)


def _whitened(problem: Problem) -> Alignment:
    own, stored = problem.centred()
    assert problem.pairs
    pairs = Pairs(problem.pairs.own - own, problem.pairs.stored - stored)
    return Alignment(whitened_rotation(problem.own - own, problem.stored - stored, pairs, problem.seed), stored, own)


def _scaled(problem: Problem, matrix: Floats) -> Alignment:
    """Return the map with the factor undone; also shift the mean to the own mean, if the lengths of both disagree.

    Means of two corpora differ in direction more than in length. So a shift is no part of the map if lengths agree.
    """
    plain, stored = linear(matrix / np.float32(problem.scale_and_noise[0])), problem.stored.mean(0)
    own = problem.own.mean(0) * (np.abs(matrix).sum(0) > 0)  # a coordinate that was cut stays zero
    return plain if _same_mean_length(problem) else replace(plain, centre=stored, shift=own)


def _same_size(problem: Problem) -> bool:
    """Return whether stored and own vectors have about the same spread and length of the mean."""
    return bool(abs(np.log(problem.scale_and_noise[0])) < 0.1 and _same_mean_length(problem))


def _same_mean_length(problem: Problem) -> bool:
    e, scale = problem.stored.shape[1], problem.scale_and_noise[0]
    length, expected = np.linalg.norm(problem.stored.mean(0)) / scale, np.linalg.norm(problem.own[:, :e].mean(0))
    return bool(abs(length - expected) <= 0.5 * expected)


METHODS: dict[str, Callable[[Problem], Alignment]] = {
    "identity": _identity,
    "scale": _scale,
    "permutation": _permutation,
    "rotation": _rotation,
    "unwhitened": _unwhitened,
    "procrustes": _procrustes,
    "least_squares": _least_squares,
    "whitened": _whitened,
}
"""By rising number of free parameters."""
AUTO = frozenset(METHODS) - {"unwhitened"}
"""Methods that ``auto`` tries. ``unwhitened`` must be named: it suits stores that are known to be whitened."""
