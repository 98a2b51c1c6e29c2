"""Test cell records and the tables written from them: only intact records are read, and tables depend on them alone."""

import dataclasses
import itertools
import json
import math

import pandas as pd
import pytest
from made_records import CLAIM, scored, with_metrics, without_result
from scipy import stats

from leakboard.board import tables
from leakboard.board.leaderboard import LOST, leaderboard
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import FAILURE, RESULT, read_record, write_failure, write_record

HEADER = (
    "dataset,victim,attack,secrets,seeds,test_size,task_accuracy,task_majority,attack_metric,attack_score,"
    "empirical_privacy,empirical_privacy_low,empirical_privacy_high,privacy_best_constant,privacy_text_classifier,privacy_bayes,"
    "fairness_gap,fairness_variable,epsilon_claimed,epsilon_proved,epsilon_audited,delta,privacy_unit,verdict,status,"
    "privacy_label,task_accuracy_sd,empirical_privacy_sd,test_copies,observations,"
    "secret,dataset_options,victim_options,attack_options,attack_score_new,empirical_privacy_new,attack_score_dev,"
    "attack_advantage,attack_advantage_low,attack_advantage_high,attack_advantage_p,attack_advantage_dev,attack_auc,"
    "exposed_value,exposed_found,exposed_lift,own_texts,known_pairs,queries,retrained_accuracy,retrieval_recall@10,"
    "fairness_gap_low,fairness_gap_high,fairness_n,tpr_gap,tpr_gap_low,tpr_gap_high,tpr_n,tpr_variable"
)
NAMES = {"dataset": "texts", "victim": "encoder", "attack": "guesser"}


