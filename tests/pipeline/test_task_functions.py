"""Each task of a run does its own stage, and uses what other runs have done."""

import dataclasses
from contextlib import nullcontext
from functools import partial

import pytest

from leakboard.execution.reservations import Reservation
from leakboard.execution.tasks import Outcome, TaskFailed
from leakboard.interfaces import Secret, Victim
from leakboard.pipeline import cell, task_functions
from leakboard.pipeline.publications import fit
from leakboard.pipeline.records import read_record, write_record
from leakboard.pipeline.results import make_record
from leakboard.pipeline.runner import execute, open_run
from leakboard.pipeline.stages import RunFolders
from leakboard.randomness import Streams, derived_seed
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite


@pytest.fixture
def run(bench):
    registry = Registry(bench.files)
    suite = load_suite(str(bench.suite()), registry)
    return open_run(suite, suite.cells(), bench.out, registry, reuse=False)


@pytest.fixture
def planned(run):
    """Return the only job, the run's folders, and the folder of its cell."""
    (job,) = run.jobs
    folders = RunFolders(run.store.root, run.cells, run.plugin_files)
    return job, folders, folders.cells / job.folder


def stages_of(job):
    """Return the tasks that come before the attack, to be called with folders and a function that warns."""
    load = partial(task_functions.load_dataset, job, choice=job.cell.source.corpus, key=job.corpus_key)
    return load, *(partial(stage, job, [job]) for stage in (task_functions.fit_victim, task_functions.publish_victim))


def test_a_task_does_its_own_stage(run, planned):
    job, folders, _ = planned
    made = []
    for stage, name in zip(stages_of(job), ("corpus", "victim", "publications"), strict=True):
        stage(folders, warn=print)
        made.insert(0, name)
        assert run.cached(job) == made
    assert task_functions.run_cell(job, folders, print) == ""
    assert run.record(job).status == "ok"
    assert dataclasses.replace(run).cached(job) == ["result", *made]


def test_nothing_is_fitted_for_skipped_cells_alone(bench):
    registry = Registry(bench.files)
    suite = load_suite(str(bench.suite(attacks=["ridge", "nearest_neighbour"])), registry)
    run = open_run(suite, suite.cells(), bench.out, registry, reuse=False)
    skipped, applicable = sorted(run.jobs, key=lambda job: job.cell.attack.name)
    folders = RunFolders(run.store.root, run.cells, run.plugin_files)
    for users, made in [([skipped], ["corpus"]), ([skipped, applicable], ["publications", "victim", "corpus"])]:
        task_functions.fit_victim(skipped, users, folders, print)
        task_functions.publish_victim(skipped, users, folders, print)
        assert dataclasses.replace(run).cached(applicable) == made
    task_functions.run_cell(skipped, folders, print)
    assert run.record(skipped).reason == "nearest_neighbour attacks words, hashed publishes none"


class TestOtherRuns:
    """Another run in the same folder has written something before the task begins."""

    def test_its_result_is_taken(self, planned, monkeypatch):
        job, folders, folder = planned
        write_record(folder, make_record(job, "skipped", "theirs"))
        monkeypatch.setattr(cell, "attack_cell", lambda stages: pytest.fail("computed again"))
        assert task_functions.run_cell(job, folders, print) == ""

    @pytest.mark.parametrize("kind", ["another identity", "damaged", "failed"])
    def test_other_records_are_not_taken(self, kind, planned):
        job, folders, folder = planned
        if kind == "failed":
            task_functions.record_failure(job, folders, "theirs", "")
        else:
            key = "0" * 64 if kind == "another identity" else job.key
            write_record(folder, dataclasses.replace(make_record(job, "skipped", "theirs"), key=key))
        if kind == "damaged":
            path = folder / "result.json"
            path.write_text(path.read_text().replace("theirs", "others"))
        assert task_functions.run_cell(job, folders, print) == ""
        assert read_record(folder, job.key).status == "ok"

    def test_its_result_is_not_replaced_by_a_failure(self, planned):
        job, folders, folder = planned
        write_record(folder, make_record(job, "skipped", "theirs"))
        assert task_functions.record_failure(job, folders, "ours", "") == ""
        assert read_record(folder, job.key).reason == "theirs"

    def test_a_run_that_computes_anew_takes_only_new_results(self, planned):
        job, folders, folder = planned
        write_record(folder, make_record(job, "skipped", "theirs"))
        written = (folder / "result.json").stat().st_mtime
        task_functions.run_cell(job, dataclasses.replace(folders, since=written), print)
        assert read_record(folder, job.key).reason == "theirs"
        task_functions.run_cell(job, dataclasses.replace(folders, since=written + 1), print)
        assert read_record(folder, job.key).status == "ok"

    @pytest.mark.parametrize(("ahead", "is_new"), [(0, False), (1, True)])
    def test_a_run_that_computes_anew_takes_only_new_artefacts(self, ahead, is_new, planned):
        job, folders, _ = planned
        paths = set()
        for stage in stages_of(job):
            stage(folders, warn=print)
            (path,) = set(folders.store.glob("*/letters*")) - paths
            paths.add(path)
            before = path.stat()
            stage(dataclasses.replace(folders, since=before.st_mtime + ahead), warn=print)
            assert ((path.stat().st_ino, path.stat().st_mtime_ns) != (before.st_ino, before.st_mtime_ns)) == is_new


def test_a_fit_has_a_random_stream_of_its_own(make_corpus):
    """Published results have this stream's name: another name would give other victims."""

    class Spy(Victim):
        def fit(self, corpus, seed):
            return seed

    splits = {split: {"s": [0, 1]} for split in ("train", "dev", "test")}
    corpus = make_corpus(splits, [Secret("s", ("a", "b"), "attribute")])
    assert fit(Spy(), corpus, Streams(3, "letters", "spy")) == derived_seed(3, "letters", "spy", "", "fit")


class Dying:
    """An engine whose processes all die, while another run does the tasks or not."""

    jobs = gpus = 1

    def __init__(self, is_reserved):
        self.is_reserved = is_reserved

    def run(self, given, is_done, listen):
        for task in given:
            others = Reservation(task.reservation.path, "theirs").held() if self.is_reserved else nullcontext()
            with others if task.reservation else nullcontext():
                yield Outcome(task, failure=TaskFailed("its process died"))


class Silent:
    """A display that shows nothing."""

    def begin(self, kinds, processes):
        return nullcontext(self)

    def __getattr__(self, name):
        return lambda *shown: None


@pytest.mark.parametrize("is_reserved", [False, True])
def test_a_failure_is_not_recorded_while_another_run_does_the_cell(run, is_reserved):
    execute(run, Silent(), Dying(is_reserved), force=False)
    (job,) = run.jobs
    assert (run.cells / job.folder / "failure.json").exists() is not is_reserved
