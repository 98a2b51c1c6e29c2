"""Captions: the published files in small, with invented descriptions."""

import dataclasses
import gzip

import pytest
from loading import sizes

from leakboard.datasets import captions
from leakboard.datasets.captions import Captions
from leakboard.errors import RequestError

PICTURES = {"train": 4, "dev": 2, "test": 3}


@pytest.fixture
def files(data, monkeypatch):
    """Write five files of each split, and accept them."""
    folder = data / "captions"
    folder.mkdir()
    own = {}
    for split, of_split in captions.FILES.items():
        own[split] = [dataclasses.replace(file, checksum="") for file in of_split]
        for number, file in enumerate(of_split):
            lines = "".join(f"{split} picture {i} seen {number}\n" for i in range(PICTURES[split]))
            (folder / file.name).write_bytes(gzip.compress(lines.encode()))
    monkeypatch.setattr(captions, "FILES", own)
    return folder


@pytest.mark.usefixtures("files")
def test_five_descriptions_of_each_picture_in_the_published_splits():
    corpus = Captions().load()
    assert sizes(corpus) == {split: 5 * n for split, n in PICTURES.items()}
    train = corpus.splits["train"]
    assert train["text"][:] == [f"train picture {i} seen {n}" for n in range(5) for i in range(4)]
    assert train["document"][:] == [f"train {i}" for _ in range(5) for i in range(4)]
    rows = [row for split in corpus.splits.values() for row in split["row"]]
    assert rows == list(range(5 * sum(PICTURES.values())))
    assert (corpus.secrets, corpus.has_labels) == ((), False)
    assert Captions.availability() == "there"


@pytest.mark.usefixtures("files")
def test_fewer_descriptions_and_pictures():
    corpus = Captions(descriptions=2, pictures=3).load()
    assert sizes(corpus) == {"train": 6, "dev": 4, "test": 6}
    assert len(set(corpus.splits["train"]["document"])) == 3


def test_another_file_is_refused(files, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("LEAKBOARD_DATA", str(files.parent))
    with pytest.raises(RequestError, match="not the published file"):
        Captions().load()
