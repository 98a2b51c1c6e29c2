"""Corpora of the word2vec study and of DPUGC: their real formats in small, with invented sentences."""

import csv
import dataclasses
import gzip
import hashlib
import zipfile
from textwrap import dedent

import pandas as pd
import pytest
from loading import by_row, refused, sizes

from leakboard.data.tabular import read_lines, read_rows
from leakboard.datasets import ag_news, quora, text8, yelp_polarity
from leakboard.datasets._sampling import sample
from leakboard.datasets.ag_news import AgNews
from leakboard.datasets.quora import Quora
from leakboard.datasets.statuses import Statuses
from leakboard.datasets.tatoeba import Tatoeba
from leakboard.datasets.text8 import Text8
from leakboard.datasets.tweets import Tweets
from leakboard.datasets.yelp_polarity import YelpPolarity
from leakboard.suite.options import build
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite

pytestmark = pytest.mark.usefixtures("data")


CORPORA = {
    "ag_news": (AgNews(), "https://huggingface.co/datasets/fancyzhx/ag_news/resolve/", "ag_news/ag_news_train.parquet"),
    "yelp_polarity": (
        YelpPolarity(),
        "https://huggingface.co/datasets/fancyzhx/yelp_polarity/resolve/",
        "yelp_polarity/yelp_polarity_train.parquet",
    ),
    "quora": (Quora(), "http://qim.fs.quoracdn.net/", "quora/quora_duplicate_questions.tsv"),
    "quora_kaggle": (Quora(file="train.csv"), "https://www.kaggle.com/c/quora-question-pairs", "quora/train.csv"),
    "tatoeba": (Tatoeba(), "https://www.manythings.org/anki/fra-eng.zip", "tatoeba/fra-eng.zip"),
    "tweets": (Tweets(), "https://github.com/Marsan-Ma-zz/chat_corpus/raw/", "tweets/twitter_en.txt.gz"),
    "tweets_big": (Tweets(size="big"), "https://github.com/Marsan-Ma-zz/chat_corpus", "tweets/twitter_en_big.txt.gz"),
    "text8": (Text8(), "http://mattmahoney.net/dc/text8.zip", "text8/text8.zip"),
    "statuses": (Statuses(), "https://raw.githubusercontent.com/sonvx/dpText/", "statuses/Full_Data.csv"),
}


@pytest.mark.parametrize("name", CORPORA)
def test_without_network_one_line_says_what_to_get_and_where_to_put_it(name):
    dataset, address, place = CORPORA[name]
    told = refused(dataset.load)
    assert "cannot be fetched" in told
    assert address in told
    assert f"put the file at {place} in a folder and set LEAKBOARD_DATA to that folder" in told
    assert type(dataset).availability().startswith(("missing", "2 of 2 files missing"))


@pytest.mark.parametrize("name", ["ag_news", "quora", "text8"])
def test_a_file_that_is_not_the_published_one_is_refused(name, data):
    dataset, _, place = CORPORA[name]
    path = data / place
    path.parent.mkdir()
    path.write_text("forged")
    assert refused(dataset.load).endswith("not the published file")


@pytest.mark.parametrize("name", ["yelp_polarity", "tatoeba", "tweets", "tweets_big", "statuses", "quora_kaggle"])
def test_a_file_without_a_known_checksum_is_identified_by_its_own(name, data):
    dataset, _, place = CORPORA[name]
    path = data / place
    path.parent.mkdir()
    path.write_text("anything")
    if name == "yelp_polarity":
        path.with_name("yelp_polarity_test.parquet").write_text("anything")
    found = "sha256:" + hashlib.sha256(b"anything").hexdigest()
    assert dataset.fingerprint() == (f"{found},{found}" if name == "yelp_polarity" else found)


def test_a_known_checksum_identifies_a_corpus_without_its_file():
    assert AgNews().fingerprint() == ",".join(ag_news.CHECKSUMS.values())
    assert Quora().fingerprint() == quora.CHECKSUM
    assert Text8().fingerprint().startswith("sha256:a6640522afe85d19")


