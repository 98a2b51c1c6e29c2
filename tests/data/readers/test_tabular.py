"""All formats give the same rows, and a bad file is refused in one line with file, row and reason."""

import json
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from loading import refused

from leakboard.data.readers import tabular
from leakboard.data.readers.tabular import clean_category, clean_id, clean_text, expand, read_lines, read_rows
from leakboard.errors import RequestError

ROWS = [
    {"text": "The soup was cold, sadly.", "label": "1"},
    {"text": 'He said "never again"\nand left.', "label": "0"},
    {"text": "Sehr schön — très bien\ttabbed", "label": "1"},
]


def clean(row):
    return {"text": clean_text(row["text"], "text"), "label": clean_category(row["label"], "label")}


def read(path, on_bad_rows="error"):
    return read_rows(str(path), ("text", "label"), clean, on_bad_rows)


def write(path, rows):
    frame = pd.DataFrame(rows)
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix.lower() == ".tsv" else ",")
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "A.TSV", "a.jsonl", "a.parquet"])
def test_every_format_gives_the_same_rows(tmp_path, name):
    result = read(write(tmp_path / name, ROWS))
    assert result.rows == ROWS
    assert result.numbers == [0, 1, 2]
    assert result.dropped == 0


def test_numbers_and_truth_values_become_class_names(tmp_path):
    rows = [{"text": "one", "label": 1}, {"text": "two", "label": 2}]
    for name in ("a.jsonl", "a.parquet", "a.csv"):
        assert [row["label"] for row in read(write(tmp_path / name, rows)).rows] == ["1", "2"]
    assert clean_category(True, "x") == "true"
    assert clean_category(3.0, "x") == "3"
    assert clean_category(" cats ", "x") == "cats"
    assert clean_category("1.0", "x") == clean_category("1", "x") == "1"
    assert [clean_category(name, "x") for name in ("1.5", "1.0.0", "v1.0", "1.", "-2.00")] == [
        "1.5",
        "1.0.0",
        "v1.0",
        "1.",
        "-2",
    ]


@pytest.mark.parametrize("name", ["NA", "n/a", "None", "NULL", "<NA>", "NaT", " nan "])
def test_the_names_of_a_missing_value_are_no_classes(name):
    with pytest.raises(ValueError, match="names a missing value; a class needs another name"):
        clean_category(name, "gender")
    assert clean_id(name, "id") == name.strip()


def test_ids_of_every_usual_type_become_text():
    uuid = UUID("f2345678-1234-5678-1234-567812345678")  # its bytes are no UTF-8
    given = [uuid, uuid.bytes, Decimal("12"), Decimal("3.0"), b"a1", b"\xff\x00", 2**70, date(2024, 2, 1), True]
    names = [str(uuid), str(uuid), "12", "3", "a1", "ff00", str(2**70), "2024-02-01", "true"]
    assert [clean_id(value, "id") for value in given] == names


@pytest.mark.parametrize(
    "form", [datetime(2024, 2, 1), "2024-02-01 00:00", "2024-02-01T00:00:00", "2024-02-01 00:00:00.0"]
)
def test_a_date_with_midnight_is_the_date(form):
    assert clean_id(form, "day") == "2024-02-01"
    assert clean_id("2024-02-01 00:01:00", "day") == "2024-02-01 00:01:00"


@pytest.mark.parametrize("value", [Decimal("1.5"), Decimal("NaN"), 0.5, float("inf"), None, [1], {}])
def test_other_values_are_no_ids(value):
    with pytest.raises(ValueError, match=r"^id "):
        clean_id(value, "id")


def test_a_byte_order_mark_is_not_part_of_the_first_column(tmp_path):
    for name, content in (("a.csv", "text,label\nx,1\n"), ("a.jsonl", '{"text": "x", "label": 1}\n')):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content.encode())
        assert read(tmp_path / name).rows == [{"text": "x", "label": "1"}]


def test_a_glob_reads_its_files_in_order_and_counts_rows_over_all(tmp_path):
    write(tmp_path / "part2.csv", ROWS[1:])
    write(tmp_path / "part1.jsonl", ROWS[:1])
    assert [path.name for path in expand(str(tmp_path / "part*"))] == ["part1.jsonl", "part2.csv"]
    result = read(tmp_path / "part*")
    assert result.rows == ROWS
    assert result.numbers == [0, 1, 2]


