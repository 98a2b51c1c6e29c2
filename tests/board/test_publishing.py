"""Test publishing: only finished runs are published, `verify` detects changes, and runs reuse published records."""

import dataclasses
import gzip
import json
import shutil
from pathlib import Path

import pytest
from bench import Bench
from published_files import of_score, published_lines, raised, tamper

from leakboard.board.tables import read_table
from leakboard.claims import ReleaseClaim, claim_as_json
from leakboard.execution.provenance import environment
from leakboard.metrics.entries import METRICS
from leakboard.pipeline import results
from leakboard.pipeline.records import PUBLISHED, pack, published_entries
from leakboard.suite.yaml_files import read_yaml

FIT = "        bare = FittedHashed"


def test_an_unfinished_run_is_not_published(bench, command_line, refusal):
    bench.plugin("hashed", "other", (FIT, f'        raise ValueError("odd data")\n{FIT}'))
    bench.suite(victims=["hashed", "other"])
    message = "2 of 2 cells have no result; only a finished run is published"
    assert message in refusal(*bench.arguments("publish"))
    command_line(*bench.arguments("run"))
    assert "1 of 2 cells have no result" in refusal(*bench.arguments("publish"))
    assert not list(bench.folder.glob("tiny/*.csv"))


def test_a_plugin_without_a_revision_is_not_published(bench, output_of, refusal):
    bench.plugin("ridge", "mine")
    bench.suite(attacks=["ridge", "mine"])
    output_of(*bench.arguments("run"))
    message = refusal(*bench.arguments("publish"))
    assert "attacks/mine declares no revision" in message
    assert "write @attack(revision=1) above its class" in message
    assert not list(bench.folder.glob("tiny/*"))
    refusal(*bench.arguments("publish", "--only", "attack=ridge"))  # the run folder has records of `mine`


@pytest.fixture(scope="module")
def board_once(finished, call_once, tmp_path_factory):
    bench = finished.copy(tmp_path_factory.mktemp("published"))
    call_once(*bench.arguments("publish"))
    return bench


@pytest.fixture
def published(board_once, tmp_path):
    """Return a copy of the finished bench with published tables."""
    return board_once.copy(tmp_path)


def test_a_finished_run_is_published_in_a_folder_named_after_its_suite(published):
    names = {path.name for path in (published.folder / "tiny").iterdir() if path.is_file()}
    tables = {"leaderboard.csv", "best_known.csv", "skipped.csv", "fairness.csv", "costs.csv"}
    assert names == {*tables, "meta.json", "records.jsonl.gz", "README.md"}
    for name in names & published.tables().keys():
        assert (published.folder / "tiny" / name).read_bytes() == published.tables()[name]
    lines = [json.loads(line) for line in published_lines(published.folder / "tiny")]
    assert lines
    assert all(line["sentences"] == [] for line in lines)  # no text of the corpus is published


def test_invented_texts_are_published_as_examples_and_no_others(bench, output_of):
    """They stay where a later run takes the published records over. An attacker's own texts must be invented, too."""
    made = {"generated_reviews": {"users": 40, "texts_per_user": 3}}
    table = bench.folder / "own.csv"
    lines = [f"secret word{i} text{i % 7},{i % 2}" for i in range(60)]
    table.write_text("\n".join(["text,label", *lines]))
    own = {"path": str(table), "text": "text", "label": "label"}
    datasets = [
        {**made, "name": "made"},
        {"excerpts": {"of": made, "words": 5}, "name": "cut"},
        {"table": own, "name": "own"},
        {"generated_reviews": {**made["generated_reviews"], "auxiliary": {"table": own}}, "name": "spied"},
    ]
    victim = {"embedding_bag": {"epochs": 1, "min_count": 1, "dimension": 8}}
    bench.suite(datasets=datasets, victims=[victim], attacks=["nearest_text"])
    output_of(*bench.arguments("run"))
    output_of(*bench.arguments("publish"))
    path = bench.folder / "tiny" / "examples.csv"
    rows = read_table(path)
    assert [row["dataset"] for row in rows] == ["cut"] * 3 + ["made"] * 3
    assert all(len(row["text"].split()) == len(row["recovered"].split()) == 5 for row in rows[:3])
    shutil.rmtree(bench.out)
    output_of(*bench.arguments("run"))
    output_of(*bench.arguments("publish"))
    assert read_table(path) == rows