@pytest.mark.parametrize(
    ("cls", "options", "reason"),
    [
        (AgNews, {"train_rows": 1}, "train_rows"),
        (AgNews, {"duplicates": "maybe"}, "duplicates: 'maybe' is not allowed"),
        (Quora, {"column": "question3"}, "did you mean 'question"),
        (Quora, {"share": 0.0}, "share: 0.0 is not allowed"),
        (Quora, {"share": 1.5}, "share: 1.5 is not allowed"),
        (Quora, {"dev_share": 1.0}, "dev_share: 1.0 is not allowed"),
        (Tatoeba, {"language": "german"}, "language: 'german' is not allowed"),
        (Tweets, {"max_words": 0}, "max_words: 0 is not allowed"),
        (Text8, {"words_per_text": 0}, "words_per_text: 0 is not allowed"),
        (Statuses, {"unit": "line"}, "unit: 'line' is not allowed"),
        (Statuses, {"task": "extroversion"}, "did you mean 'extraversion'?"),
        (Statuses, {"users": 3}, "unknown name 'users'"),
    ],
)
def test_a_wrong_option_is_told(cls, options, reason):
    assert reason in refused(lambda: build(cls, options, "suite"))


class TestSample:
    FRAME = pd.DataFrame({"row": range(50)})

    def test_a_share_of_the_rows_in_their_order(self):
        drawn = sample(self.FRAME, 0.3, 7)["row"].tolist()
        assert len(set(drawn)) == 15
        assert drawn == sorted(drawn)
        assert drawn == sample(self.FRAME, 0.3, 7)["row"].tolist()
        assert drawn != sample(self.FRAME, 0.3, 8)["row"].tolist()

    def test_all_and_at_least_one(self):
        assert sample(self.FRAME, 1.0, 0)["row"].tolist() == list(range(50))
        assert len(sample(self.FRAME, 0.001, 0)) == 1


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

    def test_the_first_rows_alone_as_in_the_study(self, case):
        cls, _, write = case
        write(self.TRAIN, self.TEST)
        corpus = cls(train_rows=20).load()
        assert sizes(corpus) == {"train": 19, "dev": 1, "test": 6}
        assert list(by_row(corpus)) == [*range(20), *range(40, 46)]
        other = cls(train_rows=20, split_seed=1).load()
        assert other.texts("dev").rows.tolist() != corpus.texts("dev").rows.tolist()
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
        told = refused(cls().load)
        assert reason in told
        assert str(folder) in told
        corpus = cls(on_bad_rows="drop").load()
        assert corpus.checks["dropped_rows"] == 1
        assert sum(sizes(corpus).values()) == 46

    def test_files_that_are_none(self, case):
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


