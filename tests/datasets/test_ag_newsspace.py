"""AG from its XML file, with persons as secrets; all sentences are invented."""

import bz2
import gzip
import hashlib

import pytest
from loading import everything, refused, rows_of, sizes

from leakboard.datasets.ag_newsspace import AgNewsspace, read_items

pytestmark = pytest.mark.usefixtures("data")


NEWS = ("source", "url", "title", "image", "category", "description", "rank", "pubdate")


def item(number, category="World", **changes):
    values = dict.fromkeys(NEWS, "none") | {"title": f"Title {number}", "category": category, "rank": "5"}
    return values | {"description": f"Bob spoke {number} times."} | changes


def news(items):
    fields = "\n".join("".join(f"<{tag}>{text}</{tag}>" for tag, text in entry.items()) for entry in items)
    return f'<?xml version="1.0"?>\n<all_news>\n{fields}\n</all_news>\n'


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

    def test_no_text_is_in_two_splits(self, write_news):
        copies = [item(n % 10, self.TOPICS[n % 4]) for n in range(60)]
        write_news(copies)
        corpus = AgNewsspace(entities=1).load()
        assert corpus.checks["dev_copies"] == corpus.checks["test_copies"] == 0
        assert sizes(corpus) == {"train": 48, "dev": 6, "test": 6}
        assert corpus.checks["conflicting_labels"] == 10

    def test_dev_and_test_influence_the_choice_only_on_request(self, write_news):
        write_news(self.ITEMS)
        test = AgNewsspace(entities=1).load().splits["test"]["row"]
        items = [entry | {"image": "x"} for entry in self.ITEMS]
        # The split depends only on the order of the texts, so now only test texts name Rare often.
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
    def test_packed_files_give_the_same_corpus(self, write_news, name, pack):
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
    def test_a_malformed_file(self, write_news, content, reason):
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
        assert message.startswith("https://groups.di.unipi.it/~gulli/newsspace200.xml.bz: cannot be fetched")
        assert AgNewsspace.availability().startswith("not fetched yet: from groups.di.unipi.it when first used")