class TestLeaderboard:
    def test_means_over_seeds(self, tmp_path):
        tables.write_tables(tmp_path, [scored(0, 0.7, claim=CLAIM), scored(1, 0.8, claim=CLAIM)], {})
        header, row = (tmp_path / "leaderboard.csv").read_text().splitlines()
        assert header == HEADER
        assert row == (
            "texts,encoder,guesser,age; gender,2,40,0.8500,0.5500,accuracy,0.7500,0.2500,0.0548,0.4452,0.5000,0.1250,,"
            ",,0.5000,4.0000,,1e-06,document,unproven,ok,,0.0707,0.0707,0.2500,1,,texts,encoder,guesser,,,,"
            # Privacy: .1 / 1.96 and .05 are the errors of texts and seeds; t with 4.17 degrees of freedom is 2.73.
            # Advantages .4 and .6, each .2 to both sides; twice the mean of the p-values of 3.92 and 5.88 errors
            "0.5000,0.1095,0.8905,0.0000,,,,,,,,,,,,,,,,,,"
        )

    def test_one_seed_has_no_deviation(self, rows):
        (row,) = rows([scored(0, 0.7)])
        assert (row["task_accuracy_sd"], row["empirical_privacy_sd"], row["seeds"]) == ("", "", "1")
        assert (row["epsilon_claimed"], row["delta"], row["privacy_unit"]) == ("", "", "")

    def test_an_attack_that_loses_to_the_constant_shows_no_privacy(self, rows):
        below, equal, above = (rows([scored(0, score)])[0] for score in (0.4, 0.5, 0.6))
        assert below["status"] == equal["status"] == "attack failed: no better than the best constant guess"
        assert above["status"] == "ok"
        assert below["empirical_privacy"] == "0.5000"  # the constant's, not 1 minus the attack's score

    def test_p_values_of_seeds_are_combined(self):
        (row,) = leaderboard([scored(seed, 0.6) for seed in range(2)])
        assert row["attack_advantage_p"] == pytest.approx(2 * stats.norm.sf(1.96))
        (row,) = leaderboard([scored(0, 0.6)])
        assert row["attack_advantage_p"] == pytest.approx(stats.norm.sf(1.96))

    def test_the_most_exposed_value_has_the_largest_lift(self, rows):
        """Rates are means over seeds; the row about all secrets names no value."""
        records = []
        for rate in (0.2, 0.4):
            values = {"old": (rate, 9.0), "young": (0.9, 4.0)}
            metrics = [
                Metric(name, value, "age", group)
                for group, both in values.items()
                for name, value in zip(("tpr@fpr=0.01", "lift"), both, strict=True)
            ]
            metrics.append(Metric("attack_accuracy", 0.5, "age"))
            records.append(with_metrics(scored(len(records), 0.7), *metrics))
        mean, age, *_ = rows(records)
        names = ("exposed_value", "exposed_found", "exposed_lift")
        assert [age[name] for name in names] == ["old", "0.3000", "9.0000"]
        assert [mean[name] for name in names] == ["", "", ""]

    @pytest.mark.parametrize("seeds", [1, 3])
    def test_an_attack_equal_to_the_constant_has_lost_despite_rounding(self, seeds):
        for n, right in [(size, right) for size in (3, 7, 10, 41, 90) for right in range(1, size)]:
            for score, status in ((right / n, LOST), ((right + 0.01) / n, "ok")):
                (row,) = leaderboard([scored(seed, score, constant=1 - right / n) for seed in range(seeds)])
                assert row["status"] == status, f"{right}/{n}"

    def test_failed_seeds_are_reported(self, rows):
        failed = without_result("failed", "ValueError: odd", seed=1)
        (row,) = rows([scored(0, 0.7), failed, scored(2, 0.4, constant=0.7)])
        assert row["status"] == "1 of 3 seeds failed: ValueError: odd"
        (skipped,) = rows([scored(0, 0.7), without_result("skipped", "too few words", seed=1)])
        assert skipped["status"] == "1 of 2 seeds skipped: too few words"
        assert (row["seeds"], row["attack_score"], row["task_accuracy"]) == ("2", "0.5500", "0.9000")

    def test_an_attack_better_than_the_best_possible_attacker_is_reported(self, rows):
        """Generated data bound what any attacker can learn from the texts."""

        def status(high):
            values = {"privacy_bayes": 0.3, "privacy_best_constant": 0.5, "attack_score": 0.8}
            metrics = [Metric(name, value, low=value - 0.05, high=value + 0.05) for name, value in values.items()]
            metrics.append(Metric("empirical_privacy", 0.2, low=0.15, high=high))
            return rows([scored(0, 0.5, metrics=metrics)])[0]["status"]

        assert "better than the best possible attacker" in status(0.29)
        assert status(0.31) == "ok"

    def test_secrets_of_a_new_threat_have_its_headline(self, rows):
        of_age = Metric("attack_score", 0.3, "age"), Metric("empirical_privacy", 0.5, "age")
        unscored = Metric("empirical_privacy", 0.4, "gender")
        _, *of_secrets = rows([with_metrics(scored(0, 0.7), *of_age, unscored)])
        assert [(row["secret"], row["attack_score"]) for row in of_secrets] == [("age", "0.3000")]

    def test_each_of_several_secrets_has_a_row(self, rows):
        """Means are over two seeds; the attack on age is worse than its constant."""
        of_secrets = {"age": ((0.3, 0.5), 0.5, 0.5), "gender": ((0.8, 0.9), 0.4, 0.4)}
        records = []
        for seed in (0, 1):
            metrics = [
                metric
                for secret, (scores, most, constant) in of_secrets.items()
                for metric in (
                    Metric("attack_accuracy", scores[seed], secret),
                    Metric("empirical_privacy", min(1 - scores[seed], most), secret, low=0.0, high=most),
                    Metric("privacy_best_constant", constant, secret),
                )
            ]
            records.append(with_metrics(scored(seed, 0.7), *metrics))
        mean, age, gender = rows(records)
        assert (mean["secret"], mean["secrets"], mean["attack_score"]) == ("", "age; gender", "0.7000")
        names = ("secret", "secrets", "attack_score", "empirical_privacy", "empirical_privacy_high")
        names += ("privacy_best_constant", "status")
        assert [age[name] for name in names] == ["age", "age", "0.4000", "0.5000", "0.5000", "0.5000", LOST]
        assert [gender[name] for name in names[1:]] == ["gender", "0.8500", "0.1500", "0.4244", "0.4000", "ok"]
        assert gender["empirical_privacy_sd"] == "0.0707"
        assert age["task_accuracy"] == mean["task_accuracy"]
        alone = [dataclasses.replace(record, secrets=["gender"]) for record in records]
        assert len(rows(alone)) == 1