class TestQuora:
    """Pairs of questions."""

    HEADER = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")
    PAIRS = (
        ('Who said "never\nagain"?', "Who said it?"),
        ("Where is the tall mill?", ""),
        *((f"What is the colour of box {i}?", f"Which colour\thas box {i}?") for i in range(38)),
    )

    @pytest.fixture(autouse=True)
    def folder(self, data, monkeypatch):
        file = quora.FILES["quora_duplicate_questions.tsv"]
        monkeypatch.setitem(quora.FILES, file.name, dataclasses.replace(file, checksum=""))
        (data / "quora").mkdir()
        return data / "quora"

    def write(self, path, pairs=PAIRS):
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t" if path.suffix == ".tsv" else ",", lineterminator="\n")
            writer.writerow(self.HEADER)
            writer.writerows((i, 2 * i + 1, 2 * i + 2, *pair, i % 2) for i, pair in enumerate(pairs))
        return path

    @pytest.mark.parametrize("name", quora.FILES)
    def test_either_column_of_every_file(self, folder, name):
        self.write(folder / name)
        first, second = (Quora(file=name, column=column).load() for column in ("question1", "question2"))
        assert by_row(first) == {i: pair[0] for i, pair in enumerate(self.PAIRS)}
        assert by_row(second) == {i: pair[1] for i, pair in enumerate(self.PAIRS) if i != 1}
        assert (first.checks["blank_rows"], second.checks["blank_rows"]) == (0, 1)
        assert first.checks["source_rows"] == second.checks["sampled_rows"] == 40
        assert sizes(first) == {"train": 36, "dev": 2, "test": 2}
        assert first.secrets == ()
        assert not first.has_labels
        own = name == "quora_duplicate_questions.tsv"
        assert (Quora.availability() == "there") is own
        assert Quora.availability().endswith("there" if own else f"; file: {name} is there")

    def test_a_random_share_of_the_rows(self, folder):
        self.write(folder / "quora_duplicate_questions.tsv")
        corpus = Quora(share=0.4).load()
        assert corpus.checks["sampled_rows"] == sum(sizes(corpus).values()) == 16
        assert by_row(corpus) == by_row(Quora(share=0.4, split_seed=5).load())
        assert by_row(corpus) != by_row(Quora(share=0.4, sample_seed=5).load())
        assert Quora(column="question2", share=0.7).load().checks["sampled_rows"] == 28

    def test_a_question_asked_twice_is_in_one_split(self, folder):
        self.write(folder / "quora_duplicate_questions.tsv", [("Is it so?", "Is it?")] * 10 + list(self.PAIRS))
        corpus = Quora(test_share=0.3).load()
        assert sum("Is it so?" in split["text"][:] for split in corpus.splits.values()) == 1
        assert sum(sizes(corpus).values()) == 50
        assert corpus.checks["test_copies"] == corpus.checks["dev_copies"] == 0

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"40\t81\t82\tOne question only?\n", "row 41: too few fields"),
            (b"40\t81\t82\tna\xefve?\tWhat?\t0\n", "row 41: question1 has bytes that are not UTF-8"),
        ],
    )
    def test_bad_rows(self, folder, line, reason):
        path = self.write(folder / "quora_duplicate_questions.tsv")
        path.write_bytes(path.read_bytes() + line)
        assert reason in refused(Quora().load)
        corpus = Quora(on_bad_rows="drop").load()
        assert (corpus.checks["source_rows"], corpus.checks["dropped_rows"]) == (41, 1)
        assert len(by_row(corpus)) == 40

    def test_broken_files(self, folder):
        path = self.write(folder / "quora_duplicate_questions.tsv")
        path.write_bytes(path.read_bytes() + b'40\t81\t82\t"never closed\tWhat?\t0\n')
        assert "line 43: unexpected end of data" in refused(Quora().load)  # one question has two lines
        path.write_text("id\tquestion\n1\tWhat?\n")
        assert "no column 'question1' (there are: id, question)" in refused(Quora().load)

    def test_the_suite_of_the_docstring(self, tmp_path):
        block = quora.__doc__.split("\n\n")[2]
        path = tmp_path / "study.yaml"
        path.write_text(f"{dedent(block)}\nvictims: [word2vec]\nattacks: [nearest_neighbour]\n")
        registry = Registry()
        same_site, other_genre = load_suite(str(path), registry).sources
        assert same_site.regime is other_genre.regime is None
        assert same_site.corpus.build(registry) == Quora(column="question1", share=0.4)
        assert same_site.other.build(registry) == Quora(column="question2", share=0.7)
        assert other_genre.other.build(registry) == Tweets(max_words=10, share=0.3)
        assert same_site.label == "quora(auxiliary=quora(column=question2, share=0.7), share=0.4)"


