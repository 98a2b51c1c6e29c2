"""Tasks wait for each other, and have the threads and GPUs that their stages declare."""

import json

import pytest
import torch

from leakboard.execution import devices, local
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
    """Return a function that plans a suite on a machine with some cards, and returns its tasks by name or the error.

    Names lack the dataset.
    """

    def planned(*more, cards=0, **content):
        seen = {}

        def run(engine, tasks, is_done, listen):
            seen.update({task.name.split(" / ", 1)[-1]: task for task in tasks})
            yield from ()

        monkeypatch.setattr(local.Local, "run", run)
        monkeypatch.setattr(devices, "cards", lambda: cards)
        bench.suite(**content)
        _, _, err = command_line(*bench.arguments("run", *more))
        return err or seen

    return planned


class TestThreads:
    def test_are_in_force_and_noted_in_the_stages_that_declare_them(self, bench, command_line, declaring):
        bench.suite(victims=[declaring("hashed", 2)], attacks=["ridge", declaring("ridge", 3)])
        status, out, err = command_line(*bench.arguments("run"))
        assert status == 0, out + err
        threads = {
            json.loads(path.read_text())["attack"]: [cost["threads"] for cost in read_costs(path.parent)]
            for path in bench.results()
        }
        assert threads == {"ridge": [2, 2, 1], "my_ridge": [2, 2, 3]}

    def test_of_a_task_are_those_of_its_stages(self, tasks, declaring):
        planned = tasks(victims=["hashed", declaring("hashed", 2)], attacks=["ridge", declaring("ridge", 3)])
        assert {name: task.threads for name, task in planned.items()} == {
            "load letters": 1,
            "fit hashed / seed 0": 1,
            "hashed / seed 0": 1,
            "hashed / seed 0 / ridge": 1,
            "hashed / seed 0 / my_ridge": 3,
            "fit my_hashed / seed 0": 2,
            "my_hashed / seed 0": 2,
            "my_hashed / seed 0 / ridge": 1,
            "my_hashed / seed 0 / my_ridge": 3,
        }
        assert not any(task.gpus for task in planned.values())

    def test_of_the_suite_count_if_an_attack_declares_fewer(self, tasks, declaring):
        """The engine's own work in the attack's task has the suite's threads."""
        planned = tasks(victims=[declaring("hashed", 1)], attacks=[declaring("ridge", 1)], threads=4)
        assert planned["fit my_hashed / seed 0"].threads == 1
        assert planned["my_hashed / seed 0 / my_ridge"].threads == 4


class TestDevice:
    def test_is_a_gpu_for_plugins_that_use_one_if_the_machine_has_any(self, tasks, declaring):
        victim, attack = declaring("hashed", uses_gpu=True), declaring("ridge", uses_gpu=False)
        suite = {"victims": ["hashed", victim], "attacks": ["ridge", attack]}
        with_gpu = [name for name, task in tasks(cards=1, **suite).items() if task.gpus]
        assert with_gpu == ["fit my_hashed / seed 0", "my_hashed / seed 0", "my_hashed / seed 0 / ridge"]
        for cards, device in ((0, "auto"), (1, "cpu")):
            assert not any(task.gpus for task in tasks(cards=cards, device=device, **suite).values())
        assert not any(task.gpus for task in tasks("--device", "cpu", cards=1, device="cuda", **suite).values())

    def test_may_be_a_gpu_for_an_attack_alone(self, tasks, declaring):
        planned = tasks(cards=1, attacks=["ridge", declaring("ridge", uses_gpu=True)])
        assert [name for name, task in planned.items() if task.gpus] == ["hashed / seed 0 / my_ridge"]

    @pytest.mark.parametrize(("device", "more"), [("cuda", []), ("auto", ["--device", "cuda"])])
    def test_cuda_on_a_machine_without_it_is_one_line_before_anything_is_computed(self, device, more, tasks, bench):
        message = "error: device: cuda is not allowed here: there is no CUDA device (allowed: auto, cpu)\n"
        assert tasks(*more, device=device) == message
        assert not (bench.out / ".cache" / "corpora").exists()

    def test_an_unknown_one_is_one_line(self, tasks):
        message = "error: device: 'cud' is not one of auto, cpu, cuda; did you mean 'cuda'?\n"
        assert tasks("--device", "cud") == message

    @needs_cuda
    def test_a_whole_run_on_a_card(self, bench, command_line):
        """Fit and publication note the card. The attack, by least squares, notes the processor."""
        lstm = {"lstm": {"epochs": 1, "hidden": 8}}
        corpus = {"generated_reviews": {"users": 30}}
        bench.suite(datasets=[corpus], victims=[lstm], device="cuda", text_classifier=False)
        status, out, err = command_line(*bench.arguments("run"))
        assert status == 0, out + err
        (path,) = bench.results()
        costs = json.loads(path.with_name("costs.json").read_text())["costs"]
        assert [cost["device"] for cost in costs] == [*[torch.cuda.get_device_name()] * 2, "cpu"]


def test_a_victim_waits_for_the_gold_words_that_it_is_compared_with(tasks):
    """Gold words have tasks of their own, so that no attack trains a victim. Equal fits share a task."""
    planned = tasks(
        datasets=["generated_reviews"],
        victims=[{"word2vec": {"vector_size": 8}}, {"word2vec": {"vector_size": 9}}],
        gold={"word2vec": {"vector_size": 8}},
        attacks=["membership_inference"],
        seeds=[3],
    )
    gold, other = (f"word2vec (vector_size={size}) / seed 3" for size in (8, 9))
    prefix = "generated_reviews / "
    assert {name: task.after.removeprefix(prefix) for name, task in planned.items()} == {
        "load generated_reviews": "",
        f"fit {gold}": "load generated_reviews",
        gold: f"fit {gold}",
        f"{gold} / membership_inference": gold,
        f"fit {other}": gold,
        other: f"fit {other}",
        f"{other} / membership_inference": other,
    }


def test_gold_words_of_the_same_fit_are_published_before_the_victims(tasks):
    """Both publish a checkpoint of one private training."""
    private = {"noise_multiplier": 1.0, "steps": 4, "checkpoints": [2]}
    planned = tasks(
        datasets=["generated_reviews"],
        victims=[{"dp_word2vec": private}],
        gold={"dp_word2vec": {**private, "published_step": 2}},
        attacks=["membership_inference"],
    )
    options = "checkpoints=[2], noise_multiplier=1.0, published_step=2, steps=4"
    gold, own = f"dp_word2vec({options}) / seed 0", "dp_word2vec / seed 0"
    after = {name: task.after.removeprefix("generated_reviews / ") for name, task in planned.items()}
    assert after == {
        "load generated_reviews": "",
        f"fit {gold}": "load generated_reviews",
        gold: f"fit {gold}",
        own: gold,
        f"{own} / membership_inference": own,
    }
