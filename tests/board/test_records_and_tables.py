"""Cell records are believed only whole; the CSVs are a pure function of them."""

import dataclasses
import itertools
import json
import math

import pandas as pd
import pytest
from scored_records import CLAIM, empty, scored

from leakboard.board import tables
from leakboard.board.leaderboard import LOST, leaderboard
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import FAILURE, RESULT, read_record, write_failure, write_record

DESIGNED = (
    "dataset,victim,attack,secrets,seeds,test_size,task_accuracy,task_majority,attack_metric,attack_score,"
    "empirical_privacy,empirical_privacy_low,empirical_privacy_high,privacy_best_constant,privacy_text_classifier,privacy_bayes,"
    "fairness_gap,fairness_variable,epsilon_claimed,epsilon_proved,epsilon_audited,delta,privacy_unit,verdict,status"
)


def test_means_over_seeds(tmp_path):
    tables.write_tables(tmp_path, [scored(0, 0.7, claim=CLAIM), scored(1, 0.8, claim=CLAIM)], {})
    header, row = (tmp_path / "leaderboard.csv").read_text().splitlines()
    added = "privacy_label,task_accuracy_sd,empirical_privacy_sd,test_copies,observations"
    options = "secret,dataset_options,victim_options,attack_options"
    assert header == f"{DESIGNED},{added},{options},attack_score_new,empirical_privacy_new,attack_score_dev"
    assert row == (
        "texts,encoder,guesser,age; gender,2,40,0.8500,0.5500,accuracy,0.7500,0.2500,0.1500,0.3500,0.5000,0.1250,,"
        ",,0.5000,4.0000,,1e-06,document,unproven,ok,,0.0707,0.0707,0.2500,1,,texts,encoder,guesser,,,"
    )


def test_one_seed_has_no_deviation(rows):
    (row,) = rows([scored(0, 0.7)])
    assert (row["task_accuracy_sd"], row["empirical_privacy_sd"], row["seeds"]) == ("", "", "1")
    assert (row["epsilon_claimed"], row["delta"], row["privacy_unit"]) == ("", "", "")


def test_a_lost_attack_is_no_privacy(rows):
    below, equal, above = (rows([scored(0, score)])[0] for score in (0.4, 0.5, 0.6))
    assert below["status"] == equal["status"] == "attack failed: no better than the best constant guess"
    assert above["status"] == "ok"
    assert below["empirical_privacy"] == "0.5000"  # what the constant leaves, not what the attack missed


@pytest.mark.parametrize("seeds", [1, 3])
def test_an_attack_equal_to_the_constant_has_lost_whatever_the_rounding(seeds):
    for n, right in [(size, right) for size in (3, 7, 10, 41, 90) for right in range(1, size)]:
        (row,) = leaderboard([scored(seed, right / n, constant=1 - right / n) for seed in range(seeds)])
        assert row["status"] == LOST, f"{right}/{n}"
        (row,) = leaderboard([scored(seed, (right + 0.01) / n, constant=1 - right / n) for seed in range(seeds)])
        assert row["status"] == "ok", f"{right}/{n}"


def test_failed_seeds_are_told(rows):
    (row,) = rows([scored(0, 0.7), empty("failed", "ValueError: odd", seed=1), scored(2, 0.4, constant=0.7)])
    assert row["status"] == "1 of 3 seeds failed: ValueError: odd"
    assert (row["seeds"], row["attack_score"], row["task_accuracy"]) == ("2", "0.5500", "0.9000")


NAMED = {"dataset": "texts", "victim": "encoder", "attack": "guesser"}


def test_what_failed_stands_in_the_leaderboard_and_what_does_not_apply_beside_it(rows):
    (row,) = rows([empty("failed", "ValueError: odd", seed) for seed in (0, 1)])
    kept = {key: value for key, value in row.items() if value and not key.endswith("_options")}
    assert kept == {**NAMED, "seeds": "0", "status": "failed: ValueError: odd"}
    records = [empty("skipped", "no words, none published", seed) for seed in (0, 1)]
    assert rows(records) == []
    assert rows(records, "skipped") == [{**NAMED, "reason": "no words, none published"}]


