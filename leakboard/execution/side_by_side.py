"""Run independent calls of one task side by side; the number of cores changes no result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from leakboard.execution.resources import one_thread

Result = TypeVar("Result")

_cores = 1


@contextmanager
def lent(cores: int) -> Iterator[None]:
    """Let `side_by_side` use a number of cores inside a block."""
    global _cores
    before, _cores = _cores, cores
    try:
        yield
    finally:
        _cores = before


def side_by_side(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Return the results of calls, in order. Each call computes with one thread.

    All calls share global random generators and filters of warnings. So calls must not use them.

    Raises:
        Exception: the error of the first failed call.
    """
    with one_thread():
        if _cores == 1 or len(calls) <= 1:
            return [call() for call in calls]
        pool = ThreadPoolExecutor(min(_cores, len(calls)), "side by side")
        try:
            futures = [pool.submit(_alone, call) for call in calls]
            return [future.result() for future in futures]
        finally:
            # waits for running calls: otherwise their `one_thread` would set numbers of threads after this block has
            # restored them
            pool.shutdown(cancel_futures=True)


def _alone(call: Callable[[], Result]) -> Result:
    with one_thread():  # OpenMP keeps its limit separately for each thread
        return call()
