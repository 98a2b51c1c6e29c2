"""DW from its folders, with persons as secrets; all sentences are invented."""

import hashlib
import json
import zipfile
from collections import Counter

import pytest
from loading import everything, refused, rows_of, sizes

from leakboard.datasets.dw import Dw

pytestmark = pytest.mark.usefixtures("data")


def article(number, **changes):
    return {"text": f"Bob was seen {number} times.", "categoryName": f"Topic {number % 3}", "teaser": "x"} | changes


@pytest.fixture
def write_articles(data, tagged):
    def write(splits):
        for split, articles in splits.items():
            folder = data / "dw" / "en_corpora_sets" / split / "json"
            folder.mkdir(parents=True, exist_ok=True)
            for number, entry in enumerate(articles):
                content = entry if isinstance(entry, bytes) else json.dumps(entry).encode()
                (folder / f"{number:03}.json").write_bytes(content)
        return data / "dw" / "en_corpora_sets"

    return write


class TestDw:
    """The folder layout and fields that the paper's reader opens."""

    SPLITS = {  # noqa: RUF012
        "train": [article(n) for n in range(12)],
        "dev": [article(n) for n in range(20, 24)],
        "test": [article(n) for n in range(30, 34)],
    }

    def test_given_splits_categories_and_entities(self, write_articles):
        train = [
            *self.SPLITS["train"],
            article(12, text="nobody"),
            article(13, text=" "),
            article(14, categoryName=None),
            article(15, categoryName="Topic 0"),  # makes Topic 0 the most frequent
            article(16, categoryName="Once"),
            {"teaser": "only"},
        ]
        test = [*self.SPLITS["test"], article(40, categoryName="Unseen"), article(41, text="Ann Lee")]
        write_articles(self.SPLITS | {"train": train, "test": test})
        corpus = Dw(categories=2, entities=1).load()
        assert corpus.values("label") == ("Topic 0", "Topic 1")
        assert [secret.name for secret in corpus.secrets] == ["Bob"]
        rows = rows_of(corpus)
        assert rows[rows["split"] == "train"]["label"].tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0]  # Topic 2 is left out
        assert Counter(rows["split"]) == {"train": 9, "dev": 2, "test": 3}
        assert rows[rows["split"] == "dev"]["text"].tolist() == ["Bob was seen 21 times.", "Bob was seen 22 times."]
        assert rows[rows["split"] == "dev"]["label"].tolist() == [0, 1]
        counts = {name: corpus.checks[name] for name in corpus.checks if name.startswith(("source", "dropped"))}
        assert counts == {
            "source_rows": 28,
            "dropped_without_text_or_category": 3,
            "dropped_other_categories": 4 + 2 + 1 + 2 + 1,
            "dropped_copies": 0,
            "dropped_without_entity": 1,
        }

    def test_a_zip_gives_the_same_corpus_as_its_folder(self, write_articles, data):
        folder = write_articles(self.SPLITS)
        whole, before = everything(Dw(entities=1).load()), Dw().fingerprint()
        assert Dw.availability().startswith("there")
        path = data / "dw" / "en_corpora_sets.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in folder.rglob("*.json"):
                archive.write(file, file.relative_to(folder.parent).as_posix())
        (folder / "train/json/000.json").write_text(json.dumps(article(99)))
        assert Dw().fingerprint() != before
        folder.rename(data / "elsewhere")
        assert everything(Dw(entities=1).load()) == whole
        assert Dw().fingerprint() == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()},nltk 0"

    def test_copies_leave_train_unless_kept(self, write_articles):
        write_articles(self.SPLITS | {"test": [*self.SPLITS["test"], article(0), article(20)]})
        dropped, kept = Dw(entities=1).load(), Dw(entities=1, duplicates="keep").load()
        assert sizes(dropped) == {"train": 11, "dev": 3, "test": 6}
        assert dropped.checks["dropped_copies"] == 2
        assert dropped.checks["test_copies"] == 0
        assert sizes(kept) == {"train": 12, "dev": 4, "test": 6}
        assert kept.checks["test_copies"] == pytest.approx(1 / 6)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b'{"text": "cut', "not an article (Unterminated string"),
            (b"[1]", "not an article (a JSON list, not an object)"),
            (b'{"text": "na\xefve"}', "not an article ('utf-8' codec can't decode byte 0xef"),
            (b'{"text": 7, "categoryName": "x"}', "not an article (text is int, not text)"),
            (b'{"text": "x", "categoryName": ["a"]}', "not an article (categoryName is list, not text)"),
            (b"[" * 100_000, "not an article (maximum recursion depth"),
        ],
    )
    def test_a_malformed_article_is_named(self, write_articles, content, reason):
        folder = write_articles(self.SPLITS | {"dev": [content]})
        message = refused(Dw().load)
        assert message.startswith(f"{folder}: dev/json/000.json: ")
        assert reason in message

    def test_missing_data_and_other_layouts(self, data, write_articles):
        message = refused(Dw().fingerprint)
        assert message.startswith("dw/en_corpora_sets.zip cannot be fetched without you: get it from the partners of")
        assert Dw.availability().startswith("missing: get it from")
        folder = write_articles({"train": [article(0), article(3)]})
        assert refused(Dw().load) == f"{folder}: 1 categories in train; the task needs two"
        write_articles({"train": [article(0), article(1)]})
        assert refused(Dw(entities=1).load) == "dw: the dev split has no texts"
        (folder / "other.json").write_text("{}")
        assert refused(Dw().load) == f"{folder}: other.json is not in train/json, dev/json or test/json"
