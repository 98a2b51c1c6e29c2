"""All formats give the same vectors, and rows without a vector are refused with file and row."""

import io
import json
import zipfile
import zlib

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from loading import refused

from leakboard.data.readers import memory
from leakboard.data.readers.vectors import column_names, read_vectors
from leakboard.errors import RequestError

VECTORS = np.random.default_rng(0).standard_normal((7, 12)).astype(np.float32)
IDS = [f"key {i}" for i in range(7)]


def lists(vectors=VECTORS, name="vector"):
    return [{"id": i, "text": "words", name: row.tolist()} for i, row in zip(IDS, vectors, strict=True)]


def columns(vectors=VECTORS, prefix="e"):
    """Return rows with one column for each dimension, in another order than their numbers."""
    order = np.random.default_rng(1).permutation(vectors.shape[1])
    return [
        {"id": i, "age": 40, **{f"{prefix}{d}": float(row[d]) for d in order}}
        for i, row in zip(IDS, vectors, strict=True)
    ]


def write(path, rows):
    if path.suffix == ".jsonl":
        path.write_text("\n\n".join(map(json.dumps, rows)) + "\n")
    elif path.suffix in (".csv", ".tsv"):
        plain = [{k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
        pd.DataFrame(plain).to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(pyarrow.Table.from_pylist(rows), path)
    else:
        table = pyarrow.Table.from_pylist(rows)
        with pyarrow.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table, max_chunksize=2)
    return path


TABLES = ["a.jsonl", "a.csv", "A.TSV", "a.parquet", "a.feather", "a.arrow"]


@pytest.mark.parametrize("rows", [lists(), columns(), columns(prefix="dim_")], ids=["lists", "columns", "dim_"])
@pytest.mark.parametrize("name", TABLES)
def test_every_format_and_spelling_gives_the_same_vectors(tmp_path, name, rows):
    ids, vectors = read_vectors(write(tmp_path / name.lower(), rows))
    assert list(ids) == IDS
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, VECTORS)


def test_arrays_with_and_without_ids(tmp_path):
    np.save(tmp_path / "a.npy", VECTORS)
    np.savez(tmp_path / "a.npz", id=IDS, anything=VECTORS, key=IDS[::-1])
    assert read_vectors(tmp_path / "a.npy")[0] is None
    ids, vectors = read_vectors(tmp_path / "a.npz", "anything")
    assert ids == IDS
    np.testing.assert_array_equal(vectors, VECTORS)
    assert read_vectors(tmp_path / "a.npz", "anything", "key")[0] == IDS[::-1]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.arrow"])
def test_names_with_dots_are_looked_up_in_nested_objects(tmp_path, name):
    rows = [{"point": {"key": row["id"]}, "data": {"vector": row["vector"], "other": [1.0]}} for row in lists()]
    ids, vectors = read_vectors(write(tmp_path / name, rows), "data.vector", "point.key")
    assert list(ids) == IDS
    np.testing.assert_array_equal(vectors, VECTORS)


@pytest.mark.parametrize("name", TABLES)
def test_a_prefix_chooses_among_families(tmp_path, name):
    rows = [a | {"m1": 1.0, "m2": 2.0} for a in columns()]
    path = write(tmp_path / name.lower(), rows)
    np.testing.assert_array_equal(read_vectors(path, "e")[1], VECTORS)
    assert read_vectors(path, "m")[1].tolist() == [[1.0, 2.0]] * 7
    with pytest.raises(RequestError, match=r"several columns may hold vectors: (e, m|m, e); name one by `column`$"):
        read_vectors(path)


