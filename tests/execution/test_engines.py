"""Engines run tasks in order, share no card, send small tasks together, and try lost ones again."""

import pytest
from running import answer, failures, run_all, stop

from leakboard.errors import DataError
from leakboard.execution.engines import InProcess, drive
from leakboard.execution.local import Local
from leakboard.execution.nodes import RemoteBatches
from leakboard.execution.tasks import Outcome, Task, TaskQueue
from leakboard.logs import log_progress, log_warning


def leave(warn):
    raise SystemExit("no")


def report(warn):
    log_progress("epoch 1")
    log_warning("look out")
    warn("careful")


@pytest.mark.parametrize("engine", [InProcess(), Local(1)], ids=["in process", "local"])
class TestOneJob:
    def test_independent_tasks_come_first_then_followers_depth_first(self, engine):
        tasks = [Task("a", answer, (0,)), Task("a1", answer, (0,), after="a"), Task("a11", answer, (1,), after="a1")]
        tasks += [Task("a2", leave, (), after="a"), Task("a21", answer, (0,), after="a2"), Task("b", answer, (2,))]
        outcomes, events = run_all(engine, tasks)
        assert list(outcomes) == ["a", "b", "a1", "a11", "a2", "a21"]
        assert [outcome.value for outcome in outcomes.values()] == [0, 2, 0, 1, None, None]
        assert failures(outcomes) == dict.fromkeys(("a2", "a21"), "SystemExit: no")
        assert ("a21", "start", "") not in events

    def test_progress_and_warnings_are_reported(self, engine):
        expected = [("start", ""), ("progress", "epoch 1"), ("warning", "look out"), ("warning", "careful")]
        assert run_all(engine, [Task("reports", report, ())])[1] == [("reports", *event) for event in expected]

    def test_an_error_that_stops_the_run_is_raised(self, engine):
        with pytest.raises(DataError, match="no such file"):
            run_all(engine, [Task("stops", stop, ())])


class Recording:
    """Processes that end in the order in which they began. Notes which tasks used a card together."""

    def __init__(self):
        self.running, self.together = [], []

    def start(self, batch):
        self.running.append(batch)
        self.together.append([task.card for batch in self.running for task in batch if task.gpus])
        return len(self.together)

    def wait(self, running):
        return running[:1]

    def collect(self, batch, started):
        self.running.remove(list(batch))
        return [Outcome(task) for task in batch]


class TestCards:
    TASKS = tuple(Task(str(i), print, (), gpus=i % 2) for i in range(8))

    @pytest.mark.parametrize("gpus", [1, 2])
    def test_are_not_shared(self, gpus):
        recording = Recording()
        assert len(list(drive(recording, self.TASKS, 6, 6, 0.0, lambda task: False, print, gpus))) == 8
        assert max(map(len, recording.together)) == gpus
        for cards in recording.together:
            assert len(set(cards)) == len(cards)
            assert set(cards) <= set(range(gpus))

    def test_tasks_without_a_card_do_not_wait_for_tasks_with_one(self):
        order = [o.task.name for o in drive(Recording(), self.TASKS, 3, 3, 0.0, lambda task: False, print, 1)]
        assert order.index("4") < order.index("3")

    @pytest.mark.parametrize(("cards", "gpus"), [(0, 0), (1, 1), (4, 1)])
    def test_one_process_uses_one_at_most(self, cards, gpus, monkeypatch):
        monkeypatch.setattr("leakboard.execution.engines.cards", lambda: cards)
        assert InProcess().gpus == gpus


class Losing(Recording):
    """Nodes are lost with every batch that has a bad task."""

    def __init__(self):
        self.batches, self.nodes = [], RemoteBatches(lambda *event: None)

    def start(self, batch):
        self.batches.append([task.name for task in batch])
        return tuple(batch)

    def collect(self, batch, started):
        if any(task.name == "bad" for task in batch):
            return self.nodes.lose(batch, "node died")
        return [Outcome(task, seconds=0.1) for task in batch]


def test_tasks_of_a_lost_batch_are_tried_alone():
    losing = Losing()
    tasks = [Task(name, answer, (name,), kind="small") for name in ("first", "bad", "b", "c")]
    outcomes = {o.task.name: o for o in drive(losing, tasks, 1, 1, 0.5, lambda task: False, print)}
    reasons = {name: o.failure.reason for name, o in outcomes.items() if o.failure}
    assert reasons == {"bad": "3 nodes were lost while they ran only this task: node died"}
    assert losing.batches[:2] == [["first"], ["bad", "b", "c"]]
    assert sorted(losing.batches[2:]) == [["b"], ["bad"], ["bad"], ["bad"], ["c"]]


def test_a_result_that_was_written_at_the_last_try_is_kept():
    calls = []

    def is_done(task):
        calls.append(task.name)
        return len(calls) == 6  # called before and after each of three tries

    (outcome,) = drive(Losing(), [Task("bad", answer, (1,))], 1, 1, 0.0, is_done, print)
    assert outcome.failure is None


def test_small_tasks_of_a_kind_are_sent_together():
    queue = TaskQueue([Task(str(i), answer, (i,), kind="small") for i in range(9)])
    first = queue.take(1, 0.5)
    assert [task.name for task in first] == ["0"]  # their duration is unknown yet
    list(queue.end(Outcome(first[0], seconds=0.1)))
    assert [task.name for task in queue.take(1, 0.5)] == ["1", "2", "3", "4", "5"]
    assert [task.name for task in queue.take(1)] == ["6"]


@pytest.mark.parametrize("seconds", [0.0, 3600.0])
def test_a_task_that_is_not_known_to_be_small_is_sent_alone(seconds):
    kinds = ["small", "other", "small", "other", "small"]
    queue = TaskQueue([Task(str(i), answer, (i,), kind=kind) for i, kind in enumerate(kinds)])
    list(queue.end(Outcome(*queue.take(1), seconds=0.1)))
    if seconds:
        list(queue.end(Outcome(*queue.take(1), seconds=seconds)))
    batches = []
    while queue:
        batches.append([task.kind for task in queue.take(1, 0.5)])
    assert batches == [[kind] for kind in kinds[-len(batches) :]]
