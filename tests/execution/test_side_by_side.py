"""Calls side by side: the cores that are lent change neither results, order, nor the threads of a call."""

import threading
import time

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from leakboard.execution.engines import drive
from leakboard.execution.side_by_side import lent, side_by_side
from leakboard.execution.tasks import Outcome, Task


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_results_come_in_the_order_of_the_calls(cores):
    def slow_first(i):
        time.sleep(0.05 if i == 0 else 0)
        return i

    with lent(cores):
        assert side_by_side([lambda i=i: slow_first(i) for i in range(5)]) == list(range(5))


@pytest.mark.parametrize("cores", [1, 2])
def test_no_calls_give_no_results(cores):
    with lent(cores):
        assert side_by_side([]) == []


def test_after_a_failure_no_call_goes_on():
    began, ended = threading.Event(), threading.Event()

    def fails():
        assert began.wait(timeout=10)
        raise ValueError("no luck")

    def goes_on():
        began.set()
        time.sleep(0.2)
        ended.set()

    with lent(2), pytest.raises(ValueError, match="no luck"):
        side_by_side([fails, goes_on])
    assert ended.is_set()


def test_as_many_calls_run_at_once_as_cores_are_lent():
    """Each call waits for the other one, which a single thread could not do."""
    both = threading.Barrier(2, timeout=10)
    with lent(2):
        side_by_side([both.wait, both.wait])


@pytest.mark.parametrize("cores", [1, 2])
def test_each_call_has_one_thread_and_numbers_of_threads_come_back(cores):
    def threads():
        return torch.get_num_threads(), {pool["num_threads"] for pool in threadpool_info()}

    with threadpool_limits(2), lent(cores):
        torch.set_num_threads(2)
        before = threads()
        assert side_by_side([threads, threads]) == 2 * [(1, {1})]
        assert threads() == before


@pytest.mark.parametrize("cores", [1, 2])
def test_the_first_failure_is_raised_and_calls_that_have_not_begun_are_left_out(cores):
    called = []

    def fails():
        raise MemoryError("no room")

    with lent(cores), pytest.raises(MemoryError, match="no room"):
        side_by_side([fails, *(lambda i=i: (time.sleep(0.05), called.append(i)) for i in range(50))])
    assert len(called) < 50


@pytest.mark.parametrize(
    ("tasks", "jobs", "cores", "expected"),
    [
        ([1], 1, 8, [8]),
        ([1], 4, 8, [8]),
        ([1, 1], 2, 8, [4, 4]),
        ([1, 1, 1, 1], 2, 2, [1, 1, 1, 1]),
        ([4], 1, 2, [4]),
    ],
)
def test_free_cores_are_lent_to_the_tasks_that_begin(tasks, jobs, cores, expected):
    started = {}

    class Never:
        """Ends a task when no other can begin."""

        def start(self, batch):
            (task,) = batch
            started[task.name] = task.cores
            return task

        def wait(self, running):
            return running[:1]

        def collect(self, batch, task):
            return [Outcome(task)]

    given = [Task(str(i), print, (), threads=threads) for i, threads in enumerate(tasks)]
    list(drive(Never(), given, jobs, cores, 0.0, lambda task: False, print, lends_cores=True))
    assert list(started.values()) == expected
