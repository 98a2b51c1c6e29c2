"""Estimates of time: the measured numbers, rougher words for longer times, and a sentence before the first task."""

import re

import numpy as np
import pandas as pd
import pytest

import leakboard
from leakboard.api import own_suites, own_vectors
from leakboard.api.estimate import CORES, DIMENSIONS, MEASURED, Estimate, duration, ensemble_seconds, estimate
from leakboard.data.readers.in_memory import InMemory
from leakboard.data.readers.vector_databases import source
from leakboard.data.readers.vectors import shape_of
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite


class TestSeconds:
    def test_measured_sizes_have_the_measured_seconds(self):
        for rows, seconds in MEASURED.items():
            assert ensemble_seconds(rows, DIMENSIONS, CORES) == pytest.approx(seconds)

    def test_other_sizes_are_between_or_beyond(self):
        sizes = [1, 100, 1_000, 3_000, 5_000, 50_000, 100_000, 1_000_000]
        seconds = [ensemble_seconds(rows, DIMENSIONS, CORES) for rows in sizes]
        assert seconds == sorted(seconds)
        assert 300 < seconds[-1] < 1_000

    def test_dimensions_and_cores(self):
        assert ensemble_seconds(5_000, 32, 2) == pytest.approx(17.6 * (0.6 + 0.4 / 12))
        assert ensemble_seconds(5_000, 384, 1) == pytest.approx(2 * 17.6)
        assert ensemble_seconds(5_000, 384, 4) == ensemble_seconds(5_000, 384, 64) == pytest.approx(17.6 / 2)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "5 seconds"),
        (17, "15 seconds"),
        (89, "90 seconds"),
        (118, "2 minutes"),
        (5399, "90 minutes"),
        (7300, "2 hours"),
    ],
)
def test_durations_are_rough(seconds, words):
    assert duration(seconds) == words


def test_a_sentence_counts_the_tasks_that_run():
    made = Estimate({"attribute_inference": 40.0}, "1,000 vectors of 8 numbers", 2)
    assert made.sentence(["load", "attribute_inference"] + ["attribute_inference"] * 2) == (
        "attacks on 1,000 vectors of 8 numbers: about 2 minutes on 2 cores"
    )
    assert made.sentence(["load", "linking"]) == ""
    assert Estimate({"a": 10.0}, "", 1).sentence("a").endswith("on 1 core")


class TestShapes:
    VECTORS = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)

    @pytest.mark.parametrize(
        "name", ["v.npy", "v.parquet", "lists.parquet", "v.csv", "lists.csv", "v.jsonl", "v.npz", "no.npy", "bad.npy"]
    )
    def test_files(self, name, tmp_path):
        path, frame = tmp_path / name, pd.DataFrame(self.VECTORS, columns=["e0", "e1", "e2"])
        lists = pd.DataFrame({"id": list("abcdefg"), "vector": list(self.VECTORS)})
        write = {
            "v.npy": lambda: np.save(path, self.VECTORS),
            "v.npz": lambda: np.savez(path, self.VECTORS),
            "v.parquet": lambda: frame.to_parquet(path),
            "lists.parquet": lambda: lists.to_parquet(path),
            "lists.csv": lambda: lists.assign(vector=[str(row.tolist()) for row in self.VECTORS]).to_csv(
                path, index=False
            ),
            "v.csv": lambda: frame.to_csv(path, index=False),
            "v.jsonl": lambda: frame.to_json(path, orient="records", lines=True),
            "bad.npy": lambda: path.write_bytes(b"no array"),
        }
        write.get(name, lambda: None)()
        rows = 8 if name.endswith(".csv") else 7  # a header is a line
        expected = None if name in ("v.npz", "no.npy", "bad.npy") else (rows, 3)
        assert shape_of(source(str(path))) == expected

    def test_in_memory(self):
        assert shape_of(InMemory.of("vectors", self.VECTORS)) == (7, 3)


def suite(attacks, tmp_path, **options):
    np.save(tmp_path / "v.npy", np.zeros((5_000, 384), np.float32))
    (tmp_path / "t.csv").write_text("gender\nf\n")
    content = own_suites.suite_of(tmp_path / "t.csv", tmp_path / "v.npy", attacks=attacks, **options)
    return load_suite(content, Registry())


