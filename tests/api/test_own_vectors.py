"""Vectors from Python and from the command line: a planted leak is found, no other is, and mistakes are reported."""

import numpy as np
import pandas as pd
import pyarrow
import pytest
import torch
from ruamel.yaml import YAML

import leakboard
from leakboard.api import inputs, own_suites, own_vectors
from leakboard.api.report import Report
from leakboard.data.readers.in_memory import InMemory
from leakboard.errors import RequestError
from leakboard.execution.reservations import Reservation
from leakboard.suite.options import attack
from leakboard.threats.secrets import SecretsAttack

N = 1000
SHOWN = 0.85
"""How often the planted secret is what the vectors show: no attacker can be right more often."""
QUICK = [{"attribute_inference": {"portfolio": "logistic", "inputs": "raw"}}]


@pytest.fixture(scope="module")
def planted():
    """Return vectors that show a gender in 85 % of the rows, and nothing of the age; a task that they show fully."""
    rng = np.random.default_rng(5)
    gender, age, label = (rng.integers(2, size=N) for _ in range(3))
    vectors = rng.normal(size=(N, 6)).astype(np.float32)
    vectors[:, 0] += 8 * np.where(rng.random(N) < SHOWN, gender, 1 - gender)
    vectors[:, 1] += 8 * label
    secrets = pd.DataFrame({"gender": np.array(["f", "m"])[gender], "age": np.array(["young", "old"])[age]})
    return vectors, secrets, label


@pytest.fixture(scope="module")
def report(planted):
    vectors, secrets, label = planted
    return leakboard.evaluate(vectors, secrets, labels=label, attacks=QUICK)


class TestPlantedTruth:
    def test_a_secret_that_is_in_the_vectors_is_found_at_its_bayes_accuracy(self, report):
        row = report.table.set_index("secret").loc["gender"]
        error = np.sqrt(SHOWN * (1 - SHOWN) / row["test_size"])
        assert row["attack_score"] == pytest.approx(SHOWN, abs=3 * error)
        assert row["empirical_privacy"] == pytest.approx(1 - row["attack_score"])

    def test_one_that_is_not_is_at_the_constant(self, report):
        row = report.table.set_index("secret").loc["age"]
        error = np.sqrt(0.25 / row["test_size"])
        assert row["attack_score"] == pytest.approx(0.5, abs=3 * error)
        assert row["empirical_privacy_low"] < row["privacy_best_constant"] <= row["empirical_privacy_high"]

    def test_the_sentences_have_the_numbers_of_the_table(self, report):
        table = report.table.set_index("secret")
        score, constant = table.loc["gender", "attack_score"], 1 - table.loc["gender", "privacy_best_constant"]
        gain, low, high = table.loc["gender", [f"attack_advantage{end}" for end in ("", "_low", "_high")]]
        assert report.sentences[0] == (
            f"gender: an attacker gains {gain:.2f} of what there is to gain ({low:.2f} to {high:.2f}; "
            f"{table.loc['gender', 'test_size']} texts); "
            f"right in {100 * score:.0f} %, {100 * constant:.0f} % without the vectors"
        )
        assert report.sentences[1].startswith("age")
        assert "nothing to find" in report.sentences[1] or "may be chance" in report.sentences[1]
        assert table.loc["", "task_accuracy"] > 0.98

    def test_the_suite_can_be_run_again_while_the_report_lives(self, report, tmp_path):
        again = leakboard.run(report.suite, out=tmp_path)
        assert again.table["attack_score"].tolist() == report.table["attack_score"].tolist()

    @pytest.mark.parametrize("name", ["suite.yaml", "table.parquet", "vectors.npy"])
    def test_files_that_no_evaluation_wrote_are_not_overwritten(self, planted, tmp_path, name):
        vectors, secrets, _ = planted
        (tmp_path / name).write_text("mine")
        with pytest.raises(RequestError, match=f"{name}: no evaluation wrote this file; allowed: a folder without it"):
            leakboard.evaluate(vectors[:200], secrets[:200], attacks=QUICK, out=tmp_path)
        assert (tmp_path / name).read_text() == "mine"
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_an_evaluation_overwrites_the_files_of_another(self, planted, tmp_path):
        vectors, secrets, _ = planted
        for n in (200, 210):
            leakboard.evaluate(vectors[:n], secrets[:n], attacks=QUICK, out=tmp_path / "kept")
        assert np.load(tmp_path / "kept" / "vectors.npy").shape[0] == 210

    def test_a_folder_serves_one_evaluation_at_a_time(self, planted, tmp_path):
        vectors, secrets, _ = planted
        with Reservation(tmp_path / ".evaluate", "another").held():
            with pytest.raises(RequestError, match=r"in use by .*, process \d+; allowed: one evaluation at a time"):
                leakboard.evaluate(vectors[:200], secrets[:200], attacks=QUICK, out=tmp_path)
            assert [path.name for path in tmp_path.iterdir()] == [".evaluate"]
        assert leakboard.evaluate(vectors[:200], secrets[:200], attacks=QUICK, out=tmp_path).table.size
        assert not (tmp_path / ".evaluate").exists()

    def test_a_folder_keeps_vectors_table_and_suite(self, planted, tmp_path):
        vectors, secrets, _ = planted
        made = leakboard.evaluate(vectors[:200], secrets[:200], attacks=QUICK, out=tmp_path)
        assert YAML(typ="safe").load(tmp_path / "suite.yaml") == made.suite
        assert np.array_equal(np.load(tmp_path / "vectors.npy"), vectors[:200])


