"""What stages declare to need they are given: threads, and a GPU that no two tasks share."""

import json
import os
import time

import pytest
import torch

from leakboard.execution import devices, local
from leakboard.execution.engines import Here, Outcome, Task, drive
from leakboard.execution.local import Local
from leakboard.pipeline.records import read_costs

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
FIT = "    def fit("
BODY = {
    "hashed": "        bare = FittedHashed(self.dimensions, self.noise, seed, np.zeros",
    "ridge": "        square = view.vectors.T",
}
CHECKED = """        import torch
        if torch.get_num_threads() != {}:
            raise ValueError(f"{{torch.get_num_threads()}} threads")
"""


@pytest.fixture
def declaring(bench):
    """Return a function that writes a tiny plugin which declares needs, and fails unless its fit has the threads."""

    def write(source, threads=None, **needs):
        lines = "".join(f"    {name} = {value}\n" for name, value in {"threads": threads, **needs}.items())
        checked = (BODY[source], CHECKED.format(threads) + BODY[source])
        bench.plugin(source, f"my_{source}", (FIT, f"{lines}\n{FIT}"), *([checked] if threads else []))
        return f"my_{source}"

    return write


@pytest.fixture
def tasks(bench, command_line, monkeypatch):
    """Return a function that runs a suite up to its tasks: their threads and GPUs, by the last word of their names."""

    def planned(cards, *more, **content):
        seen = {}

        def run(engine, tasks, is_done, listen):
            seen.update({task.name.split(" / ", 1)[-1]: (task.threads, task.gpus) for task in tasks})
            yield from ()

        monkeypatch.setattr(local.Local, "run", run)
        monkeypatch.setattr(devices, "cards", lambda: cards)
        bench.suite(**content)
        _, _, err = command_line(*bench.arguments("run", *more))
        return err or seen

    return planned


class TestThreads:
    def test_are_in_force_in_the_stages_that_declare_them_and_noted(self, bench, command_line, declaring):
        bench.suite(victims=[declaring("hashed", 2)], attacks=["ridge", declaring("ridge", 3)])
        status, out, err = command_line(*bench.arguments("run"))
        assert status == 0, out + err
        threads = {
            json.loads(path.read_text())["attack"]: [cost["threads"] for cost in read_costs(path.parent)]
            for path in bench.results()
        }
        assert threads == {"ridge": [2, 2, 1], "my_ridge": [2, 2, 3]}

    def test_are_what_a_task_is_scheduled_with(self, tasks, declaring):
        found = tasks(0, victims=["hashed", declaring("hashed", 2)], attacks=["ridge", declaring("ridge", 3)])
        assert found == {
            "load letters": (1, 0),
            "fit hashed / seed 0": (1, 0),
            "hashed / seed 0": (1, 0),
            "hashed / seed 0 / ridge": (1, 0),
            "hashed / seed 0 / my_ridge": (3, 0),
            "fit my_hashed / seed 0": (2, 0),
            "my_hashed / seed 0": (2, 0),
            "my_hashed / seed 0 / ridge": (1, 0),
            "my_hashed / seed 0 / my_ridge": (3, 0),
        }

    def test_of_the_suite_count_where_a_plugin_declares_fewer(self, tasks, declaring):
        """The engine's own work inside of the attack's task has the suite's."""
        found = tasks(0, victims=[declaring("hashed", 1)], attacks=[declaring("ridge", 1)], threads=4)
        assert found["fit my_hashed / seed 0"] == (1, 0)
        assert found["my_hashed / seed 0 / my_ridge"] == (4, 0)


