"""Each task of a run does its own stage, and leaves the rest to the tasks after it."""

import dataclasses
from functools import partial

import pytest

from leakboard.interfaces import Secret, Victim
from leakboard.pipeline import worker
from leakboard.pipeline.publications import fit
from leakboard.pipeline.records import read_record, write_record
from leakboard.pipeline.runner import open_run
from leakboard.pipeline.stages import RunFolders, Stages, record_of
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
    worker.load_dataset(job, folders, False, print)
    assert run.cached(job) == ["corpus"]
    worker.fit_victim(job, folders, print)
    assert run.cached(job) == ["victim", "corpus"]
    worker.publish_victim(job, folders, print)
    assert run.cached(job) == ["publications", "victim", "corpus"]
    assert worker.run_cell(job, folders, print) == ""
    assert run.record(job).status == "ok"
    assert dataclasses.replace(run).cached(job) == ["result", "publications", "victim", "corpus"]


class TestOtherRuns:
    """What another run in the same folder wrote before a task had its turn."""

    @pytest.fixture
    def place(self, run):
        (job,) = run.jobs
        folders = RunFolders(run.store.root, run.cells, run.plugin_files)
        return job, folders, folders.cells / job.folder

    def test_its_result_is_taken(self, place, monkeypatch):
        job, folders, folder = place
        write_record(folder, record_of(job, "skipped", "theirs"))
        monkeypatch.setattr(Stages, "attacked", lambda self: pytest.fail("computed again"))
        assert worker.run_cell(job, folders, print) == ""

    def test_a_result_of_another_identity_is_not(self, place):
        job, folders, folder = place
        write_record(folder, record_of(dataclasses.replace(job, key="0" * 64), "skipped", "theirs"))
        assert worker.run_cell(job, folders, print) == ""
        assert read_record(folder, job.key).status == "ok"

    def test_a_damaged_one_is_not(self, place):
        job, folders, folder = place
        write_record(folder, record_of(job, "skipped", "theirs"))
        path = folder / "result.json"
        path.write_text(path.read_text().replace("theirs", "others"))
        worker.run_cell(job, folders, print)
        assert read_record(folder, job.key).status == "ok"

    def test_its_failure_is_not(self, place):
        job, folders, folder = place
        worker.record_failure(job, folders, "theirs", "")
        assert worker.run_cell(job, folders, print) == ""
        assert read_record(folder, job.key).status == "ok"

    def test_a_failure_here_does_not_replace_it(self, place):
        job, folders, folder = place
        write_record(folder, record_of(job, "skipped", "theirs"))
        assert worker.record_failure(job, folders, "ours", "") == ""
        assert read_record(folder, job.key).reason == "theirs"

    def test_a_run_that_computes_anew_takes_only_what_is_new(self, place):
        job, folders, folder = place
        write_record(folder, record_of(job, "skipped", "theirs"))
        written = (folder / "result.json").stat().st_mtime
        worker.run_cell(job, dataclasses.replace(folders, since=written), print)
        assert read_record(folder, job.key).reason == "theirs"
        worker.run_cell(job, dataclasses.replace(folders, since=written + 1), print)
        assert read_record(folder, job.key).status == "ok"

    @pytest.mark.parametrize(("ahead", "is_new"), [(0, False), (1, True)])
    def test_and_artefacts_likewise(self, ahead, is_new, place):
        job, folders, _ = place
        steps = [
            partial(worker.load_dataset, job),
            partial(worker.fit_victim, job),
            partial(worker.publish_victim, job),
        ]
        paths = []
        for step, more in zip(steps, ((False,), (), ()), strict=True):
            step(folders, *more, print)
            (path,) = set(folders.store.glob("*/letters*")) - set(paths)
            paths.append(path)
            before = path.stat()
            step(dataclasses.replace(folders, since=before.st_mtime + ahead), *more, print)
            assert ((path.stat().st_ino, path.stat().st_mtime_ns) != (before.st_ino, before.st_mtime_ns)) == is_new


def test_fitting_has_a_seed_of_its_own(make_corpus):
    """As published results have it: another name of the stream would give other victims."""

    class Spy(Victim):
        def fit(self, corpus, seed):
            return seed

    splits = {split: {"s": [0, 1]} for split in ("train", "dev", "test")}
    corpus = make_corpus(splits, [Secret("s", ("a", "b"), "attribute")])
    assert fit(Spy(), corpus, Streams(3, "letters", "spy")) == derived_seed(3, "letters", "spy", "", "fit")
