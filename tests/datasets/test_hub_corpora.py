"""AG News and Yelp from their hub: real formats in small, with invented sentences."""

import dataclasses

import pandas as pd
import pytest
from loading import by_row, refused, sizes

from leakboard.datasets import ag_news, yelp_polarity
from leakboard.datasets.ag_news import AgNews
from leakboard.datasets.yelp_polarity import YelpPolarity

pytestmark = pytest.mark.usefixtures("data")


HUB = {
    "ag_news": (ag_news, AgNews, ("World", "Sports", "Business", "Sci/Tech")),
    "yelp_polarity": (yelp_polarity, YelpPolarity, ("negative", "positive")),
}


class TestHub:
    """Parquet files of the hub."""

    @pytest.fixture(params=HUB)
    def case(self, request, data, monkeypatch):
        """Return the class, the names of its classes, and a function that writes its two files."""
        name = request.param
        module, cls, labels = HUB[name]
        for split, file in module.FILES.items():
            monkeypatch.setitem(module.FILES, split, dataclasses.replace(file, checksum=""))
        (data / name).mkdir()

        def write(train, test):
            for split, rows in {"train": train, "test": test}.items():
                frame = pd.DataFrame(rows, columns=["text", "label"])
                frame.to_parquet(data / name / f"{name}_{split}.parquet", index=False)
            return data / name

        return cls, labels, write

    TRAIN = tuple((f"train text {i}", i % 2) for i in range(40))
    TEST = tuple((f"test text {i}", i % 2) for i in range(6))

    def test_splits_labels_and_rows(self, case):
        cls, labels, write = case
        write(self.TRAIN, self.TEST)
        corpus = cls().load()
        assert corpus.secrets == ()
        assert corpus.values("label") == labels
        assert sizes(corpus) == {"train": 38, "dev": 2, "test": 6}
        assert by_row(corpus) == {i: text for i, (text, _) in enumerate([*self.TRAIN, *self.TEST])}
        assert list(by_row(corpus, "label").values()) == [i % 2 for i in range(46)]
        assert corpus.texts("test").rows.tolist() == list(range(40, 46))
        assert corpus.checks["source_rows"] == 46
        assert corpus.checks["dropped_rows"] == corpus.checks["blank_rows"] == corpus.checks["dropped_copies"] == 0
        assert cls.availability() == "there"

    def test_only_the_first_rows_as_in_the_study(self, case):
        cls, _, write = case
        write(self.TRAIN, self.TEST)
        corpus = cls(train_rows=20).load()
        assert sizes(corpus) == {"train": 19, "dev": 1, "test": 6}
        assert list(by_row(corpus)) == [*range(20), *range(40, 46)]
        reseeded = cls(train_rows=20, split_seed=1).load()
        assert reseeded.texts("dev").rows.tolist() != corpus.texts("dev").rows.tolist()
        assert sizes(cls(train_rows=40, dev_share=0.25).load()) == {"train": 30, "dev": 10, "test": 6}
        assert refused(cls(train_rows=41).load).endswith("40 rows; train_rows=41 is not allowed")

    def test_copies_of_the_test_file(self, case):
        cls, _, write = case
        write([*self.TRAIN, self.TEST[0], self.TEST[0]], self.TEST)
        dropped, kept = cls(split_seed=3).load(), cls(split_seed=3, duplicates="keep").load()
        assert dropped.checks["dropped_copies"] == 2
        assert dropped.checks["test_copies"] == dropped.checks["dev_copies"] == 0
        assert kept.checks["dropped_copies"] == 0
        assert sum(sizes(kept).values()) == 48
        assert sizes(kept)["test"] == sizes(dropped)["test"] == 6

    def test_blank_texts_are_counted(self, case):
        cls, _, write = case
        write([*self.TRAIN, ("  ", 1)], self.TEST)
        corpus = cls().load()
        assert corpus.checks["blank_rows"] == 1
        assert sum(sizes(corpus).values()) == 46
        assert corpus.texts("test").rows.tolist() == list(range(41, 47))

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            (("text", 4), "row 41: label is 4; allowed: 0 to "),
            (("text", -1), "row 41: label is -1; allowed: 0 to "),
            ((None, 1), "row 41: text is missing"),
        ],
    )
    def test_bad_rows(self, case, row, reason):
        cls, _, write = case
        folder = write([*self.TRAIN, row], self.TEST)
        message = refused(cls().load)
        assert reason in message
        assert str(folder) in message
        corpus = cls(on_bad_rows="drop").load()
        assert corpus.checks["dropped_rows"] == 1
        assert sum(sizes(corpus).values()) == 46

    def test_broken_files(self, case):
        cls, _, write = case
        folder = write(self.TRAIN, self.TEST)
        (path,) = folder.glob("*_train.parquet")
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        assert "not a readable Parquet file" in refused(cls().load)
        pd.DataFrame({"text": ["a"], "labels": [0]}).to_parquet(path)
        assert "did you mean 'labels'?" in refused(cls().load)

    def test_addresses_are_pinned(self):
        assert ag_news.FILES["test"].url == (
            "https://huggingface.co/datasets/fancyzhx/ag_news/resolve/"
            "eb185aade064a813bc0b7f42de02595523103ca4/data/test-00000-of-00001.parquet"
        )
        assert yelp_polarity.FILES["train"].url == (
            "https://huggingface.co/datasets/fancyzhx/yelp_polarity/resolve/"
            "bbf1c97a1f0cf005e5aded43839fd814654a1557/plain_text/train-00000-of-00001.parquet"
        )
