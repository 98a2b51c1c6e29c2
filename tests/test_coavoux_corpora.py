"""The corpora of Coavoux et al. (2018) from their sources: invented files in the real formats, whole and broken."""

import bz2
import dataclasses
import gzip
import hashlib
import importlib.util
import json
import re
import zipfile
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from leakboard.archives import read_members
from leakboard.datasets import _persons, ag_newsspace, blog_authorship, dw
from leakboard.datasets._topics import TopicModel
from leakboard.datasets.ag_newsspace import AgNewsspace, read_items
from leakboard.datasets.blog_authorship import BlogAuthorship
from leakboard.datasets.dw import Dw
from leakboard.datasets.trustpilot_country import TrustpilotCountry
from leakboard.errors import RequestError
from leakboard.options import build

pytestmark = pytest.mark.usefixtures("data")


def refused(load):
    """Return the one line that a load is refused with."""
    with pytest.raises(RequestError) as caught:
        load()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def everything(corpus):
    return {split: part.to_dict() for split, part in corpus.splits.items()}


def rows_of(corpus):
    """Return all rows of a corpus as one frame, by their place in the source."""
    parts = [part.to_pandas().assign(split=split) for split, part in corpus.splits.items()]
    return pd.concat(parts).set_index("row").sort_index()


def user(number, **changes):
    review = {
        "company_id": "www.shop.example",
        "date": "2013-10-21T06:39:08.000+00:00",
        "rating": "5",
        "title": f"Title {number}",
        "text": [f"first paragraph {number}", "second one"],
    }
    known = {
        "user_id": str(1000 + number),
        "country": "denmark",
        "item_type": "user",
        "gender": "F" if number % 2 else "M",
        "birth_year": 1990 if number % 3 else "1950",
        "profile_text": "",
    }
    return known | {"reviews": [review | changes.pop("review", {})]} | changes


def write_users(folder, users, form=".jsonl.tmp", write=repr):
    (folder / "trustpilot_country").mkdir(exist_ok=True)
    lines = [write(item) if isinstance(item, dict) else item for item in users]
    path = folder / "trustpilot_country" / f"denmark.auto-adjusted_gender.NUTS-regions{form}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
    return path


def denmark(**options):
    return TrustpilotCountry(country="denmark", **options).load()


USERS = [user(number) for number in range(40)]


