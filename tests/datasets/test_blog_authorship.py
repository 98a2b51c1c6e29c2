"""The blog corpus: authors of lines, dominating topics, balanced groups; all sentences are invented."""

import dataclasses
import hashlib
import zipfile
from collections import Counter

import numpy as np
import pytest
from loading import everything, refused, rows_of, sizes

from leakboard.datasets import blog_authorship
from leakboard.datasets._preparation.topics import TopicModel
from leakboard.datasets.blog_authorship import BlogAuthorship
from leakboard.suite.options import build

pytestmark = pytest.mark.usefixtures("data")


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
        assert sizes(corpus) == {"train": 72, "dev": 24, "test": 24}
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
            groups = Counter(zip(whole.column(split, "age"), whole.column(split, "gender"), strict=True))
            left = Counter(zip(cut.column(split, "age"), cut.column(split, "gender"), strict=True))
            assert left == dict.fromkeys(groups, min(groups.values()))
            assert len(left) == 4
            dropped += sum(groups.values()) - 4 * min(groups.values())
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
        assert corpus.checks["dropped_copies"] == 40 - 8  # 24 + 8 bloggers lose theirs; those of the 8 in test are kept
        assert corpus.checks["test_copies"] == 0

    def test_the_zip_is_the_published_one_or_refused(self, data, write_blogs, monkeypatch):
        def pin(checksum):
            file = dataclasses.replace(blog_authorship.CORPUS.file, checksum=checksum)
            monkeypatch.setattr(blog_authorship, "CORPUS", dataclasses.replace(blog_authorship.CORPUS, file=file))

        folder = write_blogs(blogs())
        whole = everything(load_blogs().load())
        assert BlogAuthorship.availability() == "there"
        assert load_blogs().fingerprint().startswith("folder:")
        path = data / "blog_authorship" / "blogs.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in folder.iterdir():
                archive.write(file, f"blogs/{file.name}")
            archive.writestr("__MACOSX/blogs/._100.male.15.indUnk.Leo.xml", b"\0")
        folder.rename(data / "elsewhere")
        assert load_blogs().fingerprint() == blog_authorship.CORPUS.file.checksum
        assert f"{path}: checksum sha256:" in refused(load_blogs().load)
        checksum = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
        pin(checksum)
        assert everything(load_blogs().load()) == whole
        path.write_bytes(path.read_bytes()[:2000])
        pin("")
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
    def test_files_of_another_corpus(self, write_blogs, files, reason):
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
        assert BlogAuthorship.availability().startswith("not fetched yet: from u.cs.biu.ac.il")
        message = refused(lambda: build(BlogAuthorship, {"dominance": 1.0}, "suite"))
        assert message.startswith("suite.dominance: 1.0 is not allowed")


def test_the_share_of_the_dominating_topic():
    texts = (f"{COLOURS} {COLOURS}", f"{ANIMALS} {ANIMALS}") * 20
    model = TopicModel.fit(texts, 2, 10, 0)
    labels, shares = model.dominating([*texts[:2], f"{COLOURS} {ANIMALS}", "unheard"])
    assert labels.tolist() == model.label([*texts[:2], f"{COLOURS} {ANIMALS}", "unheard"]).tolist()
    assert shares[:2].min() > 0.9
    assert 0.5 <= shares[2] < 0.6
    assert shares[3] == 0.5  # a text without a known word has equal shares
    np.testing.assert_array_equal(labels[:2], model.label(texts[:2]))