@pytest.fixture(scope="module")
def two_cells_once(call_once, tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("two_cells"))
    bench.suite(seeds=[0, 1])
    for command in ("run", "publish"):
        call_once(*bench.arguments(command))
    return bench


@pytest.fixture
def two_cells(two_cells_once, tmp_path):
    """Return a bench with two published cells."""
    return two_cells_once.copy(tmp_path)


class TestVerify:
    """`verify` computes published cells again and compares."""

    def test_unchanged_records_agree(self, published, output_of):
        out = output_of(*published.arguments("verify", "--cells", 3))
        assert out.count("agrees: letters / hashed") == 3
        assert "DIFFERS" not in out

    def test_a_suite_without_published_records_is_refused(self, bench, refusal):
        bench.suite()
        message = refusal(*bench.arguments("verify"))
        assert "no cell that" in message
        assert "is published" in message

    @pytest.mark.parametrize(
        ("change", "remark"),
        [
            (lambda score: [dataclasses.replace(score, value=score.value + 0.1)], "in attack_score"),
            (lambda score: [], "1 metrics are missing"),
            (lambda score: [score, dataclasses.replace(score, name="attack_luck")], "1 metrics are missing"),
        ],
        ids=["changed number", "removed row", "added row"],
    )
    def test_a_changed_score_differs(self, change, remark, two_cells, output_of):
        tamper(two_cells.folder / "tiny", of_score(change))
        out = output_of(*two_cells.arguments("verify", "--cells", 2), status=1)
        (line,) = [line for line in out.splitlines() if line.startswith("DIFFERS")]
        assert "letters / hashed / ridge / seed 1" in line
        assert remark in line

    @pytest.mark.parametrize(
        ("change", "remark"),
        [
            ({"claim": claim_as_json(ReleaseClaim(0.1, 0.0, "vector", "noise", "1-norm", proved=0.1))}, "other claim"),
            ({"victim": "bert"}, "other victim"),
            ({"test_size": 10_000}, "other test_size"),
            ({"checks": {}}, "other checks"),
            ({"details": "the best attacker of all"}, "other details"),
            ({"status": "skipped", "reason": "not applicable"}, "other status, reason"),
            ({"secrets": ["nothing"]}, "other secrets"),
        ],
        ids=lambda part: part if isinstance(part, str) else "",
    )
    def test_a_record_that_differs_in_another_field_differs(self, change, remark, two_cells, output_of):
        home = two_cells.folder / "tiny"
        entries = published_entries(home)
        number = next(i for i, (r, _) in enumerate(entries) if (r.attack, r.seed) == ("ridge", 1))
        entries[number] = (dataclasses.replace(entries[number][0], **change), entries[number][1])
        (home / PUBLISHED).write_bytes(pack(entries))
        out = output_of(*two_cells.arguments("verify", "--cells", 2), status=1)
        (line,) = [line for line in out.splitlines() if line.startswith("DIFFERS")]
        assert remark in line

    @pytest.mark.parametrize("change", ["n", "status"])
    def test_a_record_that_differs_in_a_metrics_size_or_remark_differs(self, change, two_cells, output_of):
        changed = {"n": 10_000} if change == "n" else {"status": "sure"}
        tamper(two_cells.folder / "tiny", of_score(lambda score: [dataclasses.replace(score, **changed)]))
        out = output_of(*two_cells.arguments("verify", "--cells", 2), status=1)
        assert f"other {'sizes' if change == 'n' else 'remarks'} of metrics" in out

    @pytest.mark.parametrize("part", ["value", "low", "high"])
    def test_each_end_of_an_interval_counts(self, part, two_cells, output_of):
        """Only the changed end differs, by a thousandth."""

        def change(score):
            return [dataclasses.replace(score, **{part: getattr(score, part) + 0.001})]

        tamper(two_cells.folder / "tiny", of_score(change))
        assert f"0.001000 in attack_score {part}" in output_of(*two_cells.arguments("verify", "--cells", 2), status=1)

    @pytest.mark.slow
    @pytest.mark.parametrize(("headline", "agrees"), [(0.04, True), (-0.04, True), (0.06, False)])
    @pytest.mark.parametrize("kind", ["gpu", "processor"])
    def test_headlines_of_different_devices_are_compared_within_a_tolerance(
        self, headline, agrees, kind, two_cells, output_of
    ):
        def shift(metric):
            if METRICS[metric.name].values.are_whole:
                return [metric]
            other = 0.03 if max(metric.value or 0, metric.high or 0) < 0.97 else -0.03
            return [raised(metric, headline if metric.name == "attack_score" else other)]

        tamper(two_cells.folder / "tiny", shift, **{kind: "H100"})
        out = output_of(*two_cells.arguments("verify", "--cells", 2), status=0 if agrees else 1)
        (line,) = [line for line in out.splitlines() if "H100" in line]
        assert line.startswith("agrees: letters" if agrees else "DIFFERS: letters")
        assert f"difference {abs(headline):.6f} in attack_score" in line
        here = environment()["machine"]["processor"]
        then = ", ".join(sorted(["H100", here])) if kind == "gpu" else "H100"
        assert line.endswith(f"(published from {then}, computed on {here}: headlines alone, within 0.05)")
        back = {"gpu": "cpu"} if kind == "gpu" else {"processor": here}
        tamper(two_cells.folder / "tiny", of_score(lambda score: [raised(score, -headline)]), **back)
        output_of(*two_cells.arguments("verify", "--cells", 2), status=1)  # only the other metrics stay shifted

    def test_equal_records_of_another_processor_agree_as_a_whole(self, two_cells, output_of):
        tamper(two_cells.folder / "tiny", lambda metric: [metric], processor="another")
        out = output_of(*two_cells.arguments("verify", "--cells", 2))
        assert out.count("agrees: letters") == 2
        assert "headlines" not in out


