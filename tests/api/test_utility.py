"""Neighbours that releases keep: only the releases are read, once, and damaged files do not end a finished run."""

import numpy as np
import pytest

import leakboard
from leakboard.api.utility import kept_neighbours
from leakboard.pipeline import publications
from leakboard.pipeline.runner import open_run
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite

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
    folders, load = [], publications.load_publications
    monkeypatch.setattr(publications, "load_publications", lambda path: folders.append(path) or load(path))
    return folders


def test_without_releases_nothing_is_read(run, read):
    assert kept_neighbours(run, (), pytest.fail) == {}
    assert read == []


def test_each_release_is_read_once_and_no_other_victim(run, read):
    kept = kept_neighbours(run, ("first", "scaled"), pytest.fail)
    assert kept["scaled"].share == 1
    assert list(kept) == ["scaled"]
    assert len(read) == len(set(read)) == 2


def test_the_interval_is_over_users(run, monkeypatch):
    names = ("first", "half", "scaled")
    of_users = kept_neighbours(run, names, pytest.fail)["half"]
    monkeypatch.setattr("leakboard.metrics.measures.authors", lambda corpus, split: None)
    of_rows = kept_neighbours(run, names, pytest.fail)["half"]
    assert of_users.share == of_rows.share
    assert of_users.high - of_users.low > of_rows.high - of_rows.low


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY\x01\x00", None])
def test_a_file_that_cannot_be_read_is_a_warning(damage, run):
    job = next(job for job in run.jobs if run.suite.names.name("victim", job.cell.victim.label) == "scaled")
    path = run.store.path("publications", job.victim_slug, job.victim_key) / (
        "test.npy" if damage is not None else "about.json"
    )
    content, warnings = path.read_bytes(), []
    try:
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        kept = kept_neighbours(run, ("first", "half", "scaled"), warnings.append)
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(content)
    assert list(kept) == ["half"]
    assert len(warnings) == 1
    assert warnings[0].startswith("scaled: the neighbours that releases keep are not counted: a file cannot be read (")
