"""News whose secrets are persons, AG and DW: finding and choosing them, and the formats; all sentences are invented."""

import bz2
import gzip
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import shutil
import zipfile
from collections import Counter

import pandas as pd
import pytest
from loading import everything, refused, rows_of

from leakboard.datasets import _persons, ag_newsspace, dw
from leakboard.datasets.ag_newsspace import AgNewsspace, read_items
from leakboard.datasets.dw import Dw

pytestmark = pytest.mark.usefixtures("data")


def fake(text):
    """Tag the names that the tests use."""
    return re.findall(r"\b(?:Ann Lee|Bob|Cyd|Bush|Merkel|Rare)\b", text)


class Tree(list):
    """What NLTK makes of a chunk."""

    def __init__(self, label, tokens):
        super().__init__(tokens)
        self.name = label

    def label(self):
        return self.name


def toy_models(folder):
    """Write models in NLTK's own formats that know seven words."""
    tagger = {"weights": {}, "tagdict": dict.fromkeys(("Anna", "Bell", "Bush"), "NNP"), "classes": ["NN", "NNP"]}
    tagger["tagdict"] |= dict.fromkeys(("today", "met", "and", "."), "NN")
    chunker = {
        "labels.txt": "O\nB-PERSON\nI-PERSON",
        "mapping.tab": "pos\tNNP\tB-PERSON\t0\npos+prevtag\tNNP+B-PERSON\tI-PERSON\t1",
        "weights.txt": "2.0\n5.0\n1.0\n0.0\n0.0",
        "alwayson.tab": "O\t2\nB-PERSON\t3\nI-PERSON\t4",
    }
    files = dict.fromkeys(_persons.MODELS["punkt_tab"], "")
    for path in _persons.MODELS["averaged_perceptron_tagger_eng"]:
        files[path] = json.dumps(tagger[path.split(".")[-2]])
    for path in _persons.MODELS["maxent_ne_chunker_tab"]:
        files[path] = chunker[path.rpartition("/")[2]]
    files["corpora/words/en-basic"] = "today\nmet\n"
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


def looked_for_in(folder, monkeypatch):
    """Let NLTK, and whoever looks for its models without it, look in this new folder alone."""
    nltk = pytest.importorskip("nltk")
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(nltk.data, "path", [str(folder)])
    monkeypatch.setattr(_persons, "folders", lambda: [str(folder)])


