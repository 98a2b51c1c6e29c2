"""The ``table`` dataset: drawn and given splits, secrets, ordered classes, clear refusals."""

import dataclasses
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from loading import refused, sizes

from leakboard.datasets.table import Table
from leakboard.errors import RequestError
from leakboard.suite.files import FileName
from leakboard.suite.options import build


def write(path, rows):
    pd.DataFrame(rows).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def reviews(tmp_path):
    """300 rows: texts occur twice, 40 users, users 0 and 1 share a text with others."""
    rows = [
        {"text": f"review {i // 2}", "label": i % 3, "user": f"u{i // 2 % 40}", "gender": "fm"[i % 2], "bush": i % 2}
        for i in range(298)
    ]
    rows += [{**rows[0], "text": "thank you", "user": "u0"}, {**rows[0], "text": "thank you", "user": "u1"}]
    return write(tmp_path / "reviews.csv", rows)


def crossing(corpus, column):
    """Return the number of values of a column that occur in more than one split."""
    values = [set(corpus.splits[split][column]) for split in ("train", "dev", "test")]
    return sum(map(len, values)) - len(set.union(*values))


def test_no_text_is_in_two_drawn_splits(reviews):
    corpus = Table(path=reviews, label="label").load()
    assert sizes(corpus) == {"train": 240, "dev": 30, "test": 30}  # a tenth of 150 distinct texts, each twice
    assert crossing(corpus, "text") == 0
    assert corpus.checks["dropped_rows"] == corpus.checks["dropped_copies"] == corpus.checks["test_copies"] == 0


@pytest.mark.parametrize("seed", range(8))
def test_no_user_and_no_text_is_in_two_drawn_splits(reviews, seed):
    corpus = Table(path=reviews, user="user", split_seed=seed).load()
    assert crossing(corpus, "user") == 0
    assert crossing(corpus, "text") == 0
    assert sum(sizes(corpus).values()) + corpus.checks["dropped_copies"] == 300
    assert corpus.checks["dropped_copies"] <= 1


def test_a_text_of_users_in_two_splits_is_left_out_and_counted(reviews):
    dropped = {Table(path=reviews, user="user", split_seed=seed).load().checks["dropped_copies"] for seed in range(8)}
    assert dropped == {0, 1}


def test_the_seed_decides_the_split(reviews):
    rows = [Table(path=reviews, split_seed=seed).load().splits["test"]["row"][:] for seed in (0, 0, 1)]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]


def test_secrets_and_entities(reviews):
    corpus = Table(path=reviews, label="label", secrets=("gender",), entities=("bush",)).load()
    gender, bush = corpus.secrets
    assert (gender.name, gender.values, gender.kind) == ("gender", ("f", "m"), "attribute")
    assert (bush.name, bush.values, bush.kind) == ("bush", ("absent", "present"), "entity")
    for split in corpus.splits:
        assert (corpus.column(split, "bush") == corpus.column(split, "gender")).all()


def test_presence_is_written_in_several_ways(tmp_path):
    spellings = ["0", "1", "no", "YES", "False", "true", "absent", "Present"] * 4
    path = write(tmp_path / "a.csv", [{"text": f"t{i}", "e": e} for i, e in enumerate(spellings)])
    corpus = Table(path=path, entities=("e",)).load()
    for split in corpus.splits:
        assert corpus.column(split, "e").tolist() == [row % 2 for row in corpus.splits[split]["row"]]


def test_whole_numbers_are_sorted_as_numbers_and_before_words(tmp_path):
    path = write(tmp_path / "a.csv", [{"text": f"t{i}", "label": x} for i, x in enumerate([10, 9, -2, "b", "a"] * 6)])
    assert Table(path=path, label="label").load().values("label") == ("-2", "9", "10", "a", "b")


def test_without_a_label_there_is_no_task(reviews):
    assert not Table(path=reviews, secrets=("gender",)).load().has_labels


