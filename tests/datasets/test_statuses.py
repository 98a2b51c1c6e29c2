"""Statuses with scores of personality: codes, users and numeric targets; all sentences are invented."""

import csv

import pytest
from loading import by_row, refused, sizes

from leakboard.data.corpora import load_corpus, save_corpus
from leakboard.datasets.statuses import Statuses

pytestmark = pytest.mark.usefixtures("data")


NO = {"EXT": "1", "NEU": "9", "AGR": "5", "CON": "7", "OPN": "3"}
YES = {"EXT": "0", "NEU": "8", "AGR": "4", "CON": "6", "OPN": "2"}
TRAITS = ("extraversion", "neuroticism", "agreeableness", "conscientiousness", "openness")


def author(number, text=None, scores=None, classes=None):
    """Return a row of the file: odd authors have every trait, even ones none."""
    text = f'is at the mill {number}\nsaid "no;" to plan {number}' if text is None else text
    codes = (YES if number % 2 else NO) | (classes or {})
    points = dict.fromkeys(NO, f"{1 + number / 4:g}") | (scores or {})
    ends = ["01/02/03 04:05 AM", "141.0", "8399.66", "86.33", "0.07", "9196.0", "0.47", "0.31", "0.5"]
    return [str(number), f"user{number}", text, *points.values(), *codes.values(), *ends]