class TestTatoeba:
    """Pairs of sentences in a zip."""

    LINES = (
        "The mill stands.\tLe moulin est debout.\tCC-BY 2.0 (France) Attribution: invented.org #1 (a) & #2 (b)",
        "The mill stands!\tLe moulin tient.\tCC-BY 2.0 (France) Attribution: invented.org #1 (a) & #3 (b)",
        "The mill turns.\tLe moulin est debout.",
        *(f"Box {i} is red.\tLa boîte {i} est rouge, n'est-ce pas ?" for i in range(37)),
    )

    def write(self, data, content, member="fra.txt"):
        (data / "tatoeba").mkdir(exist_ok=True)
        path = data / "tatoeba" / "fra-eng.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("_about.txt", "About the file.\n")
            archive.writestr(member, content if isinstance(content, bytes) else "\n".join([*content, ""]))
        return path

    def test_either_language_without_its_copies(self, data):
        self.write(data, self.LINES)
        english, french = Tatoeba().load(), Tatoeba(language="french").load()
        assert by_row(english) == {i: line.split("\t")[0] for i, line in enumerate(self.LINES) if i != 1}
        assert by_row(french) == {i: line.split("\t")[1] for i, line in enumerate(self.LINES) if i != 2}
        for corpus in (english, french):
            assert corpus.checks["dropped_copies"] == 1
            assert corpus.checks["source_rows"] == 40
            assert sizes(corpus) == {"train": 35, "dev": 2, "test": 2}
            assert corpus.secrets == ()
            assert not corpus.has_labels

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"No French here\n", "line 41: 1 fields, not English, French and perhaps an attribution"),
            (b"a\tb\tc\td\n", "line 41: 4 fields"),
            (b" \tRien\n", "line 41: english is empty"),
            (b"na\xefve\tna\xefve\n", "line 41: bytes that are not UTF-8"),
        ],
    )
    def test_bad_lines(self, data, line, reason):
        self.write(data, "\n".join([*self.LINES, ""]).encode() + line)
        told = refused(Tatoeba().load)
        assert f"fra-eng.zip: 1 bad lines ({reason}" in told
        corpus = Tatoeba(on_bad_rows="drop").load()
        assert (corpus.checks["source_rows"], corpus.checks["dropped_rows"]) == (41, 1)
        assert len(by_row(corpus)) == 39

    def test_broken_archives(self, data):
        self.write(data, self.LINES, member="deu.txt")
        assert "no file 'fra.txt' in it (there are: _about.txt, deu.txt)" in refused(Tatoeba().load)
        path = self.write(data, self.LINES)
        path.write_bytes(path.read_bytes()[:-40])
        assert "truncated or damaged" in refused(Tatoeba().load)


class TestTweets:
    """One tweet a line."""

    LINES = tuple(f"tweet {i}  about the old mill @user{i} and {i} more words of no use #mill" for i in range(40))

    def write(self, data, content, name="twitter_en.txt.gz"):
        (data / "tweets").mkdir(exist_ok=True)
        path = data / "tweets" / name
        path.write_bytes(gzip.compress(content))
        return path

    def test_tweets_are_as_they_are_or_cut(self, data):
        self.write(data, "\n".join(self.LINES).encode())
        assert by_row(Tweets().load()) == dict(enumerate(self.LINES))
        cut = by_row(Tweets(max_words=10).load())
        assert cut[3] == "tweet 3 about the old mill @user3 and 3 more"
        assert by_row(Tweets(max_words=99).load())[3] == " ".join(self.LINES[3].split())

    def test_the_study_takes_a_share(self, data):
        self.write(data, "\n".join(self.LINES).encode(), "twitter_en_big.txt.gz")
        corpus = Tweets(size="big", share=0.3, max_words=10).load()
        assert corpus.checks["sampled_rows"] == sum(sizes(corpus).values()) == 12
        assert all(len(tweet.split()) == 10 for tweet in by_row(corpus).values())
        assert corpus.checks["test_copies"] == 0

    def test_bad_lines_are_counted_or_refused(self, data):
        self.write(data, b"\r\n".join([b"first", b"", b"na\xefve", *(line.encode() for line in self.LINES)]))
        corpus = Tweets().load()
        assert by_row(corpus) == {0: "first"} | {i + 3: line for i, line in enumerate(self.LINES)}
        assert (corpus.checks["source_rows"], corpus.checks["dropped_rows"]) == (43, 2)
        told = refused(Tweets(on_bad_rows="error").load)
        assert "2 bad lines (line 2: tweet is empty; line 3: bytes that are not UTF-8)" in told

    def test_broken_archives(self, data):
        path = self.write(data, "\n".join(self.LINES).encode())
        path.write_bytes(path.read_bytes()[:-20])
        assert "truncated or damaged" in refused(Tweets().load)
        self.write(data, b"\n\n")
        assert "no usable lines" in refused(Tweets().load)


