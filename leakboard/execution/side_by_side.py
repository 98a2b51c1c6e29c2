"""Run independent calls of one task side by side, on the cores that no other task uses.

Each call computes with one thread. So results do not depend on the number of cores.
"""

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
    """Let the calls of `side_by_side` use a number of cores inside the block."""
    global _cores
    before, _cores = _cores, cores
    try:
        yield
    finally:
        _cores = before


def side_by_side(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Return the results of the calls, in order. Each call has one thread; as many run at once as cores are lent.

    Global random generators belong to all calls, and so do filters of warnings: a call must not use them.

    Raises:
        Exception: the first call that failed, in order; calls that have not begun are left out.
    """
    with one_thread():
        if _cores == 1 or len(calls) <= 1:
            return [call() for call in calls]
        pool = ThreadPoolExecutor(min(_cores, len(calls)), "side by side")
        try:
            futures = [pool.submit(_alone, call) for call in calls]
            return [future.result() for future in futures]
        finally:  # calls that run are waited for: at their end they restore numbers of threads
            pool.shutdown(cancel_futures=True)


def _alone(call: Callable[[], Result]) -> Result:
    """Run a call in a thread of its own; OpenMP counts threads for each thread anew."""
    with one_thread():
        return call()
