"""Ray on a real cluster of two nodes, and Slurm through submitit's local executor: the same bytes as one process."""

import os
import re
import threading
import time
from pathlib import Path

import pytest

from leakboard.errors import DataError, RequestError
from leakboard.execution.clusters import STARTING, Ray, Slurm, _Nodes, _SlurmNodes
from leakboard.execution.engines import drive
from leakboard.execution.tasks import Outcome, Task, Waiting

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def answer(value, warn):
    warn(f"about {value}")
    return value


def spin(seconds, warn):
    """Keep a core busy for so long, whatever else the machine does."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def fail(warn):
    raise ValueError("odd data")


def stop(warn):
    raise DataError("datasets: mine: no such file")


def die(warn):
    os._exit(1)


def die_once(folder, warn):
    """Kill the whole process the first time."""
    if not (folder / "died").exists():
        (folder / "died").touch()
        os._exit(1)
    return "alive"


def die_after_writing(folder, warn):
    (folder / "result").touch()
    os._exit(1)


def run_all(engine, tasks, is_done=lambda task: False):
    heard = []
    outcomes = list(engine.run(tasks, is_done, lambda *event: heard.append(event)))
    return {outcome.task.name: outcome for outcome in outcomes}, heard


@pytest.fixture(scope="module")
def cluster():
    """Return a Ray cluster of two nodes of one core each, on this machine."""
    utils = pytest.importorskip("ray.cluster_utils", reason="no Ray: the extra ray has it")
    path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(CHECKOUT / "tests" / "execution"), str(CHECKOUT), path])
    os.environ["RAY_DEDUP_LOGS"] = "0"
    soon = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 2}
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": soon}  # a dead node is noticed within a second
    made = utils.Cluster(initialize_head=True, head_node_args=head)
    made.add_node(num_cpus=1)
    yield made
    made.shutdown()
    os.environ["PYTHONPATH"] = path


def test_tasks_end_on_ray_as_they_end_here(cluster, tmp_path):
    tasks = [Task("good", answer, (5,)), Task("after good", answer, (6,), after="good"), Task("bad", fail, ())]
    tasks += [Task("after bad", answer, (7,), after="bad"), Task("dies once", die_once, (tmp_path,))]
    outcomes, heard = run_all(Ray(cluster.address), tasks)
    assert {name: outcome.value for name, outcome in outcomes.items() if not outcome.failure} == {
        "good": 5,
        "after good": 6,
        "dies once": "alive",
    }
    assert outcomes["bad"].failure.reason == outcomes["after bad"].failure.reason == "ValueError: odd data"
    assert ("good", "warning", "about 5") in heard
    assert ("after good", "start", "") in heard


def test_what_was_written_before_its_node_was_lost_is_not_run_again(cluster, tmp_path):
    task = Task("writes", die_after_writing, (tmp_path,))
    outcomes, _ = run_all(Ray(cluster.address), [task], lambda task: (tmp_path / "result").exists())
    assert outcomes["writes"].failure is None


@pytest.mark.slow  # without Ray the same is tested below
def test_what_is_lost_again_and_again_fails(cluster):
    outcomes, _ = run_all(Ray(cluster.address), [Task("dies", die, ())])
    assert outcomes["dies"].failure.reason.startswith("3 nodes lost: ")


def test_an_error_that_stops_the_run_stops_it(cluster):
    with pytest.raises(DataError, match="no such file"):
        run_all(Ray(cluster.address), [Task("stops", stop, ())])


def spoil(warn):
    os.environ["SPOILT"] = "yes"


def is_spoilt(warn):
    return os.environ.get("SPOILT", "no")


@pytest.mark.slow
def test_plugins_of_others_leave_no_trace_on_ray(cluster):
    tasks = [Task("spoils", spoil, (), plugins=("victims/odd",)), Task("own", is_spoilt, (), after="spoils")]
    tasks += [Task("again", is_spoilt, (), after="spoils", plugins=("victims/odd",))]
    outcomes, _ = run_all(Ray(cluster.address), tasks)
    assert (outcomes["own"].value, outcomes["again"].value) == ("no", "no")


def test_a_task_beyond_its_timeout_fails_on_ray_too(cluster):
    outcomes, _ = run_all(Ray(cluster.address), [Task("slow", spin, (60,), timeout=1.0)])
    assert outcomes["slow"].failure.reason == "TimeoutError: took longer than timeout=1 s"


def test_more_threads_than_any_node_has_are_refused(cluster):
    with pytest.raises(RequestError, match="threads: 2 is not allowed: no node has more than 1 cores"):
        run_all(Ray(cluster.address), [Task("wide", answer, (1,), threads=2)])


class Losing:
    """Processes that are lost whenever a bad task is among those that they are given."""

    def __init__(self):
        self.batches, self.nodes = [], _Nodes(lambda *event: None)

    def start(self, batch):
        self.batches.append([task.name for task in batch])
        return tuple(batch)

    def wait(self, running):
        return running

    def collect(self, batch, started):
        if any(task.name == "bad" for task in batch):
            return self.nodes.lost(batch, "node died")
        return [Outcome(task, seconds=0.1) for task in batch]


def test_what_shared_a_lost_node_with_a_bad_task_is_tried_alone():
    losing = Losing()
    tasks = [Task(name, answer, (name,), kind="small") for name in ("first", "bad", "b", "c")]
    outcomes = {o.task.name: o for o in drive(losing, tasks, 1, 1, 0.5, lambda task: False, print)}
    assert [name for name, outcome in outcomes.items() if outcome.failure] == ["bad"]
    assert losing.batches[:2] == [["first"], ["bad", "b", "c"]]
    assert sorted(losing.batches[2:]) == [["b"], ["bad"], ["bad"], ["bad"], ["c"]]


def test_a_result_that_was_written_at_the_last_try_is_kept():
    tries = []

    def is_done(task):
        tries.append(task.name)
        return len(tries) == 6  # it is looked for before each try and after it

    outcomes = {o.task.name: o for o in drive(Losing(), [Task("bad", answer, (1,))], 1, 1, 0.0, is_done, print)}
    assert outcomes["bad"].failure is None


def test_a_run_on_ray_writes_the_same_bytes(cluster, bench, command_line):
    """Of LeakBoard's own plugins: tasks of others have a process each, which imports for seconds."""
    victim = {"word2vec": {"epochs": 1, "vector_size": 8}}
    attacks = [{"attribute_inference": {"portfolio": "logistic"}}, "membership_inference"]
    corpus = {"generated_reviews": {"users": 60}}
    bench.suite(datasets=[corpus], victims=[victim], attacks=attacks, seeds=[0], text_classifier=False)
    assert command_line(*bench.arguments("run"))[0] == 0
    here, bench.out = bench.tables(), bench.folder / "ray"
    code, out, err = command_line(*bench.arguments("run", "--engine", "ray", "--address", cluster.address))
    assert code == 0, out + err
    assert bench.tables() == here
    assert "2 cells: " in out


