"""Each task of a run does its own stage, and leaves the rest to the tasks after it."""

import dataclasses

import pytest

from leakboard.interfaces import Secret, Victim
from leakboard.pipeline import worker
from leakboard.pipeline.fitting import fit
from leakboard.pipeline.runner import open_run
from leakboard.pipeline.stages import RunFolders
from leakboard.randomness import Streams, derived_seed
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite


@pytest.fixture
def run(bench):
    registry = Registry(bench.files)
    suite = load_suite(str(bench.suite()), registry)
    return open_run(suite, suite.cells(), bench.out, registry, reuse=False)


def test_a_task_does_its_own_stage(run):
    (job,) = run.jobs
    folders = RunFolders(run.store.root, run.cells, run.plugin_files)
    worker.load_dataset(job, folders, False, False, print)
    assert run.cached(job) == ["corpus"]
    worker.fit_victim(job, folders, False, print)
    assert run.cached(job) == ["victim", "corpus"]
    worker.publish_victim(job, folders, False, print)
    assert run.cached(job) == ["publications", "victim", "corpus"]
    assert worker.run_cell(job, folders, print) == ""
    assert run.record(job).status == "ok"
    assert dataclasses.replace(run).cached(job) == ["result", "publications", "victim", "corpus"]


def test_fitting_has_a_seed_of_its_own(make_corpus):
    """As published results have it: another name of the stream would give other victims."""

    class Spy(Victim):
        def fit(self, corpus, seed):
            return seed

    splits = {split: {"s": [0, 1]} for split in ("train", "dev", "test")}
    corpus = make_corpus(splits, [Secret("s", ("a", "b"), "attribute")])
    assert fit(Spy(), corpus, Streams(3, "letters", "spy")) == derived_seed(3, "letters", "spy", "", "fit")
