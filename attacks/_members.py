"""The members of the portfolio: classifiers of a family, trained on vectors that are scaled in one way."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._denoising import Scaling
from leakboard.errors import RequestError, failure_line
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.logs import log_progress
from leakboard.randomness import seeded
from leakboard.threats.secrets import KnownTexts

if TYPE_CHECKING:
    from leakboard.attacks._portfolio import PortfolioAttack

Family = Literal["mlp", "logistic", "discriminant", "neighbours", "kernel", "trees"]
Scores = dict[str, Floats]
"""For each secret float32 (n, values): log-probabilities, or what is like them up to a scale."""
Scorer = Callable[[Floats], Scores]


CHEAP: Sequence[Family] = ("logistic", "discriminant", "neighbours")
"""Families that are tried on all inputs."""
DEAR: Sequence[Family] = ("kernel", "mlp")
"""Families that are tried on the inputs on which the cheap ones do best."""
BEST_INPUTS = 3
"""How many inputs those are."""


class Trained(NamedTuple):
    """What a family makes of known texts."""

    scores: Scorer
    again: "Callable[[KnownTexts], Trained] | None" = None
    """Trains on other texts, with what was chosen on dev; None: it cannot (dev stops it), or was."""
    remark: str = ""


@dataclass(frozen=True)
class Member:
    """A trained classifier of the portfolio."""

    name: str
    inputs: "Scaling | Rotated"
    """How vectors are scaled for it."""
    trained: Trained
    on_dev: Scores

    def __call__(self, vectors: Floats) -> Scores:
        return self.trained.scores(self.inputs(vectors))


def log_loss(scores: NDArray[Any], truth: Integers) -> float:
    """Return the mean of -ln P(true value) of log-probabilities, float (n, values), given the truth, int64 (n,)."""
    return -float(np.mean(scores[np.arange(len(truth)), truth]))


@dataclass(frozen=True)
class Rotated:
    """Scaled vectors along their principal axes: what splits coordinates, as trees do, sees others there."""

    scaling: Scaling
    axes: Floats
    """float32 (d, d): a column an axis."""

    @classmethod
    def of(cls, scaling: Scaling, vectors: Floats) -> "Rotated":
        """Take the axes from vectors, float32 (n, d)."""
        scaled = scaling(vectors).astype(np.float64)
        scaled -= scaled.mean(0)
        return cls(scaling, np.linalg.eigh(scaled.T @ scaled)[1].astype(np.float32))

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"rotated {self.scaling.name}"

    def __call__(self, vectors: Floats) -> Floats:
        return self.scaling(vectors) @ self.axes


class Trainer:
    """Trains members on the attacker's texts, and notes which could not be trained, and why."""

    def __init__(
        self, train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
    ):
        self.train, self.dev, self.secrets, self.options, self.seed = train, dev, secrets, options, seed
        self.failed: list[str] = []
        self.last: Exception | None = None

    def members(self, asked: Iterable[tuple[Family, Scaling | Rotated]]) -> list[Member]:
        """Return a member for each family and scaling, without those that refuse the numbers that they are given.

        Whatever else goes wrong, as a lack of memory, is raised: a result must not depend on the machine.
        """
        members: list[Member] = []
        for family, scaling in asked:
            name = f"{family} on {scaling.name} inputs"
            log_progress(name)
            try:
                members.append(self._member(name, family, scaling))
            except (ValueError, ArithmeticError) as error:
                self.failed.append(f"{name} left out ({failure_line(error)})")
                self.last = error
        return members

    def again(self, members: Iterable[Member]) -> list[Member]:
        """Return the members trained on dev's texts, too, which keep what they scored on dev before.

        One that refuses the numbers stays as it was.
        """
        both = KnownTexts.joined([self.train, self.dev])
        return [self._again(member, both) for member in members]

    def _again(self, member: Member, texts: KnownTexts) -> Member:
        if member.trained.again is None:
            return member
        log_progress(f"{member.name}, with dev")
        try:
            with seeded(self.seed):
                trained = member.trained.again(replace(texts, vectors=member.inputs(texts.vectors)))
            _finite(trained.scores(member.inputs(self.dev.vectors)))
        except (ValueError, ArithmeticError) as error:
            self.failed.append(f"{member.name} learned from train alone ({failure_line(error)})")
            return member
        if trained.remark != member.trained.remark:
            self.failed.append(f"{member.name}, with dev{trained.remark or ' converged'}")
        return replace(member, trained=trained)

    def require(self, members: Sequence[Member]) -> None:
        """Refuse to go on without members.

        Raises:
            RequestError: none could be trained; it says why.
        """
        if not members:
            reasons = "; ".join(self.failed)
            raise RequestError(f"no classifier can be trained on these vectors: {reasons}") from self.last

    def _member(self, name: str, family: Family, scaling: Scaling | Rotated) -> Member:
        train, dev = (replace(part, vectors=scaling(part.vectors)) for part in (self.train, self.dev))
        with seeded(self.seed):
            trained = _fit(family)(train, dev, self.secrets, self.options, self.seed)
        return Member(name + trained.remark, scaling, trained, _finite(trained.scores(dev.vectors)))


def _finite(scores: Scores) -> Scores:
    if not all(np.isfinite(values).all() for values in scores.values()):
        raise ValueError("its scores are not finite")
    return scores


def _fit(
    family: Family,
) -> Callable[[KnownTexts, KnownTexts, tuple[Secret, ...], "PortfolioAttack", int], Trained]:
    from leakboard.attacks import _classifiers, _discriminant, _neighbours_and_trees

    families: Mapping[Family, Callable[..., Trained]] = {
        "mlp": _classifiers.fit_mlp,
        "logistic": _classifiers.fit_logistic,
        "discriminant": _discriminant.fit_discriminant,
        "neighbours": _neighbours_and_trees.fit_neighbours,
        "kernel": _discriminant.fit_kernel,
        "trees": _neighbours_and_trees.fit_trees,
    }
    return families[family]
