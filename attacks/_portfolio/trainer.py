"""Train the members of the portfolio, and note the reason for each member that cannot be trained."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from leakboard.attacks._portfolio.members import Family, Member, Scores, Task, Trained
from leakboard.attacks._portfolio.vector_inputs import Rotated, Scaling
from leakboard.errors import RequestError, failure_line
from leakboard.logs import log_progress
from leakboard.randomness import seeded
from leakboard.threats.secrets import KnownTexts

Made = TypeVar("Made")
BAD_NUMBERS = (ValueError, ArithmeticError)
"""Errors of a classifier that refuses its inputs. Other errors, such as a lack of memory, end the attack: a result
must not depend on the machine."""


class Trainer:
    """Trains the members of the portfolio on one task."""

    def __init__(self, task: Task):
        self.task = task
        self.remarks: list[str] = []
        """Members that were left out or not retrained, with the reasons."""
        self._last_error: Exception | None = None

    def members(self, choices: Iterable[tuple[Family, Scaling | Rotated]]) -> list[Member]:
        """Train a member for each family and scaling; leave out those that refuse their numbers."""
        members: list[Member] = []
        for family, scaling in choices:
            name = f"{family} on {scaling.name} inputs"
            log_progress(name)
            members += self.attempt(name, partial(self._member, name, family, scaling))
        return members

    def attempt(self, name: str, make: Callable[[], Made]) -> list[Made]:
        """Return the result of ``make`` in a list; if it refuses its numbers, an empty list, and note the reason."""
        try:
            return [make()]
        except BAD_NUMBERS as error:
            self.remarks.append(f"{name} left out ({failure_line(error)})")
            self._last_error = error
            return []

    def retrain_with_dev(self, members: Iterable[Member]) -> list[Member]:
        """Return the members trained on train and dev; ``on_dev`` keeps the scores from before.

        A member that refuses the numbers stays as it was.
        """
        both = KnownTexts.joined([self.task.train, self.task.dev])
        return [self._retrained(member, both) for member in members]

    def require(self, members: Sequence[Member]) -> None:
        """Refuse to go on without members.

        Raises:
            RequestError: no member could be trained; the message has the reasons.
        """
        if not members:
            reasons = "; ".join(self.remarks)
            raise RequestError(f"no classifier can be trained on these vectors: {reasons}") from self._last_error

    def _member(self, name: str, family: Family, scaling: Scaling | Rotated) -> Member:
        train, dev = (replace(part, vectors=scaling(part.vectors)) for part in (self.task.train, self.task.dev))
        with self._fitting():
            trained = _fit(family)(replace(self.task, train=train, dev=dev))
        return Member(name + trained.remark, scaling, trained, _finite(trained.scorer(dev.vectors)))

    def _retrained(self, member: Member, texts: KnownTexts) -> Member:
        if member.trained.retrain is None:
            return member
        log_progress(f"{member.name}, with dev")
        try:
            with self._fitting():
                trained = member.trained.retrain(replace(texts, vectors=member.inputs(texts.vectors)))
            _finite(trained.scorer(member.inputs(self.task.dev.vectors)))
        except BAD_NUMBERS as error:
            self.remarks.append(f"{member.name} learned from train alone ({failure_line(error)})")
            return member
        if trained.remark != member.trained.remark:
            self.remarks.append(f"{member.name}, with dev{trained.remark or ' converged'}")
        return replace(member, trained=trained)

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Seed random draws, and give BLAS one thread.

        A second thread made logistic regression ten times slower on 11,657 vectors of 384 coordinates. Networks and
        forests keep the threads of the stage.
        """
        from threadpoolctl import threadpool_limits

        with seeded(self.task.seed), threadpool_limits(1, "blas"):
            yield


def _finite(scores: Scores) -> Scores:
    if not all(np.isfinite(values).all() for values in scores.values()):
        raise ValueError("its scores are not finite")
    return scores


def _fit(family: Family) -> Callable[[Task], Trained]:
    """Return the function that trains a family; its import is here because it takes seconds."""
    from leakboard.attacks._portfolio import discriminant, linear, mlp, neighbours_and_trees

    functions: Mapping[Family, Callable[[Task], Trained]] = {
        "mlp": mlp.fit_mlp,
        "logistic": linear.fit_logistic,
        "svm": linear.fit_svm,
        "discriminant": discriminant.fit_discriminant,
        "kernel": discriminant.fit_kernel,
        "neighbours": neighbours_and_trees.fit_neighbours,
        "trees": neighbours_and_trees.fit_trees,
    }
    return functions[family]
