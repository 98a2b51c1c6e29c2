"""Results of others: what a submission holds, that it counts as self-reported, and what `verify` makes of it."""

import dataclasses
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import CHECKOUT

from leakboard.board.submissions import _plugins, provenance
from leakboard.pipeline import results
from leakboard.pipeline.records import PUBLISHED, pack, read_published
from leakboard.suite.registry import Registry
from leakboard.suite.yaml_files import read_yaml


@pytest.fixture
def submitted(copied, command_line):
    """Return the bench and a submission of its run to the board in its folder ``tiny``."""
    folder = copied.folder / "tiny" / "submissions" / "mine"
    code, out, err = command_line(*copied.arguments("publish", "--submit", folder))
    assert code == 0, out + err
    return copied, folder


def verify(bench, folder, command_line, *more):
    """Verify a submission with its own plugins, as whoever receives it does."""
    plugins = [text for path in sorted((folder / "plugins").iterdir()) for text in ("--plugin", path)]
    return command_line("verify", folder, *plugins, *more)


def entries(folder):
    """Return the records of a folder with their costs."""
    lines = gzip.decompress((folder / PUBLISHED).read_bytes()).decode().splitlines()
    return list(read_published(folder, [json.loads(line)["key"] for line in lines]).values())


def test_it_holds_records_suite_plugins_and_where_they_are_from(submitted):
    bench, folder = submitted
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    plugins = {"plugins/letters.py", "plugins/hashed.py", "plugins/ridge.py"}
    assert there == {"suite.yaml", "records.jsonl.gz", "submission.json", *plugins}
    assert (folder / "suite.yaml").read_bytes() == (bench.folder / "tiny.yaml").read_bytes()
    assert len(entries(folder)) == 8
    said = json.loads((folder / "submission.json").read_text())
    assert said["plugins"] == {
        "datasets/letters": "plugins/letters.py",
        "victims/hashed": "plugins/hashed.py",
        "attacks/ridge": "plugins/ridge.py",
    }
    (environment,) = said["environments"]
    assert environment.keys() >= {"commit", "packages", "machine"}
    assert str(bench.folder) not in "".join(path.read_text() for path in folder.rglob("*.json"))


def test_a_part_of_a_run_can_be_submitted(copied, command_line):
    folder = copied.folder / "part"
    assert command_line(*copied.arguments("publish", "--submit", folder, "--only", "attack=ridge"))[0] == 0
    assert {record.attack for record, _ in entries(folder)} == {"ridge"}


def test_its_rows_are_self_reported_until_all_of_their_cells_are_computed_again(submitted, command_line):
    bench, folder = submitted
    assert set(provenance(folder).values()) == {"self-reported"}
    code, out, _ = verify(bench, folder, command_line, "--cells", 1)
    assert code == 0, out
    assert "agrees: letters / hashed" in out
    verified = json.loads((folder / "verified.json").read_text())
    (cell,) = verified["cells"].values()
    assert cell["largest_difference"] == 0.0
    assert cell.keys() == {"date", "commit", "largest_difference"}
    assert set(provenance(folder).values()) == {"self-reported"}  # a row has two seeds
    assert verify(bench, folder, command_line, "--cells", 8)[0] == 0
    assert len(json.loads((folder / "verified.json").read_text())["cells"]) == 8
    assert set(provenance(folder).values()) == {"verified"}
    assert provenance(folder.parents[1]) == provenance(folder)


def test_cells_that_were_verified_earlier_stay_so(submitted, command_line):
    bench, folder = submitted
    counts = []
    for seed in range(3):
        assert verify(bench, folder, command_line, "--cells", 2, "--seed", seed)[0] == 0
        counts.append(len(json.loads((folder / "verified.json").read_text())["cells"]))
    assert counts[0] == 2
    assert counts == sorted(counts)
    assert counts[-1] > 2


def tamper(folder):
    """Change the score of one record, as if it had been computed so."""
    changed = []
    for record, costs in entries(folder):
        if (record.victim, record.attack, record.seed) == ("hashed", "ridge", 1):
            better = [
                dataclasses.replace(m, value=m.value - 0.1) if m.name == "attack_score" else m for m in record.metrics
            ]
            record = dataclasses.replace(record, metrics=better)
        changed.append((record, costs))
    (folder / PUBLISHED).write_bytes(pack(changed))


def test_records_changed_after_they_were_verified_are_self_reported(submitted, command_line):
    bench, folder = submitted
    assert verify(bench, folder, command_line, "--cells", 8)[0] == 0
    tamper(folder)
    assert set(provenance(folder).values()) == {"self-reported"}


def test_a_cell_that_differs_leaves_nothing_verified(submitted, command_line):
    bench, folder = submitted
    assert verify(bench, folder, command_line, "--cells", 8)[0] == 0
    tamper(folder)
    code, out, _ = verify(bench, folder, command_line, "--cells", 8)
    assert (code, "DIFFERS: letters / hashed / ridge / seed 1" in out) == (1, True)
    assert not (folder / "verified.json").exists()


