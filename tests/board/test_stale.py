"""Test that published cells are stale if the working tree changes their identity, and that the cause is named."""

import dataclasses
import shutil

import pytest
from ruamel.yaml import YAML

from leakboard.attacks.dp_audit import DpAudit
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.board.stale import NOT_ASKED, UNKNOWN, freshness
from leakboard.cli import stale_cells as command
from leakboard.pipeline.records import pack, published_entries
from leakboard.suite import revisions
from leakboard.suite.suites import suite_folder
from leakboard.threats.secrets import SecretsThreat
from leakboard.victims.embedding_bag import EmbeddingBag


@pytest.fixture
def boards(tmp_path):
    """Return a folder of leaderboards that holds only the published demo."""
    shutil.copytree(suite_folder() / "demo", tmp_path / "demo")
    return tmp_path


@pytest.fixture
def rewritten(boards):
    """Return a function that changes the demo's suite and writes it under a name."""

    def write(change, name="suite"):
        suite = YAML(typ="safe").load(boards / "demo" / "suite.yaml")
        change(suite)
        YAML().dump(suite, boards / "demo" / f"{name}.yaml")

    return write


@pytest.fixture
def records():
    return [record for record, _ in published_entries(suite_folder() / "demo")]


def demo(boards):
    (state,) = freshness(boards)
    return state


def test_published_cells_are_fresh(boards, records):
    state = demo(boards)
    assert (state.suite, state.published, state.stale) == ("demo/suite.yaml", len(records), 0)
    assert (state.causes, state.problem) == ({}, "")


@pytest.mark.parametrize(
    ("owner", "attribute", "value", "cause", "is_touched"),
    [
        (DpAudit, "__leakboard_revision__", 50, "attacks/dp_audit", lambda r: r.attack.startswith("dp_audit")),
        (EmbeddingBag, "__leakboard_revision__", 50, "victims/embedding_bag", lambda r: "embedding_bag" in r.victim),
        (SecretsThreat, "revision", 50, "threat secrets", lambda r: r.attack[:6] in ("attrib", "entity")),
        (revisions, "FIT", 2, "stage FIT", lambda r: True),
    ],
)
def test_a_higher_revision_makes_its_cells_stale(
    boards, records, monkeypatch, owner, attribute, value, cause, is_touched
):
    monkeypatch.setattr(owner, attribute, value)
    state = demo(boards)
    touched = sum(map(is_touched, records))
    assert touched > 0
    assert state.causes == {f"revision of {cause}": touched}
    assert (state.published, state.stale) == (len(records), touched)
    assert getattr(owner, attribute) == value


@pytest.mark.slow
def test_revisions_that_differ_together_are_named_together(boards, records, monkeypatch):
    monkeypatch.setattr(SecretsThreat, "revision", SecretsThreat.revision + 1)
    monkeypatch.setattr(EntityPresence, "__leakboard_revision__", EntityPresence.__leakboard_revision__ + 1)
    touched = {name: sum(r.attack.startswith(name) for r in records) for name in ("attribute", "entity")}
    assert demo(boards).causes == {
        "revision of threat secrets": touched["attribute"],
        "revisions of threat secrets and attacks/entity_presence": touched["entity"],
    }


def test_what_no_revision_explains_is_data_suite_or_default(boards, rewritten, records):
    rewritten(lambda suite: suite.update(text_classifier=not suite.get("text_classifier", True)))
    causes = demo(boards).causes
    assert sum(causes.values()) == sum(r.attack.startswith(("attribute", "entity")) for r in records)
    assert all(cause == UNKNOWN or cause.startswith("code of ") for cause in causes)


def test_cells_outside_the_suite_are_stale(boards, rewritten, records):
    rewritten(lambda suite: suite.update(seeds=[7]))
    assert demo(boards).causes == {NOT_ASKED: len(records)}


@pytest.mark.slow
def test_cells_of_other_suites_are_read_from_the_board_and_from_a_subfolder(boards, rewritten, records, monkeypatch):
    rewritten(lambda suite: suite.update(victims=suite["victims"][:1]), "one_victim")
    rewritten(lambda suite: suite.update(seeds=[7]), "unpublished")
    rewritten(lambda suite: None, "own")
    (boards / "demo" / "own").mkdir()
    (boards / "demo" / "own" / "records.jsonl.gz").write_bytes(pack((record, []) for record in records[:5]))
    monkeypatch.setattr(revisions, "UTILITY", 50)
    states = {state.suite: state for state in freshness(boards)}
    assert set(states) == {"demo/suite.yaml", "demo/one_victim.yaml", "demo/own.yaml"}
    assert states["demo/own.yaml"].published == len(records)  # the board's records count, too
    assert 0 < states["demo/one_victim.yaml"].published < len(records)
    assert all(state.stale == state.published for state in states.values())


@pytest.mark.slow
def test_missing_data_are_reported_in_one_line(boards, rewritten, monkeypatch, capsys):
    rewritten(lambda suite: suite.update(datasets=[*suite["datasets"], {"table": {"path": "gone.csv"}}]))
    monkeypatch.setattr("leakboard.board.stale.suite_folder", lambda: boards)
    path = boards / "demo" / "records.jsonl.gz"
    entries = published_entries(boards / "demo")
    entries += [(dataclasses.replace(entries[0][0], dataset="table(path=gone.csv)", key="f" * 64), [])]
    path.write_bytes(pack(entries))
    command.stale()
    out = capsys.readouterr().out
    assert "demo/suite.yaml: not all cells can be judged: " in out
    assert "gone.csv: no such file" in out
    assert out.endswith(f"0 of {len(entries)} published cells would be computed anew\n")


def test_a_wrong_suite_is_reported_as_a_problem(boards, rewritten, records):
    rewritten(lambda suite: suite.update(victims=["lsttm"]))
    state = demo(boards)
    assert (state.published, state.stale) == (len(records), 0)
    assert "no victim is named 'lsttm'" in state.problem


def test_submissions_of_other_revisions_than_the_boards_are_listed(verified):
    home = verified.parents[1]
    shutil.copy(verified / "suite.yaml", home)
    sent = published_entries(verified)
    attack = sent[0][0].attack
    assert {record.revisions["stage FIT"] for record, _ in sent} == {revisions.FIT}

    def listed(**raised):
        own = [dataclasses.replace(r, victim="another", revisions={**r.revisions, **raised}) for r, _ in sent]
        (home / "records.jsonl.gz").write_bytes(pack((record, []) for record in own))
        return [state for state in freshness(home.parent) if "submissions" in state.suite]

    assert listed() == []
    (state,) = listed(**{f"attacks/{attack}": 9})
    assert (state.suite, state.published, state.causes) == (
        "tiny/submissions/mine",
        len(sent),
        {f"revision of attacks/{attack}": len(sent)},
    )