def hold(folder, number, warn):
    """Say where this runs, and compute until half a second of the processor's time is gone."""
    import ray

    (folder / f"{number} on {ray.get_runtime_context().get_node_id()}").touch()
    spin(0.5, warn)


@pytest.mark.slow  # that a lost node costs nothing that was written is tested above
def test_a_node_that_is_killed_in_the_middle_costs_nothing(cluster, tmp_path):
    """It is added for this, and killed once something runs on it; everything ends all the same."""
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()

    def kill():
        while not any(path.name.endswith(node.node_id) for path in tmp_path.iterdir()):
            time.sleep(0.02)
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    tasks = [Task(str(i), hold, (tmp_path, i)) for i in range(8)]
    outcomes, heard = run_all(Ray(cluster.address), tasks)
    killer.join(60)
    assert not killer.is_alive()
    assert sorted(outcomes) == [str(i) for i in range(8)]
    assert all(outcome.failure is None for outcome in outcomes.values())
    assert len(heard) > 8  # what ran there was started again


@pytest.mark.slow
def test_slurm_through_submitits_local_executor(tmp_path, monkeypatch):
    pytest.importorskip("submitit", reason="no submitit: the extra slurm has it")
    path = [str(CHECKOUT / "tests" / "execution"), str(CHECKOUT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    tasks = [Task("good", answer, (5,)), Task("after good", answer, (6,), after="good"), Task("bad", fail, ())]
    tasks += [Task("dies once", die_once, (tmp_path,))]
    outcomes, heard = run_all(Slurm(tmp_path / "jobs", jobs=2, cluster="local"), tasks)
    assert outcomes["after good"].value == 6
    assert outcomes["bad"].failure.reason == "ValueError: odd data"
    assert outcomes["dies once"].value == "alive"
    assert ("good", "warning", "about 5") in heard


@pytest.mark.parametrize(("gpus", "asked"), [(0, {}), (1, {"gpus-per-node": "1"})])
def test_a_batch_file_asks_slurm_for_what_its_tasks_need(gpus, asked, tmp_path, monkeypatch):
    """Batch files are written where programs stand that only look like Slurm's."""
    submitit = pytest.importorskip("submitit", reason="no submitit: the extra slurm has it")
    for name, line in {"sbatch": "echo Submitted batch job 7", "srun": "", "scancel": "", "sacct": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    executor = submitit.AutoExecutor(tmp_path / "jobs", cluster="slurm")
    executor.update_parameters(slurm_partition="lab", **({"gpus_per_node": 1} if gpus else {}))
    nodes = _SlurmNodes([executor] * 2, lambda *told: None)
    nodes.start([Task("fit", answer, (5,), threads=2, gpus=gpus, timeout=600)])
    written = next((tmp_path / "jobs").glob("*.sh")).read_text()
    lines = dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", written, re.MULTILINE))
    ours = {key: lines.get(key) for key in ("cpus-per-task", "time", "partition", "nodes", "gpus-per-node")}
    expected = {"cpus-per-task": "2", "time": str(10 + STARTING), "partition": "lab", "nodes": "1"}
    assert ours == {"gpus-per-node": None} | expected | asked


def test_small_tasks_of_a_kind_are_sent_together():
    waiting = Waiting([Task(str(i), answer, (i,), kind="small") for i in range(9)])
    first = waiting.take(1, 0.5)
    assert [task.name for task in first] == ["0"]  # it is not known yet how long they last
    list(waiting.take_in(Outcome(first[0], seconds=0.1)))
    assert [task.name for task in waiting.take(1, 0.5)] == ["1", "2", "3", "4", "5"]
    assert [task.name for task in waiting.take(1)] == ["6"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--engine", "rya"], "--engine: 'rya' is not one of local, ray, slurm; did you mean 'ray'?"),
        (["--address", "auto"], "--address auto: only --engine ray has one"),
        (["--engine", "ray", "--jobs", "2"], "--jobs 2: a Ray cluster knows its cores itself"),
    ],
)
def test_a_wrong_engine_is_one_line(arguments, reason, bench, command_line):
    bench.suite()
    code, _, err = command_line(*bench.arguments("run", *arguments))
    assert (code, err) == (2, f"error: {reason}\n")


def test_an_engine_that_is_not_installed_says_what_to_install(monkeypatch):
    import importlib

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(RequestError, match="needs `pip install 'leakboard\\[ray\\]'`"):
        run_all(Ray(), [])