@pytest.mark.parametrize("name", ["a.npy", *TABLES])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_row_of_a_number_that_is_not_finite_is_named(tmp_path, name, value):
    broken = VECTORS.copy()
    broken[[4, 6], 3] = value
    path = tmp_path / name.lower()
    if name == "a.npy":
        np.save(path, broken)
    else:
        write(path, lists(broken))
    with pytest.raises(
        RequestError, match=r"2 of 7 vectors hold NaN, infinity or numbers beyond float32; the first is row 5$"
    ) as caught:
        read_vectors(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", TABLES)
def test_a_vector_of_another_width_is_named(tmp_path, name):
    rows = lists()
    rows[3]["vector"] = rows[3]["vector"][:-1]
    with pytest.raises(RequestError, match=r"row 4 has a vector of 11 numbers, row 1 one of 12$"):
        read_vectors(write(tmp_path / name.lower(), rows))


REFUSED = {
    "words.csv": ("id,e0,e1\n1,0.5,1\n2,0.5,much\n", 'row 2: e1 holds "much"; allowed: numbers'),
    "text.csv": ('id,vector\n1,"[1, 2]"\n2,none\n', 'row 2: vector is "none"; allowed: a list of numbers'),
    "null.jsonl": ('{"v": [1, 2]}\n{"v": null}\n', "row 2: v is null; allowed: a list of numbers"),
    "missing.jsonl": ('{"v": [1, 2]}\n{"w": 1}\n', "row 2: v is missing"),
    "another.jsonl": ('{"v": [1, 2]}\n{"w": [1, 2]}\n', "several columns may hold vectors: v, w"),
    "late_id.jsonl": ('{"v": [1, 2]}\n{"v": [1, 2], "id": 3}\n', "row 1: id is missing"),
    "late.jsonl": (
        '{"v": null, "tags": [1]}\n{"v": [1, 2], "tags": [1]}\n',
        "several columns may hold vectors: v, tags",
    ),
    "numpy.csv": ("v,tags\n[.5 .25],[1]\n", "several columns may hold vectors: v, tags"),
    "point.csv": ('v\n"[.5, 1]"\n', 'row 1: v is "[.5, 1]"; allowed: a list of numbers'),
    "inside.jsonl": ('{"v": [1, 2]}\n{"v": [1, null]}\n', "row 2: v holds null; allowed: numbers"),
    "empty.jsonl": ('{"v": [1, 2]}\n{"v": []}\n', "row 2: v is []; allowed: a list of numbers"),
    "json.jsonl": ('{"v": [1, 2]}\n{"v": \n', "row 2: not JSON"),
    "first.jsonl": ("[1, 2]\n", "row 1: a JSON list, not an object"),
    "nothing.jsonl": ("", "no rows"),
    "header.csv": ("id,e0,e1\n", "no rows"),
    "none.csv": ("id,text\n1,words\n", "no column holds vectors (there are text)"),
    "large.jsonl": (f'{{"v": [1, 2]}}\n{{"v": [1, 1{"0" * 400}]}}\n', "row 2: v holds 1000"),
    "bad.npy": ("no array", "cannot be read (no array of numbers)"),
    "bad.npz": ("no array", "cannot be read (no array of numbers)"),
    "v.txt": ("1 2 3\n", "unknown format '.txt' (allowed: .npy, .npz, .parquet, .arrow, "),
    "bad.arrow": ("no Arrow file", "cannot be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_with_a_row_without_a_vector_is_refused_in_one_line(tmp_path, name):
    content, reason = REFUSED[name]
    (tmp_path / name).write_text(content)
    message = refused(lambda: read_vectors(tmp_path / name))
    assert message.startswith(f"{tmp_path / name}: ")
    assert reason in message


def test_ids_that_are_python_objects_are_refused_with_advice(tmp_path):
    np.savez(tmp_path / "v.npz", vectors=np.eye(3), id=np.array(["a", "b", "c"], dtype=object))
    message = refused(lambda: read_vectors(tmp_path / "v.npz", id="id"))
    assert "an array holds Python objects; allowed: numbers, and text for ids" in message


def test_a_parquet_file_without_rows_is_refused_in_one_line(tmp_path):
    pd.DataFrame({"e0": np.zeros(0), "e1": np.zeros(0)}).to_parquet(tmp_path / "none.parquet")
    assert refused(lambda: read_vectors(tmp_path / "none.parquet")) == f"{tmp_path}/none.parquet: no rows"


@pytest.mark.parametrize("name", ["a.npy", "a.npz", *TABLES])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(RequestError, match=r"no such file$"):
        read_vectors(tmp_path / name.lower())


NO_NUMBER = {"empty": "", "null": None, "text": "none", "truth": True, "list": [1.0]}


@pytest.mark.parametrize("place", ["row 1", "all rows"])
@pytest.mark.parametrize("value", NO_NUMBER.values(), ids=NO_NUMBER)
@pytest.mark.parametrize("name", TABLES)
def test_a_dimension_without_a_number_is_named_and_never_left_out(tmp_path, name, value, place):
    rows = columns()
    if name.endswith(("parquet", "feather", "arrow")) and value is not None:
        place = "all rows"  # the columns of these formats have one type
    for row in rows[: 1 if place == "row 1" else None]:
        row["e3"] = value
    message = refused(lambda: read_vectors(write(tmp_path / name.lower(), rows)))
    assert "e3" in message or "vectors hold NaN, infinity or numbers beyond float32; the first is row 1" in message


def test_a_dimension_that_the_first_object_lacks_is_named(tmp_path):
    rows = columns()
    del rows[0]["e3"]
    with pytest.raises(RequestError, match=r"row 1: e3 is missing"):
        read_vectors(write(tmp_path / "a.jsonl", rows))


@pytest.mark.parametrize("spelling", [".5", "+1.5", "-.5e1", "1.", "0005", "1e3", " 2"])
def test_a_number_counts_however_it_is_spelt(tmp_path, spelling):
    (tmp_path / "a.csv").write_text(f"e0,e1,e2\n1,{spelling},2\n3,4,5\n")
    assert read_vectors(tmp_path / "a.csv")[1].tolist() == [[1, float(spelling), 2], [3, 4, 5]]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("others", "after"), [({"e2019": 1.0}, "e2019 comes after 11"), ({"e01": 1.0}, "e1 comes after")]
)
def test_numbers_of_dimensions_with_a_gap_or_twice_are_refused(tmp_path, name, others, after):
    rows = [row | others for row in columns()]
    message = refused(lambda: read_vectors(write(tmp_path / name.lower(), rows), "e"))
    assert "have no consecutive numbers" in message
    assert after in message or "e01 comes after 1" in message


def test_a_lost_dimension_is_named(tmp_path):
    rows = [{name: value for name, value in row.items() if name != "e5"} for row in columns()]
    message = refused(lambda: read_vectors(write(tmp_path / "a.csv", rows)))
    assert "the dimensions e0 to e11 have no consecutive numbers: e6 comes after 4" in message


@pytest.mark.parametrize("name", ["# e0", "E0", " e0", "e0 ", "e0;"])
def test_a_dimension_of_another_spelling_is_named(tmp_path, name):
    rows = [{name if key == "e0" else key: value for key, value in row.items()} for row in columns()]
    message = refused(lambda: read_vectors(write(tmp_path / "a.csv", rows)))
    assert f"is {name!r} one of the dimensions e1 to e11? rename it" in message


def test_a_dimension_within_the_others_of_another_spelling_is_named(tmp_path):
    rows = [{" e5" if key == "e5" else key: value for key, value in row.items()} for row in columns()]
    message = refused(lambda: read_vectors(write(tmp_path / "a.csv", rows)))
    assert "is ' e5' one of the dimensions e0 to e11? rename it" in message


@pytest.mark.parametrize("before", ["", "key 0,"])
def test_a_missing_header_is_named(tmp_path, before):
    (tmp_path / "a.csv").write_text("".join(f"{before}0.126,-0.132,0.6404e-2,{i}.1049\n" for i in range(5)))
    assert "a.csv: no header: the columns are named " in refused(lambda: read_vectors(tmp_path / "a.csv"))


def test_short_decimals_are_names(tmp_path):
    (tmp_path / "a.csv").write_text("0.1,0.2,0.3\n1,2,3\n")
    assert read_vectors(tmp_path / "a.csv")[1].tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ";"), ("a.csv", "\t"), ("a.csv", "|"), ("a.tsv", ",")])
