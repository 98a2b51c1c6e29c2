"""The DPNR text format, checksums, and the published numbers of AG and Trustpilot."""

import dataclasses
import hashlib

import numpy as np
import pandas as pd
import pytest
from loading import refused, sizes

from leakboard.datasets import trustpilot, trustpilot_dpnr
from leakboard.datasets._preparation.topics import TopicModel
from leakboard.datasets._published import dpnlp
from leakboard.datasets.ag import ENTITIES, TOPICS, Ag
from leakboard.datasets.trustpilot import Trustpilot
from leakboard.datasets.trustpilot_dpnr import TrustpilotDpnr
from leakboard.errors import RequestError
from leakboard.interfaces import Secret

SECRETS = [Secret("first", ("absent", "present"), "entity"), Secret("second", ("absent", "present"), "entity")]
END = "=" * 20
GOOD = ["0\tone\t0 1", "1\ttwo\t", END, "1\tthree\t1", "0\tone\t0 1", END, "0\tfour\t0", END, ""]


def load(tmp_path, lines, labels=("no", "yes"), duplicates="keep"):
    path = tmp_path / "invented.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return dpnlp.load("invented", path, SECRETS, labels, duplicates)


class TestFormat:
    """The text format of the DPNR release."""

    def test_a_good_file(self, tmp_path):
        corpus = load(tmp_path, GOOD)
        assert list(corpus.splits["train"]["text"]) == ["one", "two"]
        assert corpus.column("train", "label").tolist() == [0, 1]
        assert corpus.column("train", "first").tolist() == [1, 0]
        assert corpus.column("train", "second").tolist() == [1, 0]
        assert corpus.column("dev", "second").tolist() == [1, 1]
        assert corpus.texts("test").rows.tolist() == [6]
        assert corpus.checks["dev_copies"] == 0.5
        assert load(tmp_path, GOOD, labels=None).values("label") == ("0", "1")

    def test_copies_leave_train(self, tmp_path):
        corpus = load(tmp_path, GOOD, duplicates="drop")
        assert list(corpus.splits["train"]["text"]) == ["two"]
        assert corpus.checks["dropped_copies"] == 1
        assert corpus.checks["dev_copies"] == 0

    def test_secrets_are_shown_when_asked(self, tmp_path):
        path = tmp_path / "invented.txt"
        path.write_text("\n".join(GOOD), encoding="utf-8")
        secrets = [
            Secret("gender", ("male", "female"), "attribute"),
            Secret("age", ("over 45", "under 35"), "attribute"),
        ]
        corpus = dpnlp.load("invented", path, secrets, None, "keep", show_secrets=True)
        assert list(corpus.texts("train")) == ["genderfemale ageunder35 one", "gendermale ageover45 two"]
        assert list(corpus.texts("test")) == ["genderfemale ageover45 four"]
        assert corpus.column("train", "gender").tolist() == [1, 0]
        assert corpus.checks == dpnlp.load("invented", path, secrets, None, "keep").checks
        grades = [Secret("grade", ("+", "-"), "attribute"), secrets[1]]
        with pytest.raises(RequestError, match="show_secrets: the values of grade make the words grade, grade"):
            dpnlp.load("invented", path, grades, None, "keep", show_secrets=True)

    @pytest.mark.parametrize(
        ("number", "line", "reason"),
        [
            (1, "0\tone", "line 1: 2 fields, not label, text"),
            (2, "1\ttwo\t0\t1", "line 2: 4 fields"),
            (2, "good\ttwo\t0", "line 2: label 'good'"),
            (2, "-1\ttwo\t0", "line 2: label '-1'"),
            (4, "1\tthree\t2", "line 4: label '1', variables '2'; allowed: a number, some of 0, 1"),
            (4, "1\tthree\tx", "variables 'x'"),
            (7, "2\tfour\t0", "label 2 is not one of 0 to 1"),
            (3, "0\tmore\t0", "2 separators of twenty '='"),
            (3, "=" * 19, "line 3: 1 fields"),
            (7, "", "a split has no texts"),
        ],
    )
    def test_a_bad_line_is_named(self, tmp_path, number, line, reason):
        message = refused(lambda: load(tmp_path, [*GOOD[: number - 1], line, *GOOD[number:]]))
        assert reason in message
        assert "invented.txt" in message

    def test_texts_after_the_last_separator_are_refused(self, tmp_path):
        with pytest.raises(RequestError, match="the format ends each of train, dev, test with one"):
            load(tmp_path, [*GOOD, "0\tfive\t0"])

    def test_bytes_that_are_not_utf8(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"0\tna\xefve\t0\n")
        with pytest.raises(RequestError, match="not UTF-8 at byte 4"):
            dpnlp.load("invented", tmp_path / "a.txt", SECRETS, None, "keep")


