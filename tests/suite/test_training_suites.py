"""Suites about training data work end to end: claims by unit, gold models, skipped cells, resumed fits."""

import math
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest

from leakboard.board.leaderboard import LOST
from leakboard.data.tokens import words
from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.models.skip_gram import descent as training
from leakboard.pipeline.stages import Stages
from leakboard.pipeline.task_functions import RunFolders, fit_victim
from leakboard.store import Store
from leakboard.suite.plan import Identities, plan
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite
from leakboard.workspace import resume_dir

REVIEWS = {"generated_reviews": {"users": 60, "leak": 1.0, "auxiliary": "disjoint"}}
SMALL = {"vector_size": 8, "steps": 20, "expected_batch_size": 20, "window": 2}
PRIVATE = {"unit": "user", "noise_multiplier": 2.0, "vocabulary_noise": 0.2, "delta": 1e-3, **SMALL}
TWIN = {**SMALL, "noise_multiplier": 0.0, "vocabulary": "exact", "min_count": 1}
TWIN |= {"expected_batch_size": 400, "steps": 150}
CANARIES = {"canaries": 40, "shadows": 4}


def cells(bench):
    return pd.read_csv(bench.run / "cells.csv", keep_default_na=False)


def skipped(bench):
    return pd.read_csv(bench.run / "skipped.csv", keep_default_na=False)["reason"]


@pytest.mark.slow
def test_claims_audits_and_neighbours_in_one_table(bench, command_line):
    corpus = GeneratedReviews(users=60, leak=1.0).load()
    counts = Counter(word for text in corpus.texts("train") for word in words(text))
    listed = bench.folder / "words.txt"
    listed.write_text("\n".join(word for word, _ in counts.most_common(150)), encoding="utf-8")
    bench.suite(
        datasets=[REVIEWS],
        victims=[
            {"dp_word2vec": PRIVATE | {"vocabulary": str(listed)}},
            {"dp_word2vec": TWIN | {"learning_rate": 0.1}},
        ],
        attacks=["nearest_neighbour", "membership_inference", {"canary_audit": CANARIES | {"repeats": 5}}],
        gold={"word2vec": {"vector_size": 8, "min_count": 1}},
        queries=["the", "was", "and", "nowhere"],
        text_classifier=False,
    )
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    assert "three epsilons" in out
    table = bench.leaderboard()
    assert (table["status"] == "ok").sum() >= 4
    claimed = table[table["epsilon_claimed"] != ""]
    assert len(claimed) == 3
    assert (claimed["privacy_unit"] == "user").all()
    assert (claimed["verdict"] == "holds").all()
    numbers = claimed[["epsilon_audited", "epsilon_proved", "epsilon_claimed"]].astype(float)
    assert (numbers["epsilon_audited"] <= numbers["epsilon_proved"]).all()
    assert (numbers["epsilon_proved"] <= numbers["epsilon_claimed"]).all()
    twin = table[table["epsilon_claimed"] == ""]
    assert len(twin) == 3
    audit = twin[twin["attack_metric"] == "epsilon"].iloc[0]
    assert (audit["privacy_unit"], audit["delta"], audit["verdict"]) == ("user", "1e-06", "")
    assert float(audit["epsilon_audited"]) == float(audit["attack_score"])
    assert (twin[twin["attack_metric"] != "epsilon"][["epsilon_audited", "privacy_unit"]] == "").all(axis=None)
    assert "nothing claimed" in out
    metrics = cells(bench)
    for name in ("map_word", "map_char", "average_precision@100", "map_word_random", "gold_queries"):
        assert len(metrics[metrics["metric"] == name]) == 6
    for name, defect in (("map_word", "a mean over hits alone"), ("map_char_random", "it measures the alphabet")):
        assert metrics[metrics["metric"] == name]["status"].str.contains(defect).all()
    notes = metrics[(metrics["metric"] == "attack_score") & metrics["attack"].str.startswith("membership")]["details"]
    assert notes.str.contains(r"the attacker has \d+ of \d+ texts of its own left").all()
    known = metrics[metrics["metric"] == "gold_queries"]["value"].astype(float)
    assert known.max() == 0.75  # "nowhere" is in no table
    for name in ("tpr@fpr=0.001", "tpr@fpr=0.01"):
        rows = metrics[metrics["metric"] == name]
        assert (rows["low"].astype(float) <= rows["value"].astype(float)).all()


def test_what_cannot_meet_is_skipped_with_its_reason(bench, command_line):
    """The tiny corpus names no users; vectors of texts are not a table of words."""
    bench.suite(
        victims=[{"dp_word2vec": PRIVATE}, "hashed", {"dp_word2vec": TWIN | {"steps": 0}}],
        attacks=[{"membership_inference": {"unit": "user"}}, "membership_inference"],
    )
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    reasons = skipped(bench)
    assert len(reasons) == 5
    for reason in ("unit: user, but letters names no users", "publishes none", "letters names no users"):
        assert reasons.str.contains(reason).any()
    (row,) = bench.leaderboard().reset_index().to_dict("records")
    assert "steps=0" in row["victim"]
    assert row["attack"] == "membership_inference"
    assert row["status"] in ("ok", LOST)