class TestPersons:
    """Finding, choosing and marking persons."""

    def test_names_of_a_chunked_text(self):
        tree = [("today", "NN"), Tree("PERSON", [("Ann", "NNP"), ("Lee", "NNP")]), Tree("GPE", [("Rome", "NNP")])]
        assert _persons.names([*tree, Tree("PERSON", [("Bob", "NNP")])]) == ["Ann Lee", "Bob"]

    SPLITS = {  # noqa: RUF012
        "train": pd.DataFrame({"text": ["Bush met Bush", "Ann Lee", "Ann Lee and Bob", "nobody", "Bob"]}),
        "dev": pd.DataFrame({"text": ["George W. Bush, said Merkel", "Cyd"]}),
        "test": pd.DataFrame({"text": ["Cyd and Cyd", "Cyd with Cyd", "Bob"]}),
    }

    def test_the_most_frequent_of_train_are_the_secrets(self):
        kept, secrets, dropped = _persons.choose_and_keep(self.SPLITS, fake, 2, "train")
        # Mentions in train: Ann Lee 2, Bob 2, George W. Bush 2 (an alias, twice in one text); the alphabet decides.
        assert [(s.name, s.values, s.kind) for s in secrets] == [
            ("Ann Lee", ("absent", "present"), "entity"),
            ("Bob", ("absent", "present"), "entity"),
        ]
        assert {split: frame["text"].tolist() for split, frame in kept.items()} == {
            "train": ["Ann Lee", "Ann Lee and Bob", "Bob"],
            "dev": [],
            "test": ["Bob"],
        }
        assert kept["train"][["Ann Lee", "Bob"]].to_numpy().tolist() == [[1, 0], [1, 1], [0, 1]]
        assert dropped == 10 - 4

    def test_the_papers_way_counts_all_splits(self):
        kept, secrets, dropped = _persons.choose_and_keep(self.SPLITS, fake, 2, "all")
        assert [secret.name for secret in secrets] == ["Cyd", "Bob"]  # 5 and 3 mentions
        assert {split: len(frame) for split, frame in kept.items()} == {"train": 2, "dev": 1, "test": 3}
        assert dropped == 4

    def test_aliases_stand_for_the_full_name(self):
        _, secrets, _ = _persons.choose_and_keep(self.SPLITS, fake, 5, "all")
        assert {"George W. Bush", "Angela Merkel"} <= {secret.name for secret in secrets}
        assert not {"Bush", "Merkel"} & {secret.name for secret in secrets}

    def test_every_distinct_text_is_tagged_once(self):
        seen = []
        splits = {name: pd.DataFrame({"text": ["Bob", "Bob", "Bob"]}) for name in ("train", "dev", "test")}
        kept, _, _ = _persons.choose_and_keep(splits, lambda text: seen.append(text) or fake(text), 1, "train")
        assert seen == ["Bob"]
        assert len(kept["test"]) == 3

    def test_too_few_persons(self):
        message = refused(lambda: _persons.choose_and_keep(self.SPLITS, fake, 4, "train"))
        assert message == "entities: 4 asked for, but the texts mention only 3 persons"

    def test_without_nltk_one_line_says_what_to_install(self, monkeypatch):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        line = "persons need NLTK: pip install nltk, then python -m nltk.downloader punkt_tab "
        assert refused(_persons.tagger).startswith(line)
        assert refused(_persons.identity).startswith(line)
        assert AgNewsspace.availability().endswith(_persons.missing())
        assert Dw.availability().endswith(_persons.missing())
        for made in (AgNewsspace(), Dw()):  # before a corpus is fetched that could not be used
            assert refused(made.fingerprint) == refused(made.load) == _persons.missing()

    def test_an_old_nltk_is_not_used(self, monkeypatch):
        pytest.importorskip("nltk")
        monkeypatch.setattr(importlib.metadata, "version", {"nltk": "3.8.1"}.__getitem__)
        assert refused(_persons.tagger) == "NLTK 3.8.1 reads its models as pickles: pip install 'nltk>=3.9'"

    def test_models_that_are_missing_are_named(self, tmp_path, monkeypatch):
        looked_for_in(tmp_path / "models", monkeypatch)
        everything = " ".join(_persons.MODELS)
        assert _persons.missing() == f"persons need models of NLTK: python -m nltk.downloader {everything}"
        assert refused(_persons.tagger) == _persons.missing()
        (tmp_path / "models/corpora/words").mkdir(mode=0o700, parents=True)
        (tmp_path / "models/corpora/words/en-basic").write_text("a\n")
        assert _persons.missing() == f"persons need models of NLTK: python -m nltk.downloader {everything[:-6]}"
        assert refused(_persons.tagger) == _persons.missing()

    def test_models_in_an_archive_are_there(self, tmp_path, monkeypatch):
        looked_for_in(tmp_path / "models", monkeypatch)
        toy_models(tmp_path / "unpacked")
        for package in sorted((tmp_path / "unpacked").glob("*/*")):
            folder = tmp_path / "models" / package.parent.name
            folder.mkdir(mode=0o700, exist_ok=True)
            shutil.make_archive(str(folder / package.name), "zip", package.parent, package.name)
        assert _persons.missing() == _persons.missing(_persons._is_found) == ""

    def test_the_folders_are_those_of_nltk(self):
        nltk = pytest.importorskip("nltk")
        assert _persons.folders() == nltk.data.path

    def test_models_that_nltk_refuses_to_read_are_not_used(self, tmp_path, monkeypatch):
        looked_for_in(tmp_path / "models", monkeypatch)
        toy_models(tmp_path / "models")
        (tmp_path / "models/corpora").chmod(0o777)
        with pytest.warns(RuntimeWarning, match="writable by"):
            message = refused(_persons.tagger)
        assert message == "persons need models of NLTK: python -m nltk.downloader words"

    def test_nltk_itself_with_models_of_seven_words(self, tmp_path, monkeypatch):
        looked_for_in(tmp_path / "models", monkeypatch)
        toy_models(tmp_path / "models")
        assert _persons.missing() == ""
        before = _persons.identity()
        tag = _persons.tagger()
        assert tag("today Anna Bell met Bush.") == ["Anna Bell", "Bush"]
        assert tag("today") == tag(" ") == []
        (tmp_path / "models/corpora/words/en-basic").write_text("today\n")
        assert _persons.identity() != before


