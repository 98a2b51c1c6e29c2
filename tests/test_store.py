"""An artefact is complete or absent, and damaged bytes are never used."""

import errno
import json
import os
import resource
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from leakboard import disk, store
from leakboard.errors import RequestError, StorageError
from leakboard.store import Store, digest, folder_name, write_file
from leakboard.workspace import resumable, resume_dir

KEY = digest({"name": "x"})


class Maker:
    """Writes an artefact of two files, and counts the calls."""

    def __init__(self):
        self.calls, self.reports = 0, []

    def __call__(self, folder):
        self.calls += 1
        (folder / "inner").mkdir()
        (folder / "inner" / "data.bin").write_bytes(bytes(range(200)))
        (folder / "about.txt").write_text("about")


@pytest.fixture
def maker():
    return Maker()


@pytest.fixture
def obtain(tmp_path, maker):
    """Obtain the artefact from a store under the test's folder."""

    def call(make=maker, key=KEY):
        return Store(tmp_path / "store").obtain("things", "a thing", key, make, maker.reports.append)

    return call


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_an_artefact_is_made_once(obtain, maker, tmp_path):
    path = obtain()
    assert path == tmp_path / "store" / "things" / f"a-thing-{KEY[:8]}"
    assert everything(path) == ["about.txt", "checksums.json", "inner", "inner/data.bin"]
    assert obtain() == path
    assert (maker.calls, maker.reports) == (1, [])
    assert Store(tmp_path / "store").has("things", "a thing", KEY)


def truncate(path):
    os.truncate(path / "inner" / "data.bin", 100)


def alter(path):
    content = bytearray((path / "inner" / "data.bin").read_bytes())
    content[77] ^= 1
    (path / "inner" / "data.bin").write_bytes(content)


def forge(path):
    sums = json.loads((path / "checksums.json").read_text())
    (path / "checksums.json").write_text(json.dumps(sums | {"key": digest({"name": "y"})}))