def gather(vectors, secrets, **others):
    matrices, frame, *_ = inputs.gather({"vectors": vectors}, secrets, **others)
    return matrices["vectors"], frame


class TestKinds:
    """Whatever holds the numbers and classes, the same comes out."""

    MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
    CLASSES: dict[str, list[str]] = {"gender": ["f", "m", "m", "f"]}  # noqa: RUF012

    @pytest.mark.parametrize(
        "vectors",
        [
            MATRIX.astype(np.float64),
            MATRIX.tolist(),
            pd.DataFrame(MATRIX),
            pd.Series(list(MATRIX)),
            pd.DataFrame({"vector": list(MATRIX)}),
            torch.tensor(MATRIX, requires_grad=True),
            torch.tensor(MATRIX, dtype=torch.bfloat16, requires_grad=True),
            torch.tensor(MATRIX, requires_grad=True).to_sparse(),
            list(torch.tensor(MATRIX, requires_grad=True)),
            np.ma.masked_array(MATRIX),
            pyarrow.table({"vector": MATRIX.tolist()}),
            pyarrow.table({"e0": MATRIX[:, 0], "e1": MATRIX[:, 1], "e2": MATRIX[:, 2]}),
        ],
        ids=[
            "array",
            "lists",
            "frame",
            "series",
            "frame of lists",
            "tensor",
            "bfloat16",
            "sparse",
            "tensors",
            "unmasked",
            "arrow lists",
            "arrow columns",
        ],
    )
    def test_vectors(self, vectors):
        assert np.array_equal(gather(vectors, self.CLASSES)[0], self.MATRIX)

    @pytest.mark.parametrize(
        "secrets",
        [
            CLASSES,
            pd.DataFrame(CLASSES),
            pd.Series(CLASSES["gender"], name="gender"),
            pd.Series(CLASSES["gender"], name="gender", dtype="category"),
            pyarrow.table(CLASSES),
            {"gender": np.array(CLASSES["gender"])},
        ],
        ids=["mapping", "frame", "series", "categories", "arrow", "array"],
    )
    def test_secrets(self, secrets):
        assert gather(self.MATRIX, secrets)[1].to_dict("list") == self.CLASSES

    def test_numbers_and_truth_values_are_classes(self):
        secrets = {"age": torch.tensor([1, 2, 2, 1]), "known": [True, False, True, True], "group": [1.0, 2.0, 1.0, 2.0]}
        secrets["bin"] = pd.cut(pd.Series([5, 50, 20, 70]), [0, 30, 100])
        frame = gather(self.MATRIX, secrets, users=np.array([7, 7, 8, 8]))[1]
        assert frame["age"].tolist() == ["1", "2", "2", "1"]
        assert frame["known"].tolist() == ["true", "false", "true", "true"]
        assert frame["group"].tolist() == ["1", "2", "1", "2"]
        assert frame["bin"].tolist() == ["(0, 30]", "(30, 100]", "(0, 30]", "(30, 100]"]
        assert frame["user"].tolist() == ["7", "7", "8", "8"]


