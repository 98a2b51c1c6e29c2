"""Files are read through archives: intact ones, broken ones, and ones that name other folders."""

import bz2
import gzip
import lzma
import zipfile

import pytest

from leakboard.data.readers import memory
from leakboard.data.readers.archives import members, open_bytes, read_members
from leakboard.errors import RequestError

TEXT = "one\ntwo ä\n"


def zipped(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return path


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_a_file_and_its_compressed_forms_have_the_same_content(tmp_path, suffix, pack):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(pack(TEXT.encode()))
    with open_bytes(path) as stream:
        assert stream.read().decode() == TEXT


def test_a_member_of_a_zip(tmp_path):
    path = zipped(tmp_path / "a.zip", a__b="first", c=TEXT)
    with open_bytes(path, "c") as stream:
        assert stream.read().decode() == TEXT
    assert members(path, "b") == ["a/b"]
    with open_bytes(zipped(tmp_path / "b.zip", only=TEXT)) as stream:
        assert stream.read().decode() == TEXT
    with pytest.raises(RequestError, match=r"a\.zip: no file '' in it \(there are: a/b, c\)"), open_bytes(path):
        pass
    with pytest.raises(RequestError, match=r"no file in it ends in \.xml"):
        members(path, ".xml")


def test_a_member_that_names_another_folder_is_read_and_never_written(tmp_path):
    path = tmp_path / "inner" / "a.zip"
    path.parent.mkdir()
    zipped(path, **{"..__evil.txt": TEXT, "__evil.txt": TEXT})
    before = sorted(tmp_path.rglob("*"))
    for name in members(path, ".txt"):
        with open_bytes(path, name) as stream:
            assert stream.read().decode() == TEXT
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("suffix", [".zip", ".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_truncated_archive_is_one_clear_line(tmp_path, suffix, share):
    content = "".join(f"line {i * 7919 % 1009}\n" for i in range(5000)).encode()
    path = tmp_path / f"a.txt{suffix}"
    if suffix == ".zip":
        zipped(path, **{"a.txt": content})
    else:
        path.write_bytes({".gz": gzip, ".bz2": bz2, ".xz": lzma}[suffix].compress(content))
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    if share == 0 and suffix == ".gz":
        pytest.skip("an empty gzip file is a valid one without content")
    with pytest.raises(RequestError) as caught, open_bytes(path) as stream:
        stream.read()
    assert str(caught.value).startswith(f"{path}: truncated or damaged")
    assert "\n" not in str(caught.value)


def test_a_damaged_zip_and_a_missing_file(tmp_path):
    path = zipped(tmp_path / "a.zip", a=TEXT * 100)
    content = bytearray(path.read_bytes())
    content[40] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(RequestError, match="truncated or damaged"), open_bytes(path) as stream:
        stream.read()
    with pytest.raises(RequestError, match="no such file"), open_bytes(tmp_path / "b.txt"):
        pass


def test_an_encrypted_zip_is_refused(tmp_path):
    path = zipped(tmp_path / "a.zip", a=TEXT)
    content = bytearray(path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags] |= 1
    path.write_bytes(content)
    with pytest.raises(RequestError, match=r"a\.zip: encrypted"), open_bytes(path):
        pass
    with pytest.raises(RequestError, match=r"a\.zip: encrypted"):
        list(read_members(path, ""))


def test_members_of_a_folder_and_of_a_zip_are_the_same(tmp_path):
    (tmp_path / "tree/sub").mkdir(parents=True)
    for name, content in {"b.txt": b"2", "sub/a.txt": b"1", ".hidden.txt": b"x", "c.xml": b"3"}.items():
        (tmp_path / "tree" / name).write_bytes(content)
    with zipfile.ZipFile(tmp_path / "tree.zip", "w") as archive:
        for file in (tmp_path / "tree").rglob("*.*"):
            archive.write(file, file.relative_to(tmp_path / "tree").as_posix())
    expected = [("b.txt", b"2"), ("sub/a.txt", b"1")]
    assert (
        list(read_members(tmp_path / "tree", ".txt")) == list(read_members(tmp_path / "tree.zip", ".txt")) == expected
    )
    for name, reason in (("tree.zip", r"no file in it ends in \.csv"), ("missing.zip", "damaged")):
        with pytest.raises(RequestError, match=reason):
            list(read_members(tmp_path / name, ".csv"))


def test_a_zip_larger_than_memory_is_refused_unread(tmp_path, monkeypatch):
    path = zipped(tmp_path / "a.zip", **{"a.txt": TEXT * 1000})
    monkeypatch.setattr(memory, "free_memory", lambda: 5000)
    monkeypatch.setattr(zipfile.ZipExtFile, "read", None)
    message = r"a\.zip: would expand to 0\.0 GiB; allowed: up to 0\.0 GiB, the memory that is free"
    with pytest.raises(RequestError, match=message), open_bytes(path):
        pass
    with pytest.raises(RequestError, match=message):
        list(read_members(path, ".txt"))