def filled(row):
    """Return the fields of a row that are not empty."""
    return {key: value for key, value in row.items() if value and not key.endswith("_options")}


@pytest.mark.parametrize(("status", "reason"), [("failed", "ValueError: odd"), ("skipped", "no words, none published")])
def test_a_cell_without_a_result_has_a_reason_and_no_numbers(status, reason, rows):
    records = [without_result(status, reason, seed) for seed in (0, 1)]
    in_leaderboard, skipped = [filled(row) for row in rows(records)], rows(records, "skipped")
    if status == "failed":
        assert in_leaderboard == [{**NAMES, "seeds": "0", "status": f"failed: {reason}"}]
        assert skipped == []
    else:
        assert in_leaderboard == []
        assert skipped == [{**NAMES, "reason": reason}]
    cells = [filled(cell) for cell in rows(records, "cells")]
    assert cells == [{**NAMES, "seed": str(seed), "metric": status, "status": reason} for seed in (0, 1)]
    assert rows(records, "fairness") == []


class TestCells:
    def test_every_metric_has_a_row(self, rows):
        record = scored(1, 0.75, details="by logistic regression")
        undefined = Metric("attack_auc", None, "age", "60+", n=0, status="one value only")
        cells = rows([with_metrics(record, undefined)], "cells")
        assert [cell["metric"] for cell in cells] == [metric.name for metric in record.metrics] + ["attack_auc"]
        (privacy,) = (cell for cell in cells if cell["metric"] == "empirical_privacy")
        assert (privacy["value"], privacy["low"], privacy["high"], privacy["n"]) == ("0.2500", "0.1500", "0.3500", "40")
        assert [cell["details"] for cell in cells if cell["details"]] == ["by logistic regression"]
        last = cells[-1]
        assert (last["variable"], last["group"], last["value"], last["n"]) == ("age", "60+", "", "0")
        assert last["status"] == "one value only"

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
    def test_no_text_is_a_spreadsheet_formula(self, group, written, rows):
        metric = Metric("attack_accuracy", -0.5, "secret", group, low=-1.0, high=0.5)
        cells = rows([scored(0, 0.5, metrics=[metric])], "cells")
        assert [(row["group"], row["value"]) for row in cells] == [(written, "-0.5000")]

    def test_a_carriage_return_in_a_text_ends_no_row(self, rows):
        sentence = {"text": "good room\rbad soup", "recovered": "good\r\nroom", "words_right": 2, "words": 4}
        (row,) = rows([scored(0, 0.7, sentences=[sentence])], "sentences")
        assert (row["text"], row["recovered"], row["words"]) == ("good room bad soup", "good \nroom", "4")


def by_group(seed, accuracies, p_value, hits, attack="guesser"):
    """Return a record with task accuracy, gap and the attack's hits by age group."""
    low, high = accuracies
    groups = [
        Metric("share", 0.25, "age", "under 30", n=10),
        Metric("share", 0.75, "age", "60, over", n=30),
        Metric("task_accuracy", low, "age", "under 30", low - 0.1, low + 0.1, n=10),
        Metric("task_accuracy", high, "age", "60, over", high - 0.1, high + 0.1, n=30),
        Metric("task_gap", high - low, "age", "60, over", low=-0.1, high=0.3),
        Metric("task_gap_p", p_value, "age", "60, over"),
        Metric("tpr_gap", 0.15, "age"),
        Metric("attack_accuracy", hits, "age", "under 30", n=10),
    ]
    return with_metrics(scored(seed, 0.7, attack=attack), *groups)