def with_hole(row):
    matrix = np.zeros((4, 2))
    matrix[row, 1] = np.nan
    return matrix


@attack
class Constant(SecretsAttack):
    """Guess the secret's first value, or its last."""

    last: bool = False

    def fit(self, view, seed):
        place = -1 if self.last else 0
        return lambda vectors: {s.name: np.eye(len(s.values))[[place] * len(vectors)] for s in view.secrets}


class TestInMemory:
    def test_files_hold_nothing_that_arrays_do_not(self, planted, report, tmp_path):
        vectors, secrets, label = planted
        kept = leakboard.evaluate(vectors, secrets, labels=label, attacks=QUICK, out=tmp_path)
        same = ["attack_score", "empirical_privacy_low", "task_accuracy"]
        assert kept.table[same].equals(report.table[same])

    def test_nothing_is_left_behind_and_no_vectors_are_written(self, planted, monkeypatch, tmp_path):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        written = []
        monkeypatch.setattr(own_vectors, "write_files", lambda *given: written.append(given))
        made = leakboard.evaluate(planted[0][:200], planted[1][:200], attacks=QUICK)
        assert (len(made.records), written, list(tmp_path.iterdir())) == (1, [], [])

    @pytest.mark.slow
    def test_an_instance_of_an_attack_is_run(self, planted):
        vectors, secrets, _ = planted
        made = leakboard.evaluate(vectors[:200], secrets[:200], attacks=[Constant(), Constant(last=True), *QUICK])
        scores = made.table.query("secret == 'gender'").set_index("attack")["attack_score"]
        assert scores["constant"] + scores["constant (last=true)"] == pytest.approx(1)

    def test_content_is_told_apart_by_its_digest(self):
        rows = pd.DataFrame({"a": ["x", "y"]})
        arrays = np.zeros((2, 3), np.float32)
        contents = [rows, rows[::-1], rows.rename(columns={"a": "b"}), arrays, arrays + 1, arrays.reshape(3, 2)]
        assert len({InMemory.of("n", content).checksum() for content in contents}) == len(contents)
        assert InMemory.of("n", arrays).checksum() == InMemory.of("m", arrays.copy()).checksum()


@pytest.fixture(scope="module")
def releases(planted):
    """Return vectors that show the gender, the same with the gender taken out, and the same in another frame."""
    vectors = planted[0]
    after = vectors.copy()
    after[:, 0] = np.random.default_rng(7).normal(size=N)
    return {"before": vectors, "after it": after, "copy": pd.DataFrame(vectors)}


@pytest.fixture(scope="module")
def compared(planted, releases):
    return leakboard.evaluate(releases, planted[1], labels=planted[2], attacks=QUICK)