class TestDevice:
    def test_tasks_whose_plugins_use_a_gpu_are_given_one_where_there_is_any(self, tasks, declaring):
        victim, attack = declaring("hashed", uses_gpu=True), declaring("ridge", uses_gpu=False)
        suite = {"victims": ["hashed", victim], "attacks": ["ridge", attack]}
        given = [name for name, (_, gpus) in tasks(1, **suite).items() if gpus]
        assert given == ["fit my_hashed / seed 0", "my_hashed / seed 0", "my_hashed / seed 0 / ridge"]
        for cards, device in ((0, "auto"), (1, "cpu")):
            assert not any(gpus for _, gpus in tasks(cards, device=device, **suite).values())
        assert not any(gpus for _, gpus in tasks(1, "--device", "cpu", device="cuda", **suite).values())

    def test_an_attack_may_use_one_whatever_its_victim(self, tasks, declaring):
        found = tasks(1, attacks=["ridge", declaring("ridge", uses_gpu=True)])
        assert [name for name, (_, gpus) in found.items() if gpus] == ["hashed / seed 0 / my_ridge"]

    @pytest.mark.parametrize("how", ["suite", "flag"])
    def test_cuda_that_is_not_there_is_one_line_before_anything_is_computed(
        self, how, bench, command_line, monkeypatch
    ):
        monkeypatch.setattr(devices, "cards", lambda: 0)
        bench.suite(**({"device": "cuda"} if how == "suite" else {}))
        status, _, err = command_line(*bench.arguments("run", *(["--device", "cuda"] if how == "flag" else [])))
        assert status == 2
        assert err == "error: device: cuda is not allowed here: torch sees no CUDA device (allowed: auto, cpu)\n"
        assert not (bench.out / ".cache" / "corpora").exists()

    def test_a_device_that_is_none_is_one_line(self, bench, command_line):
        bench.suite()
        status, _, err = command_line(*bench.arguments("run", "--device", "cud"))
        assert (status, err) == (2, "error: device: 'cud' is not one of auto, cpu, cuda; did you mean 'cuda'?\n")

    @needs_cuda
    def test_a_whole_run_on_a_card(self, bench, command_line):
        """Fit and publication note the card; the attack of least squares notes the processor."""
        lstm = {"lstm": {"epochs": 1, "hidden": 8}}
        bench.suite(
            datasets=[{"generated_reviews": {"users": 30}}], victims=[lstm], device="cuda", text_classifier=False
        )
        status, out, err = command_line(*bench.arguments("run"))
        assert status == 0, out + err
        (path,) = bench.results()
        costs = json.loads(path.with_name("costs.json").read_text())
        assert [cost["device"] for cost in costs] == [*[torch.cuda.get_device_name()] * 2, "cpu"]


class Recording:
    """Processes that end in the order in which they began, each when another is wanted; notes what ran together."""

    def __init__(self):
        self.running, self.together = [], []

    def start(self, batch):
        self.running.append(batch)
        self.together.append([(task.name, task.card) for batch in self.running for task in batch if task.gpus])
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
        processes = Recording()
        outcomes = list(drive(processes, self.TASKS, 6, 6, 0.0, lambda task: False, print, gpus))
        assert len(outcomes) == 8
        assert max(map(len, processes.together)) == gpus
        for together in processes.together:
            assert len({card for _, card in together}) == len(together)
            assert {card for _, card in together} <= set(range(gpus))

    def test_tasks_without_one_do_not_wait_for_those_with(self):
        processes = Recording()
        order = [o.task.name for o in drive(processes, self.TASKS, 3, 3, 0.0, lambda task: False, 1)]
        assert order.index("4") < order.index("3")

    def test_a_worker_is_told_which_it_has(self, monkeypatch, tmp_path):
        monkeypatch.setattr(devices, "cards", lambda: 2)
        tasks = [Task(name, which, (tmp_path,), gpus=1) for name in ("a", "b")]
        outcomes = list(Local(2).run(tasks, lambda task: False, print))
        assert sorted(outcome.value for outcome in outcomes) == [0, 1]

    def test_this_process_has_one_at_most(self, monkeypatch):
        for cards, gpus in ((0, 0), (1, 1), (4, 1)):
            monkeypatch.setattr("leakboard.execution.engines.cards", lambda cards=cards: cards)
            assert Here().gpus == gpus


def which(folder, warn):
    """Return the card of this process, once the other task has begun."""
    (folder / str(os.getpid())).touch()
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.01)
    return devices._card


def test_words_that_others_are_compared_with_are_published_before(bench, command_line, monkeypatch):
    """They are a task of their own, so that no attack trains a victim; of one fit there is one task."""
    seen = {}

    def run(engine, tasks, is_done, listen):
        seen.update({task.name: task.after for task in tasks})
        yield from ()

    monkeypatch.setattr(local.Local, "run", run)
    bench.suite(
        datasets=["generated_reviews"],
        victims=[{"word2vec": {"vector_size": 8}}, {"word2vec": {"vector_size": 9}}],
        gold={"word2vec": {"vector_size": 8}},
        attacks=["membership_inference"],
        seeds=[3],
    )
    _, out, err = command_line(*bench.arguments("run"))
    assert not err, out
    corpus = "generated_reviews"
    fits = [f"{corpus} / fit word2vec (vector_size={size}) / seed 3" for size in (8, 9)]
    publications = [name.replace("fit ", "") for name in fits]
    assert seen == {
        f"load {corpus}": "",
        fits[0]: f"load {corpus}",
        publications[0]: fits[0],
        f"{publications[0]} / membership_inference": publications[0],
        fits[1]: publications[0],
        publications[1]: fits[1],
        f"{publications[1]} / membership_inference": publications[1],
    }