def test_a_boards_own_rows_are_verified_beside_a_submission(submitted, command_line):
    bench, folder = submitted
    home = folder.parents[1]
    assert command_line(*bench.arguments("publish", "--only", "attack=ridge"))[0] == 0
    tamper(folder)
    assert set(provenance(home).values()) == {"verified"}
    kept = [entry for entry in entries(home) if entry[0].attack == "ridge"]
    (home / PUBLISHED).write_bytes(pack(kept))
    found = provenance(home)
    assert {row[2]: state for row, state in found.items()} == {
        "ridge": "verified",
        "nearest_neighbour": "self-reported",
    }


def test_a_board_is_verified_without_writing_anything(copied, command_line):
    assert command_line(*copied.arguments("publish"))[0] == 0
    assert command_line(*copied.arguments("verify", "--cells", 1))[0] == 0
    assert not (copied.folder / "tiny" / "verified.json").exists()


def test_what_others_computed_is_nobodys_result(submitted, command_line, monkeypatch):
    """A submission is not taken over by a run, as a leaderboard's own records are."""
    bench, folder = submitted
    shutil.rmtree(bench.out)
    monkeypatch.setattr(results, "suite_folder", lambda: bench.folder)
    assert "0 done, 8 to compute" in command_line(*bench.arguments("run", "--dry-run"))[1]
    shutil.move(folder, bench.folder / "another")
    assert "8 done, 0 to compute" in command_line(*bench.arguments("run", "--dry-run"))[1]


def test_what_cannot_be_submitted_is_one_line(bench, command_line):
    bench.suite()
    target = bench.folder / "new"
    refusals = {}
    refusals["unfinished"] = command_line(*bench.arguments("publish", "--submit", target))
    bench.plugin("ridge", "mine")
    bench.suite(attacks=["mine"])
    assert command_line(*bench.arguments("run"))[0] == 0
    refusals["no revision"] = command_line(*bench.arguments("publish", "--submit", target))
    bench.suite()
    assert command_line(*bench.arguments("run"))[0] == 0
    refusals["other files"] = command_line(*bench.arguments("publish", "--submit", bench.folder))
    reasons = {
        "unfinished": "1 of 1 cells have no result",
        "no revision": "attacks/mine declares no revision",
        "other files": "it holds files that are no submission",
    }
    for case, (code, _, err) in refusals.items():
        assert (code, err.count("\n"), reasons[case] in err) == (2, 1, True), err
    assert not target.exists()
    assert command_line(*bench.arguments("publish", "--submit", target))[0] == 0


def test_the_workflow_runs_strangers_code_without_secrets():
    path = CHECKOUT / ".github" / "workflows" / "verify.yaml"
    workflow, text = read_yaml(path), path.read_text()
    assert workflow["on"].keys() == {"pull_request"}  # never pull_request_target, which has the secrets
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    (job,) = workflow["jobs"].values()
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    assert not any("${{" in script for script in scripts)  # what a stranger names reaches no shell as code
    assert any("run_benchmark.py verify" in script for script in scripts)


def test_the_workflows_steps_work(submitted, tmp_path):
    """Its own shell lines, on a pull request that adds the submission, with a stand-in for the program."""
    _, folder = submitted
    clone = tmp_path / "clone"
    target = clone / "leaderboards" / "tiny" / "submissions" / "mine"
    target.parent.mkdir(parents=True)
    (clone / "run_benchmark.py").write_text("import sys\nprint('asked:', *sys.argv[1:])\n")

    def git(*arguments):
        command = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "base")
    base = git("rev-parse", "HEAD")
    shutil.copytree(folder, target)
    git("add", ".")
    git("commit", "-qm", "Submit")
    (job,) = read_yaml(CHECKOUT / ".github" / "workflows" / "verify.yaml")["jobs"].values()
    find, _, compute = [step["run"] for step in job["steps"] if "run" in step]

    def run(script):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | {"BASE": base, "SEED": "7", "PATH": path}
        command = ["bash", "-eo", "pipefail", "-c", script]
        return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)

    assert run(find).returncode == 0
    done = run(compute)
    plugins = " ".join(
        f"--plugin leaderboards/tiny/submissions/mine/plugins/{p}.py" for p in ("hashed", "letters", "ridge")
    )
    assert done.stdout.splitlines() == [
        f"asked: check {plugins}",
        f"asked: verify leaderboards/tiny/submissions/mine {plugins} --cells 3 --seed 7",
    ]
    for path, reason in ((clone / "engine.py", "engine.py"), (target / "verified.json", "written after the review")):
        path.write_text("{}")
        git("add", path)
        git("commit", "-qm", "More")
        refused = run(find)
        assert (refused.returncode, reason in refused.stdout) == (1, True)
        git("reset", "-q", "--hard", "HEAD~1")


def test_a_plugin_of_a_package_is_named_with_its_version(tmp_path, monkeypatch):
    site = tmp_path / "site"
    info = site / "lengths-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lengths\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[leakboard.victims]\nlengths = lengths:Mine\n")
    (site / "lengths.py").write_text("")
    monkeypatch.syspath_prepend(str(site))
    mine = tmp_path / "mine.py"
    shutil.copy(CHECKOUT / "tests" / "tiny" / "ridge.py", mine)
    job = SimpleNamespace(code={"victims/lengths": "", "attacks/mine": "", "datasets/table": ""})
    files, packages = _plugins([job], Registry([mine]))
    assert files == {"attacks/mine": mine}
    assert packages == {"victims/lengths": "lengths==1.2"}