@pytest.mark.parametrize(("status", "reason"), [("failed", "ValueError: odd"), ("skipped", "no words, none published")])
def test_without_a_result_there_are_no_numbers(status, reason, rows):
    records = [empty(status, reason, seed) for seed in (0, 1)]
    cells = [{key: value for key, value in cell.items() if value} for cell in rows(records, "cells")]
    assert cells == [{**NAMED, "seed": str(seed), "metric": status, "status": reason} for seed in (0, 1)]
    assert rows(records, "fairness") == []


def test_cells_are_every_metric(rows):
    record = scored(1, 0.75, details="by logistic regression")
    odd = Metric("attack_auc", None, "age", "60+", n=0, status="one value only")
    cells = rows([dataclasses.replace(record, metrics=[*record.metrics, odd])], "cells")
    assert [cell["metric"] for cell in cells] == [metric.name for metric in record.metrics] + ["attack_auc"]
    privacy = cells[3]
    assert (privacy["value"], privacy["low"], privacy["high"], privacy["n"]) == ("0.2500", "0.1500", "0.3500", "40")
    assert [cell["details"] for cell in cells if cell["details"]] == ["by logistic regression"]
    last = cells[-1]
    assert (last["variable"], last["group"], last["value"], last["n"]) == ("age", "60+", "", "0")
    assert last["status"] == "one value only"


def by_group(seed, accuracies, p_value, hits, attack="guesser"):
    """Return a record with task accuracy, gap and the attack's hits by the groups of age."""
    low, high = accuracies
    groups = [
        Metric("share", 0.25, "age", "under 30", n=10),
        Metric("share", 0.75, "age", "60, over", n=30),
        Metric("task_accuracy", low, "age", "under 30", n=10),
        Metric("task_accuracy", high, "age", "60, over", n=30),
        Metric("task_gap", high - low, "age", "60, over", low=-0.1, high=0.3),
        Metric("task_gap_p", p_value, "age", "60, over"),
        Metric("tpr_gap", 0.15, "age"),
        Metric("attack_accuracy", hits, "age", "under 30", n=10),
    ]
    record = scored(seed, 0.7, attack=attack)
    return dataclasses.replace(record, metrics=[*record.metrics, *groups])


def test_fairness_by_group(rows):
    strong = [by_group(0, (0.5, 0.75), 0.02, 0.5, "strong"), by_group(1, (0.75, 0.75), 0.04, 0.75, "strong")]
    weak = [by_group(0, (0.5, 0.75), 0.02, 0.25, "weak"), by_group(1, (0.75, 0.75), 0.04, 0.5, "weak")]
    assert rows([*weak, *strong], "fairness") == [
        {
            "dataset": "texts", "victim": "encoder", "variable": "age", "group": "under 30", "n": "10",
            "share": "0.2500", "task_accuracy": "0.6250", "gap": "", "gap_low": "", "gap_high": "", "p_value": "",
            "tpr_gap": "0.1500", "attack_accuracy": "0.6250", "attack": "strong",
        },
        {
            "dataset": "texts", "victim": "encoder", "variable": "age", "group": "60, over", "n": "30",
            "share": "0.7500", "task_accuracy": "0.7500", "gap": "0.1250", "gap_low": "-0.1000",
            "gap_high": "0.3000", "p_value": "0.0600", "tpr_gap": "0.1500", "attack_accuracy": "", "attack": "",
        },
    ]  # fmt: skip
    leaderboard = rows([*weak, *strong])
    assert {(row["fairness_gap"], row["fairness_variable"]) for row in leaderboard} == {("0.1250", "age")}


@pytest.mark.parametrize(
    ("p_values", "combined"), [([0.03], "0.0300"), ([0.03, 0.05], "0.0800"), ([0.9, 0.8], "1.0000")]
)
def test_p_values_are_combined_without_assuming_independence(p_values, combined, rows):
    records = [by_group(seed, (0.5, 0.75), p, 0.5) for seed, p in enumerate(p_values)]
    assert rows(records, "fairness")[1]["p_value"] == combined