BAD = {
    "missing_text.jsonl": (b'{"label": 1}\n', "row 1: text is missing"),
    "null_text.jsonl": (b'{"text": null, "label": 1}\n', "row 1: text is missing"),
    "misspelt_key.jsonl": (b'{"text": "x", "labels": 1}\n', "row 1: label is missing; did you mean 'labels'?"),
    "missing_label.csv": (b"text,label\nx,1\ny,\n", "row 2: label is empty"),
    "blank_text.csv": (b"text,label\n   ,1\n", "row 1: text is empty"),
    "wrong_type.jsonl": (b'{"text": 7, "label": 1}\n', "row 1: text is int, not text"),
    "list_label.jsonl": (b'{"text": "x", "label": [1]}\n', "row 1: label is list, not text"),
    "fraction_label.jsonl": (
        b'{"text": "x", "label": 0.5}\n',
        "row 1: label is 0.5; allowed: text, a whole number or a truth value",
    ),
    "nan_label.jsonl": (
        b'{"text": "x", "label": NaN}\n',
        "row 1: label is nan; allowed: text, a whole number or a truth value",
    ),
    "twice.jsonl": (b'{"text": "x", "label": 1, "label": 2}\n', "row 1: not JSON ('label' is given twice)"),
    "nan_label.csv": (b"text,label\nx,NaN\n", "row 1: label is 'NaN', which names a missing value"),
    "gzip.csv": (b"\x1f\x8b\x08\x00", "is compressed by gzip, not CSV in UTF-8"),
    "sheet.csv": (b"PK\x03\x04rest", "is a zip archive, as xlsx files are, not CSV in UTF-8"),
    "utf16.csv": ("text,label\nx,1\n".encode("utf-16"), "is text in UTF-16, not CSV in UTF-8"),
    "latin1.csv": (b"text,label\nfine,1\nna\xefve,1\n", "row 2: text has bytes that are not UTF-8"),
    "latin1.jsonl": (b'{"text": "na\xefve", "label": 1}\n', "row 1: text has bytes that are not UTF-8"),
    "lone_surrogate.jsonl": (b'{"text": "\\ud800", "label": 1}\n', "row 1: text has bytes that are not UTF-8"),
    "too_many.csv": (b"text,label\nwell, almost,1\n", "row 1: 1 fields too many"),
    "too_few.csv": (b"text,label\nx,1\ny\n", "row 2: too few fields"),
    "too_few_behind.csv": (b"text,label,extra\nx 1,0\n", "row 1: too few fields"),
    "quotes.csv": (b'text,label\n"never closed,1\n', "line 2: unexpected end of data"),
    "quotes_inside.csv": (b'text,label\n"a"b,1\n', "line 2: "),
    "not_json.jsonl": (b'{"text": "x", "label": 1}\n{"text": \n', "row 2: not JSON"),
    "deep.jsonl": (b"[" * 100_000 + b"\n", "row 1: not JSON"),
    "not_object.jsonl": (b'["x", 1]\n', "row 1: a JSON list, not an object"),
    "notes.docx": (
        b"text,label\nx,1\n",
        "unknown format '.docx' (allowed: .csv, .tsv, .parquet, .arrow, .feather, .jsonl)",
    ),
    "column.csv": (b"text,labels\nx,1\n", "no column 'label' (there are: text, labels); did you mean 'labels'?"),
    "separator.csv": (b"text;label\nx;1\n", "no column 'text' (there are: text;label); they are separated by ';'"),
    "twice.csv": (b"text,label,text\nx,1,y\n", "2 columns are named 'text'"),
    "empty.csv": (b"", "empty, no column names"),
    "header_only.csv": (b"text,label\n", "no usable rows"),
    "empty.jsonl": (b"", "no usable rows"),
    "empty.parquet": (b"", "not a readable Parquet file"),
    "text.parquet": (b"text,label\nx,1\n", "not a readable Parquet file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_line(tmp_path, name):
    content, reason = BAD[name]
    (tmp_path / name).write_bytes(content)
    message = refused(lambda: read(tmp_path / name))
    assert reason in message
    assert str(tmp_path / name) in message


def test_a_truncated_parquet_file_is_refused(tmp_path):
    whole = write(tmp_path / "a.parquet", ROWS * 50).read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RequestError, match="not a readable Parquet file"):
        read(tmp_path / "a.parquet")


def test_undecodable_bytes_in_parquet_are_a_bad_row(tmp_path):
    texts = pyarrow.array([b"fine", b"na\xefve", b"good"]).view(pyarrow.utf8())
    table = pyarrow.table({"text": texts, "label": pyarrow.array([0, 1, 0])})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    with pytest.raises(RequestError, match="row 2: bytes that are not UTF-8"):
        read(tmp_path / "a.parquet")
    result = read(tmp_path / "a.parquet", "drop")
    assert (result.numbers, result.dropped) == ([0, 2], 1)


def test_a_missing_file_is_named(tmp_path):
    for pattern in ("none.csv", "none*.csv"):
        with pytest.raises(RequestError, match="no such file"):
            read(tmp_path / pattern)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(RequestError, match=r"folder.csv: a folder; allowed"):
        read(tmp_path / "folder.csv")


def test_many_bad_rows_are_counted_and_the_first_three_shown(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\n" + "x,\n" * 5 + "x,1\n")
    with pytest.raises(RequestError, match=r"5 bad rows \(row 1: .*; row 2: .*; row 3: .*; and 2 more\)"):
        read(tmp_path / "a.csv")


def test_dropped_rows_are_counted_and_leave_gaps_in_the_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nx,1\n,1\ny,0\nz\n")
    (tmp_path / "b.csv").write_text("text,label\na,b,c\nw,1\n")
    result = read(tmp_path / "*.csv", "drop")
    assert [row["text"] for row in result.rows] == ["x", "y", "w"]
    assert result.numbers == [0, 2, 5]
    assert result.dropped == 3


def unpaired(delimiter, rows):
    """Return rows: a field of the first begins with a quote, and a field of the last ends with one."""
    lines = [f"{row}{delimiter}text {row}" for row in range(rows)]
    lines[0], lines[-1] = f'0{delimiter}"text', lines[-1] + '"'
    return "\n".join([f"id{delimiter}text", *lines, ""])


@pytest.mark.parametrize(("name", "delimiter", "rows"), [("a.tsv", "\t", 2), ("a.tsv", "\t", 20), ("a.csv", ",", 20)])
def test_two_unpaired_quotes_join_no_rows_in_silence(tmp_path, name, delimiter, rows):
    (tmp_path / name).write_text(
        f"id{delimiter}text\n7{delimiter}first\n" + unpaired(delimiter, rows).partition("\n")[2]
    )
    with pytest.raises(RequestError, match=rf"lines 3 to {rows + 2} are one row, since a quote opens a field"):
        read_rows(str(tmp_path / name), ["text"], dict, "drop")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", '0\t"two\nlines"\n'),
        ("a.tsv", '0\t"one\ttab, and\na second line"\n'),
        ("a.csv", '0,"one\nsecond, line"\n'),
        ("a.csv", '0,"' + "a verse\n" * 30 + '"\n'),
    ],
)
def test_quoted_line_breaks_stay_in_their_text(tmp_path, name, content):
    (tmp_path / name).write_text(("id\ttext\n" if name == "a.tsv" else "id,text\n") + content)
    assert read_rows(str(tmp_path / name), ["text"], dict, "error").rows == [{"id": "0", "text": content[3:-2]}]