FAULTS = {
    "truncated": (truncate, "checksum mismatch in inner/data.bin"),
    "altered": (alter, "checksum mismatch in inner/data.bin"),
    "missing": (lambda path: (path / "about.txt").unlink(), "files are missing or added"),
    "added": (lambda path: (path / "more.txt").write_text("more"), "files are missing or added"),
    "no checksums": (lambda path: (path / "checksums.json").unlink(), "its checksums cannot be read"),
    "half the checksums": (lambda path: os.truncate(path / "checksums.json", 40), "its checksums cannot be read"),
    "another identity": (forge, "belongs to another identity"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_artefact_is_reported_and_made_again(fault, obtain, maker):
    damage, reason = FAULTS[fault]
    path = obtain()
    whole = {name: (path / name).read_bytes() for name in ("about.txt", "inner/data.bin")}
    sums = json.loads((path / "checksums.json").read_text())["files"]
    damage(path)
    assert obtain() == path
    assert maker.calls == 2
    assert maker.reports == [f"{path.name}: {reason}; computed again"]
    assert everything(path) == ["about.txt", "checksums.json", "inner", "inner/data.bin"]
    assert {name: (path / name).read_bytes() for name in whole} == whole
    assert json.loads((path / "checksums.json").read_text())["files"] == sums


def test_only_touched_files_are_read_again(obtain, maker, monkeypatch):
    path, read, checksum = obtain(), [], store._checksum
    monkeypatch.setattr(store, "_checksum", lambda path: read.append(path.name) or checksum(path))
    obtain()
    assert read == []
    os.utime(path / "about.txt", (0, 0))
    obtain()
    assert (read, maker.calls) == (["about.txt"], 1)


def test_an_artefact_without_times_of_change_is_read_again(obtain, maker):
    """Older stores did not record when files were written."""
    path = obtain()
    content = json.loads((path / "checksums.json").read_text())
    del content["stats"]
    (path / "checksums.json").write_text(json.dumps(content))
    assert (obtain(), maker.calls) == (path, 1)
    alter(path)
    assert (obtain(), maker.calls) == (path, 2)


@pytest.mark.parametrize("error", [ValueError("odd data"), FileNotFoundError(2, "No such file", "/data/weights.bin")])
def test_a_maker_that_raises_leaves_nothing(error, obtain, maker, tmp_path):
    def make(folder):
        maker(folder)
        raise error

    with pytest.raises(type(error)) as raised:
        obtain(make)
    assert raised.value is error  # no StorageError: only this artefact fails
    assert everything(tmp_path / "store" / "things") == []
    assert everything(obtain()) == ["about.txt", "checksums.json", "inner", "inner/data.bin"]


LIMIT = 2**14
"""Size of the largest file that `limited_files` allows (bytes)."""


def save_array(folder):
    np.save(folder / "array.npy", np.zeros(LIMIT))


def save_slightly_too_much(folder):
    """Write an array whose end is still in the C library's buffer when NumPy closes the file: NumPy sees no error."""
    np.save(folder / "array.npy", np.zeros(LIMIT - 96, np.uint8))  # after a header of 128 bytes


def save_text(folder):
    (folder / "text.txt").write_text("x" * 2 * LIMIT)


def keep_state(folder):
    """Write the state of unfinished work, which is also in the store."""
    with resumable(folder.parent.parent / "unfinished" / "x"):
        save_array(resume_dir())


def lock(folder):
    raise PermissionError(errno.EACCES, "Permission denied", str(folder / "x"))


def name_no_room(folder):
    raise OSError(errno.ENOSPC, "No space left on device", str(folder / "x"))


@pytest.fixture
def limited_files():
    """Forbid large files, which fails like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("make", [save_array, save_slightly_too_much, save_text, keep_state, lock, name_no_room])
def test_a_full_disk_keeps_earlier_artefacts(make, obtain, maker, tmp_path, limited_files):
    path = obtain()
    with pytest.raises(StorageError, match=r"cannot be written"):
        obtain(make, digest({"name": "y"}))
    assert everything(tmp_path / "store" / "things") == everything(path.parent)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert obtain() == path
    assert (maker.calls, maker.reports) == (1, [])


def no_room(folder):
    raise OSError(errno.ENOSPC, "No space left on device")


def short_write(folder):
    raise OSError("24 requested and 0 written")  # message of np.save


def no_write(folder):
    raise OSError(f"Not enough free space to write {2**60} bytes")  # message of np.save for large arrays


NO_ROOM = [no_room, short_write]


def test_an_array_larger_than_the_free_space_stops_the_run(obtain):
    with pytest.raises(StorageError, match=r"cannot be written \(Not enough free space"):
        obtain(no_write)


@pytest.mark.parametrize("make", NO_ROOM)
@pytest.mark.parametrize("fault", ["little is free", "no write"])
def test_a_full_disk_stops_the_run(make, fault, obtain, monkeypatch, tmp_path):
    """Errors that name no file are the store's if the store cannot be written."""
    obtain()
    usage = shutil.disk_usage(tmp_path)
    if fault == "little is free":
        monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: usage._replace(free=disk.MIN_FREE - 1))
    else:
        monkeypatch.setattr(disk.os, "fsync", no_room)
    with pytest.raises(StorageError, match=r"cannot be written"):
        obtain(make, digest({"name": "y"}))


def write_elsewhere(folder):
    with open("/dev/full", "w") as stream:
        stream.write("x")


def name_another(folder):
    raise OSError(errno.ENOSPC, "No space left on device", "/scratch/model.bin")


def name_locked(folder):
    raise PermissionError(errno.EACCES, "Permission denied", "/scratch/model.bin")


@pytest.mark.parametrize("make", [*NO_ROOM, write_elsewhere, name_another, name_locked])
def test_a_full_disk_elsewhere_fails_only_the_artefact(make, obtain, tmp_path):
    with pytest.raises(OSError, match=r"space|written|denied"):
        obtain(make)
    assert everything(tmp_path / "store" / "things") == []


def test_a_full_disk_while_writing_checksums_leaves_nothing(obtain, monkeypatch, tmp_path):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(StorageError, match=r"checksums.json: cannot be written \(No space left on device\)"):
        obtain()
    assert everything(tmp_path / "store" / "things") == []


def test_a_store_below_a_file_cannot_be_written(tmp_path, maker):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"cannot be written \(Not a directory\)"):
        Store(tmp_path / "file" / "store").obtain("things", "a thing", KEY, maker, maker.reports.append)
    assert maker.calls == 0