class TestReleases:
    def test_one_table_names_each_release(self, compared, releases, report):
        assert compared.table["victim"].unique().tolist() == list(releases)
        by_release = {name: rows.reset_index(drop=True) for name, rows in compared.table.groupby("victim")}
        for name in ("before", "copy"):  # one split and one seed for all, as for one release alone
            assert by_release[name]["attack_score"].equals(report.table["attack_score"])
            assert by_release[name]["empirical_privacy_low"].equals(report.table["empirical_privacy_low"])

    def test_sentences_state_a_difference_only_where_the_intervals_allow_it(self, compared):
        rows = compared.table.set_index(["victim", "secret"])

        def shown(release, secret):
            row = rows.loc[(release, secret)]
            gain, low, high = (row[f"attack_advantage{end}"] for end in ("", "_low", "_high"))
            wider = 2.4977 / 1.9600  # four comparisons share 5 %: normal quantiles of 1 - 0.05 / 8 and of 0.975
            return f"{gain:.2f} ({gain - wider * (gain - low):.2f} to {gain + wider * (high - gain):.2f})"

        first, second = shown("before", "gender"), shown("after it", "gender")
        difference = compared.differences.set_index("release").loc["after it"].iloc[0]
        words = "{:.2f} ({:.2f} to {:.2f})".format(*difference[["difference", "difference_low", "difference_high"]])
        assert compared.sentences[:2] == [
            f"gender: 'after it' gives away less than 'before': an attacker gains {second}, not {first}; "
            f"the difference is {words}",
            f"gender: no difference between 'before' and 'copy' is shown: an attacker gains {first} and {first}; "
            "the intervals overlap",
        ]
        assert compared.sentences[2].startswith("age: no difference between 'before' and 'after it' is shown")

    def test_a_release_that_gives_away_more_is_reported(self, planted, releases):
        turned = {name: releases[name] for name in ("after it", "before")}
        made = leakboard.evaluate(turned, planted[1], attacks=QUICK)
        assert made.sentences[0].startswith("warning: after it on table: do the rows match?")
        assert made.sentences[1].startswith("gender: 'before' gives away more than 'after it': an attacker gains 0.7")
        points = {trace.name: (trace.x, len(trace.error_y.array)) for trace in made.plot().data}  # there is no task
        assert points == dict.fromkeys(["age", "gender"], (("after it", "before"), 2))

    def test_the_plot_shows_all(self, compared):
        texts = compared.plot().data[-1].hovertext
        assert len(texts) == 3
        assert all(any(name in text for text in texts) for name in ("before", "after it", "copy"))

    def test_a_folder_keeps_a_suite_that_runs_again(self, planted, releases, compared, tmp_path):
        made = leakboard.evaluate(releases, planted[1], labels=planted[2], attacks=QUICK, out=tmp_path / "kept")
        again = leakboard.run(tmp_path / "kept" / "suite.yaml", out=tmp_path / "again")
        assert again.table["attack_score"].equals(made.table["attack_score"])
        assert again.table["victim"].equals(compared.table["victim"])

    @pytest.mark.parametrize(
        ("releases", "message"),
        [
            ({}, "vectors: the mapping is empty; allowed: names of releases with their vectors"),
            ({"": np.zeros((4, 2))}, "vectors: '' is not allowed as a release's name"),
            ({"a": np.zeros((4, 2)), "b": np.zeros((3, 2))}, r"vectors\['b'\]: 3 rows, but vectors\['a'\] has 4"),
            ({"a": np.zeros((4, 2)), "b": np.zeros(4)}, r"vectors\['b'\]: float64 of shape \(4,\) is not allowed"),
        ],
    )
    def test_what_cannot_be_compared_is_one_line(self, releases, message):
        with pytest.raises(RequestError, match=message):
            leakboard.evaluate(releases, {"gender": list("fmfm")})


def test_an_array_of_vectors_as_pandas_gives_it_is_read():
    vectors = np.random.default_rng(0).standard_normal((40, 3))
    objects = pd.Series(list(vectors)).to_numpy()
    secrets = {"gender": list("fm") * 20}
    both = [
        leakboard.evaluate(given, secrets, attacks=[{"attribute_inference": {"portfolio": "logistic"}}])
        for given in (objects, vectors)
    ]
    assert both[0].table.equals(both[1].table)