class TestGlobs:
    def written(self, path, text):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(f"text\n{text}\n")
        return str(path)

    def texts(self, pattern):
        return [row["text"] for row in read_rows(str(pattern), ["text"], dict, "error").rows]

    @pytest.mark.parametrize("path", ["/", "."])
    def test_a_folder_is_no_file(self, path):
        with pytest.raises(RequestError, match=r": a folder; allowed: a file, or a glob of files"):
            self.texts(path)

    def test_a_path_that_exists_is_no_glob(self, tmp_path):
        self.written(tmp_path / "exp1" / "a.csv", "wrong")
        right = self.written(tmp_path / "exp[1]" / "a.csv", "right")
        assert self.texts(right) == ["right"]
        self.written(tmp_path / "a1.csv", "wrong")
        assert self.texts(self.written(tmp_path / "a[1].csv", "right")) == ["right"]

    def test_a_folder_that_exists_is_no_glob(self, tmp_path):
        self.written(tmp_path / "exp1" / "a.csv", "wrong")
        for name in ("b", "a"):
            self.written(tmp_path / "exp[1]" / f"{name}.csv", name)
        assert self.texts(tmp_path / "exp[1]" / "*.csv") == ["a", "b"]

    def test_a_pattern_of_folders_is_a_glob(self, tmp_path):
        for name in ("1", "2", "12"):
            self.written(tmp_path / f"exp{name}" / "deep" / "a.csv", name)
        assert self.texts(tmp_path / "exp[12]" / "**" / "*") == ["1", "2"]
        with pytest.raises(RequestError, match=r"exp\[3\].*no such file$"):
            expand(str(tmp_path / "exp[3]" / "a.csv"))

    def test_a_glob_of_very_many_files_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tabular, "MAX_FILES", 3)
        for number in range(4):
            self.written(tmp_path / f"{number}.csv", "x")
        with pytest.raises(RequestError, match="matches more than 3 files and folders"):
            expand(str(tmp_path / "*"))


def test_another_delimiter(tmp_path):
    (tmp_path / "a.csv").write_text('text;label\n"one; two";1\nthree, four;0\n')
    result = read_rows(str(tmp_path / "a.csv"), ("text", "label"), dict, "error", delimiter=";")
    assert result.rows == [{"text": "one; two", "label": "1"}, {"text": "three, four", "label": "0"}]


def test_lines_end_only_at_line_breaks(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\u2028half\x0bmore\r\ntwo\nthree".encode())
    result = read_lines(path, lambda line: {"text": line}, "error")
    assert [row["text"] for row in result.rows] == ["one\u2028half\x0bmore", "two", "three"]
    assert result.numbers == [0, 1, 2]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_dates_beyond_the_year_9999_are_text(tmp_path, suffix):
    far = pyarrow.array([253402300800 * 1000, 0], pyarrow.timestamp("ms"))
    table = pyarrow.table({"when": far, "day": pyarrow.array([3_000_000, 0], pyarrow.date32())})
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    rows = read_rows(str(path), ["when", "day"], dict, "error").rows
    assert rows[0] == {"when": "10000-01-01 00:00:00.000", "day": "10183-09-21"}
    assert clean_category(rows[1]["day"], "day") == "1970-01-01"
