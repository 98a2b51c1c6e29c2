"""The checks of a corpus when it is built: copies across splits, conflicting labels, empty texts."""

import numpy as np
import pandas as pd
import pytest

from leakboard.data import corpora
from leakboard.errors import RequestError
from leakboard.interfaces import Secret


def frame(texts, labels=None, **columns):
    labels = labels or [0] * len(texts)
    return pd.DataFrame({"text": texts, "label": labels, "row": range(len(texts)), **columns})


class TestChecks:
    """Checks, copies and division on hand-made frames."""

    SPLITS = {  # noqa: RUF012
        "train": frame(["a", "a", "b", " "], [0, 1, 0, 0]),
        "dev": frame(["a", "c"], [0, 0]),
        "test": frame(["b", "c", "d", "d"], [1, 0, 1, 1]),
    }

    def test_what_a_reader_must_know(self):
        corpus = corpora.build_corpus("x", self.SPLITS, [], ["no", "yes"], {"dropped_rows": 7})
        assert corpus.checks == {
            "dropped_rows": 7,
            "dev_copies": 1 / 2,  # a
            "test_copies": 1 / 4,  # b
            "empty_texts": 1,
            "conflicting_labels": 2,  # a within train, b across splits
        }

    def test_drop_copies_keeps_test_whole(self):
        kept = corpora.drop_copies(self.SPLITS)
        assert {split: part["text"].tolist() for split, part in kept.items()} == {
            "train": [" "],
            "dev": ["a"],
            "test": ["b", "c", "d", "d"],
        }

    def test_an_empty_split_is_refused(self):
        with pytest.raises(RequestError, match="x: the dev split has no texts"):
            corpora.build_corpus("x", {**self.SPLITS, "dev": frame([])}, [], ["no", "yes"])

    @pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
    def test_a_missing_text_is_refused(self, missing):
        splits = self.SPLITS | {"test": frame(["b", missing, "d"])}
        with pytest.raises(RequestError, match="x: the text of row 1 of test is missing"):
            corpora.build_corpus("x", splits, [], ["no", "yes"])

    def test_shares_that_leave_nothing_to_train_are_refused(self):
        with pytest.raises(RequestError, match=r"dev_share=0\.6, test_share=0\.4: allowed: below 1 together"):
            corpora.divide(frame([f"text {i}" for i in range(20)]), 0.6, 0.4, 0)

    def test_divide_by_distinct_text(self):
        whole = frame([f"t{i // 3}" for i in range(60)])
        parts = corpora.divide(whole, 0.1, 0.25, seed=3)
        assert {split: len(part) for split, part in parts.items()} == {"train": 39, "dev": 6, "test": 15}
        assert all(part.groupby("text").size().eq(3).all() for part in parts.values())
        again = corpora.divide(whole, 0.1, 0.25, seed=3)
        assert all(parts[split].equals(again[split]) for split in parts)

    def test_divide_by_user_leaves_out_what_crosses(self):
        whole = frame(["same", "own"] * 10, user=[f"u{i // 2}" for i in range(20)])
        whole.loc[whole["text"] == "own", "text"] = [f"own {i}" for i in range(10)]
        parts = corpora.divide(whole, 0.2, 0.3, seed=0)
        assert {split: part["user"].nunique() for split, part in parts.items()} == {"train": 5, "dev": 2, "test": 3}
        assert [(part["text"] == "same").sum() for part in parts.values()] == [0, 0, 3]

    def test_a_stored_corpus_comes_back(self, tmp_path):
        splits = {
            name: part.assign(g=[0] * len(part), user="u", **{"posterior:g": [[0.25, 0.75]] * len(part)})
            for name, part in self.SPLITS.items()
        }
        corpus = corpora.build_corpus("x", splits, [Secret("g", ("f", "m"), "attribute")], ["no", "yes"])
        corpora.save_corpus(corpus, tmp_path)
        again = corpora.load_corpus(tmp_path)
        assert (again.name, again.secrets, again.checks) == (corpus.name, corpus.secrets, corpus.checks)
        for split in corpus.splits:
            assert again.splits[split].features == corpus.splits[split].features
            assert again.splits[split].to_dict() == corpus.splits[split].to_dict()
        np.testing.assert_array_equal(corpora.posterior(again, "dev", "g"), [[0.25, 0.75]] * 2)
        assert corpora.posterior(again, "dev", "label") is None
        assert set(again.only("train", "dev").splits) == {"train", "dev"}
