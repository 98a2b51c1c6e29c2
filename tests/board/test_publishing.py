"""Only a finished run is published, and what was changed after that is found by computing again."""

import dataclasses
import gzip
import json
import shutil
from pathlib import Path

import pytest
from bench import Bench

from leakboard.pipeline import results
from leakboard.pipeline.records import PUBLISHED, pack, read_published
from leakboard.suite.yaml_files import read_yaml

FIT = "        bare = FittedHashed"


def test_an_unfinished_run_is_not_published(bench, command_line):
    bench.plugin("hashed", "other", (FIT, f'        raise ValueError("odd data")\n{FIT}'))
    bench.suite(victims=["hashed", "other"])
    code, _, err = command_line(*bench.arguments("publish"))
    assert (code, err.count("\n")) == (2, 1)
    assert "2 of 2 cells have no result; only a finished run is published" in err
    command_line(*bench.arguments("run"))
    code, _, err = command_line(*bench.arguments("publish"))
    assert (code, err.count("\n")) == (2, 1)
    assert "1 of 2 cells have no result" in err
    assert not list(bench.folder.glob("tiny/*.csv"))


@pytest.fixture
def published(copied, command_line):
    """Return a copy of the finished bench, its tables published."""
    code, out, _ = command_line(*copied.arguments("publish"))
    assert code == 0, out
    return copied


def test_a_finished_run_is_published_in_a_folder_named_after_its_suite(published):
    there = {path.name for path in (published.folder / "tiny").iterdir() if path.is_file()}
    tables = {"leaderboard.csv", "best_known.csv", "skipped.csv", "fairness.csv", "costs.csv"}
    assert there == {*tables, "meta.json", "records.jsonl.gz", "README.md"}
    for name in there & published.tables().keys():
        assert (published.folder / "tiny" / name).read_bytes() == published.tables()[name]


def test_verify_agrees_with_what_was_published(published, command_line):
    code, out, _ = command_line(*published.arguments("verify", "--cells", 3))
    assert code == 0, out
    assert out.count("agrees: letters / hashed") == 3
    assert "DIFFERS" not in out


def tamper(bench, change, device="cpu"):
    """Change the metrics of one published record, as if they had been computed so, on some device."""
    wanted = [json.loads(line)["key"] for line in lines_of(bench)]
    entries = read_published(bench.folder / "tiny", wanted).values()
    changed = []
    for record, costs in entries:
        if (record.victim, record.attack, record.seed) == ("hashed", "ridge", 1):
            record = dataclasses.replace(record, metrics=[m for metric in record.metrics for m in change(metric)])
            costs = [cost | {"device": device} if cost["stage"] == "fit" else cost for cost in costs]
        changed.append((record, costs))
    (bench.folder / "tiny" / PUBLISHED).write_bytes(pack(changed))


def of_score(change):
    """Return what changes the attack's score, and leaves every other metric."""
    return lambda metric: change(metric) if metric.name == "attack_score" else [metric]