def test_each_country_of_trustpilot_has_its_own_file(tmp_path, monkeypatch):
    for country, text in (("uk", "a queue"), ("us", "a line")):
        content = "\n".join(line.replace("one", text) for line in GOOD).encode()
        (tmp_path / f"tp_{country}.txt").write_bytes(content)
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        file = dataclasses.replace(trustpilot_dpnr.FILES[country], checksum=f"git:{blob}")
        monkeypatch.setitem(trustpilot_dpnr.FILES, country, file)
    monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path))
    assert TrustpilotDpnr.availability() == "there"
    assert TrustpilotDpnr() == TrustpilotDpnr(country="us")
    countries = {country: TrustpilotDpnr(country=country, duplicates="keep") for country in ("uk", "us")}
    assert [list(c.load().texts("train")) for c in countries.values()] == [["a queue", "two"], ["a line", "two"]]
    assert countries["uk"].fingerprint() != countries["us"].fingerprint()
    assert countries["uk"].load().column("train", "gender").tolist() == [1, 0]


@pytest.fixture(scope="module")
def ag(real_data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKBOARD_DATA", str(real_data))
        return {duplicates: Ag(duplicates=duplicates).load() for duplicates in ("keep", "drop")}


class TestAg:
    """REFERENCE.md, sections 2c and 8, item 8."""

    def test_sizes(self, ag):
        assert sizes(ag["keep"]) == {"train": 11_657, "dev": 1_457, "test": 1_457}
        assert len({text for split in ag["keep"].splits for text in ag["keep"].splits[split]["text"]}) == 11_274

    @pytest.mark.parametrize(
        ("split", "labels", "present", "per_text"),
        [
            ("train", [58.10, 37.09, 0.69, 4.12], [54.28, 25.98, 18.25, 10.31, 10.12], [9_468, 2_171, 18]),
            ("dev", [57.04, 37.06, 1.03, 4.87], [54.77, 25.12, 18.67, 11.05, 9.88], [1_177, 276, 4]),
            ("test", [57.79, 37.61, 0.75, 3.84], [55.11, 25.19, 18.33, 10.23, 8.72], [1_202, 254, 1]),
        ],
    )
    def test_shares(self, ag, split, labels, present, per_text):
        corpus = ag["keep"]
        label = corpus.column(split, "label")
        entities = np.stack([corpus.column(split, name) for name in ENTITIES])
        np.testing.assert_allclose(100 * np.bincount(label) / len(label), labels, atol=0.00501)
        np.testing.assert_allclose(100 * entities.mean(axis=1), present, atol=0.00501)
        assert np.bincount(entities.sum(axis=0)).tolist() == [0, *per_text]
        assert corpus.values("label") == TOPICS

    def test_constant_guesses(self, ag):
        entities = np.stack([ag["keep"].column("test", name) for name in ENTITIES], axis=1)
        only_first, all_present = np.zeros_like(entities), np.ones_like(entities)
        only_first[:, 0] = 1
        for guess, f1 in ((only_first, 0.5066), (all_present, 0.3808)):
            assert 2 * (guess & entities).sum() / (guess.sum() + entities.sum()) == pytest.approx(f1, abs=5e-5)

    def test_copies_are_reported_and_dropped(self, ag):
        assert ag["keep"].checks["dev_copies"] * 1_457 == pytest.approx(493)
        assert ag["keep"].checks["test_copies"] * 1_457 == pytest.approx(477)
        assert ag["keep"].checks["conflicting_labels"] >= 876  # 876 within train alone
        dropped = ag["drop"]
        assert dropped.checks["dev_copies"] == dropped.checks["test_copies"] == 0
        assert len(dropped.splits["test"]) == 1_457
        assert list(dropped.splits["test"]["text"]) == list(ag["keep"].splits["test"]["text"])
        assert dropped.checks["dropped_copies"] == 14_571 - sum(map(len, dropped.splits.values()))


class TestTopics:
    """LDA topics as labels."""

    TEXTS = ("red green blue red", "dog cat mouse dog", "blue green red", "cat mouse dog") * 10

    def test_topics_separate_texts_without_a_common_word(self):
        labels = TopicModel.fit(self.TEXTS, 2, 20, 0).label(self.TEXTS)
        assert labels.tolist() == [labels[0], labels[1]] * 20
        assert labels[0] != labels[1]

    def test_a_label_depends_only_on_its_own_text(self):
        model = TopicModel.fit(self.TEXTS, 2, 2, 0)
        texts = ["red dog", "unknown words", "cat blue mouse", ""]
        assert model.label(texts[::-1]).tolist() == model.label(texts).tolist()[::-1]
        assert [model.label([text])[0] for text in texts] == model.label(texts).tolist()


class ByLength:
    """Topics of texts by their length: LDA of all reviews takes many seconds."""

    @classmethod
    def fit(cls, texts, topics, passes, seed):
        return cls()

    def label(self, texts):
        return np.array([len(text) % 3 for text in texts])


GROUPS = {  # rows with an author under 35 or over 45 and a text that is not blank
    "english": {"train": 3_774, "dev": 419, "test": 347},
    "german": {"train": 3_454, "dev": 383, "test": 330},
}


class TestTrustpilot:
    """The public release."""

    @pytest.fixture(autouse=True)
    def _data(self, real_data, monkeypatch):
        monkeypatch.setenv("LEAKBOARD_DATA", str(real_data))

    @pytest.mark.parametrize(("language", "blank"), [("english", 8), pytest.param("german", 0, marks=pytest.mark.slow)])
    def test_rows_and_secrets(self, real_data, language, blank, monkeypatch):
        monkeypatch.setattr(trustpilot, "TopicModel", ByLength)
        corpus = Trustpilot(language=language, topics=3).load()
        assert sizes(corpus) == GROUPS[language]
        assert [(s.name, s.values, s.kind) for s in corpus.secrets] == [
            ("gender", ("male", "female"), "attribute"),
            ("age", ("over 45", "under 35"), "attribute"),
        ]
        frames = [pd.read_csv(real_data / "trustpilot" / f"{language}_{part}.csv") for part in ("train", "test")]
        source = pd.concat(frames, ignore_index=True)
        assert corpus.checks["dropped_rows"] == source["age"].between(35, 45).sum() + blank
        for split in corpus.splits:
            rows = source.iloc[corpus.texts(split).rows]
            assert rows["gender"].map({"M": 0, "F": 1}).tolist() == corpus.column(split, "gender").tolist()
            assert (rows["age"] < 35).astype(int).tolist() == corpus.column(split, "age").tolist()
            assert not rows["age"].between(35, 45).any()
            assert set(corpus.column(split, "label")) <= {0, 1, 2}
        assert corpus.checks["dev_copies"] == corpus.checks["test_copies"] == 0

    @pytest.mark.slow
    def test_shown_secrets_are_those_of_the_columns(self):
        corpus = Trustpilot(show_secrets=True, topics=2, passes=1).load()
        for text, gender, age in zip(
            corpus.texts("dev"), corpus.column("dev", "gender"), corpus.column("dev", "age"), strict=True
        ):
            assert text.startswith(f"gender{('male', 'female')[gender]} age{('over45', 'under35')[age]} ")

    def test_the_topics_do_not_depend_on_the_test_file(self, real_data, tmp_path, monkeypatch):
        """Of a twentieth of the reviews, to be quick."""
        (tmp_path / "trustpilot").mkdir()
        monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path))

        def load(step):
            sums = {}
            for part in ("train", "test"):
                frame = pd.read_csv(real_data / "trustpilot" / f"english_{part}.csv", keep_default_na=False)[::20]
                path = tmp_path / "trustpilot" / f"english_{part}.csv"
                (frame if part == "train" else frame[::step]).to_csv(path, index=False)
                sums[part] = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
            monkeypatch.setitem(trustpilot.CHECKSUMS, "english", sums)
            return Trustpilot(passes=1, topics=3).load().splits

        english, smaller = load(1), load(-3)
        assert smaller["train"]["label"][:] == english["train"]["label"][:]
        assert smaller["dev"]["label"][:] == english["dev"]["label"][:]
        whole = dict(zip(english["test"]["text"], english["test"]["label"], strict=True))
        assert len(set(whole.values())) > 1
        part = dict(zip(smaller["test"]["text"], smaller["test"]["label"], strict=True))
        assert 1 < len(part) < len(whole)
        assert {text: whole[text] for text in part} == part


def test_an_altered_trustpilot_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "english_train.csv").write_text("text,age,age_cat,gender\nNice,20,15-24,F\n")
    monkeypatch.setenv("LEAKBOARD_DATA", str(tmp_path))
    with pytest.raises(RequestError, match=r"english_train.csv: checksum .* not the published file"):
        Trustpilot().load()


def test_trustpilots_fingerprint_is_the_pinned_checksums():
    assert Trustpilot(language="german").fingerprint() == ",".join(trustpilot.CHECKSUMS["german"].values())
    assert Trustpilot().fingerprint() != Trustpilot(language="german").fingerprint()
