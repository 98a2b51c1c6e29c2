"""Test submissions: their files, their provenance, `verify`, and the workflow that verifies them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bench import CHECKOUT
from published_files import entries, lower_a_score, states

from leakboard.board.joined import join
from leakboard.board.submissions import _plugins, verified_files
from leakboard.pipeline import results
from leakboard.pipeline.records import PUBLISHED, pack
from leakboard.suite.registry import Registry
from leakboard.suite.yaml_files import read_yaml


def verified_cells(folder):
    return json.loads(verified_files(folder)[0].read_text())["cells"]


def test_a_submission_holds_records_suite_plugins_and_environment(submitted):
    bench, folder = submitted
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    plugins = {"plugins/letters.py", "plugins/hashed.py", "plugins/ridge.py"}
    assert files == {"suite.yaml", "records.jsonl.gz", "submission.json", *plugins}
    assert (folder / "suite.yaml").read_bytes() == (bench.folder / "tiny.yaml").read_bytes()
    assert len(entries(folder)) == 8
    description = json.loads((folder / "submission.json").read_text())
    assert description["plugins"] == {
        "datasets/letters": "plugins/letters.py",
        "victims/hashed": "plugins/hashed.py",
        "attacks/ridge": "plugins/ridge.py",
    }
    (environment,) = description["environments"]
    assert environment.keys() >= {"commit", "packages", "machine"}
    assert str(bench.folder) not in "".join(path.read_text() for path in folder.rglob("*.json"))


def test_a_submission_leaves_no_file_of_the_one_it_replaces(copied, output_of):
    folder = copied.folder / "again"
    output_of(*copied.arguments("publish", "--submit", folder))
    described = json.loads((folder / "submission.json").read_text())
    described["plugins"]["victims/removed"] = "plugins/removed.py"
    (folder / "submission.json").write_text(json.dumps(described))
    left = [folder / "plugins" / "removed.py", folder / "requirements.txt", *verified_files(folder)]
    notes = folder / "plugins" / "notes.py"
    for path in (*left, notes):
        path.write_text("")
    output_of(*copied.arguments("publish", "--submit", folder))
    assert not any(path.exists() for path in left)
    assert (folder / "plugins" / "ridge.py").exists()
    assert notes.exists()  # no submission listed it


def test_a_submission_keeps_plugins_that_are_in_its_own_folder(submitted, output_of):
    bench, folder = submitted
    before = {path: path.read_bytes() for path in (folder / "plugins").iterdir()}
    own = [text for path in before for text in ("--plugin", path)]
    output_of("publish", folder / "suite.yaml", "--out", bench.out, *own, "--submit", folder)
    assert {path: path.read_bytes() for path in (folder / "plugins").iterdir()} == before


@pytest.mark.parametrize("submit", [True, False])
def test_a_label_that_readers_refuse_is_refused_before_it_is_published(bench, output_of, refusal, submit):
    bench.plugin("hashed", "my-victim", ("@victim\n", "@victim(revision=1)\n"))
    bench.suite(victims=["my-victim"])
    output_of(*bench.arguments("run"))
    more = ["--submit", bench.folder / "sent"] if submit else []
    assert "record.victim: 'my-victim' is not allowed" in refusal(*bench.arguments("publish"), *more)


@pytest.mark.slow
def test_own_data_that_do_not_travel_are_named(bench, output_of):
    rows = [f"word {i},{'ab'[i % 2]},{'yn'[i % 3 % 2]}" for i in range(120)]
    (bench.folder / "a.csv").write_text("\n".join(["text,s,task", *rows]))
    bench.suite(datasets=["letters", {"table": {"path": "a.csv", "label": "task", "secrets": ["s"]}}])
    output_of(*bench.arguments("run"))
    out = output_of(*bench.arguments("publish", "--submit", bench.folder / "sent"))
    (line,) = [line for line in out.splitlines() if line.startswith("warning: the files of")]
    assert "path=a.csv" in line
    assert line.endswith(") are not in the submission: say where reviewers get them")


def test_vectors_that_only_the_sender_made_are_not_verified(bench, output_of, refusal):
    vectors = np.random.default_rng(0).standard_normal((450, 8)).astype(np.float32)
    np.save(bench.folder / "vectors.npy", vectors)
    bench.suite(victims=[{"precomputed": {"vectors": str(bench.folder / "vectors.npy")}}], attacks=["ridge"])
    output_of(*bench.arguments("run"))
    folder = bench.folder / "tiny" / "submissions" / "mine"
    output_of(*bench.arguments("publish", "--submit", folder))
    plugins = [text for path in sorted((folder / "plugins").iterdir()) for text in ("--plugin", path)]
    reason = "vectors.npy) reads vectors that only the sender made, so no computation can verify them"
    assert reason in refusal("verify", folder, *plugins)


def test_a_part_of_a_run_can_be_submitted(copied, output_of):
    folder = copied.folder / "part"
    output_of(*copied.arguments("publish", "--submit", folder, "--only", "attack=ridge"))
    assert {record.attack for record, _ in entries(folder)} == {"ridge"}


@pytest.mark.slow
def test_a_row_is_self_reported_until_all_its_cells_are_verified(submitted, verify):
    _, folder = submitted
    assert states(folder) == {"self-reported"}
    assert "agrees: letters / hashed" in verify(folder, "--cells", 1)
    (cell,) = verified_cells(folder).values()
    assert cell["largest_difference"] == 0.0
    assert cell.keys() == {"date", "commit", "largest_difference"}
    assert states(folder) == {"self-reported"}  # a row has two seeds
    verify(folder, "--cells", 8)
    assert len(verified_cells(folder)) == 8
    assert states(folder) == {"verified"}
    assert join(folder.parents[1]).provenance == join(folder).provenance


@pytest.mark.slow
def test_verified_cells_stay_verified(submitted, verify):
    _, folder = submitted
    counts = []
    for seed in range(3):
        verify(folder, "--cells", 2, "--seed", seed)
        counts.append(len(verified_cells(folder)))
    assert counts[0] == 2
    assert counts == sorted(counts)
    assert counts[-1] > 2


@pytest.mark.slow
def test_records_changed_after_verification_are_self_reported_and_differ(verified, verify):
    lower_a_score(verified)
    assert states(verified) == {"self-reported"}
    assert "DIFFERS: letters / hashed / ridge / seed 1" in verify(verified, "--cells", 8, status=1)
    assert not any(path.exists() for path in verified_files(verified))


def test_another_plugin_than_the_verified_one_makes_rows_self_reported(verified):
    assert states(verified) == {"verified"}
    with (verified / "plugins" / "ridge.py").open("a") as file:
        file.write("# another line\n")
    assert states(verified) == {"self-reported"}


def test_rows_that_the_board_published_itself_are_verified(submitted, output_of):
    bench, folder = submitted
    home = folder.parents[1]
    output_of(*bench.arguments("publish", "--only", "attack=ridge"))
    lower_a_score(folder)
    assert states(home) == {"verified"}
    ridge = [entry for entry in entries(home) if entry[0].attack == "ridge"]
    (home / PUBLISHED).write_bytes(pack(ridge))
    assert {row[2] for row in join(home).provenance} == {"ridge"}
    (reported,) = join(home).reported.values()
    assert "ridge" not in {record.attack for record in reported}


def test_verifying_a_board_writes_nothing(copied, output_of):
    output_of(*copied.arguments("publish"))
    output_of(*copied.arguments("verify", "--cells", 1))
    assert not (copied.folder / "tiny.verified.json").exists()


def test_a_run_reuses_records_of_boards_but_not_of_submissions(submitted, output_of, monkeypatch):
    bench, folder = submitted
    shutil.rmtree(bench.out)
    monkeypatch.setattr(results, "suite_folder", lambda: bench.folder)
    assert "0 done, 8 to compute" in output_of(*bench.arguments("run", "--dry-run"))
    (folder / "plugins" / "cache").mkdir()
    shutil.copy(folder / PUBLISHED, folder / "plugins" / "cache")
    assert "0 done, 8 to compute" in output_of(*bench.arguments("run", "--dry-run"))
    shutil.rmtree(folder / "plugins" / "cache")
    shutil.move(folder, bench.folder / "another")
    assert "8 done, 0 to compute" in output_of(*bench.arguments("run", "--dry-run"))


@pytest.mark.slow
def test_a_run_that_cannot_be_submitted_is_refused(bench, output_of, refusal):
    bench.suite()
    target = bench.folder / "new"
    assert "1 of 1 cells have no result" in refusal(*bench.arguments("publish", "--submit", target))
    bench.plugin("ridge", "mine")
    bench.suite(attacks=["mine"])
    output_of(*bench.arguments("run"))
    assert "attacks/mine declares no revision" in refusal(*bench.arguments("publish", "--submit", target))
    bench.suite()
    output_of(*bench.arguments("run"))
    message = refusal(*bench.arguments("publish", "--submit", bench.folder))
    assert "it holds files that are no submission" in message
    assert not target.exists()
    output_of(*bench.arguments("publish", "--submit", target))


def test_the_workflow_has_no_access_to_secrets():
    path = CHECKOUT / ".github" / "workflows" / "verify.yaml"
    workflow, text = read_yaml(path), path.read_text()
    assert workflow["on"].keys() == {"pull_request"}  # pull_request_target would have the secrets
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    (job,) = workflow["jobs"].values()
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    assert not any("${{" in script for script in scripts)  # names from the pull request reach no shell as code
    assert any("run_benchmark.py verify" in script for script in scripts)


def test_the_steps_of_the_workflow_check_and_verify_a_submission(submitted, tmp_path):
    """Run the workflow's shell lines on a pull request; a fake program prints its arguments."""
    _, folder = submitted
    clone = tmp_path / "clone"
    target = clone / "leaderboards" / "tiny" / "submissions" / "mine"
    target.parent.mkdir(parents=True)
    (clone / "run_benchmark.py").write_text("import sys\nprint('called:', *sys.argv[1:])\n")

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
        environment = os.environ | {"BASE": base, "PATH": path}
        command = ["bash", "-eo", "pipefail", "-c", script]
        return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)

    assert run(find).returncode == 0
    result = run(compute)
    plugins = " ".join(
        f"--plugin leaderboards/tiny/submissions/mine/plugins/{p}.py" for p in ("hashed", "letters", "ridge")
    )
    assert result.stdout.splitlines() == [
        f"called: check {plugins}",
        f"called: verify leaderboards/tiny/submissions/mine {plugins} --cells 3",
    ]
    for path in (
        clone / "engine.py",
        target.with_name("mine.verified.json"),
        target.with_name("mine.verified.jsonl.gz"),
        target.with_name("second") / "suite.yaml",
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
        git("add", path)
        git("commit", "-qm", "More")
        refused = run(find)
        assert (refused.returncode, path.name in refused.stdout) == (1, True)
        git("reset", "-q", "--hard", "HEAD~1")


def test_the_workflow_lets_no_file_of_another_submission_be_moved_or_removed(tmp_path):
    submissions = tmp_path / "leaderboards" / "tiny" / "submissions"

    def git(*arguments):
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    (submissions / "rival").mkdir(parents=True)
    (submissions / "rival" / "submission.json").write_text("{}" * 100)
    (submissions / "rival.verified.json").write_text("[]" * 100)
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "base")
    (job,) = read_yaml(CHECKOUT / ".github" / "workflows" / "verify.yaml")["jobs"].values()
    find = next(step["run"] for step in job["steps"] if "run" in step)

    def status(*moves):
        for name in ("mine", "zzz"):
            (submissions / name).mkdir(exist_ok=True)
            (submissions / name / "submission.json").write_text("{}")
        for source, target in moves:
            git("mv", submissions / source, submissions / target) if target else git("rm", "-rq", submissions / source)
        git("add", submissions / "mine")
        git("commit", "-qm", "Submit")
        command = ["bash", "-eo", "pipefail", "-c", find]
        done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"BASE": "HEAD~1"}, capture_output=True)
        git("reset", "-q", "--hard", "HEAD~1")
        shutil.rmtree(submissions / "mine", ignore_errors=True)
        return done.returncode

    assert status() == 0
    assert status(("rival.verified.json", "mine/notes.json")) == 1
    assert status(("rival/submission.json", "mine/other.json")) == 1
    assert status(("rival", "")) == 1


def test_a_plugin_of_a_package_has_the_name_and_version_of_its_package(tmp_path, monkeypatch):
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
