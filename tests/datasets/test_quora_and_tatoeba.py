"""Quora and Tatoeba: their real formats in small, with invented sentences."""

import csv
import dataclasses
import zipfile
from textwrap import dedent

import pytest
from loading import by_row, refused, sizes

from leakboard.datasets import quora
from leakboard.datasets.quora import Quora
from leakboard.datasets.tatoeba import Tatoeba
from leakboard.datasets.tweets import Tweets
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite

pytestmark = pytest.mark.usefixtures("data")


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
        is_own = name == "quora_duplicate_questions.tsv"
        assert (Quora.availability() == "there") is is_own
        assert Quora.availability().endswith("there" if is_own else f"; file: {name} is there")

    def test_a_random_share_of_the_rows(self, folder):
        self.write(folder / "quora_duplicate_questions.tsv")
        corpus = Quora(share=0.4).load()
        assert corpus.checks["sampled_rows"] == sum(sizes(corpus).values()) == 16
        assert by_row(corpus) == by_row(Quora(share=0.4, split_seed=5).load())
        assert by_row(corpus) != by_row(Quora(share=0.4, sample_seed=5).load())
        assert Quora(column="question2", share=0.7).load().checks["sampled_rows"] == 28

    def test_a_question_asked_twice_is_in_one_split(self, folder):
        self.write(folder / "quora_duplicate_questions.tsv", [("Is it so?", "Is it?")] * 10 + list(self.PAIRS))
        corpus = Quora(test_share=0.3, duplicates="keep").load()
        assert sum("Is it so?" in split["text"][:] for split in corpus.splits.values()) == 1
        assert sum(sizes(corpus).values()) == 50
        assert corpus.checks["test_copies"] == corpus.checks["dev_copies"] == 0

    def test_a_question_is_kept_once_after_the_share_is_drawn(self, folder):
        """Case and punctuation make no other question, as in the study."""
        copies = [("Is it so?", "Is it?")] * 10 + [("is it so", "Is it?")] * 10
        self.write(folder / "quora_duplicate_questions.tsv", [*copies, *self.PAIRS])
        corpus, kept = Quora().load(), Quora(duplicates="keep").load()
        assert sum(sizes(corpus).values()) == 41
        assert (corpus.checks["dropped_copies"], kept.checks["dropped_copies"]) == (19, 0)
        share = Quora(share=0.5).load()
        assert share.checks["sampled_rows"] == 30
        assert by_row(share).items() <= by_row(Quora(share=0.5, duplicates="keep").load()).items()

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
        assert f"fra-eng.zip: 1 bad lines ({reason}" in refused(Tatoeba().load)
        corpus = Tatoeba(on_bad_rows="drop").load()
        assert (corpus.checks["source_rows"], corpus.checks["dropped_rows"]) == (41, 1)
        assert len(by_row(corpus)) == 39

    def test_broken_archives(self, data):
        self.write(data, self.LINES, member="deu.txt")
        assert "no file 'fra.txt' in it (there are: _about.txt, deu.txt)" in refused(Tatoeba().load)
        path = self.write(data, self.LINES)
        path.write_bytes(path.read_bytes()[:-40])
        assert "truncated or damaged" in refused(Tatoeba().load)