class TestTrustpilot:
    """REFERENCE.md, section 3c."""

    def test_a_review_becomes_text_stars_gender_and_age_group(self, data):
        write_users(data, USERS)
        corpus = denmark()
        rows = rows_of(corpus)
        assert rows["text"].tolist() == [f"Title {n} first paragraph {n} second one" for n in range(40)]
        assert rows["user"].tolist() == [str(1000 + n) for n in range(40)]
        assert corpus.values("label") == ("1", "2", "3", "4", "5")
        assert set(rows["label"]) == {4}
        assert rows["gender"].tolist() == [n % 2 for n in range(40)]  # F is 1, female
        assert rows["age"].tolist() == [int(n % 3 > 0) for n in range(40)]  # 23 years is 1, under 35; 63 is over 45
        assert [(s.name, s.values) for s in corpus.secrets] == [
            ("gender", ("male", "female")),
            ("age", ("over 45", "under 35")),
        ]
        assert rows["split"].value_counts().to_dict() == {"train": 32, "dev": 4, "test": 4}
        assert {name: count for name, count in corpus.checks.items() if count} == {"source_rows": 40}

    def test_only_the_first_review_counts_and_a_missing_title_is_no_text(self, data):
        first = USERS[0]["reviews"][0] | {"title": None, "rating": 2}
        changed = USERS[0] | {"reviews": [first, USERS[0]["reviews"][0]]}
        write_users(data, [changed, *USERS[1:]])
        rows = rows_of(denmark())
        assert (rows.loc[0, "text"], rows.loc[0, "label"]) == ("first paragraph 0 second one", 1)
        assert len(rows) == 40

    @pytest.mark.parametrize(
        ("born", "group"), [(1979, 1), (1978, None), (1968, None), (1967, 0)], ids=["34", "35", "45", "46"]
    )
    def test_ages_from_35_to_45_are_left_out(self, data, born, group):
        write_users(data, [*USERS, user(40, birth_year=born)])
        corpus = denmark()
        rows = rows_of(corpus)
        assert (rows.loc[40, "age"] if 40 in rows.index else None) == group
        assert corpus.checks["dropped_between_ages"] == (group is None)

    def test_what_is_left_out_is_counted(self, data):
        others = [
            user(40, gender=None),
            user(41, birth_year=""),
            {"user_id": "7", "reviews": []},
            user(43, reviews=[]),
            user(44, review={"rating": None}),
            user(45, review={"text": None}),
            user(46, review={"text": [" "], "title": None}),
            USERS[0],
            user(48, birth_year=1800),
            user(49, birth_year=2015),
        ]
        write_users(data, [*USERS, *others, ""])
        checks = denmark().checks
        assert checks["dropped_without_demographics"] == 3
        assert checks["dropped_without_review"] == 4
        assert checks["dropped_repeated_users"] == 1
        assert checks["blank_lines"] == 1
        assert checks["source_rows"] == 51 == 42 + 3 + 4 + 1 + 1
        assert checks["implausible_ages"] == 2  # 213 years and -2: kept, as in the paper
        assert sum(map(len, denmark().splits.values())) == 42

    def test_no_text_stands_in_two_splits(self, data):
        same = [user(number, review={"title": "Super", "text": [f"copy {number % 20}"]}) for number in range(60)]
        write_users(data, same)
        corpus = denmark()
        assert {split: len(part) for split, part in corpus.splits.items()} == {"train": 48, "dev": 6, "test": 6}
        assert corpus.checks["dev_copies"] == corpus.checks["test_copies"] == 0
        assert corpus.checks["dev_users"] == corpus.checks["test_users"] == 0
        assert everything(denmark()) == everything(corpus)
        assert everything(denmark(split_seed=11)) != everything(corpus)

    def test_every_form_of_the_file_gives_the_same_corpus(self, data):
        path = write_users(data, USERS)
        whole, content = everything(denmark()), path.read_bytes()
        path.unlink()
        stem = path.name.removesuffix(".jsonl.tmp")
        for form, pack in ((".jsonl.tmp.gz", gzip.compress), (".jsonl.bz2", bz2.compress)):
            packed = path.with_name(stem + form)
            packed.write_bytes(pack(content))
            assert everything(denmark()) == whole
            packed.unlink()
        with zipfile.ZipFile(path.with_name(f"{stem}.jsonl.zip"), "w") as archive:
            archive.writestr(path.name, content)
            archive.writestr(f"__MACOSX/._{path.name}", b"\0\1")
        assert everything(denmark()) == whole
        path.with_name(f"{stem}.jsonl.zip").unlink()
        write_users(data, USERS, ".jsonl", json.dumps)
        assert everything(denmark()) == whole

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("{'gender': 'F', 'birth_year': ", "not one literal in braces"),
            ("{'user_id': 'cut befo", "not one literal in braces"),
            ("no line of this corpus", "not one literal in braces"),
            ("{'gender': 'F', 'birth_year': __import__('os')}", "neither a Python literal nor JSON"),
            ("{'gender birth_year'}", "a set, not a dict"),
            (user(41, gender="X"), "gender 'X', birth_year '1990'; allowed: M or F, a year"),
            (user(41, birth_year="about 1950"), "birth_year 'about 1950'"),
            (user(41, reviews={}), "reviews is dict, not a list"),
            (user(41, reviews=["good"]), "the first review is str, not a dict"),
            (user(41, review={"rating": 6}), "rating is '6'; allowed: 1, 2, 3, 4, 5"),
            (user(41, review={"date": "yesterday"}), "date is 'yesterday'"),
            (user(41, review={"date": None}), "date is missing"),
            (user(41, review={"text": [1]}), "title or text is not text"),
            ("{'gender': 'F', 'birth_year': 1990, 'x': 'na\udcefve'}", "bytes that are not UTF-8"),
            ("{" * 3000 + "gender birth_year}", "neither a Python literal nor JSON"),
        ],
    )
    def test_a_malformed_line_is_named_or_dropped(self, data, line, reason):
        path = write_users(data, [*USERS, line])
        message = refused(denmark)
        assert message.startswith(f"{path}: 1 bad lines (line 41: ")
        assert reason in message
        assert message.endswith("; on_bad_rows: drop leaves them out")
        corpus = denmark(on_bad_rows="drop")
        assert corpus.checks["dropped_rows"] == 1
        assert len(rows_of(corpus)) == 40

    def test_too_long_a_line_is_not_parsed(self, data, monkeypatch):
        monkeypatch.setattr("leakboard.datasets.trustpilot_country.LONGEST_LINE", 1000)
        write_users(data, [*USERS, user(41, profile_text="x" * 1000)])
        assert re.search(r"line 41: 1,\d\d\d characters; allowed: 1,000", refused(denmark))

    def test_broken_files(self, data):
        path = write_users(data, USERS)
        content = gzip.compress(path.read_bytes())
        path.write_text("{}\n")
        assert "no user with gender, birth year and a review" in refused(denmark)
        path.unlink()
        packed = path.with_name(path.name + ".gz")
        packed.write_bytes(content[:-30])
        assert f"{packed}: truncated or damaged" in refused(denmark)
        packed.unlink()
        archived = path.with_name(path.name.replace(".tmp", ".zip"))
        with zipfile.ZipFile(archived, "w") as archive:
            archive.writestr("france.jsonl.tmp", b"")
        assert "0 files in it begin with denmark.auto-adjusted_gender.NUTS-regions, not one" in refused(denmark)
        archived.write_bytes(b"PK")
        assert f"{archived}: truncated or damaged" in refused(denmark)

    def test_a_missing_file_and_what_is_there(self, data):
        assert TrustpilotCountry.state().startswith(
            "missing denmark.auto-adjusted_gender.NUTS-regions.jsonl.zip, france"
        )
        message = refused(TrustpilotCountry(country="us").load)
        assert "WWW2015/data/united_states.auto-adjusted_gender.geocoded.jsonl.zip: cannot be fetched" in message
        path = write_users(data, USERS)
        assert TrustpilotCountry.state().startswith("missing france")
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
        assert TrustpilotCountry(country="denmark").fingerprint() == f"sha256:{checksum}"

    def test_shown_secrets_and_unknown_options(self, data):
        write_users(data, USERS)
        rows = rows_of(denmark(show_secrets=True))
        assert rows.loc[0, "text"] == "gendermale ageover45 Title 0 first paragraph 0 second one"
        assert rows.loc[1, "text"] == "genderfemale ageunder35 Title 1 first paragraph 1 second one"
        message = refused(lambda: build(TrustpilotCountry, {"country": "sweden"}, "suite"))
        assert message.startswith("suite.country: 'sweden' is not allowed")


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
        assert AgNewsspace.state().endswith(_persons.missing())
        assert Dw.state().endswith(_persons.missing())
        for made in (AgNewsspace(), Dw()):  # before a corpus is fetched that could not be used
            assert refused(made.fingerprint) == refused(made.load) == _persons.missing()

    def test_an_old_nltk_is_not_used(self, monkeypatch):
        nltk = pytest.importorskip("nltk")
        monkeypatch.setattr(nltk, "__version__", "3.8.1")
        assert refused(_persons.tagger) == "NLTK 3.8.1 reads its models as pickles: pip install 'nltk>=3.9'"

    def test_models_that_are_missing_are_named(self, tmp_path, monkeypatch):
        nltk = pytest.importorskip("nltk")
        (tmp_path / "models").mkdir(mode=0o700)
        monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "models")])
        everything = " ".join(_persons.MODELS)
        assert _persons.missing() == f"persons need models of NLTK: python -m nltk.downloader {everything}"
        (tmp_path / "models/corpora/words").mkdir(mode=0o700, parents=True)
        (tmp_path / "models/corpora/words/en-basic").write_text("a\n")
        assert _persons.missing() == f"persons need models of NLTK: python -m nltk.downloader {everything[:-6]}"

    def test_nltk_itself_with_models_of_seven_words(self, tmp_path, monkeypatch):
        nltk = pytest.importorskip("nltk")
        monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "models")])
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
        assert AgNewsspace.state().startswith("missing: fetched from groups.di.unipi.it when first used")


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
        assert Dw.state().startswith("there")
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
        assert Dw.state().startswith("missing: get it from")
        folder = write_articles({"train": [article(0), article(3)]})
        assert refused(Dw().load) == f"{folder}: 1 categories in train; the task needs two"
        write_articles({"train": [article(0), article(1)]})
        assert refused(Dw(entities=1).load) == "dw: the dev split has no texts"
        (folder / "other.json").write_text("{}")
        assert refused(Dw().load) == f"{folder}: other.json is not in train/json, dev/json or test/json"