class TestTraps:
    ZEROS = np.zeros((4, 2))
    GOOD = pd.Series(["f", "m", "m", "f"], name="gender", index=list("abcd"))

    @pytest.mark.parametrize(
        ("vectors", "secrets", "options", "message"),
        [
            (ZEROS[:3], GOOD, {}, r"secrets\['gender'\]: 4 rows, but vectors has 3"),
            (ZEROS, GOOD, {"labels": [1, 2]}, "labels: 2 rows, but vectors has 4"),
            (with_hole(2), GOOD, {}, r"vectors: row 2 \('c'\): nan in column 1; 1 rows are not finite"),
            (ZEROS[:, 0], GOOD, {}, r"vectors: float64 of shape \(4,\) is not allowed: numbers of shape \(rows, d\)"),
            (np.diag([1, 1e300, 1, 1]), GOOD, {}, r"vectors: row 1 \('b'\): 1e\+300 in column 1"),
            (np.ma.masked_equal(np.eye(4)[:, 1:], 1), GOOD, {}, "vectors: row 1 has masked numbers"),
            (ZEROS, GOOD, {"attacks": 5}, "attacks: 5 is not allowed; allowed: all, or a list of names"),
            (ZEROS, GOOD, {"attacks": [5]}, "attacks: 5 is not allowed; allowed: all, or a list of names"),
            ([[1, 2], [1]], GOOD, {}, "vectors: a list does not hold one vector of numbers a row, all of one length"),
            (
                pd.DataFrame(ZEROS, index=list("abdc")),
                GOOD,
                {},
                r"row 2 is 'c', but in vectors it is 'd'; the same rows",
            ),
            (
                pd.DataFrame(ZEROS, index=list("abce")),
                GOOD,
                {},
                r"row 3 is 'd', but in vectors it is 'e'; they hold ot",
            ),
            (
                pd.DataFrame(ZEROS),
                pd.DataFrame({"gender": list("fmfm")}, index=[0, 2, 1, 3]),
                {},
                r"secrets\['gender'\]: row 1 is '2', but in vectors it is '1'; the same rows in another order",
            ),
            (
                pd.DataFrame(ZEROS),
                pd.DataFrame({"gender": list("fmfm")}, index=[0.0, 2.0, 1.0, 3.0]),
                {},
                r"secrets\['gender'\]: row 0 is '0.0', but in vectors it is '0'; they hold other rows",
            ),
            (
                pd.DataFrame(ZEROS),
                pd.DataFrame({"gender": list("fmfm")}, index=[list("bbaa"), [0, 1, 0, 1]]),
                {},
                r"secrets\['gender'\]: row 0 is \"\('b', 0\)\", but in vectors it is '0'; they hold other rows",
            ),
            (
                pd.DataFrame(ZEROS),
                pd.DataFrame({"gender": list("fmfm")}, index=range(4, 8)),
                {},
                r"row 0 is '4', but in vectors it is '0'; they hold other rows; .* call reset_index\(drop=True\)",
            ),
            (
                pd.DataFrame(ZEROS),
                pd.DataFrame({"gender": list("fmfm")}, index=[1, 2, 3, 4]),
                {"ids": [1, 2, 3, 4]},
                r"row 0 is '1', but in vectors it is '0'",
            ),
            (ZEROS, {0: list("fmfm"), "0": list("ffmm")}, {}, "secrets: two columns have one name: 0, 0"),
            (
                pd.DataFrame(ZEROS),
                pd.DataFrame({"gender": list("fmfm")}, index=range(2, 6)),
                {},
                r"row 0 is '2', but in vectors it is '0'; they hold other rows; .* call reset_index\(drop=True\)",
            ),
            (1e8 + np.eye(4), GOOD, {}, r"vectors: column 0: numbers from 1e\+08 to 1e\+08 lose their digits"),
            (1e-300 * np.eye(4), GOOD, {}, "vectors: column 0: numbers from 0 to 1e-300 lose their digits"),
            (pd.DataFrame(ZEROS).assign(id=range(4)), GOOD, {}, "vectors: the column 'id' is no dimension; drop it"),
            (pd.DataFrame(ZEROS).assign(index=range(4)), GOOD, {}, "vectors: the column 'index' is no dimension"),
            (pd.DataFrame(ZEROS).assign(**{"Unnamed: 0": 1}), GOOD, {}, "the column 'Unnamed: 0' is no dimension"),
            (
                pd.DataFrame(ZEROS).add_prefix("e").assign(f=pd.date_range("2020", periods=4)),
                GOOD,
                {},
                "vectors: the column 'f' is no dimension; drop it",
            ),
            (
                pd.DataFrame({"width": [1, 2, 3, 4], "time": pd.to_timedelta(range(4), unit="D")}),
                GOOD,
                {},
                "vectors: the column 'time' is no dimension; drop it",
            ),
            (
                pd.DataFrame({"width": [1.0, 2, 3, 4], "gender": [0, 1, 0, 1]}),
                GOOD,
                {},
                "vectors: the column 'gender' is a secret and would be a dimension, too; drop it",
            ),
            (ZEROS, GOOD, {"users": list("aabb")}, "2 different users cannot be divided into train, dev, test"),
            (ZEROS, GOOD, {"ids": list("abdc")}, r"ids: row 2 is 'd', but in secrets\['gender'\] it is 'c'"),
            (ZEROS, GOOD, {"ids": list("abca")}, "ids: rows 0 and 3 have the same id, 'a'"),
            (ZEROS, {"gender": ["f", None, "m", "m"]}, {}, r"secrets\['gender'\]: row 1: it is missing"),
            (ZEROS, {"gender": ["f"] * 4}, {}, "one value only, 'f': nothing can be guessed"),
            (ZEROS, {"income": [1.5, 2, 3, 4]}, {}, r"secrets\['income'\]: row 0: it is 1.5; allowed: text, a whole"),
            (ZEROS, {"label": list("fmfm")}, {}, "secrets: 'label' has another meaning in a table; rename the column"),
            (ZEROS, {"": list("fmfm")}, {}, "secrets: '' is not allowed as the name of a secret; rename the column"),
            (ZEROS, {"posterior:a": list("fmfm")}, {}, "secrets: 'posterior:a' is not allowed"),
            (ZEROS, {"a; b": list("fmfm")}, {}, "secrets: 'a; b' is not allowed"),
            (ZEROS, {}, {}, "secrets: there is no column"),
            (ZEROS, list("fmfm"), {}, "secrets: a list is not allowed: a frame, a mapping of names to columns"),
            (ZEROS, GOOD, {"texts": ["a", "", "b", "c"]}, r"texts: row 1 \('b'\): it is empty"),
            (ZEROS, GOOD, {"labels": ZEROS}, r"labels: a ndarray of shape \(4, 2\) is not one column"),
        ],
    )
    def test_what_would_go_wrong_in_silence_is_one_line(self, vectors, secrets, options, message):
        with pytest.raises(RequestError, match=message) as caught:
            leakboard.evaluate(vectors, secrets, **options)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("as_label", [False, True])
    @pytest.mark.parametrize(
        ("column", "message"),
        [
            ([["a", "b"], ["a"]] * 30, "lists of values, as ['a', 'b']"),
            (pd.Series([("a", "b"), ("a",)] * 30), "lists of values, as ['a', 'b']"),
            (np.array(["['a']", "['b']"] * 30), "lists of values, as ['a']"),
            (pd.date_range("1990", periods=60), "60 values, most of them dates, as 1990-01-01"),
        ],
    )
    def test_lists_and_dates_are_refused(self, column, message, as_label):
        given = ({"gender": list("fm") * 30}, {"labels": column}) if as_label else ({"topics": column}, {})
        with pytest.raises(RequestError) as caught:
            gather(np.zeros((60, 2)), given[0], **given[1])
        name = "labels" if as_label else "secrets['topics']"
        assert str(caught.value).startswith(f"{name}: {message}; ")

    def test_ages_are_no_classes_until_bins_are_made(self):
        ages = np.arange(60)
        with pytest.raises(RequestError, match="60 values, most of them numbers; make classes of them first"):
            gather(np.zeros((60, 2)), {"age": ages})
        assert set(gather(np.zeros((60, 2)), {"age": pd.cut(ages, [-1, 30, 60])})[1]["age"]) == {"(-1, 30]", "(30, 60]"}

    def test_the_same_index_joins_and_a_plain_one_joins_by_position(self):
        for index in (list("abcd"), range(4)):
            assert len(gather(pd.DataFrame(self.ZEROS, index=index), self.GOOD)[1]) == 4

    @pytest.mark.parametrize("first", [1, 5000])
    def test_numbers_may_be_ids_of_frames_that_only_number_their_rows(self, first):
        frame = pd.DataFrame({"id": range(first, first + 4), "gender": list("fmfm")})
        assert len(gather(self.ZEROS, frame[["gender"]], ids=frame["id"])[1]) == 4


