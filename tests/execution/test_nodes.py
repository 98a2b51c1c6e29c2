"""Ray on a cluster of two nodes, and Slurm through submitit's local executor, give the same bytes as one process."""

import importlib
import os
import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from running import answer, die, fail, failures, run_all, stop, wait_for, write_and_die

from leakboard.errors import DataError, RequestError
from leakboard.execution.ray import Ray
from leakboard.execution.slurm import STARTUP_MINUTES, Slurm, SlurmBatches
from leakboard.execution.tasks import Task

HERE = Path(__file__).resolve().parent
PYTHONPATH = os.pathsep.join(map(str, (HERE, HERE.parent, HERE.parent.parent, os.environ.get("PYTHONPATH", ""))))


def spin(seconds, warn):
    """Keep a core busy, for seconds of the processor's time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def warn_and_answer(value, warn):
    warn(f"about {value}")
    return value


def die_once(path, warn):
    if not path.exists():
        write_and_die(path, warn)
    return "alive"


def change(warn):
    os.environ["CHANGED"] = "yes"


def is_changed(warn):
    return os.environ.get("CHANGED", "no")


def hold(folder, number, warn):
    """Note the node, and keep a core busy."""
    import ray

    (folder / f"{number} on {ray.get_runtime_context().get_node_id()}").touch()
    spin(0.5, warn)


@pytest.fixture(scope="module")
def cluster():
    """Return a Ray cluster of two nodes of one core each, on this machine."""
    utils = pytest.importorskip("ray.cluster_utils", reason="no Ray: the extra ray has it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PYTHONPATH)
        patch.setenv("RAY_DEDUP_LOGS", "0")
        # a dead node is noticed within a second
        soon = {f"health_check_{name}": 500 for name in ("initial_delay_ms", "period_ms")}
        soon["health_check_failure_threshold"] = 2
        head = {"num_cpus": 1, "include_dashboard": False, "_system_config": soon}
        cluster = utils.Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(num_cpus=1)
        yield cluster
        cluster.shutdown()


TASKS = [Task("good", warn_and_answer, (5,)), Task("after good", answer, (6,), after="good"), Task("bad", fail, ())]


@pytest.mark.slow
def test_tasks_end_on_ray_as_in_one_process(cluster, tmp_path):
    path = tmp_path / "died"
    tasks = [*TASKS, Task("after bad", answer, (7,), after="bad"), Task("dies once", die_once, (path,))]
    outcomes, events = run_all(Ray(cluster.address), tasks)
    assert failures(outcomes) == dict.fromkeys(("bad", "after bad"), "ValueError: odd data")
    values = {"good": 5, "after good": 6, "dies once": "alive", "bad": None, "after bad": None}
    assert {name: outcome.value for name, outcome in outcomes.items()} == values
    assert {("good", "warning", "about 5"), ("after good", "start", "")} <= set(events)


@pytest.mark.slow
def test_a_result_that_was_written_before_its_node_was_lost_counts(cluster, tmp_path):
    path = tmp_path / "result"
    outcomes, _ = run_all(Ray(cluster.address), [Task("writes", write_and_die, (path,))], lambda task: path.exists())
    assert failures(outcomes) == {}


def test_a_ray_core_runs_one_task_at_a_time(monkeypatch):
    """The display divides the remaining time by this number."""
    monkeypatch.setattr(Ray, "cores", 4)
    assert Ray().jobs == 4


@pytest.mark.slow  # test_engines.py tests the same without Ray
def test_a_task_that_is_lost_again_and_again_fails(cluster):
    outcomes, _ = run_all(Ray(cluster.address), [Task("dies", die, (1,))])
    assert failures(outcomes)["dies"].startswith("3 nodes were lost while they ran only this task: ")


@pytest.mark.slow
def test_an_error_that_stops_the_run_stops_it(cluster):
    with pytest.raises(DataError, match="no such file"):
        run_all(Ray(cluster.address), [Task("stops", stop, ())])


@pytest.mark.slow
def test_foreign_plugins_leave_no_trace_on_ray(cluster):
    tasks = [Task("changes", change, (), plugins=("victims/odd",)), Task("own", is_changed, (), after="changes")]
    tasks += [Task("again", is_changed, (), after="changes", plugins=("victims/odd",))]
    outcomes, _ = run_all(Ray(cluster.address), tasks)
    assert (outcomes["own"].value, outcomes["again"].value) == ("no", "no")


@pytest.mark.slow
def test_a_task_beyond_its_timeout_fails_on_ray_too(cluster):
    outcomes, _ = run_all(Ray(cluster.address), [Task("slow", spin, (60,), timeout=1.0)])
    assert failures(outcomes) == {"slow": "TimeoutError: took longer than timeout=1 s"}


@pytest.mark.slow
def test_more_threads_than_any_node_has_are_refused(cluster):
    with pytest.raises(RequestError, match="threads: 2 is not allowed: no node has more than 1 cores"):
        run_all(Ray(cluster.address), [Task("wide", answer, (1,), threads=2)])


@pytest.mark.slow
def test_a_run_on_ray_writes_the_same_bytes(cluster, bench, command_line):
    """Uses LeakBoard's own plugins: a foreign plugin's task has its own process, which imports for seconds."""
    victim = {"word2vec": {"epochs": 1, "vector_size": 8}}
    attacks = [{"attribute_inference": {"portfolio": "logistic"}}, "membership_inference"]
    corpus = {"generated_reviews": {"users": 60}}
    bench.suite(datasets=[corpus], victims=[victim], attacks=attacks, seeds=[0], text_classifier=False)
    assert command_line(*bench.arguments("run"))[0] == 0
    expected, bench.out = bench.tables(), bench.folder / "ray"
    code, out, err = command_line(*bench.arguments("run", "--engine", "ray", "--address", cluster.address))
    assert code == 0, out + err
    assert bench.tables() == expected
    assert "2 cells: " in out


@pytest.mark.slow  # a lost node is tested above
def test_no_task_is_lost_with_a_node_that_is_killed(cluster, tmp_path):
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()

    def kill():
        wait_for(lambda: any(path.name.endswith(node.node_id) for path in tmp_path.iterdir()))
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes, events = run_all(Ray(cluster.address), [Task(str(i), hold, (tmp_path, i)) for i in range(8)])
    killer.join(60)
    assert not killer.is_alive()
    assert sorted(outcomes) == [str(i) for i in range(8)]
    assert failures(outcomes) == {}
    assert len(events) > 8  # the killed node's task was started again


@pytest.mark.slow
def test_slurm_through_submitits_local_executor(tmp_path, monkeypatch):
    pytest.importorskip("submitit", reason="no submitit: the extra slurm has it")
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    tasks = [*TASKS, Task("dies once", die_once, (tmp_path / "died",))]
    outcomes, events = run_all(Slurm(tmp_path / "jobs", jobs=2, cluster="local"), tasks)
    assert failures(outcomes) == {"bad": "ValueError: odd data"}
    assert (outcomes["after good"].value, outcomes["dies once"].value) == (6, "alive")
    assert ("good", "warning", "about 5") in events


@pytest.mark.parametrize(("gpus", "asked"), [(0, {}), (1, {"gpus-per-node": "1"})])
def test_a_batch_file_asks_slurm_for_what_its_tasks_need(gpus, asked, tmp_path, monkeypatch):
    """Programs that only look like Slurm's are enough to write batch files."""
    submitit = pytest.importorskip("submitit", reason="no submitit: the extra slurm has it")
    for name, line in {"sbatch": "echo Submitted batch job 7", "srun": "", "scancel": "", "sacct": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    executor = submitit.AutoExecutor(tmp_path / "jobs", cluster="slurm")
    executor.update_parameters(slurm_partition="lab", **({"gpus_per_node": 1} if gpus else {}))
    nodes = SlurmBatches([executor] * 2, lambda *event: None)
    nodes.start([Task("fit", answer, (5,), threads=2, gpus=gpus, timeout=600)])
    written = next((tmp_path / "jobs").glob("*.sh")).read_text()
    lines = dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", written, re.MULTILINE))
    ours = {key: lines.get(key) for key in ("cpus-per-task", "time", "partition", "nodes", "gpus-per-node")}
    expected = {"cpus-per-task": "2", "time": str(10 + STARTUP_MINUTES), "partition": "lab", "nodes": "1"}
    assert ours == {"gpus-per-node": None} | expected | asked


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
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(RequestError, match="needs `pip install 'leakboard\\[ray\\]'`"):
        run_all(Ray(), [])


@pytest.mark.parametrize(
    ("address", "variable", "place"),
    [
        ("a:1", "b:2", "--address a:1"),
        ("", "b:2", "RAY_ADDRESS=b:2"),
        ("", "", "--engine ray without --address"),
    ],
)
def test_a_missing_cluster_is_reported_by_its_address(address, variable, place, monkeypatch):
    def refuse(*_, **__):
        raise ConnectionError("refused")

    library = SimpleNamespace(is_initialized=lambda: False, init=refuse)
    monkeypatch.setattr("leakboard.execution.ray.import_engine", lambda *_: library)
    monkeypatch.setenv("RAY_ADDRESS", variable)
    with pytest.raises(RequestError, match=f"^{place}: no Ray cluster answers \\(refused\\)$"):
        _ = Ray(address).cores