COLOURS, ANIMALS, TREES = "red green blue white black", "dog cat mouse horse sheep", "oak elm ash fir yew"


def blog(lines):
    posts = "".join(
        f"<date>0{n % 9 + 1},May,2004</date>\n<post>\n\n    {line}\n\n</post>\n" for n, line in enumerate(lines)
    )
    return f"<Blog>\n\n{posts}</Blog>\n".encode()


def blogs():
    """Return 40 bloggers of four groups, who write of colours, animals and trees, a line each."""
    files = {}
    for number in range(40):
        age, gender = (15, 17, 33, 40)[number % 4], ("male", "female")[number // 4 % 2]
        lines = [f"{words} {words} entry{number}x{n}" for n, words in enumerate((COLOURS, ANIMALS, TREES))]
        files[f"{100 + number}.{gender}.{age}.indUnk.Leo.xml"] = blog(lines)
    return files


@pytest.fixture
def write_blogs(data):
    def write(files):
        folder = data / "blog_authorship" / "blogs"
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return folder

    return write


def load_blogs(**options):
    return BlogAuthorship(
        **{"topics": 3, "passes": 5, "dominance": 0.7, "dev_share": 0.2, "test_share": 0.2, "split_seed": 0} | options
    )


class TestBlogAuthorship:
    """REFERENCE.md, section 3c."""

    def test_documents_secrets_and_topics(self, write_blogs):
        twenties = {"900.female.25.Student.Aries.xml": blog(["not of this corpus"])}
        write_blogs(blogs() | twenties)
        corpus = load_blogs(balanced=False).load()
        rows = rows_of(corpus)
        assert corpus.checks["bloggers"] == 41
        assert corpus.checks["dropped_bloggers_in_twenties"] == 1
        assert corpus.checks["lines_read_as_latin1"] == 0
        assert len(rows) == 120
        assert rows["split"].value_counts().to_dict() == {"train": 72, "dev": 24, "test": 24}
        assert corpus.checks["dev_users"] == corpus.checks["test_users"] == 0
        assert [(s.name, s.values) for s in corpus.secrets] == [
            ("age", ("over 30", "under 20")),
            ("gender", ("male", "female")),
        ]
        first = rows[rows["user"] == "100"]
        assert first["text"].tolist()[1] == f"{ANIMALS} {ANIMALS} entry0x1"
        assert set(first["age"]) == {1}
        assert set(first["gender"]) == {0}
        assert set(rows.loc[rows["user"] == "107", "age"]) == {0}  # 40 years
        assert set(rows.loc[rows["user"] == "107", "gender"]) == {1}
        assert corpus.values("label") == ("topic 0", "topic 1", "topic 2")
        subject = rows["text"].str.split().str[0]
        assert rows.groupby(subject)["label"].nunique().to_dict() == {"red": 1, "dog": 1, "oak": 1}
        assert rows["label"].nunique() == 3

    def test_groups_are_cut_to_the_smallest_in_every_split(self, write_blogs):
        write_blogs(blogs())
        whole, cut = load_blogs(balanced=False).load(), load_blogs().load()
        dropped = 0
        for split in cut.splits:
            sizes = Counter(zip(whole.column(split, "age"), whole.column(split, "gender"), strict=True))
            left = Counter(zip(cut.column(split, "age"), cut.column(split, "gender"), strict=True))
            assert left == dict.fromkeys(sizes, min(sizes.values()))
            assert len(left) == 4
            dropped += sum(sizes.values()) - 4 * min(sizes.values())
            assert set(cut.splits[split]["text"]) <= set(whole.splits[split]["text"])
        assert cut.checks["dropped_for_balance"] == dropped > 0
        assert everything(load_blogs().load()) == everything(cut)

    def test_only_dominated_documents_are_kept(self, write_blogs):
        files = blogs()
        mixed = blog([f"{COLOURS} {ANIMALS}", "unheard nonsense", f"{COLOURS} {COLOURS} own"])
        write_blogs(files | {"999.male.33.indUnk.Leo.xml": mixed})
        corpus = load_blogs(balanced=False).load()
        assert corpus.checks["dropped_without_dominating_topic"] == 2
        texts = set(rows_of(corpus)["text"])
        assert f"{COLOURS} {COLOURS} own" in texts
        assert f"{COLOURS} {ANIMALS}" not in texts
        assert load_blogs(balanced=False, dominance=0.0).load().checks["dropped_without_dominating_topic"] == 0

    def test_the_topics_are_those_of_train(self, write_blogs, monkeypatch):
        write_blogs(blogs())
        fitted = []
        original = TopicModel.fit
        monkeypatch.setattr(TopicModel, "fit", lambda texts, *rest: fitted.extend(texts) or original(texts, *rest))
        corpus = load_blogs(balanced=False).load()
        assert sorted(fitted) == sorted(corpus.splits["train"]["text"])

    def test_lines_in_latin1_are_read_and_counted(self, write_blogs):
        odd = b"<Blog>\r\n<post>\r\n na\xefve caf\xe9 \r\n caf\xc3\xa9 &nbsp; ok\r\n<b>markup\r\n</post"
        write_blogs(blogs() | {"999.male.33.indUnk.Leo.xml": odd})
        corpus = load_blogs(balanced=False, dominance=0.0).load()
        assert corpus.checks["lines_read_as_latin1"] == 1
        rows = rows_of(corpus)
        assert rows[rows["user"] == "999"]["text"].tolist() == ["naïve café", "café &nbsp; ok"]

    def test_a_line_of_two_users_stays_in_one_split(self, write_blogs):
        files = {name: content.replace(b"</Blog>", b"same words\n</Blog>") for name, content in blogs().items()}
        write_blogs(files)
        corpus = load_blogs(balanced=False, dominance=0.0).load()
        rows = rows_of(corpus)
        same = rows[rows["text"] == "same words"]
        assert set(same["split"]) == {"test"}
        assert corpus.checks["dropped_copies"] == 40 - 8  # those of 24 + 8 bloggers; 8 are of test
        assert corpus.checks["test_copies"] == 0

    def test_the_zip_is_the_published_one_or_refused(self, data, write_blogs, monkeypatch):
        folder = write_blogs(blogs())
        whole = everything(load_blogs().load())
        assert BlogAuthorship.state() == "there"
        assert load_blogs().fingerprint().startswith("folder:")
        path = data / "blog_authorship" / "blogs.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in folder.iterdir():
                archive.write(file, f"blogs/{file.name}")
            archive.writestr("__MACOSX/blogs/._100.male.15.indUnk.Leo.xml", b"\0")
        folder.rename(data / "elsewhere")
        assert load_blogs().fingerprint() == blog_authorship.FILE.checksum
        assert f"{path}: checksum sha256:" in refused(load_blogs().load)
        checksum = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setattr(blog_authorship, "FILE", dataclasses.replace(blog_authorship.FILE, checksum=checksum))
        assert everything(load_blogs().load()) == whole
        path.write_bytes(path.read_bytes()[:2000])
        monkeypatch.setattr(blog_authorship, "FILE", dataclasses.replace(blog_authorship.FILE, checksum=""))
        assert f"{path}: truncated or damaged" in refused(load_blogs().load)

    @pytest.mark.parametrize(
        ("files", "reason"),
        [
            (
                {"100.male.indUnk.Leo.xml": b""},
                "100.male.indUnk.Leo.xml is not named as id.gender.age.industry.sign.xml",
            ),
            ({"100.other.33.indUnk.Leo.xml": b""}, "is not named as"),
            ({"100.male.25.indUnk.Leo.xml": blog(["x"])}, "no line of a blogger under 20 or over 30"),
            ({"100.male.33.indUnk.Leo.xml": b"<Blog>\n</Blog>"}, "no line of a blogger under 20 or over 30"),
            ({"readme.txt": b"x"}, "no file in it ends in .xml"),
        ],
    )
    def test_what_is_not_of_the_corpus(self, write_blogs, files, reason):
        folder = write_blogs(files)
        message = refused(load_blogs().load)
        assert message.startswith(f"{folder}: ")
        assert reason in message

    def test_a_group_that_is_empty(self, write_blogs):
        folder = write_blogs({name: content for name, content in blogs().items() if "female" not in name})
        message = refused(load_blogs().load)
        assert message == f"{folder}: a group of age and gender has no text in train; balanced: false keeps the others"

    def test_a_missing_file_and_an_unknown_option(self):
        assert "https://u.cs.biu.ac.il/~koppel/blogs/blogs.zip: cannot be fetched" in refused(load_blogs().load)
        assert BlogAuthorship.state().startswith("missing: fetched from u.cs.biu.ac.il")
        message = refused(lambda: build(BlogAuthorship, {"dominance": 1.0}, "suite"))
        assert message.startswith("suite.dominance: 1.0 is not allowed")


def test_the_share_of_the_dominating_topic():
    texts = (f"{COLOURS} {COLOURS}", f"{ANIMALS} {ANIMALS}") * 20
    model = TopicModel.fit(texts, 2, 10, 0)
    labels, shares = model.dominating([*texts[:2], f"{COLOURS} {ANIMALS}", "unheard"])
    assert labels.tolist() == model.label([*texts[:2], f"{COLOURS} {ANIMALS}", "unheard"]).tolist()
    assert shares[:2].min() > 0.9
    assert 0.5 <= shares[2] < 0.6
    assert shares[3] == 0.5  # a text without a known word is of both topics alike
    np.testing.assert_array_equal(labels[:2], model.label(texts[:2]))


def test_members_of_a_folder_and_of_a_zip_read_alike(tmp_path):
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
    assert "no file in it ends in .csv" in refused(lambda: list(read_members(tmp_path / "tree.zip", ".csv")))
    assert "damaged" in refused(lambda: list(read_members(tmp_path / "missing.zip", ".csv")))