class TestReuse:
    """A run takes over published records that have the same identity."""

    @pytest.fixture
    def uncomputed(self, published):
        """Return the published bench without its run folder."""
        shutil.rmtree(published.out)
        return published

    def test_published_cells_are_not_computed_again(self, uncomputed, output_of):
        names = ("leaderboard.csv", "costs.csv")
        before = [(uncomputed.folder / "tiny" / name).read_bytes() for name in names]
        assert "8 of 8 cells are taken" in output_of(*uncomputed.arguments("run"))
        assert not uncomputed.results()
        assert [(uncomputed.run / name).read_bytes() for name in names] == before

    @pytest.mark.slow
    def test_an_extended_suite_computes_only_the_new_cells(self, uncomputed, command_line):
        before = len(published_lines(uncomputed.folder / "tiny"))
        content = read_yaml(uncomputed.folder / "tiny.yaml")
        uncomputed.suite(**content | {"victims": [*content["victims"], {"hashed": {"dimensions": 5}}]})
        command_line(*uncomputed.arguments("run"))
        added = len(content["seeds"]) * len(content["attacks"])
        assert len(uncomputed.results()) == added
        command_line(*uncomputed.arguments("publish"))
        assert len(published_lines(uncomputed.folder / "tiny")) == before + added

    @pytest.mark.slow
    def test_a_suite_can_refuse_reuse(self, bench, command_line, output_of):
        bench.suite(reuse=False)
        command_line(*bench.arguments("run"))
        command_line(*bench.arguments("publish"))
        assert len(published_lines(bench.folder / "tiny")) == 1
        shutil.rmtree(bench.out)
        out = output_of(*bench.arguments("run", "--dry-run"))
        assert "published, will be computed again" in out
        assert "1 cell, 0 done, 1 to compute" in out
        command_line(*bench.arguments("run"))
        assert len(bench.results()) == 1

    def test_a_dry_run_reports_the_source_of_results(self, uncomputed, output_of):
        out = output_of(*uncomputed.arguments("run", "--dry-run"))
        assert out.count("result, from published leaderboards") == 4  # the other four are skipped, with their reason
        assert "8 cells, 8 done, 0 to compute" in out

    def test_the_records_of_each_board_are_read_once(self, uncomputed, command_line, monkeypatch):
        opened, read = [], Path.read_bytes
        monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path) or read(path))
        command_line(*uncomputed.arguments("run", "--dry-run"))
        local = uncomputed.folder / "tiny" / PUBLISHED
        assert [path for path in opened if path.name == PUBLISHED] == [local]
        opened.clear()
        uncomputed.suite(victims=["hashed", {"hashed": {"dimensions": 5}}])
        command_line(*uncomputed.arguments("run", "--dry-run"))
        other_boards = [path for path in opened if path.name == PUBLISHED and path != local]
        assert len(other_boards) == len(set(other_boards)) > 0
        assert opened.count(local) == 2  # the second time to look for other identities of the same cells

    def test_records_of_other_boards_are_reused(self, uncomputed, output_of, monkeypatch):
        (uncomputed.folder / "tiny").rename(uncomputed.folder / "another")
        assert "8 to compute" in output_of(*uncomputed.arguments("run", "--dry-run"))
        monkeypatch.setattr(results, "suite_folder", lambda: uncomputed.folder)
        assert "8 done, 0 to compute" in output_of(*uncomputed.arguments("run", "--dry-run"))

    def test_changed_code_of_the_same_revision_is_reported_once(self, uncomputed, output_of):
        path = uncomputed.folder / "hashed.py"
        path.write_text(Bench.plugins[1].read_text().replace("self.weights[-1] > 0", "self.weights[-1] > 1"))
        uncomputed.files = [path if file.name == path.name else file for file in uncomputed.files]
        out = output_of(*uncomputed.arguments("run"))
        (line,) = [line for line in out.splitlines() if "other code" in line]
        assert line.startswith(
            "victims/hashed: the code has changed, the revision has not; results or artefacts of 4 cells"
        )

    @pytest.mark.slow
    def test_verify_and_force_compute_published_cells(self, uncomputed, command_line):
        _, out, _ = command_line(*uncomputed.arguments("verify", "--cells", 1, "--seed", 0))
        assert "agrees" in out
        assert "done in" in out
        command_line(*uncomputed.arguments("run", "--force"))
        assert len(uncomputed.results()) > 1

    def test_an_altered_record_is_computed_again(self, uncomputed, command_line):
        path = uncomputed.folder / "tiny" / PUBLISHED
        first, *others = published_lines(uncomputed.folder / "tiny")
        altered = json.dumps(json.loads(first) | {"note": "far better than that"})
        path.write_bytes(gzip.compress("\n".join([altered, first[:-2], *others]).encode()))
        command_line(*uncomputed.arguments("run"))
        assert len(uncomputed.results()) == 1

    def test_the_finished_part_of_a_run_can_be_published(self, bench, command_line, output_of, refusal):
        bench.suite(seeds=[0, 1])
        command_line(*bench.arguments("run", "--seeds", 0))
        assert "1 of 2 cells have no result" in refusal(*bench.arguments("publish"))
        output_of(*bench.arguments("publish", "--seeds", 0))
        assert len(published_lines(bench.folder / "tiny")) == 1