@pytest.mark.usefixtures("own_files")
class TestStatuses:
    """One row for each author."""

    HEADER = ("", "AUTHID", "STATUS", *("s" + e for e in NO), *("c" + e for e in NO), "DATE", "NETWORKSIZE")
    HEADER += ("BETWEENNESS", "NBETWEENNESS", "DENSITY", "BROKERAGE", "NBROKERAGE", "TRANSITIVITY", "Linear")

    def write(self, data, authors=None):
        (data / "statuses").mkdir(exist_ok=True)
        path = data / "statuses" / "Full_Data.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter=";", lineterminator="\n")
            writer.writerow(self.HEADER)
            writer.writerows([author(i) for i in range(10)] if authors is None else authors)
        return path

    def test_every_status_is_a_text_of_its_user(self, data):
        self.write(data)
        corpus = Statuses().load()
        expected = [text for i in range(10) for text in (f"is at the mill {i}", f'said "no;" to plan {i}')]
        assert by_row(corpus) == dict(enumerate(expected))
        assert by_row(corpus, "user") == {row: f"user{row // 2}" for row in range(20)}
        assert [(s.name, s.values, s.kind) for s in corpus.secrets] == [
            (trait, ("no", "yes"), "attribute") for trait in TRAITS
        ]
        for trait in TRAITS:
            assert by_row(corpus, trait) == {row: row // 2 % 2 for row in range(20)}
            assert by_row(corpus, f"{trait}_score") == {row: 1 + row // 2 / 4 for row in range(20)}
        assert corpus.numeric_targets == tuple(f"{trait}_score" for trait in TRAITS)
        assert corpus.splits["train"].features["openness_score"].dtype == "float64"
        assert not corpus.has_labels

    def test_users_stay_together(self, data):
        self.write(data)
        users = {split: set(part["user"]) for split, part in Statuses().load().splits.items()}
        assert {split: len(names) for split, names in users.items()} == {"train": 7, "dev": 1, "test": 2}
        assert len(set.union(*users.values())) == 10

    def test_a_user_as_one_text(self, data):
        self.write(data)
        corpus = Statuses(unit="user").load()
        assert by_row(corpus) == {2 * i: f'is at the mill {i}\nsaid "no;" to plan {i}' for i in range(10)}
        assert sizes(corpus) == {"train": 7, "dev": 1, "test": 2}
        assert by_row(corpus, "neuroticism") == {2 * i: i % 2 for i in range(10)}

    def test_a_class_as_the_task(self, data):
        self.write(data)
        corpus = Statuses(task="agreeableness").load()
        assert corpus.values("label") == ("no", "yes")
        assert by_row(corpus, "label") == {row: row // 2 % 2 for row in range(20)}
        assert [secret.name for secret in corpus.secrets] == [trait for trait in TRAITS if trait != "agreeableness"]
        assert "agreeableness" not in corpus.splits["train"].features
        assert "agreeableness_score" in corpus.numeric_targets

    def test_letters_for_classes_and_commas_in_scores(self, data):
        letters = {"EXT": "y", "NEU": "n", "AGR": "y", "CON": "n", "OPN": "y"}
        odd = author(10, classes=letters, scores={"EXT": "3,25", "OPN": "5"})
        self.write(data, [*(author(i) for i in range(10)), odd])
        corpus = Statuses().load()
        assert [by_row(corpus, trait)[20] for trait in TRAITS] == [1, 0, 1, 0, 1]
        assert by_row(corpus, "extraversion_score")[20] == 3.25
        assert by_row(corpus, "openness_score")[20] == 5.0

    def test_remains_of_other_rows_and_blank_lines_are_counted(self, data):
        text = "good line\n\nglued line\t3.2\t3.6\tn\ty\nuser10\tsecond remains\r\nlast line\n "
        self.write(data, [*(author(i) for i in range(10)), author(10, text)])
        corpus = Statuses().load()
        assert {row: line for row, line in by_row(corpus).items() if row >= 20} == {20: "good line", 24: "last line"}
        assert (corpus.checks["glued_lines"], corpus.checks["blank_lines"]) == (2, 2)
        assert by_row(Statuses(unit="user").load())[20] == "good line\nlast line"

    def test_a_status_of_users_in_two_splits_stays_in_one(self, data):
        self.write(data, [author(i, f"same words\nown words {i}") for i in range(10)])
        corpus = Statuses().load()
        assert [part["text"][:].count("same words") for part in corpus.splits.values()] == [0, 0, 2]
        assert corpus.checks["dropped_copies"] == 8
        assert corpus.checks["test_copies"] == corpus.checks["test_users"] == 0

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            (author(10, scores={"EXT": "nan"}), "row 11: sEXT is 'nan'; allowed: a number from 0 to 5.5"),
            (author(10, scores={"NEU": "inf"}), "row 11: sNEU is 'inf'"),
            (author(10, scores={"AGR": "-0.5"}), "row 11: sAGR is '-0.5'"),
            (author(10, scores={"CON": "38.4"}), "row 11: sCON is '38.4'"),
            (author(10, scores={"OPN": "high"}), "row 11: sOPN is 'high'"),
            (author(10, scores={"OPN": ""}), "row 11: sOPN is ''"),
            (author(10, classes={"EXT": "2"}), "row 11: cEXT is '2'; allowed: 1, 0, n, y"),
            (author(10, classes={"OPN": ""}), "row 11: cOPN is empty"),
            (author(10, text=" \n "), "row 11: STATUS is empty"),
            (author(10)[:8], "row 11: too few fields"),
        ],
    )
    def test_bad_rows(self, data, row, reason):
        self.write(data, [*(author(i) for i in range(10)), row])
        assert reason in refused(Statuses().load)
        corpus = Statuses(on_bad_rows="drop").load()
        assert (corpus.checks["source_rows"], corpus.checks["dropped_rows"]) == (11, 1)
        assert len(by_row(corpus)) == 20

    def test_broken_files(self, data):
        self.write(data, [*(author(i) for i in range(10)), author(3)])
        assert "Full_Data.csv: author 'user3' has more than one row" in refused(Statuses().load)
        path = self.write(data)
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"mill 9", b"m\xefll 9"))
        assert "row 10: STATUS has bytes that are not UTF-8" in refused(Statuses().load)
        path.write_bytes(whole + b'10;user10;"never closed;')
        assert "unexpected end of data" in refused(Statuses().load)
        path.write_bytes(whole.replace(b";", b","))
        assert "no column 'AUTHID'" in refused(Statuses().load)

    def test_a_stored_corpus_keeps_its_scores(self, data, tmp_path):
        self.write(data)
        corpus = Statuses().load()
        (tmp_path / "stored").mkdir()
        save_corpus(corpus, tmp_path / "stored")
        again = load_corpus(tmp_path / "stored")
        assert again.numeric_targets == corpus.numeric_targets
        assert by_row(again, "extraversion_score") == by_row(corpus, "extraversion_score")
