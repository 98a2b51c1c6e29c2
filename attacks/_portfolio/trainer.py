"""Trains the members of the portfolio, and keeps note of those that could not be trained."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from leakboard.attacks._portfolio.inputs import Rotated, Scaling
from leakboard.attacks._portfolio.members import Family, Member, Scores, Trained
from leakboard.errors import RequestError, failure_line
from leakboard.interfaces import Secret
from leakboard.logs import log_progress
from leakboard.randomness import seeded
from leakboard.threats.secrets import KnownTexts

if TYPE_CHECKING:
    from leakboard.attacks._portfolio.portfolio import PortfolioAttack

Made = TypeVar("Made")


class Trainer:
    """Trains members on the attacker's texts, and notes which could not be trained, and why."""

    def __init__(
        self, train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
    ):
        self.train, self.dev, self.secrets, self.options, self.seed = train, dev, secrets, options, seed
        self.remarks: list[str] = []
        self.last: Exception | None = None

    def members(self, asked: Iterable[tuple[Family, Scaling | Rotated]]) -> list[Member]:
        """Return a member for each family and scaling, without those that refuse the numbers that they are given.

        Whatever else goes wrong, as a lack of memory, is raised: a result must not depend on the machine.
        """
        members: list[Member] = []
        for family, scaling in asked:
            name = f"{family} on {scaling.name} inputs"
            log_progress(name)
            members += self.attempt(name, partial(self._member, name, family, scaling))
        return members

    def attempt(self, name: str, make: Callable[[], Made]) -> list[Made]:
        """Return what is made, alone; nothing where it refuses the numbers that it is given, which is noted."""
        try:
            return [make()]
        except (ValueError, ArithmeticError) as error:
            self.remarks.append(f"{name} left out ({failure_line(error)})")
            self.last = error
            return []

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
            with self._fitting():
                trained = member.trained.again(replace(texts, vectors=member.inputs(texts.vectors)))
            _finite(trained.scores(member.inputs(self.dev.vectors)))
        except (ValueError, ArithmeticError) as error:
            self.remarks.append(f"{member.name} learned from train alone ({failure_line(error)})")
            return member
        if trained.remark != member.trained.remark:
            self.remarks.append(f"{member.name}, with dev{trained.remark or ' converged'}")
        return replace(member, trained=trained)

    def require(self, members: Sequence[Member]) -> None:
        """Refuse to go on without members.

        Raises:
            RequestError: none could be trained; it says why.
        """
        if not members:
            reasons = "; ".join(self.remarks)
            raise RequestError(f"no classifier can be trained on these vectors: {reasons}") from self.last

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Seed what draws, and give BLAS one thread.

        A second one made logistic regression ten times slower on 11,657 vectors of 384 coordinates. Networks and
        forests keep the threads of the stage.
        """
        from threadpoolctl import threadpool_limits

        with seeded(self.seed), threadpool_limits(1, "blas"):
            yield

    def _member(self, name: str, family: Family, scaling: Scaling | Rotated) -> Member:
        train, dev = (replace(part, vectors=scaling(part.vectors)) for part in (self.train, self.dev))
        with self._fitting():
            trained = _fit(family)(train, dev, self.secrets, self.options, self.seed)
        return Member(name + trained.remark, scaling, trained, _finite(trained.scores(dev.vectors)))


def _finite(scores: Scores) -> Scores:
    if not all(np.isfinite(values).all() for values in scores.values()):
        raise ValueError("its scores are not finite")
    return scores


def _fit(
    family: Family,
) -> Callable[[KnownTexts, KnownTexts, tuple[Secret, ...], "PortfolioAttack", int], Trained]:
    from leakboard.attacks._portfolio import classifiers as _classifiers
    from leakboard.attacks._portfolio import discriminant as _discriminant
    from leakboard.attacks._portfolio import linear_svm as _linear_svm
    from leakboard.attacks._portfolio import neighbours_and_trees as _neighbours_and_trees

    families: Mapping[Family, Callable[..., Trained]] = {
        "mlp": _classifiers.fit_mlp,
        "logistic": _classifiers.fit_logistic,
        "discriminant": _discriminant.fit_discriminant,
        "neighbours": _neighbours_and_trees.fit_neighbours,
        "svm": _linear_svm.fit_svm,
        "kernel": _discriminant.fit_kernel,
        "trees": _neighbours_and_trees.fit_trees,
    }
    return families[family]