@pytest.mark.slow
def test_attacks_with_nothing_left_to_ask_are_skipped(bench, command_line):
    """The attacker knows all three published words, and they are too few for canaries."""
    (bench.folder / "words.txt").write_text("the\nwas\nand\n", encoding="utf-8")
    bench.suite(
        datasets=[REVIEWS],
        victims=[{"dp_word2vec": PRIVATE | {"vocabulary": str(bench.folder / "words.txt")}}],
        attacks=[{"nearest_neighbour": {"align": "anchors"}}, "canary_audit"],
        text_classifier=False,
    )
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    reasons = skipped(bench)
    assert bench.leaderboard().empty
    assert reasons.str.contains("no published word is left to name").sum() == 1
    assert reasons.str.contains("3 published words; 10 canaries need 40").sum() == 1


@pytest.mark.slow
def test_audits_of_different_units_are_not_mixed(bench, command_line):
    """A victim without a claim is audited for two units, a claim for its unit alone; its caveat is shown."""
    weak = PRIVATE | {"delta": 0.9, "vocabulary": str(bench.folder / "words.txt")}
    (bench.folder / "words.txt").write_text("\n".join(f"word{i}" for i in range(60)) + "\nthe\nwas\n", encoding="utf-8")
    bench.suite(
        datasets=[REVIEWS],
        victims=[{"dp_word2vec": TWIN}, {"dp_word2vec": weak}],
        attacks=[{"canary_audit": CANARIES | {"unit": unit}} for unit in ("document", "user")],
        text_classifier=False,
    )
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    table = bench.leaderboard().reset_index()
    without = table["victim_options"].str.contains("noise_multiplier=0.0")
    twin, private = table[without], table[~without]
    assert sorted(twin["privacy_unit"]) == ["document", "user"]
    assert (twin["epsilon_audited"].astype(float) == twin["attack_score"].astype(float)).all()
    (status,) = private["status"]
    assert status.startswith("claim: delta 0.9 is not below 1/")
    assert skipped(bench).tolist() == ["unit: 'document' is not allowed: the claim is about one user"]


def test_a_gold_model_without_words_fails_its_cells_and_a_wrong_name_is_refused(bench, command_line):
    bench.suite(victims=[{"dp_word2vec": TWIN}], attacks=["nearest_neighbour"], gold="hashed")
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 1
    assert "gold: hashed publishes no words" in out
    bench.suite(gold="word2vce")
    status, _, err = command_line(*bench.arguments("run"))
    assert status == 2
    assert "gold" in err
    assert "did you mean 'word2vec'?" in err


def test_numeric_targets_are_predicted_better_than_by_their_mean(bench, command_line):
    bench.plugin(
        "letters",
        "scored",
        ("class Letters", "class Scored"),
        ("row in frame.iterrows()]\n", 'row in frame.iterrows()]\n        frame["joy"] = frame["label"] + 0.5\n'),
        ('("no", "yes"))', '("no", "yes"), numeric_targets=["joy"])'),
    )
    bench.suite(datasets=["scored"])
    status, out, _ = command_line(*bench.arguments("run"))
    assert status == 0, out
    errors = cells(bench).query("variable == 'joy'").set_index("metric")["value"].astype(float)
    assert set(errors.index) == {"rmse_linear", "rmse_svr", "rmse_mean"}
    assert errors["rmse_linear"] < 0.9 * errors["rmse_mean"]


class TestResuming:
    def planned(self, bench):
        listed = bench.folder / "words.txt"
        listed.write_text("the\nwas\nand\nof\nto\na")  # a public vocabulary: the budget is quickly computed
        victim = {"dp_word2vec": PRIVATE | {"vocabulary": str(listed)}}
        bench.suite(datasets=[REVIEWS], victims=[victim], attacks=["nearest_neighbour"], text_classifier=False)
        registry = Registry(())
        suite = load_suite(str(bench.folder / "tiny.yaml"), registry)
        (job,) = plan(suite, suite.cells(), Identities())
        return job, RunFolders(bench.out / "store", bench.out / "cells", ())

    def fitted(self, folders, job):
        folder = Store(folders.store).path("victims", job.victim_slug, job.fit_key)
        return (folder / "arrays.npz").read_bytes()

    def test_an_interrupted_fit_goes_on_and_leaves_nothing(self, bench, tmp_path, monkeypatch):
        job, folders = self.planned(bench)
        whole = RunFolders(tmp_path / "whole", tmp_path / "cells", ())
        fit_victim(job, [job], whole, print)
        monkeypatch.setattr(training, "SAVE_SECONDS", -1.0)
        advance, steps = training.Training.advance, []

        def stopping(run):
            if len(steps) == 12:
                raise KeyboardInterrupt
            steps.append(run.step)
            advance(run)

        monkeypatch.setattr(training.Training, "advance", stopping)
        with pytest.raises(KeyboardInterrupt):
            fit_victim(job, [job], folders, print)
        unfinished = Stages(job, folders, print, job.needs).unfinished
        assert (unfinished / training.STATE).is_file()
        steps.clear()
        fit_victim(job, [job], folders, print)
        assert steps == list(range(12, 20))
        assert not unfinished.exists()
        assert self.fitted(folders, job) == self.fitted(whole, job)

    @pytest.mark.slow
    def test_force_starts_anew(self, bench):
        job, folders = self.planned(bench)
        unfinished = Stages(job, folders, print, job.needs).unfinished
        unfinished.mkdir(parents=True)
        (unfinished / training.STATE).write_bytes(b"from another life")
        fit_victim(job, [job], replace(folders, since=math.inf), lambda text: pytest.fail(text))
        assert not unfinished.exists()

    def test_no_state_is_kept_outside_of_a_run(self):
        assert resume_dir() is None