def test_the_artefact_of_a_faster_process_is_kept(obtain, maker):
    def late(folder):
        maker(folder)
        obtain()  # as another process does meanwhile

    path = obtain(late)
    assert everything(path) == ["about.txt", "checksums.json", "inner", "inner/data.bin"]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_write_file_replaces_whole_files(tmp_path):
    write_file(tmp_path / "new" / "a.txt", "first\n")
    write_file(tmp_path / "new" / "a.txt", "second\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == b"second\n"
    assert everything(tmp_path) == ["new", "new/a.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_write_file_keeps_the_old_content_on_failure(step, tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_file(path, "old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, step, full)
    with pytest.raises(StorageError, match=r"a.txt: cannot be written \(No space left on device\); finished work"):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert everything(tmp_path) == ["a.txt"]


def test_the_digest_is_canonical():
    identity = {"a": 1, "b": {"c": [1, 2.5, "é"], "d": None}}
    assert digest(identity) == digest({"b": {"d": None, "c": [1, 2.5, "é"]}, "a": 1})
    different = [
        {"a": 2, "b": {"c": [1, 2.5, "é"], "d": None}},
        {"a": "1", "b": {"c": [1, 2.5, "é"], "d": None}},
        {"a": 1, "b": {"c": [2.5, 1, "é"], "d": None}},
        {"a": 1, "b": {"c": [1, 2.5, "e"], "d": None}},
        {"a": 1, "b": {"c": [1, 2.5, "é"]}},
        {"a": 1, "b": {"c": [1, 2.5, "é"], "d": None}, "schema": store.SCHEMA + 1},
    ]
    assert len({digest(other) for other in [identity, *different]}) == 7


def test_a_folder_name_is_readable_and_safe():
    assert folder_name("AG news/../bert (x=1)", KEY) == f"AG-news-..-bert-x=1-{KEY[:8]}"
    assert len(folder_name("x" * 500, KEY)) == 89


def test_another_process_may_replace_a_damaged_artefact_first(tmp_path):
    store_, maker = Store(tmp_path), Maker()
    path = store_.obtain("things", "thing", KEY, maker, maker.reports.append)
    (path / "about.txt").write_text("damaged")

    def report(message):
        shutil.rmtree(path)  # as the other process does

    assert store_.obtain("things", "thing", KEY, maker, report) == path
    assert not store_._fault(path, KEY)
    assert not list(path.parent.glob(".*"))


def test_unused_arrays_are_swept_after_a_week(tmp_path, maker):
    store_, week = Store(tmp_path), 7 * 86_400
    paths = {kind: store_.obtain(kind, "a thing", KEY, maker, maker.reports.append) for kind in ("arrays", "victims")}
    for age, is_kept in ((week - 600, True), (week + 600, False)):
        for path in paths.values():
            os.utime(path, (time.time() - age,) * 2)
        store_.sweep()
        assert (paths["arrays"].exists(), paths["victims"].exists()) == (is_kept, True)


def test_old_leftovers_and_reservations_are_swept(tmp_path, maker):
    path = Store(tmp_path).obtain("things", "thing", KEY, maker, maker.reports.append)
    old, new = (path.with_name(f".{path.name}.{name}") for name in ("old", "new"))
    for folder in (old, new):
        shutil.copytree(path, folder)
    old_reservation, new_reservation = (tmp_path / "reservations" / name for name in ("old", "new"))
    old_reservation.parent.mkdir()
    old_reservation.touch()
    new_reservation.touch()
    for leftover in (old, old_reservation):
        os.utime(leftover, (0, 0))
    Store(tmp_path).sweep()
    assert set(path.parent.iterdir()) == {new, path}
    assert list(old_reservation.parent.iterdir()) == [new_reservation]


def test_an_artefact_has_the_digests_of_its_code(tmp_path, maker):
    made = Store(tmp_path)
    made.obtain("kind", "readable", KEY, maker, maker.reports.append, {"victims/v": "0f"})
    made.obtain("kind", "readable", KEY, maker, maker.reports.append, {"victims/v": "1e"})
    assert (maker.calls, made.made_by("kind", "readable", KEY)) == (1, {"victims/v": "0f"})
    assert made.made_by("kind", "another", KEY) == {}


@pytest.mark.parametrize(("age", "times"), [(store.SETTLED + 60, 2), (0, 4)])
def test_a_file_that_has_settled_is_read_once(age, times, tmp_path, monkeypatch):
    """A file that was just written might change again within the same tick of the clock."""
    read, checksum, sums = [], store._checksum, []
    monkeypatch.setattr(store, "_checksum", lambda path: read.append(path) or checksum(path))
    for number, content in enumerate(("one", "two")):
        path = tmp_path / "file"
        path.write_text(content)
        time_of = path.stat().st_mtime - age + number
        os.utime(path, (time_of, time_of))
        sums += [store.file_checksum(path), store.file_checksum(path)]
    assert sums[0] == sums[1] != sums[2] == sums[3]
    assert len(read) == times


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_may_never_end_is_no_file(tmp_path, kind):
    path = Path("/dev/zero")
    if kind == "pipe":
        os.mkfifo(path := tmp_path / "pipe.npy")
    with pytest.raises(RequestError, match="a device or a pipe; allowed: a file"):
        store.file_checksum(path)


@pytest.mark.parametrize("name", ["", "."])
def test_a_folder_is_no_file(tmp_path, name):
    with pytest.raises(StorageError, match=r": a folder; allowed: a file$"):
        write_file(tmp_path / name, "text")