class TestFairness:
    def test_groups_of_the_strongest_attack(self, rows):
        strong = [by_group(0, (0.5, 0.75), 0.02, 0.5, "strong"), by_group(1, (0.75, 0.75), 0.04, 0.75, "strong")]
        weak = [by_group(0, (0.5, 0.75), 0.02, 0.25, "weak"), by_group(1, (0.75, 0.75), 0.04, 0.5, "weak")]
        assert rows([*weak, *strong], "fairness") == [
            {
                "dataset": "texts", "victim": "encoder", "variable": "age", "group": "under 30", "n": "10",
                "share": "0.2500", "task_accuracy": "0.6250", "gap": "", "gap_low": "", "gap_high": "", "p_value": "",
                "tpr_gap": "0.1500", "attack_accuracy": "0.6250", "attack": "strong",
                "task_accuracy_low": "0", "task_accuracy_high": "1",
            },
            {
                "dataset": "texts", "victim": "encoder", "variable": "age", "group": "60, over", "n": "30",
                "share": "0.7500", "task_accuracy": "0.7500", "gap": "0.1250", "gap_low": "-0.3810",
                "gap_high": "0.7138", "p_value": "0.0600", "tpr_gap": "0.1500", "attack_accuracy": "", "attack": "",
                "task_accuracy_low": "0.6500", "task_accuracy_high": "0.8500",
            },
        ]  # fmt: skip
        leaderboard = rows([*weak, *strong])
        assert {(row["fairness_gap"], row["fairness_variable"]) for row in leaderboard} == {("0.1250", "age")}

    def test_the_clearest_gap_is_that_with_the_largest_lower_end(self, rows):
        """Means are over two seeds. The widest gap, of country, may be chance; that of gender is shown."""
        records = []
        for seed in (0, 1):
            metrics = [Metric("attack_accuracy", 0.5, secret) for secret in ("gender", "country")]
            for name, shift in (("fairness_gap", 0.0), ("tpr_gap", -0.2)):
                metrics.append(Metric(name, 0.1, "gender", "", 0.05 + shift, 0.15, n=900))
                metrics.append(Metric(name, 0.3, "country", "", -0.05, 0.65, n=400))
            records.append(with_metrics(scored(seed, 0.7, secrets=["gender", "country"]), *metrics))
        mean, gender, country = rows(records)
        parts = ("fairness_gap", "fairness_gap_low", "fairness_gap_high", "fairness_n", "fairness_variable")
        assert [mean[name] for name in parts] == ["0.1000", "0.0500", "0.1500", "900", "gender"]
        assert [gender[name] for name in parts] == [mean[name] for name in parts]
        assert [country[name] for name in parts] == ["0.3000", "0.0000", "0.6500", "400", "country"]
        parts = ("tpr_gap", "tpr_gap_low", "tpr_gap_high", "tpr_n", "tpr_variable")
        assert [mean[name] for name in parts] == ["0.3000", "0.0000", "0.6500", "400", "country"]

    def test_a_secret_with_one_group_has_no_gap(self, rows):
        metrics = [Metric("attack_accuracy", 0.5, secret) for secret in ("gender", "age")]
        metrics += [Metric("fairness_gap", 0.1, "gender", "", 0.05, 0.15, n=90), Metric("fairness_gap", None, "age")]
        _, gender, age = rows([with_metrics(scored(0, 0.7, secrets=["gender", "age"]), *metrics)])
        assert (gender["fairness_gap"], gender["tpr_gap"]) == ("0.1000", "")
        assert [age[name] for name in age if name.startswith("fairness")] == [""] * 5

    @pytest.mark.parametrize(
        ("p_values", "combined"), [([0.03], "0.0300"), ([0.03, 0.05], "0.0800"), ([0.9, 0.8], "1.0000")]
    )
    def test_p_values_are_combined_without_assuming_independence(self, p_values, combined, rows):
        records = [by_group(seed, (0.5, 0.75), p, 0.5) for seed, p in enumerate(p_values)]
        assert rows(records, "fairness")[1]["p_value"] == combined

    def test_groups_are_listed_without_a_task(self, rows):
        groups = [Metric("share", 0.25, "age", "young", n=10), Metric("attack_accuracy", 0.7, "age", "young", n=10)]
        (row,) = rows([scored(0, 0.7, metrics=groups)], "fairness")
        names = ("group", "share", "task_accuracy", "attack_accuracy")
        assert [row[name] for name in names] == ["young", "0.2500", "", "0.7000"]


