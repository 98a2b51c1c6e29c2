"""Results are found by identity, whatever suite computed them, and what is found elsewhere is never changed."""

import json
import shutil

import pytest

from leakboard.pipeline import results


def copy_of(bench, **changes):
    """Write a second suite of the same content but for the changes, and return its arguments."""
    path = bench.suite(**changes).rename(bench.folder / "copy.yaml")

    def arguments(command, *more):
        return [str(path) if str(part).endswith("tiny.yaml") else part for part in bench.arguments(command, *more)]

    return arguments


def computed(bench, suite):
    return sorted(path.parent.name for path in (bench.out / suite / "cells").glob("*/result.json"))


@pytest.fixture
def first(bench, command_line):
    """Return a bench whose suite has run."""
    bench.suite(seeds=[0, 1])
    assert command_line(*bench.arguments("run"))[0] == 0
    return bench


def test_a_copied_suite_with_one_more_attack_computes_that_attack_alone(first, command_line):
    before = first.results()
    copied = copy_of(first, seeds=[0, 1], attacks=["ridge", {"ridge": {"penalty": 0.5}}])
    code, out, _ = command_line(*copied("run"))
    assert code == 0
    assert "2 of 4 cells are taken from other suites" in out
    assert len(computed(first, "copy")) == 2
    assert all(
        json.loads(path.read_text())["attack"] == "ridge(penalty=0.5)"
        for path in (first.out / "copy" / "cells").glob("*/result.json")
    )
    assert first.results() == before
    rows = (first.out / "copy" / "leaderboard.csv").read_text().splitlines()
    assert rows[:2] == (first.run / "leaderboard.csv").read_text().splitlines()[:2]


def test_a_dataset_is_loaded_once(first, command_line):
    def loaded():
        return {path: path.stat().st_mtime_ns for path in (first.out / ".cache" / "corpora").rglob("*")}

    before = loaded()
    first.suite(attacks=[{"ridge": {"penalty": 0.5}}])
    assert command_line(*first.arguments("run"))[0] == 0
    assert len(before) > 2
    assert loaded() == before


def test_what_differs_is_computed(first, command_line):
    copied = copy_of(first, seeds=[0, 1], threads=2)
    _, out, _ = command_line(*copied("run"))
    assert "taken from" not in out
    assert len(computed(first, "copy")) == 2


def test_force_computes_what_other_suites_have(first, command_line):
    copied = copy_of(first, seeds=[0, 1])
    command_line(*copied("run", "--force"))
    assert len(computed(first, "copy")) == 2


def test_force_computes_what_is_published(first, command_line):
    assert command_line(*first.arguments("publish"))[0] == 0
    for path in first.results():
        path.unlink()
    assert "2 done, 0 to compute" in command_line(*first.arguments("run", "--dry-run"))[1]
    assert "0 done, 2 to compute" in command_line(*first.arguments("run", "--dry-run", "--force"))[1]
    command_line(*first.arguments("run", "--force"))
    assert len(first.results()) == 2


def test_another_leaderboards_results_are_taken(first, command_line, monkeypatch):
    assert command_line(*first.arguments("publish"))[0] == 0
    shutil.rmtree(first.out)
    monkeypatch.setattr(results, "suite_folder", lambda: first.folder)
    copied = copy_of(first, seeds=[0, 1])
    _, out, _ = command_line(*copied("run"))
    assert "2 of 2 cells are taken from published leaderboards" in out


def test_an_altered_result_of_another_suite_is_not_taken(first, command_line):
    path = next(iter(first.results()))
    path.write_text(path.read_text().replace('"attack": "ridge"', '"attack": "bridge"'))
    copied = copy_of(first, seeds=[0, 1])
    _, out, _ = command_line(*copied("run"))
    assert "1 of 2 cells are taken from other suites" in out
    assert computed(first, "copy") == [path.parent.name]


def test_a_failure_elsewhere_is_no_result(bench, command_line):
    bench.plugin("ridge", "mine", ("        square =", '        raise ValueError("odd")\n        square ='))
    bench.suite(attacks=["mine"])
    assert command_line(*bench.arguments("run"))[0] == 1
    copied = copy_of(bench, attacks=["mine"])
    assert "1 to compute" in command_line(*copied("run", "--dry-run"))[1]


def test_an_own_failure_gives_way_to_a_result_elsewhere(first, command_line):
    shutil.copytree(first.run, first.out / "copy")
    for path in (first.out / "copy").glob("cells/*/result.json"):
        path.unlink()
    copied = copy_of(first, seeds=[0, 1])
    assert command_line(*copied("run"))[0] == 0
    assert computed(first, "copy") == []


def variant(bench, *replacements):
    """Change the tiny victim's file, and leave its revision."""
    path = bench.folder / "hashed.py"
    text = bench.plugins[1].read_text()
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)
    bench.files = [path if file.name == path.name else file for file in bench.files]


class TestOtherCode:
    """Records say what code computed them; what other code of the same revision computed is taken, and told."""

    def code_of(self, bench):
        return [json.loads(path.read_text())["code"] for path in sorted(bench.results())]

    def told(self, out):
        return [line for line in out.splitlines() if "other code" in line]

    def test_a_record_names_the_code_of_its_plugins(self, first):
        assert [set(code) for code in self.code_of(first)] == [
            {"datasets/letters", "victims/hashed", "attacks/ridge"}
        ] * 2

    def test_a_changed_comment_is_not_told(self, first, command_line):
        variant(first, ("    def _vector", "    # a comment\n    def _vector"))
        _, out, _ = command_line(*first.arguments("run"))
        assert self.told(out) == []

    def test_a_changed_number_is_told_once_a_plugin(self, first, command_line):
        variant(first, ("self.weights[-1] > 0", "self.weights[-1] > 1"))
        _, out, _ = command_line(*first.arguments("run"))
        assert self.told(out) == [
            "victims/hashed: results that 2 cells take over were computed by other code of the same revision; "
            "--force computes them again"
        ]

    def test_a_fitted_victim_that_is_taken_over_is_told_and_recorded(self, first, command_line):
        variant(first, ("self.weights[-1] > 0", "self.weights[-1] > 1"))
        first.suite(seeds=[0, 1], attacks=[{"ridge": {"penalty": 0.5}}])
        before = self.code_of(first)[0]["victims/hashed"]
        _, out, _ = command_line(*first.arguments("run"))
        assert len(self.told(out)) == 1
        assert {code["victims/hashed"] for code in self.code_of(first)} == {before}

    def test_another_revision_is_computed_anew(self, first, command_line):
        variant(first, ("self.weights[-1] > 0", "self.weights[-1] > 1"), ("revision=1", "revision=2"))
        _, out, _ = command_line(*first.arguments("run"))
        assert self.told(out) == []
        assert len({code["victims/hashed"] for code in self.code_of(first)}) == 2

    def test_force_loads_a_changed_dataset_anew(self, first, command_line):
        path = first.folder / "letters.py"
        path.write_text(first.plugins[0].read_text().replace("rng.random() < 0.8", "rng.random() < 0.7"))
        first.files[0] = path
        _, out, _ = command_line(*first.arguments("run"))
        assert len(self.told(out)) == 1
        command_line(*first.arguments("run", "--force"))
        _, out, _ = command_line(*first.arguments("run"))
        assert self.told(out) == []
