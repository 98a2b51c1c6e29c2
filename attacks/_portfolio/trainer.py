"""Train the members of the portfolio side by side, and note the reason for each member that cannot be trained."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from leakboard.attacks._portfolio.members import Family, Member, Scores, Task, Trained
from leakboard.attacks._portfolio.vector_inputs import AnyInputs
from leakboard.errors import RequestError, failure_line
from leakboard.execution.side_by_side import side_by_side
from leakboard.logs import log_progress
from leakboard.threats.secrets import KnownTexts

Made = TypeVar("Made")
BAD_NUMBERS = (ValueError, ArithmeticError)
"""Errors of a classifier that refuses its inputs. Other errors, such as a lack of memory, end the attack: a result
must not depend on the machine."""


@dataclass(frozen=True)
class Attempt(Generic[Made]):
    """The result of training, or the error of a classifier that refused its numbers."""

    made: Made | None
    error: Exception | None = None

    @classmethod
    def of(cls, make: Callable[[], Made]) -> "Attempt[Made]":
        """Call ``make``, and keep its result or its error."""
        try:
            return cls(make())
        except BAD_NUMBERS as error:
            return cls(None, error)


class Trainer:
    """Trains the members of the portfolio on one task."""

    def __init__(self, task: Task):
        self.task = task
        self.remarks: list[str] = []
        """Members that were left out or not retrained, with the reasons."""
        self._last_error: Exception | None = None

    def members(self, choices: Iterable[tuple[Family, AnyInputs]], rows: int | None = None) -> list[Member]:
        """Train a member for each family and scaling; leave out those that refuse their numbers.

        Args:
            choices: families and the scalings of their inputs.
            rows: number of train texts to learn from, drawn at random; more rows contain the fewer ones. None: all.
        """
        task = self._part(rows)
        named = {f"{family} on {inputs.name} inputs": (family, inputs) for family, inputs in choices}
        attempts = _all_attempts([partial(_train, task, name, *choice) for name, choice in named.items()])
        return [made for name, attempt in zip(named, attempts, strict=True) for made in self._keep(name, attempt)]

    def attempt(self, name: str, make: Callable[[], Made]) -> list[Made]:
        """Return the result of ``make`` in a list; if it refuses its numbers, an empty list, and note the reason."""
        return self._keep(name, Attempt.of(make))

    def retrain_with_dev(self, members: Sequence[Member]) -> list[Member]:
        """Return the members trained on train and dev; ``on_dev`` keeps the scores from before.

        A member that refuses the numbers stays as it was.
        """
        both = KnownTexts.joined([self.task.train, self.task.dev])
        attempts = _all_attempts([partial(_retrain, member, both, self.task.dev) for member in members])
        retrained = []
        for member, attempt in zip(members, attempts, strict=True):
            after = attempt.made or member
            if attempt.error:
                self.remarks.append(f"{member.name} learned from train alone ({failure_line(attempt.error)})")
            elif after.trained.remark != member.trained.remark:
                self.remarks.append(f"{member.name}, with dev{after.trained.remark or ' converged'}")
            retrained.append(after)
        return retrained

    def require(self, members: Sequence[Member]) -> None:
        """Refuse to go on without members.

        Raises:
            RequestError: no member could be trained; the message has the reasons.
        """
        if not members:
            reasons = "; ".join(self.remarks)
            raise RequestError(f"no classifier can be trained on these vectors: {reasons}") from self._last_error

    def _keep(self, name: str, attempt: Attempt[Made]) -> list[Made]:
        if attempt.error:
            self.remarks.append(f"{name} left out ({failure_line(attempt.error)})")
            self._last_error = attempt.error
        return [] if attempt.made is None else [attempt.made]

    def _part(self, rows: int | None) -> Task:
        """Return the task with a random part of its train texts."""
        known = len(self.task.train.vectors)
        order = np.random.default_rng(self.task.seed).permutation(known)
        return replace(self.task, train=self.task.train.rows(np.sort(order[:rows])))


def _all_attempts(calls: Sequence[Callable[[], Made]]) -> list[Attempt[Made]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks say what did not converge
        return side_by_side([partial(Attempt.of, call) for call in calls])


def _train(task: Task, name: str, family: Family, inputs: AnyInputs) -> Member:
    log_progress(name)
    trained = _fit(family)(replace(task, inputs=inputs))
    member = Member(name + trained.remark, family, inputs, trained, len(task.train.vectors), {})
    return replace(member, on_dev=_finite(member(task.dev.vectors, task.dev_publications)))


def _retrain(member: Member, texts: KnownTexts, dev: KnownTexts) -> Member:
    if member.trained.retrain is None:
        return member
    log_progress(f"{member.name}, with dev")
    trained = member.trained.retrain(texts)
    retrained = replace(member, trained=trained)
    _finite(retrained(dev.vectors))
    return retrained


def _finite(scores: Scores) -> Scores:
    if not all(np.isfinite(values).all() for values in scores.values()):
        raise ValueError("its scores are not finite")
    return scores


def _fit(family: Family) -> Callable[[Task], Trained]:
    """Return the function that trains a family; its import is here because it takes seconds."""
    from leakboard.attacks._portfolio import discriminant, linear, mlp, neighbours_and_trees, posterior

    functions: Mapping[Family, Callable[[Task], Trained]] = {
        "mlp": mlp.fit_mlp,
        "mlp under fresh noise": mlp.fit_mlp_under_noise,
        "mlp with made texts": mlp.fit_mlp_with_made_texts,
        "posterior": posterior.fit_posterior,
        "logistic": linear.fit_logistic,
        "svm": linear.fit_svm,
        "discriminant": discriminant.fit_discriminant,
        "kernel": discriminant.fit_kernel,
        "neighbours": neighbours_and_trees.fit_neighbours,
        "trees": neighbours_and_trees.fit_trees,
    }
    return functions[family]
