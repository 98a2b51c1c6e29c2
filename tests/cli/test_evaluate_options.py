"""``evaluate`` takes entities, bins, seeds and limits, leaves out rows that lack a value, and writes a page."""

import re

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

import leakboard
from leakboard.api import own_suites
from leakboard.board.gates import failures, read_limits
from leakboard.errors import RequestError
from leakboard.suite.names import Names

N = 300
QUICK = {"portfolio": "logistic", "inputs": "raw"}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    age, alice, gender = rng.integers(18, 78, N), rng.integers(2, size=N), rng.choice(["f", "m"], N).astype(object)
    vectors = rng.normal(size=(N, 4)).astype(np.float32)
    vectors[:, 0] += 8 * (gender == "f")
    vectors[:, 1] += age
    vectors[:, 2] += 8 * alice
    gender[7] = None
    return vectors, pd.DataFrame({"gender": gender, "age": age, "alice": alice})


@pytest.fixture
def evaluate(rows, tmp_path, command_line, monkeypatch):
    np.save(tmp_path / "v.npy", rows[0])
    rows[1].to_csv(tmp_path / "mine.csv", index=False)
    entries = own_suites._entries
    monkeypatch.setattr(
        own_suites,
        "_entries",
        lambda given: entries([{name: QUICK} if isinstance(name, str) else name for name in given]),
    )

    def call(*options, attacks="attribute_inference"):
        given = ["--vectors", tmp_path / "v.npy", "--out", tmp_path / "out", "--attacks", attacks]
        return command_line("evaluate", tmp_path / "mine.csv", *given, *options)

    return call


@pytest.mark.slow
def test_all_of_them_together(evaluate, tmp_path):
    options = ["--secrets", "gender,age", "--bins", "age=3", "--entities", "alice", "--seeds", "0,1", "--drop-missing"]
    code, out, err = evaluate(*options, "--html", tmp_path / "page.html", attacks="attribute_inference,entity_presence")
    assert code == 0, err
    suite = YAML(typ="safe").load((tmp_path / "out" / "suite.yaml").read_text("utf-8"))
    table = suite["datasets"][0]["table"]
    assert (suite["seeds"], table["bins"], table["entities"], table["on_bad_rows"]) == (
        [0, 1],
        {"age": 3},
        ["alice"],
        "drop",
    )
    assert f"1 of {N} rows were left out" in out
    assert "<html" in (tmp_path / "page.html").read_text("utf-8")


def test_a_row_that_lacks_a_secret_is_refused_unless_it_is_dropped(evaluate, rows):
    code, _, err = evaluate("--secrets", "gender")
    assert code == 2
    assert "gender" in err
    with pytest.raises(RequestError, match=r"row 7: it is missing.*drop_missing"):
        leakboard.evaluate(rows[0], rows[1][["gender"]], progress=False)
    kept = leakboard.evaluate(
        rows[0], rows[1][["gender"]], attacks=[{"attribute_inference": QUICK}], drop_missing=True, progress=False
    )
    assert f"warning: 1 of {N} rows were left out, since they lack a value" in kept.sentences


