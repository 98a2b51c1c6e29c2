"""The strongest attack on each secret of a victim: chosen on dev where all attacks tell, and never across threats."""

import dataclasses

import pandas as pd
import pytest
from scored_records import scored

from leakboard.board import tables
from leakboard.metrics.measures import Metric


def told(record, **dev):
    """Return the record of an attack that says what it scored on dev, on all secrets and on each."""
    more = [Metric("attack_score_dev", value, name) for name, value in ({"": dev.pop("all")} | dev).items()]
    return dataclasses.replace(record, metrics=[*record.metrics, *more])


@pytest.fixture
def rows(tmp_path):
    def read(*records):
        tables.write_tables(tmp_path, records, {})
        return pd.read_csv(tmp_path / "best_known.csv", keep_default_na=False).to_dict("records")

    return read


def test_dev_decides_where_all_attacks_tell(rows):
    lucky, better = scored(0, 0.8, attack="lucky"), scored(0, 0.75, attack="better")
    (row,) = rows(told(lucky, all=0.6), told(better, all=0.7))
    assert (row["attack"], row["attack_score"], row["attacks"], row["chosen_on"]) == ("better", 0.75, 2, "dev")
    (row,) = rows(lucky, told(better, all=0.7))
    assert (row["attack"], row["attack_score"], row["attacks"], row["chosen_on"]) == ("lucky", 0.8, 2, "test")


def test_each_secret_has_an_attack_of_its_own(rows):
    def on_both(record, age, gender):
        parts = [
            (name, Metric(metric, value, name, low=0.0, high=1.0))
            for name, value in (("age", age), ("gender", gender))
            for metric in ("empirical_privacy", "attack_accuracy")
        ]
        return dataclasses.replace(record, metrics=[*record.metrics, *(metric for _, metric in parts)])

    first = told(on_both(scored(0, 0.7, attack="first"), 0.8, 0.6), all=0.7, age=0.8, gender=0.6)
    second = told(on_both(scored(0, 0.7, attack="second"), 0.6, 0.9), all=0.75, age=0.6, gender=0.9)
    found = {row["secret"]: row["attack"] for row in rows(first, second)}
    assert found == {"": "second", "age": "first", "gender": "second"}


def test_attacks_that_see_more_publications_compete_among_themselves(rows):
    claim = {"epsilon": 1.0, "proved": 1.0, "delta": 0.0, "unit": "document"}
    once = scored(0, 0.6, attack="once", claim={**claim, "observations": 1})
    often = scored(0, 0.9, attack="often", claim={**claim, "observations": 16})
    found = {row["observations"]: row["attack"] for row in rows(once, often)}
    assert found == {1: "once", 16: "often"}


def test_means_over_seeds_decide(rows):
    steady = [told(scored(seed, 0.7, attack="steady"), all=0.7) for seed in (0, 1)]
    odd = [told(scored(seed, 0.7, attack="odd"), all=0.9 - 0.8 * seed) for seed in (0, 1)]
    assert [row["attack"] for row in rows(*steady, *odd)] == ["steady"]
