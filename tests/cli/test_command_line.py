"""The command line over small runs computes, keeps and reports the right things."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import leakboard
from leakboard.execution import local


def test_a_run_writes_its_tables(finished):
    assert {path.name for path in finished.run.iterdir()} >= {
        "leaderboard.csv",
        "cells.csv",
        "fairness.csv",
        "costs.csv",
        "meta.json",
    }
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


def test_what_cannot_meet_is_skipped_with_the_reason(finished):
    skipped = pd.read_csv(finished.run / "skipped.csv")
    assert skipped["attack"].tolist() == ["nearest_neighbour"] * 2
    assert skipped["reason"].tolist() == ["nearest_neighbour attacks words, hashed publishes none"] * 2
    assert "nearest_neighbour" not in finished.leaderboard().index.get_level_values("attack")


def test_a_second_run_does_no_work(copied, command_line, monkeypatch):
    results, tables = copied.results(), copied.tables()
    monkeypatch.setattr(local.Local, "run", None)
    code, out, err = command_line(*copied.arguments("run"))
    assert (code, err) == (0, "")
    assert "leaderboard.csv" in out
    assert copied.results() == results
    assert copied.tables() == tables


def test_report_writes_the_same_bytes(copied, command_line):
    results, tables = copied.results(), copied.tables()
    costs = (copied.run / "costs.csv").read_bytes()
    for path in copied.run.glob("*.csv"):
        path.unlink()
    assert command_line(*copied.arguments("report"))[0] == 0
    assert copied.tables() == tables
    assert (copied.run / "costs.csv").read_bytes() == costs
    assert copied.results() == results


def test_report_warns_of_missing_and_altered_results(copied, command_line):
    first, second = [path for path in sorted(copied.results()) if "-ridge-" in path.parent.name][:2]
    first.unlink()
    second.write_text(second.read_text().replace('"seed": ', '"seed": 1'))
    code, out, _ = command_line(*copied.arguments("report"))
    assert code == 0
    assert "warning: 2 of 8 cells have no result or failed; `run` tries them" in out
    assert f"warning: {second.parent.name}: its result does not match its checksum" in out


def test_a_victim_that_two_datasets_share_is_fitted_once(bench, command_line):
    bench.suite(datasets=[{"letters": {"auxiliary": {"letters": {"size": size}}}} for size in (60, 90)])
    code, out, _ = command_line(*bench.arguments("run", "--force"))
    assert code == 0
    assert [line.count("fit hashed") for line in out.splitlines() if "hashed / seed 0: done" in line] == [1, 0]
    assert len(bench.results()) == 2


def test_report_without_cells_is_one_line(bench, command_line):
    bench.suite()
    code, _, err = command_line(*bench.arguments("report"))
    assert (code, err.count("\n")) == (2, 1)
    assert "no finished cells" in err


def test_a_truncated_publication_is_reported_and_computed_again(copied, command_line):
    tables = copied.tables()
    publications = sorted((copied.out / ".cache" / "publications").glob("letters-hashed-s0-*"))[0]
    whole = (publications / "test.npy").read_bytes()
    (publications / "test.npy").write_bytes(whole[:-100])
    for path in copied.results():
        path.unlink()
    code, out, _ = command_line(*copied.arguments("run"))
    assert code == 0
    assert f"{publications.name}: checksum mismatch in test.npy; computed again" in out
    assert out.count("computed again") == 1
    assert (publications / "test.npy").read_bytes() == whole
    assert copied.tables() == tables


def test_an_altered_result_is_computed_again(copied, command_line):
    tables = copied.tables()
    path = next(path for path in sorted(copied.results()) if "-ridge-" in path.parent.name)
    whole = path.read_text()
    assert '"name": "attack_score"' in whole
    path.write_text(whole.replace('"value": 0.', '"value": 0.9'))
    code, out, _ = command_line(*copied.arguments("run"))
    assert code == 0
    assert f"{path.parent.name}: its result does not match its checksum; computed again" in out
    assert out.count("computed again") == 1
    assert path.read_text() == whole
    assert copied.tables() == tables


@pytest.mark.parametrize("content", ["[{", "3", "[3]", '{"stage": 1}', "faster"])
def test_altered_or_unreadable_costs_cost_only_their_rows(content, copied, command_line):
    tables, results = copied.tables(), copied.results()
    path = next(path for path in sorted(copied.run.glob("cells/*/costs.json")) if "-ridge-" in path.parent.name)
    whole = path.read_text()
    path.write_text(whole.replace('"seconds": ', '"seconds": 1') if content == "faster" else content)
    for command in ("report", "run"):
        code, out, _ = command_line(*copied.arguments(command))
        assert (code, copied.tables(), copied.results()) == (0, tables, results)
        assert len(pd.read_csv(copied.run / "costs.csv")) == 9
        line = f"{path.parent.name}: its costs do not match their checksum and are left out; `run --force` measures"
        assert out.count(line) == 1
    code, out, _ = command_line(*copied.arguments("run", "--force"))
    assert (code, "their checksum" in out) == (0, False)
    assert len(pd.read_csv(copied.run / "costs.csv")) == 12


def test_every_dataset_that_was_read_is_in_the_provenance(bench, command_line):
    bench.suite(datasets=[{"letters": {"auxiliary": {"letters": {"size": 60}}}}])
    assert command_line(*bench.arguments("run"))[0] == 0
    datasets = json.loads((bench.run / "meta.json").read_text())["datasets"]
    assert set(datasets) == {"letters(auxiliary=letters(size=60))", "letters(size=60)"}


def test_force_computes_the_same_bytes_again(copied, command_line):
    results, tables = copied.results(), copied.tables()
    assert command_line(*copied.arguments("run", "--force"))[0] == 0
    again = copied.results()
    assert again.keys() == results.keys()
    assert all(again[path] > results[path] for path in results)
    assert copied.tables() == tables


def test_a_dry_run_lists_and_computes_nothing(copied, command_line, monkeypatch):
    monkeypatch.setattr(local.Local, "run", None)
    removed = sorted(path for path in copied.results() if "hashed-ridge-s0" in path.parent.name)[0]
    removed.unlink()
    before = sorted(copied.folder.rglob("*"))
    code, out, _ = command_line(*copied.arguments("run", "--dry-run"))
    assert code == 0
    lines = [line.strip() for line in out.splitlines() if " / " in line]
    assert len(lines) == 8
    cached = [line.split("  ")[-1] for line in lines if "/ ridge" in line]
    assert sorted(cached) == ["publications, victim, corpus", *["result, publications, victim, corpus"] * 3]
    assert "8 cells, 7 done, 1 to compute" in out
    assert sorted(copied.folder.rglob("*")) == before


def test_a_dry_run_from_nothing_writes_nothing(bench, command_line):
    bench.suite()
    code, out, _ = command_line(*bench.arguments("run", "--dry-run"))
    assert code == 0
    assert "letters / hashed / ridge / seed 0  nothing" in out
    assert not bench.out.exists()


def test_only_and_seeds_choose_cells(bench, command_line):
    bench.suite(victims=["hashed", {"hashed": {"dimensions": 8}}])
    more = ["--only", "victim=hashed(dimensions=8)", "--seeds", "4,2"]
    assert command_line(*bench.arguments("run", *more))[0] == 0
    assert sorted(path.parent.name[:23] for path in bench.results()) == [f"letters-hashed-ridge-s{s}" for s in (2, 4)]
    assert bench.leaderboard().index.tolist() == [("hashed (dimensions=8)", "ridge")]


def test_another_victim_changes_no_other_rows(bench, command_line):
    bench.suite()
    assert command_line(*bench.arguments("run"))[0] == 0
    before = {name: text.splitlines()[1:] for name, text in bench.tables().items()}
    word2vec = {"word2vec": {"min_count": 2, "vector_size": 8, "epochs": 1}}
    bench.suite(victims=[word2vec, "hashed"], attacks=["nearest_neighbour", "ridge"])
    bench.out = bench.folder / "anew"
    assert command_line(*bench.arguments("run"))[0] == 0
    for name, text in bench.tables().items():
        lines = [line for line in text.splitlines() if b"nearest_neighbour" not in line]
        assert [line for line in lines if b",hashed," in line] == before[name]
        assert len(lines) > 1 + len(before[name])


def test_real_plugins_on_generated_reviews(bench, command_line):
    bench.suite(
        datasets=[{"generated_reviews": {"users": 40, "leak": 1.0}}],
        victims=[{"word2vec": {"min_count": 2, "vector_size": 16, "epochs": 3}}],
        attacks=[
            {"nearest_neighbour": {"align": "anchors", "anchors": 20}},
            {"attribute_inference": {"portfolio": "logistic"}},
            {"entity_presence": {"portfolio": "logistic"}},
        ],
    )
    code, out, _ = command_line(*bench.arguments("run"))
    assert code == 0, out
    rows = bench.leaderboard().reset_index().set_index("attack").query("secret == ''")
    assert [len(secrets.split("; ")) for secrets in rows["secrets"]] == [2, 5, 1]
    assert rows["attack_metric"].tolist() == ["accuracy", "f1", "recall@5"]
    assert (rows["privacy_bayes"][:2].astype(float) <= rows["privacy_best_constant"][:2].astype(float)).all()
    first = bench.tables()
    bench.out = bench.folder / "anew"
    assert command_line(*bench.arguments("run"))[0] == 0
    assert bench.tables() == first


def test_list_names_everything(command_line):
    code, out, _ = command_line("list")
    assert code == 0
    for name in ("generated_reviews", "word2vec", "attribute_inference", "demo"):
        assert f"\n{name} " in out
    assert not {"broken:", "Traceback"} & set(out.split())
    code, _, err = command_line("list", "victm")
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean 'victims'?" in err


def test_list_says_which_data_are_present_and_how_to_get_the_others(command_line, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path))
    places = ("fetched from raw.githubusercontent.com when first used", "put the file at ag/ag_data.txt in a folder")
    code, out, _ = command_line("list", "datasets")
    shown = " ".join(out.split())
    assert code == 0
    assert "LEAKBOARD_DATA" in shown
    assert all(word in shown for place in places for word in place.split())
    (tmp_path / "ag_data.txt").touch()
    before = shown.count(" there")
    assert " ".join(command_line("list", "datasets")[1].split()).count(" there") == before + 1


def test_list_reports_a_plugin_with_a_broken_availability(command_line, tmp_path):
    imported = "from leakboard.suite.options import attack\n\n\n"
    source = f"{imported}@attack\nclass A:\n    @staticmethod\n    def availability():\n        1 / 0\n"
    (tmp_path / "odd.py").write_text(source)
    code, out, _ = command_line("list", "attacks", "--plugin", str(tmp_path / "odd.py"))
    assert code == 0
    assert "broken: ZeroDivisionError" in out


def test_show_prints_every_option(command_line):
    from leakboard.suite.options import describe
    from leakboard.victims.word2vec import Word2Vec

    code, out, _ = command_line("show", "victim", "word2vec")
    assert code == 0
    assert "Zouhri and Abecidan 2021" in out
    lines = out.splitlines()
    for option in describe(Word2Vec):
        (line,) = [line for line in lines if line.startswith(f"{option.name} ")]
        assert option.allowed.split()[0] in line
        assert option.default in line
    code, _, err = command_line("show", "victim", "word2vc")
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean 'word2vec'?" in err


def test_every_way_to_call_the_program_prints_the_version(command_line):
    assert command_line("--version")[:2] == (0, f"leakboard {leakboard.__version__}\n")
    called = [sys.executable, "-m", "leakboard", "--version"]
    assert (
        subprocess.run(called, capture_output=True, text=True, check=True).stdout
        == f"leakboard {leakboard.__version__}\n"
    )
    called[-1] = "--help"
    assert "python -m leakboard" in subprocess.run(called, capture_output=True, text=True, check=True).stdout


def test_names_are_shown_in_the_order_of_numbers_and_published_in_that_of_letters(bench, command_line):
    bench.plugin("hashed", "other", (FIT, f'        raise ValueError(f"k={{self.dimensions}}")\n{FIT}'))
    bench.suite(victims=[{"other": {"grid": {"dimensions": [81, 100, 9]}}}])
    code, out, _ = command_line(*bench.arguments("run"))
    assert code == 1
    shown = [line.strip() for line in out.splitlines() if line.startswith(" other (dimensions=")]
    assert shown == [f"other (dimensions={k})" for k in (9, 81, 100)]
    grouped = [line.split("k=")[1].split()[0] for line in out.splitlines() if "1 failed: ValueError: k=" in line]
    assert grouped == ["9", "81", "100"]
    assert [victim for victim, _ in bench.leaderboard().index] == [f"other (dimensions={k})" for k in (100, 81, 9)]


FIT = "        bare = FittedHashed"