def test_the_order_of_records_does_not_matter(tmp_path):
    records = [scored(1, 0.7), scored(0, 0.6), scored(0, 0.9, victim="other"), by_group(0, (0.5, 0.75), 0.02, 0.5, "b")]
    written = set()
    for i, order in enumerate(itertools.permutations(records)):
        paths = tables.write_tables(tmp_path / str(i), order, {})
        written.add(tuple(path.read_bytes() for path in paths))
    assert len(written) == 1


def test_a_row_does_not_depend_on_the_others(rows):
    alone = rows([scored(0, 0.7)])
    joined = [
        scored(0, 0.7),
        empty("skipped", "cannot meet", victim="other"),
        scored(0, 0.9, victim="third", claim=CLAIM),
    ]
    assert rows(joined)[:1] == alone


def test_pandas_reads_the_tables_back(tmp_path):
    records = [scored(0, 0.7, claim=CLAIM), empty("failed", 'a "quoted", reason; with ε', seed=0, victim="other")]
    tables.write_tables(tmp_path, records, {})
    frame = pd.read_csv(tmp_path / "leaderboard.csv")
    assert frame["status"].tolist() == ["ok", 'failed: a "quoted", reason; with ε']
    assert frame["attack_score"].tolist()[0] == 0.7
    assert frame["delta"].tolist()[0] == 1e-6
    assert frame["seeds"].tolist() == [1, 0]
    assert b"\r" not in (tmp_path / "leaderboard.csv").read_bytes()


def test_a_record_is_read_back(tmp_path):
    record = scored(1, 0.75, claim=CLAIM, details="noted")
    write_record(tmp_path, record)
    found = read_record(tmp_path, record.key)
    assert (found.metrics, found.claim, tuple(found.secrets)) == (record.metrics, CLAIM, record.secrets)
    assert read_record(tmp_path, "another key") is None
    assert read_record(tmp_path / "nowhere", record.key) is None


