"""Neighbours that victims keep: of the undefended victim before them, read once; damaged files end no finished run."""

import csv
import shutil

import numpy as np
import pytest

import leakboard
from leakboard.board import kept_neighbours as module
from leakboard.board.kept_neighbours import NEIGHBOURS_FILE, kept_neighbours
from leakboard.pipeline.runner import open_run
from leakboard.site.content import make_board
from leakboard.site.readme import board_markdown
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite
from leakboard.suite.yaml_files import read_yaml

N, USERS = 200, 40
QUICK = [{"attribute_inference": {"portfolio": "logistic", "inputs": "raw"}}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of an evaluation of three releases: the second keeps the neighbours of half of the users."""
    rng, out = np.random.default_rng(0), tmp_path_factory.mktemp("evaluated")
    first, users = rng.normal(size=(N, 8)), np.arange(N) * USERS // N
    half = np.where((users < USERS // 2)[:, None], first, rng.normal(size=first.shape))
    releases = {"first": first, "half": half, "scaled": 2 * first}
    leakboard.evaluate(releases, {"gender": ["f", "m"] * (N // 2)}, users=users, attacks=QUICK, out=out, seeds=[0, 1])
    return out


@pytest.fixture
def run(folder):
    registry = Registry()
    suite = load_suite(folder / "suite.yaml", registry)
    return open_run(suite, suite.cells(), folder, registry, True)


@pytest.fixture
def read(monkeypatch):
    """Return the list of the publications that are read from now on."""
    folders, load = [], module.load_publications
    monkeypatch.setattr(module, "load_publications", lambda path: folders.append(path) or load(path))
    return folders


def shares(rows):
    return {row["victim"]: row["neighbours_kept"] for row in rows}


def test_without_an_undefended_victim_nothing_is_read(run, read):
    assert kept_neighbours(run, (), pytest.fail) == []
    assert read == []


def test_each_publication_is_read_once(run, read):
    rows = kept_neighbours(run, ["first"], pytest.fail)
    assert shares(rows)["scaled"] == 1
    assert {row["undefended"] for row in rows} == {"first"}
    assert list(shares(rows)) == ["half", "scaled"]
    assert len(read) == len(set(read)) == 3


def test_half_of_the_rows_keep_the_half_of_their_neighbours_that_is_unchanged(run):
    assert 0.2 < shares(kept_neighbours(run, ["first"], pytest.fail))["half"] < 0.3


def test_each_victim_is_compared_with_the_undefended_one_before_it(run):
    rows = kept_neighbours(run, ["first", "half"], pytest.fail)
    assert [(row["victim"], row["undefended"]) for row in rows] == [("scaled", "half")]
    assert shares(rows)["scaled"] < 0.3
    assert kept_neighbours(run, ["scaled"], pytest.fail) == []


def test_the_interval_is_over_users(run, monkeypatch):
    of_users = kept_neighbours(run, ["first"], pytest.fail)[0]
    monkeypatch.setattr(module, "authors", lambda corpus, split: None)
    of_rows = kept_neighbours(run, ["first"], pytest.fail)[0]
    assert of_users["neighbours_kept"] == of_rows["neighbours_kept"]
    assert width(of_users) > width(of_rows)


def width(row):
    return row["neighbours_kept_high"] - row["neighbours_kept_low"]


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY\x01\x00", None])
def test_a_file_that_cannot_be_read_is_a_warning(damage, run):
    job = next(job for job in run.jobs if run.suite.names.name("victim", job.cell.victim.label) == "half")
    path = run.store.path("publications", job.victim_slug, job.victim_key) / (
        "test.npy" if damage is not None else "about.json"
    )
    content, warnings = path.read_bytes(), []
    try:
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        rows = kept_neighbours(run, ["first"], warnings.append)
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(content)
    assert list(shares(rows)) == ["scaled"]
    assert len(warnings) == 1
    assert warnings[0].startswith("half: the neighbours that it keeps are not counted: a file cannot be read (")


NOISY = "hashed (noise=0.05)"


@pytest.fixture
def counted(copied, output_of):
    """Return a copy of the finished bench, published with the neighbours that noisy vectors keep."""
    copied.suite(**read_yaml(copied.folder / "tiny.yaml") | {"undefended": ["hashed"]})
    output_of(*copied.arguments("publish"))
    return copied


def test_a_board_has_a_row_for_each_defended_victim(counted):
    with (counted.folder / "tiny" / NEIGHBOURS_FILE).open() as file:
        (row,) = csv.DictReader(file)
    assert (row["dataset"], row["victim"], row["undefended"]) == ("letters", NOISY, "hashed")
    low, share, high = (float(row[f"neighbours_kept{end}"]) for end in ("_low", "", "_high"))
    assert 0.1 < low < share < high < 1


def test_its_page_shows_the_neighbours_that_victims_keep(counted):
    home = counted.folder / "tiny"
    page = board_markdown(make_board("tiny", "", run_records(counted), home, home))
    (head, *_) = [line for line in page.splitlines() if "neighbours kept" in line]
    place = head.split("|").index(" neighbours kept (higher is better) ")
    cells = [line.split("|") for line in page.splitlines() if line.startswith("|") and "hashed" in line]
    shown = {line[2].strip(): line[place].strip() for line in cells if len(line) == head.count("|") + 1}
    assert shown["hashed"] == ""
    assert " to " in shown[NOISY]


def run_records(bench):
    registry = Registry([*bench.plugins])
    suite = load_suite(bench.folder / "tiny.yaml", registry)
    return open_run(suite, suite.cells(), bench.out, registry, True).records()


def test_published_neighbours_are_kept_without_the_vectors(counted, output_of):
    published = (counted.folder / "tiny" / NEIGHBOURS_FILE).read_bytes()
    shutil.rmtree(counted.out)
    output_of(*counted.arguments("publish"))
    assert (counted.folder / "tiny" / NEIGHBOURS_FILE).read_bytes() == published


def test_published_neighbours_are_kept_if_a_file_cannot_be_read(counted, output_of):
    path = counted.folder / "tiny" / NEIGHBOURS_FILE
    published = path.read_bytes()
    for file in (counted.out / ".cache" / "publications").glob("*/test.npy"):
        file.write_bytes(b"")
    warning = f"warning: {NOISY}: the neighbours that it keeps are not counted: a file cannot be read"
    assert warning in " ".join(output_of(*counted.arguments("publish")).split())
    assert path.read_bytes() == published


def test_neighbours_of_another_victim_are_not_kept(counted, output_of):
    path = counted.folder / "tiny" / NEIGHBOURS_FILE
    path.write_text(path.read_text().replace(",hashed\n", ",another\n"))
    shutil.rmtree(counted.out)
    output_of(*counted.arguments("publish"))
    assert path.read_text().count("\n") == 1


def test_an_unknown_victim_is_refused(bench, refusal):
    bench.suite(undefended=["hashd"])
    message = "undefended: no victim is called 'hashd' (there are: hashed); did you mean 'hashed'?"
    assert message in refusal(*bench.arguments("run"))