def test_the_order_of_records_does_not_matter(tmp_path):
    records = [scored(1, 0.7), scored(0, 0.6), scored(0, 0.9, victim="other"), by_group(0, (0.5, 0.75), 0.02, 0.5, "b")]
    written = set()
    for i, order in enumerate(itertools.permutations(records)):
        paths = tables.write_tables(tmp_path / str(i), order, {})
        written.add(tuple(path.read_bytes() for path in paths))
    assert len(written) == 1


def test_a_row_does_not_depend_on_the_other_victims(rows):
    first = scored(0, 0.7)
    others = [without_result("skipped", "cannot meet", victim="other"), scored(0, 0.9, victim="third", claim=CLAIM)]
    assert rows([first, *others])[:1] == rows([first])


def test_pandas_reads_the_tables_back(tmp_path):
    records = [scored(0, 0.7, claim=CLAIM), without_result("failed", 'a "quoted", reason; with ε', victim="other")]
    tables.write_tables(tmp_path, records, {})
    frame = pd.read_csv(tmp_path / "leaderboard.csv")
    assert frame["status"].tolist() == ["ok", 'failed: a "quoted", reason; with ε']
    assert frame["attack_score"].tolist()[0] == 0.7
    assert frame["delta"].tolist()[0] == 1e-6
    assert frame["seeds"].tolist() == [1, 0]
    assert b"\r" not in (tmp_path / "leaderboard.csv").read_bytes()


class TestRecordFiles:
    def test_a_record_is_read_back(self, tmp_path):
        record = scored(1, 0.75, claim=CLAIM, details="noted")
        write_record(tmp_path, record)
        copy = read_record(tmp_path, record.key)
        assert (copy.metrics, copy.claim, tuple(copy.secrets)) == (record.metrics, CLAIM, record.secrets)
        assert read_record(tmp_path, "another key") is None
        assert read_record(tmp_path / "nowhere", record.key) is None

    def test_an_altered_result_is_not_read(self, tmp_path):
        record = scored(0, 0.75)
        write_record(tmp_path, record)
        text = (tmp_path / RESULT).read_text()
        assert text.count('"value": 0.75') == 1
        for altered in (text.replace('"value": 0.75', '"value": 0.15'), text[: len(text) // 2], "[]"):
            (tmp_path / RESULT).write_text(altered)
            assert read_record(tmp_path, record.key) is None
        (tmp_path / RESULT).write_text(text)
        assert read_record(tmp_path, record.key) is not None

    def test_a_folder_holds_a_result_or_a_failure(self, tmp_path):
        failed = without_result("failed", "ValueError: odd")
        write_failure(tmp_path, failed, "Traceback ...")
        assert json.loads((tmp_path / FAILURE).read_text())["traceback"] == "Traceback ..."
        assert read_record(tmp_path, failed.key).status == "failed"
        write_record(tmp_path, scored(0, 0.7, key=failed.key))
        assert [path.name for path in tmp_path.iterdir()] == [RESULT]
        write_failure(tmp_path, failed, "Traceback ...")
        assert [path.name for path in tmp_path.iterdir()] == [FAILURE]

    def test_records_are_strict_json_and_keep_infinity(self, tmp_path):
        metrics = [Metric("attack_auc", float("nan"), low=-math.inf), Metric("plug_in_loss", math.inf)]
        record = scored(0, 0.7, claim=CLAIM | {"proved": math.inf}, metrics=metrics)
        write_record(tmp_path, record)
        json.loads((tmp_path / RESULT).read_text(), parse_constant=lambda name: pytest.fail(name))
        copy = read_record(tmp_path, record.key)
        assert copy.metrics == [Metric("attack_auc", None, low=-math.inf), metrics[1]]
        assert copy.claim["proved"] == math.inf