CHANGES = {
    "a number": (lambda score: [dataclasses.replace(score, value=score.value + 0.1)], "in attack_score"),
    "a row left out": (lambda score: [], "1 metrics are missing"),
    "a row added": (lambda score: [score, dataclasses.replace(score, name="attack_luck")], "1 metrics are missing"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_verify_finds_what_was_changed(change, published, command_line):
    edit, remark = CHANGES[change]
    tamper(published, of_score(edit))
    code, out, _ = command_line(*published.arguments("verify", "--cells", 8))
    assert code == 1
    (line,) = [line for line in out.splitlines() if line.startswith("DIFFERS")]
    assert "letters / hashed / ridge / seed 1" in line
    assert remark in line


def shifted(headline, other):
    """Return what shifts the values of a record, and the ends of their intervals."""

    def change(metric):
        shift = headline if (metric.name, metric.variable) == ("attack_score", "") else other
        moved = {
            part: value + shift for part in ("value", "low", "high") if (value := getattr(metric, part)) is not None
        }
        return [dataclasses.replace(metric, **moved)]

    return change


@pytest.mark.parametrize(("headline", "agrees"), [(0.04, True), (-0.04, True), (0.06, False)])
def test_across_devices_the_headlines_are_compared_within_a_tolerance(headline, agrees, published, command_line):
    remark = "(published from NVIDIA H100, cpu, computed on cpu: headlines alone, within 0.05)"
    tamper(published, shifted(headline, 0.03), "NVIDIA H100")
    code, out, _ = command_line(*published.arguments("verify", "--cells", 8))
    assert code == (0 if agrees else 1), out
    (line,) = [line for line in out.splitlines() if "H100" in line]
    assert line.startswith("agrees: letters" if agrees else "DIFFERS: letters")
    assert f"difference {abs(headline):.6f} in attack_score" in line
    assert line.endswith(remark)
    tamper(published, shifted(-headline, 0.0), "cpu")  # as it was, but for the other metrics' shift
    assert command_line(*published.arguments("verify", "--cells", 8))[0] == 1


def test_verify_of_what_is_not_published_is_one_line(bench, command_line):
    bench.suite()
    code, _, err = command_line(*bench.arguments("verify"))
    assert (code, err.count("\n")) == (2, 1)
    assert "no cell that" in err
    assert "is published" in err


def test_a_plugin_without_a_revision_is_run_and_not_published(bench, command_line):
    bench.plugin("ridge", "mine")
    bench.suite(attacks=["ridge", "mine"])
    assert command_line(*bench.arguments("run"))[0] == 0
    code, _, err = command_line(*bench.arguments("publish"))
    assert (code, err.count("\n")) == (2, 1)
    assert "attacks/mine declares no revision" in err
    assert "write @attack(revision=1) above its class" in err
    assert not list(bench.folder.glob("tiny/*"))
    assert command_line(*bench.arguments("publish", "--only", "attack=ridge"))[0] == 2  # its records are there


def lines_of(bench):
    """Return the published records, a line of JSON each."""
    return gzip.decompress((bench.folder / "tiny" / "records.jsonl.gz").read_bytes()).decode().splitlines()


class TestTakingOver:
    """Published records count as results wherever they have the same identity."""

    @pytest.fixture
    def elsewhere(self, published):
        """Return the published bench on a machine that has computed nothing."""
        shutil.rmtree(published.out)
        return published

    def test_nothing_is_computed_again(self, elsewhere, command_line):
        before = (elsewhere.folder / "tiny" / "leaderboard.csv").read_bytes()
        costs = (elsewhere.folder / "tiny" / "costs.csv").read_bytes()
        code, out, _ = command_line(*elsewhere.arguments("run"))
        assert code == 0
        assert "8 of 8 cells are taken" in out
        assert not elsewhere.results()
        assert (elsewhere.run / "leaderboard.csv").read_bytes() == before
        assert (elsewhere.run / "costs.csv").read_bytes() == costs

    def test_an_extended_suite_computes_only_what_is_new(self, elsewhere, command_line):
        published = len(lines_of(elsewhere))
        suite = elsewhere.folder / "tiny.yaml"
        content = read_yaml(suite)
        elsewhere.suite(**content | {"victims": [*content["victims"], {"hashed": {"dimensions": 5}}]})
        command_line(*elsewhere.arguments("run"))
        added = len(content["seeds"]) * len(content["attacks"])
        assert len(elsewhere.results()) == added
        command_line(*elsewhere.arguments("publish"))
        lines = lines_of(elsewhere)
        assert len(lines) == published + added

    def test_a_suite_that_is_there_to_be_computed(self, bench, command_line):
        bench.suite(reuse=False)
        command_line(*bench.arguments("run"))
        command_line(*bench.arguments("publish"))
        assert len(lines_of(bench)) == 1
        shutil.rmtree(bench.out)
        _, out, _ = command_line(*bench.arguments("run", "--dry-run"))
        assert "published, computed again" in out
        assert "1 cells, 0 done, 1 to compute" in out
        command_line(*bench.arguments("run"))
        assert len(bench.results()) == 1

    def test_a_dry_run_says_where_results_are_from(self, elsewhere, command_line):
        _, out, _ = command_line(*elsewhere.arguments("run", "--dry-run"))
        assert out.count("result, from published leaderboards") == 4  # the others are told why they are skipped
        assert "8 cells, 8 done, 0 to compute" in out

    def test_each_leaderboards_records_are_opened_once(self, elsewhere, command_line, monkeypatch):
        opened, read = [], Path.read_bytes
        monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path) or read(path))
        command_line(*elsewhere.arguments("run", "--dry-run"))
        own = elsewhere.folder / "tiny" / "records.jsonl.gz"
        assert [path for path in opened if path.name == own.name] == [own]
        opened.clear()
        elsewhere.suite(victims=["hashed", {"hashed": {"dimensions": 5}}])
        command_line(*elsewhere.arguments("run", "--dry-run"))
        others = [path for path in opened if path.name == own.name and path != own]
        assert len(others) == len(set(others)) > 0
        assert opened.count(own) == 2  # once more for what is published under another identity

    def test_other_leaderboards_count_too(self, elsewhere, command_line, monkeypatch):
        (elsewhere.folder / "tiny").rename(elsewhere.folder / "another")
        assert "8 to compute" in command_line(*elsewhere.arguments("run", "--dry-run"))[1]
        monkeypatch.setattr(results, "suite_folder", lambda: elsewhere.folder)
        assert "8 done, 0 to compute" in command_line(*elsewhere.arguments("run", "--dry-run"))[1]

    def test_code_that_was_changed_under_the_same_revision_is_told_once(self, elsewhere, command_line):
        path = elsewhere.folder / "hashed.py"
        path.write_text(Bench.plugins[1].read_text().replace("self.weights[-1] > 0", "self.weights[-1] > 1"))
        elsewhere.files = [path if file.name == path.name else file for file in elsewhere.files]
        _, out, _ = command_line(*elsewhere.arguments("run"))
        (line,) = [line for line in out.splitlines() if "other code" in line]
        assert line.startswith("victims/hashed: results that 4 cells take over were computed by other code of the same")

    def test_force_and_verify_compute_all_the_same(self, elsewhere, command_line):
        _, out, _ = command_line(*elsewhere.arguments("verify", "--cells", 1))
        assert "agrees" in out
        assert "done in" in out
        command_line(*elsewhere.arguments("run", "--force"))
        assert len(elsewhere.results()) > 1

    def test_an_altered_record_is_computed_again(self, elsewhere, command_line):
        path = elsewhere.folder / "tiny" / "records.jsonl.gz"
        first, *others = lines_of(elsewhere)
        better = json.dumps(json.loads(first) | {"note": "far better than that"})
        path.write_bytes(gzip.compress("\n".join([better, first[:-2], *others]).encode()))
        command_line(*elsewhere.arguments("run"))
        assert len(elsewhere.results()) == 1

    def test_no_text_of_the_corpus_is_published(self, published, command_line):
        records = [json.loads(line) for line in lines_of(published)]
        assert records
        assert all(record["sentences"] == [] for record in records)

    def test_a_part_is_published_when_it_is_whole(self, bench, command_line):
        bench.suite(seeds=[0, 1])
        command_line(*bench.arguments("run", "--seeds", 0))
        code, _, err = command_line(*bench.arguments("publish"))
        assert code == 2
        assert "1 of 2 cells have no result" in err
        code, _, _ = command_line(*bench.arguments("publish", "--seeds", 0))
        assert code == 0
        assert len(lines_of(bench)) == 1
