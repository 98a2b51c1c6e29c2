"""Every mistake in a suite or a request is one line with the place, the value and the allowed values."""

import subprocess
import sys

import pytest
from bench import CHECKOUT

TOO_LARGE = {
    "a grid of a billion": (
        {"victims": [{"hashed": {"grid": {name: list(range(1, 1001)) for name in ("dimensions", "noise", "k")}}}]},
        "victims[0].hashed.grid: 1,000,000,000 combinations; allowed: 50,000",
    ),
    "a product of entries": (
        {"victims": [{"hashed": {"grid": {"dimensions": list(range(1, 1501))}}}], "seeds": list(range(1000))},
        "tiny.yaml: 1,500,000 cells; allowed: 50,000",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TOO_LARGE)
def test_a_suite_of_too_many_cells_is_one_line(case, bench, command_line):
    content, reason = TOO_LARGE[case]
    bench.suite(**content)
    code, _, err = command_line(*bench.arguments("run"))
    assert (code, err.count("\n")) == (2, 1)
    assert reason in err


def test_a_large_value_is_not_repeated_whole(bench, command_line):
    bench.suite(description=["x" * 50] * 1000)
    code, _, err = command_line(*bench.arguments("run"))
    assert (code, err.count("\n")) == (2, 1)
    assert len(err) < 1000


@pytest.mark.parametrize("name", ["...yaml", ".cache.yaml", "-x.yaml", "a\nb.yaml"])
def test_a_suites_name_names_a_folder(name, bench, command_line):
    path = bench.suite().rename(bench.folder / name)
    code, _, err = command_line("run", str(path), "--out", str(bench.out), *bench.arguments("run")[4:])
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot be a suite's name, which names a folder" in err
    assert not bench.out.exists()


def test_a_folder_that_links_to_itself_is_one_line(bench, command_line):
    bench.suite()
    (bench.folder / "loop").symlink_to(bench.folder / "loop")
    bench.out = bench.folder / "loop" / "out"
    code, _, err = command_line(*bench.arguments("run"))
    assert (code, err.count("\n")) == (2, 1)
    assert "not a folder that can be reached" in err


WRONG = {
    "unknown key": ({"victim": ["hashed"]}, ["victim: unknown name 'victim'", "did you mean 'victims'?"]),
    "missing key": ({"attacks": None}, ["attacks: required, but missing"]),
    "unknown plugin": ({"victims": ["hasehd"]}, ["victims[0]", "'hasehd'", "did you mean 'hashed'?"]),
    "unknown option": (
        {"victims": ["word2vec", {"hashed": {"noize": 1}}]},
        ["victims[1].hashed.noize", "'noize'", "allowed: dimensions, noise", "did you mean 'noise'?"],
    ),
    "wrong type": ({"victims": [{"hashed": {"noise": "loud"}}]}, ["victims[0].hashed.noise: 'loud'", "number"]),
    "text for a number": ({"victims": [{"hashed": {"dimensions": "8"}}]}, ["victims[0].hashed.dimensions: '8'", "int"]),
    "out of range": ({"victims": [{"hashed": {"noise": -1.5}}]}, ["victims[0].hashed.noise: -1.5", "greater than"]),
    "bad literal": (
        {"victims": [{"word2vec": {"initialisation": "wrod"}}]},
        ["victims[0].word2vec.initialisation: 'wrod'", "'gensim' or 'word'", "did you mean 'word'?"],
    ),
    "two names": ({"attacks": [{"ridge": {}, "nearest_neighbour": {}}]}, ["attacks[0]", '"ridge"', "not one plugin"]),
    "more bins than classes": (
        {"datasets": [{"table": {"path": "t.csv", "secrets": ["age"], "bins": {"age": 10**9}}}]},
        ["datasets[0].table.bins.age: 1000000000 is not allowed: input should be less than or equal to 1000"],
    ),
    "options no mapping": ({"attacks": [{"ridge": [1]}]}, ["attacks[0].ridge: [1] is not a mapping of options"]),
    "bad grid": ({"victims": [{"hashed": {"grid": {"noise": 1}}}]}, ["victims[0].hashed.grid: {'noise': 1}", "lists"]),
    "an option beside the grid": (
        {"victims": [{"hashed": {"noise": 0.5, "grid": {"noise": [1.0, 2.0]}}}]},
        ["victims[0].hashed.noise: given beside grid.noise; write it once"],
    ),
    "empty grid": ({"victims": [{"hashed": {"grid": {"noise": []}}}]}, ["victims[0].hashed.grid: {'noise': []}"]),
    "bad value in a grid": (
        {"victims": [{"hashed": {"grid": {"noise": [1.0, -2.0]}}}]},
        ["victims[0].hashed.noise: -2.0", "greater than"],
    ),
    "empty list": ({"victims": []}, ["victims: []", "at least 1"]),
    "no list": ({"victims": "hashed"}, ["victims: 'hashed'", "list"]),
    "number as entry": ({"victims": [5]}, ["victims[0]", "5", "string"]),
    "listed twice": ({"victims": ["hashed", {"hashed": {"noise": 0.0}}]}, ["victims: 'hashed' is listed twice"]),
    "dataset twice": ({"datasets": ["letters", "letters"]}, ["datasets: 'letters' is listed twice"]),
    "seed twice": ({"seeds": [0, 1, 0]}, ["seeds: [0, 1, 0] lists a seed twice"]),
    "negative seed of a victim": (
        {"victims": [{"hashed": {"seeds": [0, -1]}}]},
        ["victims[0].hashed.seeds[1]: -1", "greater than or equal to 0"],
    ),
    "seed of a victim twice": (
        {"victims": [{"hashed": {"seeds": [1, 1]}}]},
        ["victims[0].hashed.seeds: [1, 1] lists a seed twice"],
    ),
    "attacks of a victim no list": (
        {"victims": [{"hashed": {"attacks": "ridge"}}]},
        ["hashed.attacks: 'ridge'", "list"],
    ),
    "victim of a dataset unknown": (
        {"datasets": [{"letters": {"victims": ["hasehd"]}}]},
        ["datasets[0].letters.victims: no victim is called 'hasehd' (there are: hashed); did you mean 'hashed'?"],
    ),
    "victims of a dataset no list": (
        {"datasets": [{"letters": {"victims": "hashed"}}]},
        ["datasets[0].letters.victims: 'hashed'", "list"],
    ),
    "attack of a dataset unknown": (
        {"datasets": [{"letters": {"attacks": ["ridges"]}}]},
        ["datasets[0].letters.attacks[0]", "ridges", "ridge"],
    ),
    "attack of a victim unknown": (
        {"victims": [{"hashed": {"attacks": ["ridges"]}}]},
        ["victims[0].hashed.attacks[0]", "ridges", "ridge"],
    ),
    "attack of a victim twice": (
        {"victims": [{"hashed": {"attacks": ["ridge", "ridge"]}}]},
        ["victims[0].hashed.attacks: 'ridge' is listed twice"],
    ),
    "seeds of a victim no list": ({"victims": [{"hashed": {"seeds": 3}}]}, ["victims[0].hashed.seeds: 3", "list"]),
    "negative seed": ({"seeds": [0, -1]}, ["seeds[1]: -1", "greater than or equal to 0"]),
    "no threads": ({"threads": 0}, ["threads: 0", "greater than or equal to 1"]),
    "unknown auxiliary": (
        {"datasets": [{"letters": {"auxiliary": "overlpa"}}]},
        ["datasets[0].letters.auxiliary: 'overlpa'", "within, overlap, disjoint", "did you mean 'overlap'?"],
    ),
    "auxiliary of a wrong type": ({"datasets": [{"letters": {"auxiliary": 3}}]}, ["datasets[0].letters.auxiliary: 3"]),
    "wrong option of an auxiliary": (
        {"datasets": [{"letters": {"auxiliary": {"generated_reviews": {"user": 20}}}}]},
        ["datasets[0].letters.auxiliary.generated_reviews.user", "did you mean 'users'?"],
    ),
    "required option": ({"datasets": [{"table": {}}]}, ["datasets[0].table.path: required, but missing"]),
}


def expect_one_line(result, path, parts):
    code, out, err = result
    assert code == 2, err
    assert out == ""
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    for part in (str(path), *parts):
        assert part in err


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_suite_is_one_line(case, bench, command_line):
    change, parts = WRONG[case]
    path = bench.suite(**change)
    expect_one_line(command_line(*bench.arguments("run")), path, parts)


UNREADABLE = {
    "not YAML": (b"victims: [hashed\nattacks: }", "not readable YAML"),
    "not a mapping": (b"- hashed\n", "['hashed'] is not a mapping of description, seeds, datasets"),
    "empty": (b"", "None is not a mapping"),
    "a table": (b"text,gender\n" + 5000 * b"a text,f\n", ": 'text,gender ..."),
    "not text": (b"\xff\xfe\x00\x80", "not readable YAML"),
    "no such day": (b"description: 2024-13-45\n", "not readable YAML"),
    "unsafe tag": (b"victims: !!python/object/apply:os.getcwd []\n", "not readable YAML"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_suite_is_one_line(case, bench, command_line):
    content, part = UNREADABLE[case]
    path = bench.suite()
    path.write_bytes(content)
    expect_one_line(command_line(*bench.arguments("run")), path, [part])


REQUESTS = {
    "unknown victim": (["--only", "victim=hashd"], ["--only victim=hashd", "hashed", "did you mean 'hashed'?"]),
    "one of two is unknown": (["--only", "victim=hashed", "--only", "victim=x"], ["--only victim=x", "hashed"]),
    "unknown key": (["--only", "victm=hashed"], ["--only victm=hashed", "victim=NAME", "did you mean 'victim'?"]),
    "no value": (["--only", "victim"], ["--only victim", "victim=NAME"]),
    "seeds": (["--seeds", "0,x"], ["--seeds 0,x", "whole numbers"]),
    "a plugin that is no Python file": (["--plugin", "README.md"], ["--plugin README.md: allowed: a Python file, .py"]),
    "no such plugin file": (["--plugin", "nowhere.py"], ["--plugin nowhere.py: no such file"]),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_wrong_request_is_one_line(case, bench, command_line):
    more, parts = REQUESTS[case]
    bench.suite()
    expect_one_line(command_line(*bench.arguments("run", *more)), "", parts)


def test_a_missing_file_of_a_table_is_one_line(bench, command_line):
    missing = bench.folder / "nowhere.csv"
    path = bench.suite(datasets=[{"table": {"path": str(missing), "secrets": ["age"]}}])
    expect_one_line(command_line(*bench.arguments("run")), path, ["datasets: table", str(missing), "no such file"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "place", "parts"),
    [(None, "tiny.yaml", WRONG["unknown option"][1]), (["run", "dmo"], "no suite 'dmo'", ["did you mean 'demo'?"])],
)
def test_a_wrong_request_is_one_line_of_the_program_itself(arguments, place, parts, bench):
    bench.suite(**WRONG["unknown option"][0])
    call = [sys.executable, "run_benchmark.py", *(arguments or bench.arguments("run"))]
    done = subprocess.run(call, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    expect_one_line((done.returncode, done.stdout, done.stderr), place, parts)


def test_a_misspelt_key_names_its_neighbour(bench, command_line):
    """It explains why another one is missing."""
    bench.suite(victims=None, vicitms=["hashed"])
    code, _, err = command_line(*bench.arguments("run"))
    assert (code, err.count("\n")) == (2, 1)
    assert "tiny.yaml: vicitms: unknown name 'vicitms'" in err
    assert "did you mean 'victims'?" in err


def test_a_very_long_file_is_refused_before_it_is_read(bench, command_line):
    path = bench.suite()
    path.write_text(path.read_text() + f"description: {'a' * 20_000_000}\n")
    code, _, err = command_line(*bench.arguments("run"))
    assert (code, err.count("\n"), "bytes; allowed: 500,000" in err) == (2, 1, True)


@pytest.mark.parametrize("seeds", ["1" * 5000, "1,²", "", "1.5", "-1"])
def test_wrong_seeds_are_one_line(bench, command_line, seeds):
    bench.suite()
    code, _, err = command_line(*bench.arguments("run", f"--seeds={seeds}"))
    assert (code, err.count("\n")) == (2, 1)
    assert "allowed are whole numbers with commas" in err
    assert len(err) < 300