def test_only_ensembles_on_secrets_that_are_there_are_estimated(tmp_path, monkeypatch):
    monkeypatch.setattr("leakboard.api.estimate.usable_cores", lambda: 2)
    made = estimate(suite("all", tmp_path, secrets=["gender"]))
    assert made.seconds == {"attribute_inference": pytest.approx(17.6)}
    assert made.size == "5,000 vectors of 384 numbers"
    assert list(estimate(suite("all", tmp_path, secrets=[], entities=["gender"])).seconds) == ["entity_presence"]
    quick = [{"attribute_inference": {"portfolio": "logistic"}}]
    assert estimate(suite(quick, tmp_path, secrets=["gender"])).seconds == {}


def test_it_is_shown_on_a_terminal_before_the_first_task(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes a captured stream for a terminal
    monkeypatch.setattr("leakboard.api.estimate.ensemble_seconds", lambda *_: 300.0)
    monkeypatch.setattr("leakboard.pipeline.runner._run_tasks", begin_alone)
    vectors = np.random.default_rng(0).normal(size=(100, 3))
    for progress in (True, False):
        leakboard.evaluate(vectors, {"gender": list("fm") * 50}, progress=progress)
        shown = capsys.readouterr().err
        assert ("attacks on 100 vectors of 3 numbers: about 5 minutes on" in shown) == progress


@pytest.mark.parametrize("progress", [True, False])
def test_a_log_file_gets_a_line_for_each_attack_that_has_ended(capsys, progress):
    vectors = np.random.default_rng(0).normal(size=(100, 3))
    quick = [{"attribute_inference": {"portfolio": "logistic"}}]
    leakboard.evaluate(vectors, {"gender": list("fm") * 50}, attacks=quick, progress=progress)
    shown = capsys.readouterr().err
    if not progress:
        assert shown == ""
        return
    first, second = shown.splitlines()
    assert first == "attacks on 100 vectors of 3 numbers: how long they take is not estimated"
    assert re.fullmatch(r"\[1/1\] .* / attribute_inference: done in \d+ s", second)


def test_a_log_file_begins_with_the_estimate(capsys, monkeypatch):
    monkeypatch.setattr("leakboard.api.estimate.ensemble_seconds", lambda *_: 300.0)
    monkeypatch.setattr("leakboard.pipeline.runner._run_tasks", begin_alone)
    leakboard.evaluate(np.random.default_rng(0).normal(size=(100, 3)), {"gender": list("fm") * 50})
    assert capsys.readouterr().err.startswith("attacks on 100 vectors of 3 numbers: about 5 minutes on")


def test_a_log_file_says_why_an_attack_was_skipped(capsys):
    rng = np.random.default_rng(0)
    texts = [" ".join(map(str, words)) for words in rng.integers(100, size=(100, 8))]
    quick = [{"attribute_inference": {"portfolio": "logistic"}}, "linking"]
    leakboard.evaluate(rng.normal(size=(100, 3)), {"gender": list("fm") * 50}, texts=texts, attacks=quick)
    shown = capsys.readouterr().err
    assert "linking: skipped: the victim has no public encoder that the attacker could know" in shown
    assert "linking: done" not in shown
    assert "attribute_inference: done in" in shown


def test_a_secret_that_no_attack_guesses_is_told(tmp_path):
    pd.DataFrame({"gender": list("fm") * 50, "alice": [0, 1] * 50}).to_csv(tmp_path / "t.csv")
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32))
    quick = [{"attribute_inference": {"portfolio": "logistic"}}]
    for entities in (["alice"], []):
        content = own_suites.suite_of(
            tmp_path / "t.csv", tmp_path / "v.npy", ["gender"], entities=entities, attacks=quick
        )
        summary = own_vectors.run_kept(content, tmp_path / "out").summary
        told = "warning: alice was not attacked: no attack that guesses it has a result; name one of these, or "
        told += "attacks: all"
        assert (told in summary) == bool(entities)


def begin_alone(run, jobs, display, engine, force):
    """Begin the display as a run does, and run nothing."""
    display.begin({"attack": "attribute_inference"}, 1)
