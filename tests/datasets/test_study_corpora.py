"""Corpora of the word2vec study and of DPUGC: without network, with wrong files, and in small samples."""

import dataclasses
import gzip
import hashlib
import zipfile

import pandas as pd
import pytest
from loading import by_row, refused, sizes

from leakboard.datasets import ag_news, quora, text8
from leakboard.datasets._preparation.random_rows import sample
from leakboard.datasets.ag_news import AgNews
from leakboard.datasets.quora import Quora
from leakboard.datasets.statuses import Statuses
from leakboard.datasets.tatoeba import Tatoeba
from leakboard.datasets.text8 import Text8
from leakboard.datasets.tweets import Tweets
from leakboard.datasets.yelp_polarity import YelpPolarity
from leakboard.suite.options import build

pytestmark = pytest.mark.usefixtures("data")


CORPORA = {
    "ag_news": (AgNews(), "https://huggingface.co/datasets/fancyzhx/ag_news/resolve/", "ag_news/ag_news_train.parquet"),
    "yelp_polarity": (
        YelpPolarity(),
        "https://huggingface.co/datasets/fancyzhx/yelp_polarity/resolve/",
        "yelp_polarity/yelp_polarity_train.parquet",
    ),
    "quora": (Quora(), "https://qim.fs.quoracdn.net/", "quora/quora_duplicate_questions.tsv"),
    "quora_kaggle": (Quora(file="train.csv"), "https://www.kaggle.com/c/quora-question-pairs", "quora/train.csv"),
    "tatoeba": (Tatoeba(), "https://www.manythings.org/anki/fra-eng.zip", "tatoeba/fra-eng.zip"),
    "tweets": (Tweets(), "https://github.com/Marsan-Ma-zz/chat_corpus/raw/", "tweets/twitter_en.txt.gz"),
    "tweets_big": (Tweets(size="big"), "https://github.com/Marsan-Ma-zz/chat_corpus", "tweets/twitter_en_big.txt.gz"),
    "text8": (Text8(), "https://mattmahoney.net/dc/text8.zip", "text8/text8.zip"),
    "statuses": (Statuses(), "https://raw.githubusercontent.com/sonvx/dpText/", "statuses/Full_Data.csv"),
}


@pytest.mark.parametrize("name", CORPORA)
def test_without_network_the_message_says_what_to_get_and_where_to_put_it(name):
    dataset, address, location = CORPORA[name]
    message = refused(dataset.load)
    assert "cannot be fetched" in message
    assert address in message
    assert f"put the file at {location} in a folder and set LEAKBOARD_DATA to that folder" in message
    assert type(dataset).availability().startswith("not fetched yet")


@pytest.mark.parametrize("name", ["ag_news", "quora", "text8", "statuses", "tweets"])
def test_a_file_that_is_not_the_published_one_is_refused(name, data):
    dataset, _, location = CORPORA[name]
    path = data / location
    path.parent.mkdir()
    path.write_text("forged")
    assert refused(dataset.load).endswith("not the published file")


@pytest.mark.parametrize("name", ["yelp_polarity", "tatoeba", "tweets_big", "quora_kaggle"])
def test_a_file_without_a_published_checksum_is_identified_by_its_own(name, data):
    dataset, _, location = CORPORA[name]
    path = data / location
    path.parent.mkdir()
    path.write_text("anything")
    if name == "yelp_polarity":
        path.with_name("yelp_polarity_test.parquet").write_text("anything")
    checksum = "sha256:" + hashlib.sha256(b"anything").hexdigest()
    assert dataset.fingerprint() == (f"{checksum},{checksum}" if name == "yelp_polarity" else checksum)


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
def test_a_wrong_option_is_refused(cls, options, reason):
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


@pytest.mark.usefixtures("own_files")
class TestTweets:
    """One tweet in each line."""

    LINES = tuple(f"tweet {i}  about the old mill @user{i} and {i} more words of no use #mill" for i in range(40))

    def write(self, data, content, name="twitter_en.txt.gz"):
        (data / "tweets").mkdir(exist_ok=True)
        path = data / "tweets" / name
        path.write_bytes(gzip.compress(content))
        return path

    def test_tweets_are_kept_or_cut(self, data):
        self.write(data, "\n".join(self.LINES).encode())
        assert by_row(Tweets().load()) == dict(enumerate(self.LINES))
        cut = by_row(Tweets(max_words=10).load())
        assert cut[3] == "tweet 3 about the old mill @user3 and 3 more"
        assert by_row(Tweets(max_words=99).load())[3] == " ".join(self.LINES[3].split())

    def test_whole_tweets_are_kept_once(self, data):
        """Tweets that agree only up to the cut are kept both, as in the study."""
        again = ("TWEET 3 about the old mill, @user3 and 3 more words of no use mill!", f"{self.LINES[4]} indeed")
        self.write(data, "\n".join([*self.LINES, *again]).encode())
        corpus = Tweets(max_words=5).load()
        assert by_row(corpus)[4] == by_row(corpus)[41] == "tweet 4 about the old"
        assert (len(by_row(corpus)), corpus.checks["dropped_copies"]) == (41, 1)
        assert len(by_row(Tweets(duplicates="keep").load())) == 42

    def test_a_share_as_in_the_study(self, data):
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
        message = "2 bad lines (line 2: tweet is empty; line 3: bytes that are not UTF-8)"
        assert message in refused(Tweets(on_bad_rows="error").load)

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
    def test_only_the_first_words(self, data, monkeypatch, block, words):
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


@pytest.mark.usefixtures("own_files")
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
