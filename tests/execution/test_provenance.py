"""What a record says of where it was computed."""

import subprocess

import leakboard
from leakboard.execution.provenance import _commit, environment
from leakboard.execution.resources import Needs, measured


def test_libraries_are_named_as_their_projects_are():
    named = environment()["packages"]
    assert {"torch", "transformers", "gensim", "scikit-learn", "datasets", "faiss-cpu", "pandas"} <= set(named)
    assert all(name == name.lower() and version for name, version in named.items())


def test_the_commit_is_that_of_the_checkout(tmp_path, monkeypatch):
    def git(*arguments):
        command = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(leakboard, "__file__", str(tmp_path / "leakboard" / "__init__.py"))
    assert _commit() == ""
    git("init")
    git("commit", "--allow-empty", "-m", "first")
    commit = git("rev-parse", "HEAD")
    assert _commit() == commit
    (tmp_path / "new").touch()
    assert _commit() == f"{commit}+"
    monkeypatch.setattr(leakboard, "__file__", str(tmp_path / "inside" / "leakboard" / "__init__.py"))
    (tmp_path / "inside").mkdir()
    assert _commit() == ""


def test_the_cost_of_a_stage_has_the_environment():
    with measured("fit", Needs()) as cost:
        pass
    assert (cost["stage"], cost["device"], cost["environment"]) == ("fit", "cpu", environment())