def test_an_altered_result_is_not_believed(tmp_path):
    record = scored(0, 0.75)
    write_record(tmp_path, record)
    text = (tmp_path / RESULT).read_text()
    assert text.count('"value": 0.75') == 1
    (tmp_path / RESULT).write_text(text.replace('"value": 0.75', '"value": 0.15'))
    assert read_record(tmp_path, record.key) is None
    (tmp_path / RESULT).write_text(text[: len(text) // 2])
    assert read_record(tmp_path, record.key) is None
    (tmp_path / RESULT).write_text("[]")
    assert read_record(tmp_path, record.key) is None
    (tmp_path / RESULT).write_text(text)
    assert read_record(tmp_path, record.key) is not None


def test_a_failure_is_never_a_result(tmp_path):
    failed = empty("failed", "ValueError: odd")
    write_failure(tmp_path, failed, "Traceback ...")
    assert json.loads((tmp_path / FAILURE).read_text())["traceback"] == "Traceback ..."
    assert read_record(tmp_path, failed.key).status == "failed"
    write_record(tmp_path, dataclasses.replace(scored(0, 0.7), key=failed.key))
    assert [path.name for path in tmp_path.iterdir()] == [RESULT]
    write_failure(tmp_path, failed, "Traceback ...")
    assert [path.name for path in tmp_path.iterdir()] == [FAILURE]


def test_records_are_strict_json(tmp_path):
    odd = Metric("attack_auc", float("nan"), low=float("-inf"))
    record = dataclasses.replace(scored(0, 0.7), metrics=[odd])
    write_record(tmp_path, record)
    json.loads((tmp_path / RESULT).read_text(), parse_constant=lambda name: pytest.fail(name))
    assert read_record(tmp_path, record.key).metrics == [Metric("attack_auc", None, low=float("-inf"))]


def test_a_carriage_return_in_a_text_ends_no_row(rows):
    sentence = {"text": "good room\rbad soup", "recovered": "good\r\nroom", "words_right": 2, "words": 4}
    (row,) = rows([scored(0, 0.7, sentences=[sentence])], "sentences")
    assert (row["text"], row["recovered"], row["words"]) == ("good room bad soup", "good \nroom", "4")


@pytest.mark.parametrize(
    ("group", "written"),
    [
        ('=HYPERLINK("x")', '\'=HYPERLINK("x")'),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("@sum(a)", "'@sum(a)"),
        ("-2+3", "'-2+3"),
        ("-2", "-2"),
        ("a=b", "a=b"),
    ],
)
def test_no_text_of_others_is_a_formula(group, written, rows):
    metric = Metric("attack_accuracy", -0.5, "secret", group, low=-1.0, high=0.5)
    found = rows([dataclasses.replace(scored(0, 0.5), metrics=[metric])], "cells")
    assert [(row["group"], row["value"]) for row in found] == [(written, "-0.5000")]


def test_an_attack_beyond_the_best_possible_attacker_is_told(rows):
    """Of generated data it is known what the texts give away at most."""

    def status(high):
        names = {"empirical_privacy": 0.2, "privacy_bayes": 0.3, "privacy_best_constant": 0.5, "attack_score": 0.8}
        metrics = [Metric(name, value, low=value - 0.05, high=value + 0.05) for name, value in names.items()]
        metrics[0] = dataclasses.replace(metrics[0], high=high)
        return rows([dataclasses.replace(scored(0, 0.5), metrics=metrics)])[0]["status"]

    assert "better than the best possible attacker" in status(0.29)
    assert status(0.31) == "ok"


def test_attack_scores_by_group_stand_without_a_task(rows):
    groups = [Metric("share", 0.25, "age", "young", n=10), Metric("attack_accuracy", 0.7, "age", "young", n=10)]
    (row,) = rows([scored(0, 0.7, metrics=groups)], "fairness")
    assert (row["group"], row["share"], row["task_accuracy"], row["attack_accuracy"]) == (
        "young",
        "0.2500",
        "",
        "0.7000",
    )


def test_infinity_survives_strict_json(tmp_path):
    record = scored(0, 0.7, claim=CLAIM | {"proved": math.inf}, metrics=[Metric("plug_in_loss", math.inf)])
    write_record(tmp_path, record)
    json.loads((tmp_path / RESULT).read_text(), parse_constant=lambda name: pytest.fail(name))
    again = read_record(tmp_path, record.key)
    assert again.metrics[0].value == math.inf
    assert again.claim["proved"] == math.inf


def test_each_of_several_secrets_has_a_row(rows):
    """The means over two seeds; age is guessed worse than by its constant."""
    of_secrets = {"age": ((0.3, 0.5), 0.5, 0.5), "gender": ((0.8, 0.9), 0.4, 0.4)}
    records = []
    for seed in (0, 1):
        record = scored(seed, 0.7)
        metrics = [
            metric
            for secret, (scores, left, constant) in of_secrets.items()
            for metric in (
                Metric("attack_accuracy", scores[seed], secret),
                Metric("empirical_privacy", min(1 - scores[seed], left), secret, low=0.0, high=left),
                Metric("privacy_best_constant", constant, secret),
            )
        ]
        records.append(dataclasses.replace(record, metrics=[*record.metrics, *metrics]))
    mean, age, gender = rows(records)
    assert (mean["secret"], mean["secrets"], mean["attack_score"]) == ("", "age; gender", "0.7000")
    told = ("secrets", "attack_score", "empirical_privacy", "empirical_privacy_high", "privacy_best_constant", "status")
    assert [age[name] for name in ("secret", *told)] == ["age", "age", "0.4000", "0.5000", "0.5000", "0.5000", LOST]
    assert [gender[name] for name in told] == ["gender", "0.8500", "0.1500", "0.4000", "0.4000", "ok"]
    assert gender["empirical_privacy_sd"] == "0.0707"
    assert age["task_accuracy"] == mean["task_accuracy"]
    alone = [dataclasses.replace(record, secrets=["gender"]) for record in records]
    assert len(rows(alone)) == 1