class TestTexts:
    def test_without_texts_nothing_reads_them(self, report):
        (dataset,) = report.suite["datasets"]
        assert report.suite["text_classifier"] is False
        assert dataset["table"]["text"] is None

    def test_vectors_with_columns_are_joined_by_id_and_bare_arrays_by_position(self):
        ids = [
            own_suites.suite_of("t.csv", vectors, ["a"], id="doc")["victims"][0]["precomputed"].get("id")
            for vectors in ("v.parquet", "v.npy", "v.NPY")
        ]
        assert ids == ["doc", None, None]

    def test_a_column_called_id_in_both_files_joins_unless_it_is_something_else(self, tmp_path):
        rows = pd.DataFrame({"id": list("abc"), "gender": list("fmf"), "e0": [1.0, 2, 3], "e1": [1.0, 2, 3]})
        table, vectors = tmp_path / "t.csv", tmp_path / "v.parquet"
        rows[["id", "gender"]].to_csv(table, index=False)
        rows[["id", "e0", "e1"]].to_parquet(vectors)
        rows[["e0", "e1"]].to_csv(tmp_path / "bare.csv", index=False)
        np.savez(tmp_path / "v.npz", id=rows["id"].to_numpy(str), v=np.ones((3, 2)))

        def ids(vectors, **roles):
            suite = own_suites.suite_of(table, vectors, ["gender"], **roles)
            return suite["datasets"][0]["table"].get("id"), suite["victims"][0]["precomputed"].get("id")

        assert ids(vectors) == ids(tmp_path / "v.npz") == ("id", "id")
        rows.rename(columns={"id": "ID"})[["ID", "e0", "e1"]].to_parquet(tmp_path / "upper.parquet")
        assert ids(tmp_path / "upper.parquet") == ("id", "ID")
        assert ids(tmp_path / "bare.csv") == ids(tmp_path / "v.npy") == ids(vectors, user="id") == (None, None)


