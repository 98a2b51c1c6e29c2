"""Excerpts of another dataset's texts: all of one length, with the labels of the whole texts."""

import dataclasses

import pytest

from leakboard.datasets.excerpts import Excerpts
from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.errors import RequestError
from leakboard.interfaces import POSTERIOR

WHOLE = GeneratedReviews(users=60, texts_per_user=3)


def rows(corpus, split):
    return {row["row"]: row for row in corpus.splits[split].to_list()}


def test_texts_have_the_first_words_of_the_same_rows():
    whole, cut = WHOLE.load(), Excerpts(of=WHOLE, words=12, test=20).load()
    for split in ("train", "dev", "test"):
        of_whole, of_cut = rows(whole, split), rows(cut, split)
        assert all(row["text"].split() == of_whole[number]["text"].split()[:12] for number, row in of_cut.items())
        assert all(row["gender"] == of_whole[number]["gender"] for number, row in of_cut.items())
    assert len(rows(cut, "test")) == 20 < len(rows(whole, "test"))
    assert len(rows(cut, "train")) == len(rows(whole, "train"))
    assert cut.secrets == whole.secrets
    assert not any(name.startswith(POSTERIOR) for name in cut.splits["test"].column_names)


def test_short_texts_are_left_out():
    whole = WHOLE.load()
    lengths = sorted(len(text.split()) for split in whole.splits.values() for text in split["text"])
    words = lengths[len(lengths) // 2]
    cut = Excerpts(of=WHOLE, words=words, test=None).load()
    kept = [len(text.split()) for split in cut.splits.values() for text in split["text"]]
    assert set(kept) == {words}
    assert len(kept) == sum(length >= words for length in lengths) < len(lengths)


def test_copies_are_counted_among_excerpts():
    assert Excerpts(of=WHOLE, words=2, test=None).load().checks["test_copies"] > WHOLE.load().checks["test_copies"]


def test_whole_texts_and_fewer_of_train():
    cut = Excerpts(of=WHOLE, train=30, test=None).load()
    whole = WHOLE.load()
    assert len(cut.splits["train"]) == 30
    assert cut.splits["test"]["text"][:] == whole.splits["test"]["text"][:]
    assert set(cut.splits["train"]["text"]) < set(whole.splits["train"]["text"])
    assert cut.splits["train"]["text"][:] == Excerpts(of=WHOLE, train=30).load().splits["train"]["text"][:]


def test_a_length_that_no_text_has_is_refused():
    with pytest.raises(RequestError, match="excerpts: words: 1000: no text of train has 1000 words"):
        Excerpts(of=WHOLE, words=1000).load()


def test_a_dataset_without_texts_is_refused(monkeypatch):
    whole = WHOLE.load()
    bare = dataclasses.replace(whole, splits=whole.splits.remove_columns("text"))
    monkeypatch.setattr(GeneratedReviews, "load", lambda self: bare)
    with pytest.raises(RequestError, match="excerpts: of: generated_reviews has no texts"):
        Excerpts(of=WHOLE).load()
