"""Test the command line on small runs: what is computed, cached, reported and listed."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import leakboard
from leakboard.execution import local

FIT = "        bare = FittedHashed"


def ridge_cells(bench):
    """Return the result files of the attack ridge."""
    return [path for path in sorted(bench.results()) if "-ridge-" in path.parent.name]


class TestRun:
    def test_tables_and_provenance_are_written(self, finished):
        tables = {"leaderboard.csv", "cells.csv", "fairness.csv", "costs.csv", "meta.json"}
        assert {path.name for path in finished.run.iterdir()} >= tables
        costs = pd.read_csv(finished.run / "costs.csv")
        assert costs["stage"].tolist() == ["fit", "publish", "attack"] * 4
        assert (costs["seconds"] >= 0).all()
        meta = json.loads((finished.run / "meta.json").read_text())
        assert meta["datasets"] == {"letters": "letters-1"}
        assert meta["checks"]["letters"]["test_copies"] == 0
        (environment,) = meta["environments"]
        assert environment["packages"]["numpy"] == np.__version__
        assert environment["machine"]["cores"] >= 1
        assert len(meta["cells"]) == 8
        leaderboard = finished.leaderboard()
        assert leaderboard.loc[("hashed", "ridge"), ["status", "seeds", "secrets"]].tolist() == ["ok", "2", "colour"]
        assert float(leaderboard.loc[("hashed", "ridge"), "attack_score"]) > 0.65  # 80 % of the texts show the colour
        claim = leaderboard.loc[("hashed (noise=0.05)", "ridge"), ["epsilon_claimed", "delta", "privacy_unit"]]
        assert claim.tolist() == ["1.0000", "1e-06", "document"]

    def test_inapplicable_attacks_are_skipped_with_the_reason(self, finished):
        skipped = pd.read_csv(finished.run / "skipped.csv")
        assert skipped["attack"].tolist() == ["nearest_neighbour"] * 2
        assert skipped["reason"].tolist() == ["nearest_neighbour attacks words, hashed publishes none"] * 2
        assert "nearest_neighbour" not in finished.leaderboard().index.get_level_values("attack")

    def test_a_second_run_computes_nothing(self, copied, command_line, monkeypatch):
        results, tables = copied.results(), copied.tables()
        monkeypatch.setattr(local.Local, "run", None)
        code, out, err = command_line(*copied.arguments("run"))
        assert (code, err) == (0, "")
        assert "leaderboard.csv" in out
        assert copied.results() == results
        assert copied.tables() == tables

    def test_force_computes_the_same_bytes_again(self, copied, output_of):
        results, tables = copied.results(), copied.tables()
        output_of(*copied.arguments("run", "--force"))
        again = copied.results()
        assert again.keys() == results.keys()
        assert all(again[path] > results[path] for path in results)
        assert copied.tables() == tables

    def test_only_and_seeds_select_cells(self, bench, output_of):
        bench.suite(victims=["hashed", {"hashed": {"dimensions": 8}}])
        output_of(*bench.arguments("run", "--only", "victim=hashed(dimensions=8)", "--seeds", "4,2"))
        cells = sorted(path.parent.name[:23] for path in bench.results())
        assert cells == [f"letters-hashed-ridge-s{seed}" for seed in (2, 4)]
        assert bench.leaderboard().index.tolist() == [("hashed (dimensions=8)", "ridge")]

    def test_a_seed_that_is_listed_twice_is_refused(self, bench, refusal):
        bench.suite()
        assert "seeds: [0, 0] lists a seed twice, 0" in refusal(*bench.arguments("run", "--seeds", "0,0"))

    def test_a_file_in_place_of_a_folder_is_refused(self, bench, refusal):
        suite = bench.suite()
        assert f"--out {suite}: {suite} is a file; allowed: a folder" in refusal("run", suite, "--out", suite)

    def test_a_victim_of_two_datasets_is_fitted_once(self, bench, output_of):
        bench.suite(datasets=[{"letters": {"auxiliary": {"letters": {"size": size}}}} for size in (60, 90)])
        out = output_of(*bench.arguments("run", "--force"))
        assert [line.count("fit hashed") for line in out.splitlines() if "hashed / seed 0: done" in line] == [1, 0]
        assert len(bench.results()) == 2

    def test_every_loaded_dataset_is_in_the_provenance(self, bench, output_of):
        bench.suite(datasets=[{"letters": {"auxiliary": {"letters": {"size": 60}}}}])
        output_of(*bench.arguments("run"))
        datasets = json.loads((bench.run / "meta.json").read_text())["datasets"]
        assert set(datasets) == {"letters(auxiliary=letters(size=60))", "letters(size=60)"}

    def test_an_added_victim_changes_no_other_row(self, bench, output_of):
        bench.suite()
        output_of(*bench.arguments("run"))
        before = {name: text.splitlines()[1:] for name, text in bench.tables().items()}
        word2vec = {"word2vec": {"min_count": 2, "vector_size": 8, "epochs": 1}}
        bench.suite(victims=[word2vec, "hashed"], attacks=["nearest_neighbour", "ridge"])
        bench.out = bench.folder / "anew"
        output_of(*bench.arguments("run"))
        for name, text in bench.tables().items():
            lines = [line for line in text.splitlines() if b"nearest_neighbour" not in line]
            assert [line for line in lines if b",hashed," in line] == before[name]
            assert len(lines) > 1 + len(before[name])

    def test_real_plugins_give_the_same_bytes_twice(self, bench, output_of):
        bench.suite(
            datasets=[{"generated_reviews": {"users": 40, "leak": 1.0}}],
            victims=[{"word2vec": {"min_count": 2, "vector_size": 16, "epochs": 3}}],
            attacks=[
                {"nearest_neighbour": {"align": "anchors", "anchors": 20}},
                {"attribute_inference": {"portfolio": "logistic"}},
                {"entity_presence": {"portfolio": "logistic"}},
            ],
        )
        output_of(*bench.arguments("run"))
        rows = bench.leaderboard().reset_index().set_index("attack").query("secret == ''")
        assert [len(secrets.split("; ")) for secrets in rows["secrets"]] == [2, 5, 1]
        assert rows["attack_metric"].tolist() == ["accuracy", "f1", "recall@5"]
        assert (rows["privacy_bayes"][:2].astype(float) <= rows["privacy_best_constant"][:2].astype(float)).all()
        first = bench.tables()
        bench.out = bench.folder / "anew"
        output_of(*bench.arguments("run"))
        assert bench.tables() == first

    def test_names_are_shown_in_the_order_of_their_numbers_and_published_alphabetically(self, bench, output_of):
        bench.plugin("hashed", "other", (FIT, f'        raise ValueError(f"k={{self.dimensions}}")\n{FIT}'))
        bench.suite(victims=[{"other": {"grid": {"dimensions": [81, 100, 9]}}}])
        out = output_of(*bench.arguments("run"), status=1)
        shown = [line.strip() for line in out.splitlines() if line.startswith(" other (dimensions=")]
        assert shown == [f"other (dimensions={k})" for k in (9, 81, 100)]
        failures = [line.split("k=")[1].split()[0] for line in out.splitlines() if "1 failed: ValueError: k=" in line]
        assert failures == ["9", "81", "100"]
        assert [victim for victim, _ in bench.leaderboard().index] == [f"other (dimensions={k})" for k in (100, 81, 9)]


class TestDryRun:
    def test_cells_are_listed_with_their_cached_stages(self, copied, output_of, monkeypatch):
        monkeypatch.setattr(local.Local, "run", None)
        next(path for path in sorted(copied.results()) if "hashed-ridge-s0" in path.parent.name).unlink()
        before = sorted(copied.folder.rglob("*"))
        out = output_of(*copied.arguments("run", "--dry-run"))
        lines = [line.strip() for line in out.splitlines() if " / " in line]
        assert len(lines) == 8
        cached = [line.split("  ")[-1] for line in lines if "/ ridge" in line]
        assert sorted(cached) == ["publications, victim, corpus", *["result, publications, victim, corpus"] * 3]
        assert "8 cells, 7 done, 1 to compute" in out
        assert sorted(copied.folder.rglob("*")) == before

    def test_a_dry_run_without_results_writes_nothing(self, bench, output_of):
        bench.suite()
        assert "letters / hashed / ridge / seed 0  nothing" in output_of(*bench.arguments("run", "--dry-run"))
        assert not bench.out.exists()


class TestReport:
    def test_the_same_bytes_are_written(self, copied, output_of):
        results, tables = copied.results(), copied.tables()
        costs = (copied.run / "costs.csv").read_bytes()
        for path in copied.run.glob("*.csv"):
            path.unlink()
        output_of(*copied.arguments("report"))
        assert copied.tables() == tables
        assert (copied.run / "costs.csv").read_bytes() == costs
        assert copied.results() == results

    def test_missing_and_altered_results_are_reported(self, copied, output_of):
        first, second = ridge_cells(copied)[:2]
        first.unlink()
        second.write_text(second.read_text().replace('"seed": ', '"seed": 1'))
        out = output_of(*copied.arguments("report"))
        assert "warning: 2 of 8 cells have no result or failed; `run` tries them" in out
        assert f"warning: {second.parent.name}: its result does not match its checksum" in out

    @pytest.mark.parametrize("option", ["--html", "--svg"])
    @pytest.mark.parametrize("folder", [".", ""])
    def test_a_folder_is_no_file_for_a_page_or_picture(self, copied, refusal, option, folder):
        assert f"{option} .: a folder; allowed: a file" in refusal(*copied.arguments("report", option, folder))

    def test_a_report_without_cells_is_refused(self, bench, refusal):
        bench.suite()
        assert "no finished cells" in refusal(*bench.arguments("report"))


class TestAlteredFiles:
    def test_a_truncated_publication_is_computed_again(self, copied, output_of):
        tables = copied.tables()
        publication = sorted((copied.out / ".cache" / "publications").glob("letters-hashed-s0-*"))[0]
        whole = (publication / "test.npy").read_bytes()
        (publication / "test.npy").write_bytes(whole[:-100])
        for path in copied.results():
            path.unlink()
        out = output_of(*copied.arguments("run"))
        assert f"{publication.name}: checksum mismatch in test.npy; computed again" in out
        assert out.count("computed again") == 1
        assert (publication / "test.npy").read_bytes() == whole
        assert copied.tables() == tables

    def test_an_altered_result_is_computed_again(self, copied, output_of):
        tables = copied.tables()
        path = ridge_cells(copied)[0]
        whole = path.read_text()
        assert '"name": "attack_score"' in whole
        path.write_text(whole.replace('"value": 0.', '"value": 0.9'))
        out = output_of(*copied.arguments("run"))
        assert f"{path.parent.name}: its result does not match its checksum; computed again" in out
        assert out.count("computed again") == 1
        assert path.read_text() == whole
        assert copied.tables() == tables

    @pytest.mark.slow
    @pytest.mark.parametrize("content", ["[{", "3", "[3]", '{"stage": 1}', "faster"])
    def test_altered_costs_lose_only_their_rows(self, content, copied, output_of):
        tables, results = copied.tables(), copied.results()
        path = ridge_cells(copied)[0].with_name("costs.json")
        whole = path.read_text()
        path.write_text(whole.replace('"seconds": ', '"seconds": 1') if content == "faster" else content)
        for command in ("report", "run"):
            out = output_of(*copied.arguments(command))
            assert (copied.tables(), copied.results()) == (tables, results)
            assert len(pd.read_csv(copied.run / "costs.csv")) == 9
            line = f"{path.parent.name}: its costs do not match their checksum and are left out; `run --force` measures"
            assert out.count(line) == 1
        assert "their checksum" not in output_of(*copied.arguments("run", "--force"))
        assert len(pd.read_csv(copied.run / "costs.csv")) == 12


class TestListAndShow:
    def test_list_names_everything(self, output_of, refusal):
        out = output_of("list")
        for name in ("generated_reviews", "word2vec", "attribute_inference", "demo"):
            assert f"\n{name} " in out
        assert not {"broken:", "Traceback"} & set(out.split())
        assert "did you mean 'victims'?" in refusal("list", "victm")

    def test_list_shows_which_datasets_are_available_and_how_to_get_the_others(self, output_of, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path))
        shown = " ".join(output_of("list", "datasets").split())
        assert "LEAKBOARD_DATA" in shown
        hints = "fetched from raw.githubusercontent.com when first used", "put the file at ag/ag_data.txt in a folder"
        assert all(word in shown for hint in hints for word in hint.split())
        (tmp_path / "ag_data.txt").touch()
        assert " ".join(output_of("list", "datasets").split()).count(" there") == shown.count(" there") + 1

    def test_list_marks_a_plugin_whose_availability_raises(self, output_of, tmp_path):
        imported = "from leakboard.suite.options import attack\n\n\n"
        source = f"{imported}@attack\nclass A:\n    @staticmethod\n    def availability():\n        1 / 0\n"
        (tmp_path / "odd.py").write_text(source)
        assert "broken: ZeroDivisionError" in output_of("list", "attacks", "--plugin", str(tmp_path / "odd.py"))

    def test_show_prints_every_option(self, output_of, refusal):
        from leakboard.suite.options import describe
        from leakboard.victims.word2vec import Word2Vec

        out = output_of("show", "victim", "word2vec")
        assert "Zouhri and Abecidan 2021" in out
        lines = out.splitlines()
        for option in describe(Word2Vec):
            (line,) = [line for line in lines if line.startswith(f"{option.name} ")]
            assert option.allowed.split()[0] in line
            assert option.default in line
        assert "did you mean 'word2vec'?" in refusal("show", "victim", "word2vc")


def test_the_program_and_the_module_print_version_and_help(output_of):
    def module(option):
        command = [sys.executable, "-m", "leakboard", option]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    version = f"leakboard {leakboard.__version__}\n"
    assert output_of("--version") == module("--version") == version
    assert "python -m leakboard" in module("--help")