NEWS = ("source", "url", "title", "image", "category", "description", "rank", "pubdate")


def item(number, category="World", **changes):
    values = dict.fromkeys(NEWS, "none") | {"title": f"Title {number}", "category": category, "rank": "5"}
    return values | {"description": f"Bob spoke {number} times."} | changes


def news(items):
    fields = "\n".join("".join(f"<{tag}>{text}</{tag}>" for tag, text in entry.items()) for entry in items)
    return f'<?xml version="1.0"?>\n<all_news>\n{fields}\n</all_news>\n'


@pytest.fixture
def tagged(monkeypatch):
    """Put a tagger in the place of NLTK's."""
    for module in (ag_newsspace, dw):
        monkeypatch.setattr(module, "tagger", lambda: fake)
        monkeypatch.setattr(module, "identity", lambda: "nltk 0")


@pytest.fixture
def write_news(data, tagged):
    (data / "ag_newsspace").mkdir()

    def write(items, name="newsspace200.xml", pack=bytes):
        path = data / "ag_newsspace" / name
        path.write_bytes(pack((items if isinstance(items, str) else news(items)).encode()))
        return path

    return write


class TestAgNewsspace:
    """REFERENCE.md, section 3c; the XML file as it is published."""

    TOPICS = ("World", "Entertainment", "Sports", "Business", "Sci/Tech")
    ITEMS = [item(n, category) for n, category in enumerate(TOPICS * 20)]  # noqa: RUF012

    def test_labels_and_entities(self, write_news):
        write_news([*self.ITEMS, item(100, description="Ann Lee"), item(101, description="nobody")])
        corpus = AgNewsspace(entities=1).load()
        rows = rows_of(corpus)
        assert corpus.values("label") == self.TOPICS[:4]
        assert {row: rows.loc[row, "label"] for row in (0, 1, 2, 3, 5)} == {0: 0, 1: 1, 2: 2, 3: 3, 5: 0}
        assert rows.loc[98, "text"] == "Title 98 Bob spoke 98 times."
        assert [secret.name for secret in corpus.secrets] == ["Bob"]
        assert set(rows["Bob"]) == {1}
        assert len(rows) == 80
        assert rows["split"].isin(["dev", "test"]).sum() in range(14, 17)  # 8 of 82 texts each, before two are left out
        counts = {name: corpus.checks[name] for name in corpus.checks if name.startswith(("source", "dropped"))}
        assert counts == {
            "source_rows": 102,
            "dropped_other_categories": 20,
            "dropped_empty": 0,
            "dropped_without_entity": 2,
        }

    def test_the_text_is_unescaped_twice_and_rid_of_backslashes(self, write_news):
        odd = item(0, title="A &amp;lt;b&amp;gt; B", description="AT&amp;amp;T\\Bob &amp;quot;")
        write_news([odd, item(100, title="", description=" "), *self.ITEMS[1:]])
        corpus = AgNewsspace(entities=1).load()
        assert rows_of(corpus).loc[0, "text"] == "A <b> B AT&T Bob &quot;"
        assert corpus.checks["dropped_empty"] == 1

    def test_no_text_stands_in_two_splits(self, write_news):
        copies = [item(n % 10, self.TOPICS[n % 4]) for n in range(60)]
        write_news(copies)
        corpus = AgNewsspace(entities=1).load()
        assert corpus.checks["dev_copies"] == corpus.checks["test_copies"] == 0
        assert {split: len(part) for split, part in corpus.splits.items()} == {"train": 48, "dev": 6, "test": 6}
        assert corpus.checks["conflicting_labels"] == 10

    def test_dev_and_test_have_no_say_in_the_choice_unless_asked(self, write_news):
        write_news(self.ITEMS)
        test = AgNewsspace(entities=1).load().splits["test"]["row"]
        items = [entry | {"image": "x"} for entry in self.ITEMS]
        # The split depends on the order of the texts alone: where the test texts name Rare often, train does not.
        for row in test:
            items[row] = items[row] | {"description": "Rare " * 50 + "Bob"}
        write_news(items)
        assert [s.name for s in AgNewsspace(entities=1).load().secrets] == ["Bob"]
        assert [s.name for s in AgNewsspace(entities=2, entities_from="all").load().secrets] == ["Rare", "Bob"]

    @pytest.mark.parametrize(
        ("name", "pack"),
        [
            ("newsspace200.xml.bz", bz2.compress),
            ("newsspace200.xml.bz2", bz2.compress),
            ("newsspace200.xml.gz", gzip.compress),
        ],
    )
    def test_packed_files_read_alike(self, write_news, name, pack):
        path = write_news(self.ITEMS)
        whole = everything(AgNewsspace(entities=1).load())
        path.unlink()
        path = write_news(self.ITEMS, name, pack)
        assert everything(AgNewsspace(entities=1).load()) == whole
        assert AgNewsspace().fingerprint() == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()},nltk 0"
        path.write_bytes(path.read_bytes()[:-40])
        assert f"{path}: truncated or damaged" in refused(AgNewsspace(entities=1).load)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("<all_news><source>a</source>", "not XML (no element found"),
            ("", "not XML (no element found"),
            ('<?xml version="1.0" encoding="no-such"?><all_news/>', "not XML (unknown encoding"),
            ('<!DOCTYPE a [<!ENTITY b "c">]><all_news><source>&b;</source></all_news>', "declares a document type"),
            (news([{"source": "a", "title": "b", "category": "c"}]), "line 4, item 1: description is missing"),
            (news([item(0), item(1) | {"author": "x"}]), "line 4, item 2: field 'author' is not allowed here"),
            (news([item(0, title="<b>x</b>")]), "item 1: field 'b' is not allowed here; allowed: source, url, title"),
            ("<all_news><title>x</title></all_news>", "item 1: a second 'title', or one without a 'source' in front"),
            (news([item(0)]).replace("<rank>5</rank>", "<title>again</title>"), "item 1: a second 'title'"),
            (news([item(0, "Sci/Tech")]), "no item of the categories World, Entertainment, Sports, Business"),
        ],
    )
    def test_a_file_that_is_not_as_it_should_be(self, write_news, content, reason):
        path = write_news(content)
        message = refused(AgNewsspace().load)
        assert message.startswith(f"{path}: ")
        assert reason in message

    def test_bytes_of_another_encoding(self, write_news):
        path = write_news(self.ITEMS)
        path.write_bytes(path.read_bytes().replace(b"Title 7<", b"Title \xef<"))
        assert "not XML (not well-formed (invalid token): line 10" in refused(AgNewsspace().load)

    def test_items_come_one_by_one(self, write_news):
        path = write_news([item(n) for n in range(30_000)])
        items = read_items(path)
        assert next(items)["title"] == "Title 0"
        assert sum(1 for _ in items) == 29_999

    def test_a_missing_file(self, data, tagged):
        message = refused(AgNewsspace().fingerprint)
        assert message.startswith("http://groups.di.unipi.it/~gulli/newsspace200.xml.bz: cannot be fetched")
        assert AgNewsspace.availability().startswith("missing: fetched from groups.di.unipi.it when first used")


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

    def test_a_zip_reads_as_its_folder(self, write_articles, data):
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
        assert {split: len(part) for split, part in dropped.splits.items()} == {"train": 11, "dev": 3, "test": 6}
        assert dropped.checks["dropped_copies"] == 2
        assert dropped.checks["test_copies"] == 0
        assert {split: len(part) for split, part in kept.splits.items()} == {"train": 12, "dev": 4, "test": 6}
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