def test_another_separator_is_named(tmp_path, name, separator):
    pd.DataFrame(VECTORS).add_prefix("e").to_csv(tmp_path / name, index=False, sep=separator)
    assert refused(lambda: read_vectors(tmp_path / name)).endswith(f"; they are separated by {separator!r}")


def test_a_second_array_in_a_file_is_refused(tmp_path):
    with (tmp_path / "a.npy").open("wb") as file:
        np.save(file, VECTORS)
        np.save(file, VECTORS)
    assert "more follows its array of shape (7, 12)" in refused(lambda: read_vectors(tmp_path / "a.npy"))


def test_an_npy_file_of_another_name_is_named(tmp_path):
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, VECTORS)
    assert refused(lambda: read_vectors(tmp_path / "a.npz")).endswith("a.npz: an npy file; name it .npy")
    assert column_names(tmp_path / "a.npz") == ()


def test_an_array_that_is_in_a_file_twice_is_refused(tmp_path):
    for name in ("v", "w"):
        np.save(tmp_path / f"{name}.npy", VECTORS)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.write(tmp_path / "v.npy", "v.npy")
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.write(tmp_path / "w.npy", "v.npy")
    assert "two of its arrays have one name" in refused(lambda: read_vectors(tmp_path / "a.npz"))


def test_decimals_are_numbers(tmp_path):
    decimals = pyarrow.array([1, 2], pyarrow.decimal128(5, 1))
    table = pyarrow.table({"e0": [0.5, 1.5], "e1": decimals, "v": pyarrow.ListArray.from_arrays([0, 1, 2], decimals)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert read_vectors(tmp_path / "a.parquet", "e")[1].tolist() == [[0.5, 1], [1.5, 2]]
    assert read_vectors(tmp_path / "a.parquet", "v")[1].tolist() == [[1], [2]]


def test_names_with_numbers_that_are_mostly_text_are_no_vector(tmp_path):
    (tmp_path / "a.csv").write_text("line1,line2,line3,e0,e1\na,b,5,1,2\n")
    assert read_vectors(tmp_path / "a.csv")[1].tolist() == [[1, 2]]


def test_arrays_without_a_clear_column_or_without_dimensions_are_refused(tmp_path):
    np.savez(tmp_path / "two.npz", v=VECTORS, w=VECTORS)
    with pytest.raises(RequestError, match=r"several columns may hold vectors: v, w; name one by `column`$"):
        read_vectors(tmp_path / "two.npz")
    np.savez(tmp_path / "none.npz", id=IDS)
    with pytest.raises(RequestError, match=r"no column holds vectors$"):
        read_vectors(tmp_path / "none.npz")
    np.save(tmp_path / "flat.npy", np.empty((5, 0), np.float32))
    with pytest.raises(RequestError, match=r"array of shape \(5, 0\); allowed: numbers of shape \(rows, d\), d from 1"):
        read_vectors(tmp_path / "flat.npy")
    (tmp_path / "none.npz").rename(tmp_path / "archive.npy")
    with pytest.raises(RequestError, match=r"archive\.npy: cannot be read \(no array of numbers\)$"):
        read_vectors(tmp_path / "archive.npy")
    np.save(tmp_path / "objects.npy", np.array([[1, "a"], [2, None]], object), allow_pickle=True)
    with pytest.raises(RequestError, match=r"objects\.npy: cannot be read \(no array of numbers\)$"):
        read_vectors(tmp_path / "objects.npy")


def test_a_missing_column_is_named_with_the_nearest_name(tmp_path):
    path = write(tmp_path / "a.jsonl", lists())
    with pytest.raises(RequestError, match=r"column 'vectr' is not one of text, vector; did you mean 'vector'\?"):
        read_vectors(path, "vectr")
    with pytest.raises(RequestError, match="column 'text' holds no vectors; allowed: a list of numbers"):
        read_vectors(path, "text")
    with pytest.raises(RequestError, match=r"id 'key' is not one of id, text, vector"):
        read_vectors(path, id="key")


def test_ids_of_another_number_than_the_vectors_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", id=IDS[:5], v=VECTORS)
    with pytest.raises(RequestError, match="5 ids of 7 vectors"):
        read_vectors(tmp_path / "a.npz")


def header(*shape):
    """Return the first bytes of an npy file of float32."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return content.getvalue()


def zip_bomb(path, rows):
    """Write an npz whose array ``v`` expands to ``rows`` MiB of zeros, without expanding it, and return its path."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    shape = rows, 2**18
    first = deflate.compress(header(*shape)) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(bytes(2**20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("v.npy", first + rows * block + deflate.flush())
        (entry,) = archive.infolist()
        entry.compress_type, entry.file_size = zipfile.ZIP_DEFLATED, len(header(*shape)) + rows * 2**20
    return path


@pytest.fixture
def nothing_expanded(monkeypatch):
    """Fail where a member of a zip is read."""

    def read(*_):
        raise AssertionError("expanded")

    monkeypatch.setattr(zipfile.ZipExtFile, "read", read)


def test_a_zip_bomb_is_refused_unread(tmp_path, nothing_expanded):
    path = zip_bomb(tmp_path / "v.npz", 4096)
    packed = rf"{(path.stat().st_size) / 2**20:.1f} MiB"
    message = rf"v\.npz: would expand to 4\.0 GiB; allowed: up to 1 GiB, or 500 times the {packed} in the file; uncompr"
    with pytest.raises(RequestError, match=message):
        read_vectors(path)


def test_arrays_larger_than_memory_are_refused_unread(tmp_path, monkeypatch, nothing_expanded):
    monkeypatch.setattr(memory, "free_memory", lambda: 2**29)
    np.savez(tmp_path / "small.npz", v=VECTORS)
    for path in (zip_bomb(tmp_path / "v.npz", 640), tmp_path / "v.npy"):
        if path.suffix == ".npy":
            with path.open("wb") as stream:
                stream.write(header(640, 2**18))
                stream.truncate(stream.tell() + 640 * 2**20)  # a hole, which takes no space on the disk
        with pytest.raises(
            RequestError, match=r"would expand to 0\.6 GiB; allowed: up to 0\.5 GiB, the memory that is"
        ):
            read_vectors(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_compressed_columns_larger_than_memory_are_refused(tmp_path, name, monkeypatch):
    path = write(tmp_path / name, [{"vector": [0.5] * 32}] * 4000)
    assert read_vectors(path)[1].shape == (4000, 32)
    monkeypatch.setattr("leakboard.data.readers.vectors.free_memory", lambda: 2**19)
    with pytest.raises(
        RequestError, match=r"would expand to 0\.0 GiB; allowed: up to 0\.0 GiB, the memory that is free"
    ):
        read_vectors(path)


def test_strongly_compressed_vectors_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "GIB", 2**16)
    vectors = np.random.default_rng(2).standard_normal((500, 64)).astype(np.float32)
    counts = (vectors > 2.3).astype(np.float32)
    for array in (vectors, counts):
        np.savez_compressed(tmp_path / "v.npz", id=np.arange(500), v=array)
        np.testing.assert_array_equal(read_vectors(tmp_path / "v.npz")[1], array)
    np.savez(tmp_path / "zeros.npz", np.zeros((500, 64)))
    assert not read_vectors(tmp_path / "zeros.npz")[1].any()


@pytest.mark.parametrize("name", ["v.npy", "v.npz"])
@pytest.mark.parametrize("rows", [1000, 10**12])
def test_a_header_that_claims_more_than_the_file_has_is_one_line(tmp_path, name, rows):
    content = header(rows, 100) + bytes(400)
    (tmp_path / name).write_bytes(content)
    if name == "v.npz":
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("v.npy", content)
    with pytest.raises(RequestError, match=r"^[^\n]*cannot be read \([^\n]*\)$"):
        read_vectors(tmp_path / name)


@pytest.mark.parametrize(
    "shape", [f"({10**30}, 4)", "(" * 9000 + ")" * 9000, "(-3, 4)", "(1000000000, 4)", f"(3, 1{'0' * 4999})"]
)
def test_a_header_that_lies_is_one_line(tmp_path, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)
    (tmp_path / "v.npy").write_bytes(content)
    with pytest.raises(RequestError, match=r"v\.npy: cannot be read \(") as caught:
        read_vectors(tmp_path / "v.npy")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("scale", "offset", "is_lost"), [(1, 1e8, True), (1e-300, 0, True), (1, 1e4, False), (0, 5, False)]
)
def test_digits_that_float32_loses_are_not_lost_in_silence(tmp_path, scale, offset, is_lost):
    vectors = offset + scale * np.random.default_rng(0).normal(size=(20, 3))
    np.save(tmp_path / "v.npy", vectors)
    if is_lost:
        with pytest.raises(RequestError, match=r"v\.npy: column 0: numbers from .* lose their digits as float32"):
            read_vectors(tmp_path / "v.npy")
    else:
        assert read_vectors(tmp_path / "v.npy")[1].dtype == np.float32