class TestCommand:
    @pytest.fixture
    def files(self, planted, tmp_path):
        vectors, secrets, label = planted
        np.save(tmp_path / "v.npy", vectors)
        frame = secrets.assign(task=label, words=[f"text {i}" for i in range(N)])
        frame.to_csv(tmp_path / "mine.csv", index=False)
        return tmp_path

    @pytest.fixture
    def evaluate(self, files, command_line):
        def call(*options, table="mine.csv", secrets="gender,age", command="evaluate", vectors=files / "v.npy"):
            given = ["--vectors", vectors, "--secrets", secrets, "--out", files / "out"]
            return command_line(command, files / table, *given, *options)

        return call

    def test_it_says_what_evaluate_says_and_prints_the_suite_that_it_keeps(self, evaluate, files, report, monkeypatch):
        monkeypatch.setattr(own_suites, "_entries", lambda attacks: QUICK)
        monkeypatch.delenv("COLUMNS")
        code, out, err = evaluate("--label", "task", "--attacks", "attribute_inference")
        assert code == 0, err
        assert out.startswith(report.sentences[0])
        assert f"{report.table['attack_score'][1]:.3f}" in out
        kept = (files / "out" / "suite.yaml").read_text("utf-8")
        assert kept.strip() in out
        assert YAML(typ="safe").load(kept)["datasets"][0]["table"]["secrets"] == ["gender", "age"]
        assert max(map(len, out.partition("the suite, kept")[0].splitlines()[2:])) <= 100

    def test_globs_and_stores_are_taken_as_they_are_and_a_column_is_passed_on(self, evaluate, files, monkeypatch):
        suites = []
        monkeypatch.setattr(own_suites, "_common_id", lambda table, vectors: None)
        monkeypatch.setattr(own_vectors, "run_kept", lambda suite, out: suites.append(suite) or Report("", "", {}, ()))
        evaluate("--column", "e", table="m*.csv")
        evaluate(vectors="chroma:at#reviews")
        (tables, victims) = ([suite[kind][0] for suite in suites] for kind in ("datasets", "victims"))
        assert [entry["table"]["path"] for entry in tables] == [str(files / "m*.csv"), str(files / "mine.csv")]
        assert [entry["precomputed"] for entry in victims] == [
            {"vectors": str(files / "v.npy"), "column": "e"},
            {"vectors": "chroma:at#reviews"},
        ]

    def test_where_no_attack_applies_it_says_why_and_fails(self, evaluate):
        code, out, _ = evaluate("--attacks", "nearest_neighbour")
        assert code == 1
        assert out.startswith("warning: no results: nearest_neighbour: ")

    @pytest.mark.parametrize("place", ["mine.csv", "mine.csv/out"])
    def test_a_file_in_place_of_a_folder_is_refused_before_anything_is_read(self, evaluate, files, place):
        code, _, err = evaluate("--out", files / place, table="nine.csv")
        assert (code, err) == (2, f"error: --out {files / place}: {files / 'mine.csv'} is a file; allowed: a folder\n")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"secrets": "gender,agee", "options": ["--text", "words"]}, "no column 'agee'"),
            ({"table": "nine.csv"}, "nine.csv: no such file"),
            ({"secrets": "gender,"}, "--secrets gender,: allowed are names with commas, as in a,b"),
            ({"options": ["--attacks", "atribute_inference"]}, "did you mean 'attribute_inference'"),
        ],
    )
    def test_a_wrong_request_is_one_line(self, evaluate, options, message):
        code, _, err = evaluate(*options.pop("options", ()), **options)
        *before, error = err.splitlines()
        assert (code, error.startswith("error: ")) == (2, True), err
        assert all(line.startswith("attacks on") for line in before), err  # the estimate
        assert message in error
