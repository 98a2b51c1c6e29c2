"""Downloads: pinned checksums, a local server, what is fetched again and what is refused."""

import hashlib
import importlib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from loading import refused

from leakboard.data.downloads import PublicFile, availability, without_network
from leakboard.errors import RequestError
from leakboard.suite.registry import Registry


class TestDownloads:
    """Public files; the tests use no network."""

    @pytest.fixture(autouse=True)
    def _own_folders(self, tmp_path, monkeypatch):
        monkeypatch.delenv("LEAKBOARD_DATA", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    @pytest.mark.parametrize(
        ("content", "blob"),
        [
            (b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
            (b"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"),
        ],
    )
    def test_a_git_blob_id_is_what_git_computes(self, tmp_path, monkeypatch, content, blob):
        (tmp_path / "a.txt").write_bytes(content)
        monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path))
        assert PublicFile("x", "a.txt", "http://127.0.0.1:9/", f"git:{blob}").fetch() == tmp_path / "a.txt"

    @pytest.fixture
    def served(self, tmp_path):
        """Return the address of a server of this machine and the folder that it serves."""
        folder = tmp_path / "served"
        folder.mkdir()
        handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
        handler.log_message = lambda *_: None
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}", folder
            server.shutdown()

    @pytest.mark.parametrize("kind", ["sha256", "git"])
    def test_a_damaged_file_in_the_cache_is_fetched_anew(self, served, kind):
        address, folder = served
        (folder / "a.txt").write_bytes(b"hello\n")
        known = {"sha256": hashlib.sha256(b"hello\n").hexdigest(), "git": "ce013625030ba8dba906f756967f9e9ca394464a"}
        file = PublicFile("x", "a.txt", f"{address}/a.txt", f"{kind}:{known[kind]}")
        path = file.fetch()
        path.write_text("a login page")
        if kind == "git":  # pooch does not know these: it is refused once
            with pytest.raises(RequestError, match="not the published file"):
                file.fetch()
        assert file.fetch().read_bytes() == b"hello\n"

    def test_nothing_is_fetched_without_network(self, served):
        address, folder = served
        (folder / "a.txt").write_bytes(b"hello\n")
        file = PublicFile("x", "a.txt", f"{address}/a.txt")
        with without_network(), pytest.raises(RequestError, match=r"x/a\.txt is not here: `run` fetches it"):
            file.identity()
        identity = file.identity()
        assert identity == "sha256:" + hashlib.sha256(b"hello\n").hexdigest()
        with without_network():
            assert file.identity() == identity
        file.local_path().write_bytes(b"another")
        assert file.identity() != identity

    def test_a_file_to_fetch_by_hand(self):
        file = PublicFile("x", "a.zip", "http://127.0.0.1:9/form", by_hand=True)
        way_out = "get it from http://127.0.0.1:9/form and put the file at x/a.zip"
        assert f"x/a.zip cannot be fetched without you: {way_out}" in refused(file.fetch)
        assert availability([file]).startswith("missing: get it from http://127.0.0.1:9/form")

    def test_the_state_names_what_is_missing(self, tmp_path, monkeypatch):
        files = [PublicFile("x", name, "http://127.0.0.1:9/") for name in ("a.txt", "b.txt", "c.txt")]
        monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path))
        (tmp_path / "b.txt").touch()
        assert availability(files).startswith(
            "not fetched yet a.txt, c.txt: from 127.0.0.1 when first used; without internet, put the"
        )
        (tmp_path / "a.txt").touch()
        (tmp_path / "c.txt").touch()
        assert availability(files) == "there"

    @pytest.mark.parametrize("checksum", ["sha256:" + "0" * 64, "git:" + "0" * 40])
    def test_a_local_file_needs_the_right_checksum(self, tmp_path, monkeypatch, checksum):
        (tmp_path / "x").mkdir()
        path = tmp_path / "x" / "a.txt"
        path.write_text("published")
        monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path))
        right = "sha256:" + hashlib.sha256(b"published").hexdigest()
        assert PublicFile("x", "a.txt", "http://127.0.0.1:9/", right).fetch() == path
        with pytest.raises(RequestError, match=rf"a.txt: checksum .*, expected {checksum}; not the published file"):
            PublicFile("x", "a.txt", "http://127.0.0.1:9/", checksum).fetch()

    @pytest.mark.parametrize("checksum", ["sha256:" + "0" * 64, "git:" + "0" * 40])
    def test_no_network_is_one_line_with_the_way_out(self, checksum):
        message = refused(PublicFile("x", "a.txt", "http://127.0.0.1:9/a.txt", checksum).fetch)
        assert message.startswith("http://127.0.0.1:9/a.txt: cannot be fetched")
        assert message.endswith("put the file at x/a.txt in a folder and set LEAKBOARD_DATA to that folder")


FILES = [
    file
    for listing in Registry().listings("datasets")
    for value in vars(importlib.import_module(listing.module)).values()
    for file in (value.values() if isinstance(value, dict) else [value])
    if isinstance(file, PublicFile)
]
WITHOUT_CHECKSUM = {
    "fra-eng.zip": "its publisher adds to it",
    "newsspace200.xml.bz": "no checksum is published",
    "yelp_polarity_train.parquet": "its address names a revision of the hub",
    "yelp_polarity_test.parquet": "its address names a revision of the hub",
}


def test_what_is_fetched_has_a_checksum_and_comes_through_https():
    fetched = {file.name: file for file in FILES if not file.by_hand}
    assert len(fetched) > 5
    assert all(file.url.startswith("https://") for file in FILES)
    assert {name for name, file in fetched.items() if not file.checksum} == WITHOUT_CHECKSUM.keys()
