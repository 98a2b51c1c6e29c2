"""Results are found by identity in any suite, and results of other suites are never changed."""

import json
import shutil

import pytest

from leakboard.pipeline import results


@pytest.fixture
def run(command_line):
    """Return a function that runs a bench's suite, or a second one with changes, and returns what was printed."""

    def run(bench, *more, command="run", code=0, **copy):
        arguments = bench.arguments(command, *more)
        if copy:
            path = bench.suite(**copy).rename(bench.folder / "copy.yaml")
            arguments = [str(path) if str(part).endswith("tiny.yaml") else part for part in arguments]
        status, out, err = command_line(*arguments)
        assert status == code, out + err
        return out

    return run


@pytest.fixture
def first(bench, run):
    """Return a bench with a suite that has run."""
    bench.suite(seeds=[0, 1])
    run(bench)
    return bench


def computed(bench):
    """Return the names of the cells that the second suite has computed."""
    return sorted(path.parent.name for path in (bench.out / "copy" / "cells").glob("*/result.json"))


def test_a_copied_suite_with_one_more_attack_computes_only_that_attack(first, run):
    before = first.results()
    out = run(first, seeds=[0, 1], attacks=["ridge", {"ridge": {"penalty": 0.5}}])
    assert "2 of 4 cells are taken from other suites" in out
    paths = list((first.out / "copy" / "cells").glob("*/result.json"))
    assert [json.loads(path.read_text())["attack"] for path in paths] == ["ridge(penalty=0.5)"] * 2
    assert first.results() == before
    rows = (first.out / "copy" / "leaderboard.csv").read_text().splitlines()
    assert rows[:2] == (first.run / "leaderboard.csv").read_text().splitlines()[:2]


def test_a_dataset_is_loaded_once(first, run):
    def loaded():
        return {path: path.stat().st_mtime_ns for path in (first.out / ".cache" / "corpora").rglob("*")}

    before = loaded()
    first.suite(attacks=[{"ridge": {"penalty": 0.5}}])
    run(first)
    assert len(before) > 2
    assert loaded() == before


@pytest.mark.parametrize(("more", "changes"), [([], {"threads": 2}), (["--force"], {})])
def test_other_conditions_and_force_compute_anew(more, changes, first, run):
    assert "taken from" not in run(first, *more, seeds=[0, 1], **changes)
    assert len(computed(first)) == 2


@pytest.mark.slow
def test_force_computes_published_results_anew(first, run):
    run(first, command="publish")
    for path in first.results():
        path.unlink()
    assert "2 done, 0 to compute" in run(first, "--dry-run")
    assert "0 done, 2 to compute" in run(first, "--dry-run", "--force")
    run(first, "--force")
    assert len(first.results()) == 2


def test_another_leaderboards_results_are_taken(first, run, monkeypatch):
    run(first, command="publish")
    shutil.rmtree(first.out)
    monkeypatch.setattr(results, "suite_folder", lambda: first.folder)
    assert "2 of 2 cells are taken from published leaderboards" in run(first, seeds=[0, 1])


def test_an_altered_result_of_another_suite_is_not_taken(first, run):
    path = next(iter(first.results()))
    path.write_text(path.read_text().replace('"attack": "ridge"', '"attack": "bridge"'))
    assert "1 of 2 cells are taken from other suites" in run(first, seeds=[0, 1])
    assert computed(first) == [path.parent.name]


def test_a_failure_of_another_suite_is_no_result(bench, run):
    bench.plugin("ridge", "mine", ("        square =", '        raise ValueError("odd")\n        square ='))
    bench.suite(attacks=["mine"])
    run(bench, code=1)
    assert "1 to compute" in run(bench, "--dry-run", attacks=["mine"])


def test_a_result_of_another_suite_replaces_an_own_failure(first, run):
    shutil.copytree(first.run, first.out / "copy")
    for path in (first.out / "copy").glob("cells/*/result.json"):
        path.unlink()
    run(first, seeds=[0, 1])
    assert computed(first) == []


NUMBER = ("self.weights[-1] > 0", "self.weights[-1] > 1")


def change(bench, number, name, *replacements):
    """Change a tiny plugin's file without changing its revision."""
    path = bench.folder / f"{name}.py"
    text = bench.plugins[number].read_text()
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)
    bench.files[number] = path


class TestOtherCode:
    """Records name the code that computed them. Results of other code of the same revision are taken and reported."""

    def codes(self, bench):
        return [json.loads(path.read_text())["code"] for path in sorted(bench.results())]

    def reports(self, out):
        return [line for line in out.splitlines() if "other code" in line]

    def test_a_record_names_the_code_of_its_plugins(self, first):
        assert list(map(set, self.codes(first))) == [{"datasets/letters", "victims/hashed", "attacks/ridge"}] * 2

    def test_a_changed_comment_is_not_reported(self, first, run):
        change(first, 1, "hashed", ("    def _vector", "    # a comment\n    def _vector"))
        assert self.reports(run(first)) == []

    def test_a_changed_number_is_reported_once_for_a_plugin(self, first, run):
        change(first, 1, "hashed", NUMBER)
        assert self.reports(run(first)) == [
            "victims/hashed: the code has changed, the revision has not; results or artefacts of 2 cells "
            "are from other code; --force computes them again"
        ]

    def test_a_fitted_victim_that_is_taken_is_reported_and_recorded(self, first, run):
        change(first, 1, "hashed", NUMBER)
        first.suite(seeds=[0, 1], attacks=[{"ridge": {"penalty": 0.5}}])
        before = self.codes(first)[0]["victims/hashed"]
        assert len(self.reports(run(first))) == 1
        assert {code["victims/hashed"] for code in self.codes(first)} == {before}

    def test_another_revision_is_computed_anew(self, first, run):
        change(first, 1, "hashed", NUMBER, ("revision=1", "revision=2"))
        assert self.reports(run(first)) == []
        assert len({code["victims/hashed"] for code in self.codes(first)}) == 2

    def test_force_loads_a_changed_dataset_anew(self, first, run):
        change(first, 0, "letters", ("rng.random() < 0.8", "rng.random() < 0.7"))
        assert len(self.reports(run(first))) == 1
        run(first, "--force")
        assert self.reports(run(first)) == []