class TestText8:
    """One line of words."""

    WORDS = tuple("".join(chr(ord("a") + int(digit)) for digit in str(i)) for i in range(100))

    @pytest.fixture(autouse=True)
    def _unpinned(self, data, monkeypatch):
        monkeypatch.setattr(text8, "FILE", dataclasses.replace(text8.FILE, checksum=""))
        (data / "text8").mkdir()

    def write(self, data, content):
        path = data / "text8" / "text8.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("text8", content)
        return path

    @pytest.mark.parametrize("block", [1, 7, 2**20])
    @pytest.mark.parametrize("end", ["", " ", "\n"])
    def test_cut_in_reading_order(self, data, monkeypatch, block, end):
        monkeypatch.setattr(text8, "BLOCK", block)
        self.write(data, " " + " ".join(self.WORDS) + end)
        corpus = Text8(words_per_text=7, test_share=0.2).load()
        texts = by_row(corpus)
        assert " ".join(texts.values()).split() == list(self.WORDS)
        assert [len(text.split()) for text in texts.values()] == [7] * 14 + [2]
        assert list(texts) == list(range(15))
        assert sizes(corpus) == {"train": 11, "dev": 1, "test": 3}
        assert corpus.secrets == ()
        assert not corpus.has_labels

    @pytest.mark.parametrize("block", [5, 2**20])
    @pytest.mark.parametrize("words", [29, 30, 100])
    def test_the_first_words_alone(self, data, monkeypatch, block, words):
        monkeypatch.setattr(text8, "BLOCK", block)
        self.write(data, " " + " ".join(self.WORDS))
        texts = by_row(Text8(words_per_text=10, words=words).load())
        assert " ".join(texts.values()).split() == list(self.WORDS[:words])

    def test_broken_files(self, data, monkeypatch):
        self.write(data, " " + " ".join(self.WORDS))
        assert "100 words, fewer than words=101" in refused(Text8(words_per_text=10, words=101).load)
        monkeypatch.setattr(text8, "BLOCK", 4)
        self.write(data, "abc def Ghi")
        assert "byte 8 of text8 is b'G'; allowed: a to z and blanks" in refused(Text8().load)
        self.write(data, "")
        assert "0 words" in refused(Text8().load)
        path = self.write(data, " ".join(self.WORDS) * 50)
        path.write_bytes(path.read_bytes()[:100])
        assert "truncated or damaged" in refused(Text8().load)


class TestReading:
    """What the one reader learned for these corpora."""

    def test_a_delimiter_of_its_own(self, tmp_path):
        (tmp_path / "a.csv").write_text('text;label\n"one; two";1\nthree, four;0\n')
        found = read_rows(str(tmp_path / "a.csv"), ("text", "label"), dict, "error", delimiter=";")
        assert found.rows == [{"text": "one; two", "label": "1"}, {"text": "three, four", "label": "0"}]

    def test_lines_end_at_line_breaks_alone(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_bytes("\ufeffone\u2028half\x0bmore\r\ntwo\nthree".encode())
        found = read_lines(path, lambda line: {"text": line}, "error")
        assert [row["text"] for row in found.rows] == ["one\u2028half\x0bmore", "two", "three"]
        assert found.numbers == [0, 1, 2]


def test_attacks_on_attributes_are_skipped_where_there_are_no_secrets(data, bench, command_line):
    TestTweets().write(data, "\n".join(f"a tweet of the mill number {i}" for i in range(60)).encode())
    small = {"word2vec": {"vector_size": 4, "min_count": 2, "epochs": 1}}
    bench.suite(datasets=["tweets"], victims=[small], attacks=["ridge", "nearest_neighbour"])
    code, _, err = command_line(*bench.arguments("run"))
    assert code == 0, err
    table = bench.leaderboard().droplevel("victim")
    skipped = pd.read_csv(bench.run / "skipped.csv", index_col="attack")["reason"]
    assert skipped.to_dict() == {"ridge": "tweets has no attribute secrets"}
    assert 0 <= float(table.loc["nearest_neighbour", "attack_score"]) <= 1