def test_a_given_split_column(tmp_path):
    rows = [{"text": f"t{i}", "part": ["train", "valid", "Test"][i % 3]} for i in range(9)]
    corpus = Table(path=write(tmp_path / "a.csv", rows), split="part").load()
    assert {s: list(corpus.splits[s]["row"]) for s in corpus.splits} == {
        "train": [0, 3, 6],
        "dev": [1, 4, 7],
        "test": [2, 5, 8],
    }


@pytest.fixture
def files(tmp_path):
    """Train t0..t19, dev t19, d; test t0, t0, e."""
    return {
        "path": write(tmp_path / "train.csv", [{"text": f"t{i}", "label": i % 2} for i in range(20)]),
        "dev": write(tmp_path / "dev.csv", [{"text": t, "label": 0} for t in ("t19", "d")]),
        "test": write(tmp_path / "test.csv", [{"text": t, "label": 1} for t in ("t0", "t0", "e")]),
    }


def test_given_files_and_copies_across_them(files):
    corpus = Table(**files, label="label").load()
    assert list(corpus.splits["train"]["text"]) == [f"t{i}" for i in range(1, 19)]
    assert list(corpus.splits["dev"]["row"]) == [20, 21]
    assert list(corpus.splits["test"]["row"]) == [22, 23, 24]
    assert corpus.checks["dropped_copies"] == 2
    kept = Table(**files, label="label", duplicates="keep").load()
    assert len(kept.splits["train"]) == 20
    assert kept.checks["dev_copies"] == pytest.approx(1 / 2)
    assert kept.checks["test_copies"] == pytest.approx(2 / 3)
    assert kept.checks["conflicting_labels"] == 2  # t19 is 1 and 0, t0 is 0 and 1


def test_a_missing_dev_file_is_drawn_from_train(files):
    corpus = Table(path=files["path"], test=files["test"], dev_share=0.2).load()
    assert sizes(corpus) == {"train": 15, "dev": 4, "test": 3}  # 20 - 4 - t0 in train
    assert crossing(corpus, "text") == 0


def test_bad_rows_are_dropped_and_numbers_stay_those_of_the_source(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"t{i},1\n" if i % 5 else ",1\n" for i in range(50)))
    with pytest.raises(RequestError, match="10 bad rows"):
        Table(path=str(path), label="label").load()
    corpus = Table(path=str(path), label="label", on_bad_rows="drop").load()
    assert corpus.checks["dropped_rows"] == 10
    for split in corpus.splits:
        assert list(corpus.splits[split]["text"]) == [f"t{row}" for row in corpus.splits[split]["row"]]


def test_the_fingerprint_is_that_of_the_bytes(files):
    before = Table(**files).fingerprint()
    assert before == Table(**files, label="label").fingerprint()
    with open(files["test"], "a") as stream:
        stream.write("new,1\n")
    assert before != Table(**files).fingerprint()


def test_numbers_of_users_are_kept(tmp_path):
    (tmp_path / "a.csv").write_text("text,who,joy\n" + "".join(f"text {i},u{i},{i / 4}\n" for i in range(40)))
    corpus = Table(path=str(tmp_path / "a.csv"), user="who", numbers=("joy",)).load()
    assert corpus.numeric_targets == ("joy",)
    for part in corpus.splits.values():
        assert [row / 4 for row in part["row"]] == part["joy"][:]