def test_the_kept_suite_is_reported_and_run_again_where_it_is(evaluate, command_line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert evaluate("--entities", "alice", attacks="entity_presence")[0] == 0
    code, out, err = command_line("report", tmp_path / "out" / "suite.yaml")
    assert (code, "entity_presence" in out) == (0, True), err
    assert command_line("report", tmp_path / "out")[1] == out
    code, out, _ = command_line("run", tmp_path / "out" / "suite.yaml", "--at-most", "attack_f1=0")
    assert code == 2
    code, out, _ = command_line("run", tmp_path / "out" / "suite.yaml", "--at-most", "attack_advantage=0.2")
    assert (code, "1 cell: 1 done" in out) == (3, True), out
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == [".cache", "suite"]
    assert not (tmp_path / "runs").exists()


def test_rows_that_all_lack_a_value_are_refused():
    nothing = pd.DataFrame({"gender": [None] * 4})
    with pytest.raises(RequestError, match="each of the 4 rows lacks a value"):
        leakboard.evaluate(np.ones((4, 2)), nothing, drop_missing=True, progress=False)


@pytest.mark.parametrize(("limit", "code"), [("attack_advantage=0.2", 3), ("attack_advantage=1", 0)])
def test_a_limit_that_a_row_breaks_is_exit_status_3(evaluate, limit, code):
    given, out, _ = evaluate("--entities", "alice", "--at-most", limit, attacks="entity_presence")
    assert given == code
    assert ("at most 0.2 was asked" in out) == (code == 3)
    assert ("the limit holds" in out) == (code == 0)


@pytest.mark.parametrize(
    ("option", "limit", "broken"),
    [
        ("--at-most", "attack_auc=0.8", "at most 0.8 was asked"),
        ("--at-most", "attack_auc=1", ""),
        ("--at-least", "attack_auc=0.8", ""),
        ("--at-least", "attack_auc=1.5", "at least 1.5 was asked"),
        ("--at-most", "exposed_lift=1.1", "at most 1.1 was asked"),
        ("--at-most", "exposed_lift=100", ""),
    ],
)
def test_ranks_of_texts_have_limits(evaluate, option, limit, broken):
    """An attacker reads alice from one coordinate, so the area is nearly 1."""
    given, out, err = evaluate("--entities", "alice", option, limit, attacks="entity_presence")
    assert given == (3 if broken else 0), err
    assert ("the limit holds" in out) == (not broken)
    line = re.search(r"entity_presence.*: (attack_auc|exposed_lift) is (\S+), (.*)", out)
    assert (line[3] if line else "") == broken
    assert not line or line[1] == "exposed_lift" or 0.8 < float(line[2]) <= 1


@pytest.mark.slow
def test_protections_are_compared_with_the_vectors_as_stored_and_limited_alone(evaluate):
    """Noise of this size hides alice, so only the vectors as stored break the limit."""
    options = ["--entities", "alice", "--protection", "int8", "--protection", "gaussian: {sigma: 100}"]
    code, out, err = evaluate(*options, "--at-most", "attack_advantage=0.5", attacks="entity_presence")
    assert code == 3, err
    assert "int8 / entity_presence" in out
    assert not re.search("^.*(as stored|gaussian).*was asked", out, re.MULTILINE)
    table = out[out.index("What the strongest attack gains") : out.index("What it costs")]
    compared = [line.split()[1] for line in table.splitlines() if line.strip().startswith("alice")]
    assert compared == ["int8", "gaussian(sigma=100)"]
    assert re.search(r"^ as stored +", out[out.index("What it costs") :], re.MULTILINE)


def test_a_limit_skips_the_vectors_that_protections_are_compared_with():
    row = {"dataset": "t", "attack": "a", "attack_score": 0.9, "threat": "attributes", "test_size": 500}
    rows = [{**row, "victim": name} for name in ("as stored", "int8")]
    limits = read_limits(["attack_score=0.5"], [])
    assert len(failures([], rows, Names(), limits)) == 2
    (broken,) = failures([], rows, Names(), limits, ["as stored"])
    assert broken.startswith("t / int8 / a: attack_score is 0.9000")


def test_a_limit_is_not_kept_by_a_score_from_too_few_texts():
    row = {"dataset": "t", "victim": "v", "attack": "a", "attack_score": 0.4, "threat": "attributes"}
    limits = read_limits(["attack_score=0.5"], [])
    assert failures([], [{**row, "test_size": 500}], Names(), limits) == []
    (broken,) = failures([], [{**row, "test_size": 20}], Names(), limits)
    assert broken == "t / v / a: attack_score cannot be told, at most 0.5 was asked"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--secrets", "age", "--bins", "age"], "--bins age: allowed is SECRET=NUMBER, as in age=4"),
        (["--secrets", "age", "--bins", "size=4"], "'size' is not one of the secrets"),
        (["--secrets", "age", "--seeds", "one"], "--seeds one: allowed are whole numbers"),
        (["--secrets", "age", "--at-most", "leak=1"], "--at-most leak=1: allowed is COLUMN=NUMBER"),
        (
            ["--secrets", "age", "--at-most", "attack_advantage"],
            "--at-most attack_advantage: allowed is COLUMN=NUMBER, as in attack_advantage=0.1",
        ),
        (
            ["--secrets", "age", "--protection", "int9"],
            "error: --protection: 'int9' is not allowed: allowed is one of none",
        ),
        (["--secrets", "age", "--protection", "int9"], "; did you mean 'int8'?"),
        (
            ["--secrets", "age", "--protection", "gaussian: {sigma: -1}"],
            "error: --protection: {'gaussian': {'sigma': -1}} is not allowed: gaussian.sigma: -1 is not allowed",
        ),
        ([], "--secrets: missing; allowed without it: --entities, or --text"),
    ],
)
def test_a_wrong_option_is_one_line(evaluate, options, message):
    code, _, err = evaluate(*options)
    (line,) = [line for line in err.splitlines() if not line.startswith("attacks on")]  # the estimate, in a log file
    assert code == 2
    assert message in line