REFUSED = {
    "number": ("text,joy\nx,much\n", {"numbers": ("joy",)}, "row 1: joy is 'much'; allowed: a finite number"),
    "no number": ("text,joy\nx,nan\n", {"numbers": ("joy",)}, "row 1: joy is 'nan'; allowed: a finite number"),
    "presence": ("text,e\nx,maybe\n", {"entities": ("e",)}, "row 1: e is 'maybe'; allowed: 0, 1, false"),
    "split name": ("text,part\nx,train\ny,holdout\n", {"split": "part"}, "row 2: part is 'holdout'; allowed: train"),
    "label": ("text,label\nx,\n", {"label": "label"}, "row 1: label is empty"),
    "secret": ("text,gender\nx,\n", {"secrets": ("gender",)}, "row 1: gender is empty"),
    "user": ("text,user\nx,\n", {"user": "user"}, "row 1: user is empty"),
    "no column": ("text,gender\nx,f\n", {"secrets": ("gendr",)}, "no column 'gendr' (there are: text, gender)"),
    "nearest": ("text,gender\nx,f\n", {"secrets": ("gendr",)}, "did you mean 'gender'?"),
    "reserved": ("text,label\nx,f\n", {"secrets": ("label",)}, "needs a name of its own: ['label']"),
    "text as secret": ("text,label\nx,f\n", {"secrets": ("text",)}, "needs a name of its own: ['text']"),
    "no name": ("text,\nx,f\n", {"secrets": ("",)}, "table: '' is not allowed as the name of a secret"),
    "posterior": ("text,posterior:g\nx,f\n", {"secrets": ("posterior:g",)}, "not beginning with 'posterior:'"),
    "two names": ("text,a; b\nx,1\n", {"entities": ("a; b",)}, "table: 'a; b' is not allowed"),
    "secret twice": ("text,g\nx,1\n", {"secrets": ("g",), "entities": ("g",)}, "one is named twice"),
    "one text": ("text\nx\n", {}, "cannot be divided into train, dev, test"),
    "many values": ("text,s\n" + "".join(f"t{i},{i}\n" for i in range(1001)), {"secrets": ("s",)}, "1001 values"),
    "task as secret": (
        "text,mood\nx,f\ny,m\n",
        {"label": "mood", "secrets": ("mood",)},
        "'mood' is the task label, which victims publish: it cannot be a secret",
    ),
    "two ways": ("text,s\nx,train\n", {"split": "s", "dev": "dev.csv"}, "not both"),
    "no split in file": ("text,part\nx,test\ny,test\n", {"split": "part"}, "cannot be divided into train, dev, test"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_table_is_refused_in_one_line(tmp_path, name):
    content, options, reason = REFUSED[name]
    (tmp_path / "a.csv").write_text(content)
    assert reason in refused(Table(path=str(tmp_path / "a.csv"), **options).load)


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_table_ends_the_run_with_one_line(bench, command_line, name):
    content, options, reason = REFUSED[name]
    for file in ("a.csv", "dev.csv"):
        (bench.folder / file).write_text(content)
    given = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
    bench.suite(datasets=["letters", {"table": {"path": "a.csv", **given}}])
    code, _, err = command_line(*bench.arguments("run"))
    assert (code, err.count("\n")) == (2, 1)
    assert f"{bench.folder / 'tiny.yaml'}: datasets: table: " in err
    assert reason in err
    assert not bench.results()


def test_ages_are_put_into_bins(tmp_path):
    path = write(tmp_path / "a.csv", [{"text": f"t{i}", "age": 18 + i % 60} for i in range(300)])
    message = refused(Table(path=path, secrets=("age",)).load)
    assert "'age' has 60 values, most of them numbers" in message
    assert "bins: {age: 5}" in message
    corpus = Table(path=path, secrets=("age",), bins={"age": 3}).load()
    assert corpus.secrets[0].values == ("18-37", "38-57", "58-77")
    for split in corpus.splits:
        assert corpus.column(split, "age").tolist() == [row % 60 // 20 for row in corpus.splits[split]["row"]]
    assert Table(path=path, secrets=("age",), bins={"age": [30, 70]}).load().secrets[0].values[1] == "30-69"
    message = refused(Table(path=path, secrets=("age",), bins={"agee": 3}).load)
    assert message.endswith("bins: 'agee' is not one of the secrets (age); did you mean 'age'?")


@pytest.mark.parametrize("edges", [[30, 18], [18, 18, 30], [18, math.inf], [math.nan]])
def test_bins_begin_at_finite_numbers_that_increase(tmp_path, edges):
    path = write(tmp_path / "a.csv", [{"text": f"t{i}", "age": 18 + i} for i in range(40)])
    with pytest.raises(RequestError, match=r"bins: age: \[.*\] is not allowed: finite numbers that increase"):
        Table(path=path, secrets=("age",), bins={"age": edges}).load()


@pytest.mark.parametrize("option", ["secrets", "entities"])
def test_a_secret_of_one_value_is_refused(tmp_path, option):
    path = write(tmp_path / "a.csv", [{"text": f"t{i}", "s": 1} for i in range(30)])
    with pytest.raises(RequestError, match=r"a.csv: the secret 's' has one value only, '(1|present)'"):
        Table(path=path, **{option: ("s",)}).load()


def test_a_secret_whose_values_are_never_in_train_and_test_is_refused(tmp_path):
    """The author is such a secret if no author is in two splits."""
    path = write(tmp_path / "a.csv", [{"text": f"t{i}", "author": f"u{i % 12}"} for i in range(120)])
    assert Table(path=path, secrets=("author",)).load().secrets
    with pytest.raises(RequestError, match=r"a.csv: the secret 'author': none of its values is in both train and test"):
        Table(path=path, secrets=("author",), user="author").load()


def test_every_text_has_its_id(tmp_path):
    write(tmp_path / "a.csv", [{"text": f"t{i}", "key": 100 + i} for i in range(20)])
    write(tmp_path / "b.csv", [{"text": f"t{i}", "key": f"new {i}"} for i in range(20, 30)])
    corpus = Table(path=str(tmp_path / "*.csv"), id="key").load()
    for split in corpus.splits:
        texts = corpus.texts(split)
        assert texts.ids == [str(100 + row) if row < 20 else f"new {row}" for row in texts.rows]
    assert Table(path=str(tmp_path / "*.csv")).load().texts("train").ids is None


def test_both_rows_of_a_repeated_id_are_named(tmp_path):
    files = [write(tmp_path / f"{n}.csv", [{"text": f"{n}{i}", "key": f"{n}{i}"} for i in range(9)]) for n in "ab"]
    test = write(tmp_path / "test.csv", [{"text": "x", "key": "new"}, {"text": "y", "key": "b4"}])
    message = refused(Table(path=str(tmp_path / "?.csv"), test=test, id="key").load)
    assert message.startswith(f"{files[1]}: row 5 and {test}: row 2 have the same key, 'b4'")


def test_names_with_dots_are_looked_up_in_nested_objects(tmp_path):
    rows = [
        {"id": i, "vector": [1.0, i], "payload": {"text": f"t{i}", "who": {"sex": "fm"[i % 2]}, "a.b": i % 3}}
        for i in range(30)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    names = {"text": "payload.text", "label": "payload.a.b", "secrets": ("payload.who.sex",), "id": "id"}
    pd.DataFrame(rows).to_parquet(tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        corpus = Table(path=str(tmp_path / name), **names).load()
        for split in corpus.splits:
            part = corpus.texts(split)
            assert list(part) == [f"t{row}" for row in part.rows]
            assert corpus.column(split, "label").tolist() == [row % 3 for row in part.rows]
            assert corpus.column(split, "payload.who.sex").tolist() == [row % 2 for row in part.rows]
    with pytest.raises(RequestError, match=r"payload.who.sx is missing; did you mean 'payload.who.sex'\?"):
        Table(path=str(tmp_path / "a.jsonl"), **names | {"secrets": ("payload.who.sx",)}).load()
    with pytest.raises(RequestError, match=r"no column 'payload.who.sx'.*did you mean 'payload.who.sex'\?"):
        Table(path=str(tmp_path / "a.parquet"), **names | {"secrets": ("payload.who.sx",)}).load()


def test_a_column_whose_own_name_has_a_dot_wins(tmp_path):
    rows = [{"text": f"t{i}", "a.b": "xy"[i % 2], "a": {"b": "z"}} for i in range(30)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert Table(path=str(tmp_path / "a.jsonl"), secrets=("a.b",)).load().secrets[0].values == ("x", "y")


@pytest.mark.parametrize("role", ["text", "id", "label", "user", "document", "split"])
def test_an_empty_name_of_a_column_is_not_taken_for_none(role):
    with pytest.raises(ValueError, match="at least 1 character"):
        Table(path="a.csv", **{role: ""})


def test_no_text_is_needed(tmp_path):
    path = write(tmp_path / "a.csv", [{"label": i % 2, "who": f"u{i % 10}", "s": i % 3} for i in range(60)])
    corpus = Table(path=path, text=None, label="label", secrets=("s",)).load()
    assert not corpus.has_texts
    assert sorted(row for split in corpus.splits for row in corpus.texts(split).rows) == list(range(60))
    assert set(corpus.texts("test")) == {""}
    assert len(corpus.splits["test"]) == 6
    assert {"test_copies", "dev_copies", "empty_texts", "conflicting_labels"}.isdisjoint(corpus.checks)
    assert crossing(Table(path=path, text=None, user="who", secrets=("s",)).load(), "user") == 0


def test_authors_of_given_splits_are_counted(tmp_path):
    rows = [
        {"text": f"t{i}", "part": ["train", "dev", "test"][i % 3], "who": f"u{i // 3 if i % 3 else i}"}
        for i in range(30)
    ]
    corpus = Table(path=write(tmp_path / "a.csv", rows), split="part", user="who").load()
    train = {f"u{i}" for i in range(0, 30, 3)}
    shared = np.mean([f"u{i}" in train for i in range(10)])
    assert corpus.checks["test_users"] == corpus.checks["dev_users"] == shared == 0.4


def test_drawn_splits_share_no_authors(reviews):
    checks = Table(path=reviews, user="user").load().checks
    assert (checks["dev_users"], checks["test_users"]) == (0, 0)


def test_bad_options_are_refused():
    for options, reason in (
        ({}, "table.path: required, but missing"),
        ({"path": "x.csv", "dev_share": 1.5}, "table.dev_share: 1.5 is not allowed"),
        ({"path": "x.csv", "split_seed": -1}, "table.split_seed: -1 is not allowed"),
        ({"path": "x.csv", "text": ""}, "table.text"),
        ({"path": "x.csv", "on_bad_rows": "dropp"}, "did you mean 'drop'?"),
        ({"path": "x.csv", "labels": "y"}, "unknown name 'labels'"),
        ({"path": "x.csv", "secrets": "gender"}, "table.secrets: 'gender' is not allowed"),
    ):
        assert reason in refused(lambda options=options: build(Table, options, "table"))


class TestDocuments:
    def table(self, tmp_path, **columns):
        rows = {"text": [f"chunk {i}" for i in range(60)], "doc": np.arange(60) // 6, "secret": ["a", "b"] * 30}
        pd.DataFrame(rows | columns).to_csv(tmp_path / "a.csv", index=False)
        return Table(path=FileName(tmp_path / "a.csv"), secrets=("secret",), document="doc", test_share=0.3)

    def test_no_document_is_in_two_splits(self, tmp_path):
        corpus = self.table(tmp_path).load()
        documents = [set(part["document"]) for part in corpus.splits.values()]
        assert sorted(map(len, documents)) == [1, 3, 6]
        assert len(set.union(*documents)) == 10
        assert (corpus.checks["test_documents"], corpus.checks["dev_documents"]) == (0, 0)

    def test_given_splits_that_share_documents_are_counted(self, tmp_path):
        made = self.table(tmp_path, part=["train"] * 27 + ["test"] * 27 + ["dev"] * 6)
        assert dataclasses.replace(made, split="part").load().checks["test_documents"] == pytest.approx(3 / 27)

    def test_a_document_of_two_users_is_refused(self, tmp_path):
        made = dataclasses.replace(self.table(tmp_path, who=["x"] * 33 + ["y"] * 27), user="who")
        with pytest.raises(RequestError, match=r"a\.csv: the document '5' has rows of 2 users; allowed: one"):
            made.load()
        corpus = dataclasses.replace(self.table(tmp_path, who=np.arange(60) // 12), user="who").load()
        users = [set(part["user"]) for part in corpus.splits.values()]
        assert sum(map(len, users)) == 5


def test_users_that_differ_in_case_are_two_users(tmp_path):
    """Ids such as aB and Ab differ in case."""
    rows = {"text": [f"text {i}" for i in range(60)], "s": ["a", "a", "b"] * 20, "who": ["aB", "Ab", "x", "y"] * 15}
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    corpus = Table(path=FileName(tmp_path / "a.csv"), secrets=("s",), user="who").load()
    assert {user for part in corpus.splits.values() for user in part["user"]} == {"aB", "Ab", "x", "y"}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"s": ["True", "true", "a"] * 20}, {}, "the classes 'True' and 'true' differ in spelling only"),
        ({"s": ["\u00e9", "e\u0301", "a"] * 20}, {}, "differ in spelling only; write one of them"),
        ({"s": ["true", "1", "0"] * 20}, {}, "the classes '1' and 'true' differ in spelling only"),
        ({"s": ["b", "\ufeffb", "a"] * 20}, {}, "the classes 'b' and '\\ufeffb' differ in spelling only"),
        ({"s": ["a b", "a  b", "a"] * 20}, {}, "the classes 'a  b' and 'a b' differ in spelling only"),
        (
            {"y": ["pos", "Pos", "neg"] * 20},
            {"label": "y"},
            "the label 'y': the classes 'Pos' and 'pos' differ in spelling",
        ),
        (
            {"who": ["\u00e9", "e\u0301", "a"] * 20},
            {"user": "who"},
            "the users '\u00e9' and 'e\u0301' differ in spelling only",
        ),
        (
            {"who": ["a\u200b", "a", "b"] * 20},
            {"document": "who"},
            "differ in spelling only; write one",
        ),
        ({"y": np.arange(60)}, {"label": "y"}, "the label 'y' has 60 values in 60 rows; allowed: classes"),
        ({"y": [f"x{i}" for i in range(60)]}, {"label": "y"}, "the label 'y' has 60 values in 60 rows"),
        (
            {"who": np.arange(60) // 6, "joy": np.arange(60) // 7},
            {"user": "who", "numbers": ("joy",)},
            "the user '1' has 2 numbers in 'joy'; allowed: one",
        ),
    ],
)
def test_columns_that_are_not_what_they_are_named_are_refused(tmp_path, columns, options, message):
    rows = {"text": [f"text {i}" for i in range(60)], "s": ["a", "b"] * 30} | columns
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(RequestError, match=re.escape(message)):
        Table(path=FileName(tmp_path / "a.csv"), secrets=("s",), **options).load()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("born", "has 60 values, most of them dates, as 1990-01-01"),
        ("topics", "has lists of values, as ['a', 'b']"),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_dates_and_lists_are_no_classes(tmp_path, suffix, column, message):
    rows = pd.DataFrame({"born": pd.date_range("1990", periods=60), "topics": [["a", "b"], ["a"]] * 30})
    rows["gender"] = list("fm") * 30
    path = tmp_path / f"rows.{suffix}"
    rows.to_csv(path, index=False) if suffix == "csv" else rows.to_parquet(path)
    for role, options in {"secret": {"secrets": (column,)}, "label": {"secrets": ("gender",), "label": column}}.items():
        with pytest.raises(RequestError) as caught:
            Table(path=FileName(path), text=None, **options).load()
        assert str(caught.value).startswith(f"{path}: the {role} {column!r} {message}; ")
