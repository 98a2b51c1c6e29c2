"""Persons are found in texts, and the most frequent become secrets; all sentences are invented."""

import importlib.metadata
import importlib.util
import json
import shutil

import pandas as pd
import pytest
from loading import fake_tagger, refused

from leakboard.datasets._preparation import persons
from leakboard.datasets.ag_newsspace import AgNewsspace
from leakboard.datasets.dw import Dw

pytestmark = pytest.mark.usefixtures("data")


class Tree(list):
    """A chunk, in NLTK's form."""

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
    files = dict.fromkeys(persons.MODELS["punkt_tab"], "")
    for path in persons.MODELS["averaged_perceptron_tagger_eng"]:
        files[path] = json.dumps(tagger[path.split(".")[-2]])
    for path in persons.MODELS["maxent_ne_chunker_tab"]:
        files[path] = chunker[path.rpartition("/")[2]]
    files["corpora/words/en-basic"] = "today\nmet\n"
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


def only_folder(folder, monkeypatch):
    """Let NLTK, and the check that does without it, look for models only in this new folder."""
    nltk = pytest.importorskip("nltk")
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(nltk.data, "path", [str(folder)])
    monkeypatch.setattr(persons, "folders", lambda: [str(folder)])


class TestPersons:
    """Finding, choosing and marking persons."""

    def test_names_of_a_chunked_text(self):
        tree = [("today", "NN"), Tree("PERSON", [("Ann", "NNP"), ("Lee", "NNP")]), Tree("GPE", [("Rome", "NNP")])]
        assert persons.names([*tree, Tree("PERSON", [("Bob", "NNP")])]) == ["Ann Lee", "Bob"]

    SPLITS = {  # noqa: RUF012
        "train": pd.DataFrame({"text": ["Bush met Bush", "Ann Lee", "Ann Lee and Bob", "nobody", "Bob"]}),
        "dev": pd.DataFrame({"text": ["George W. Bush, said Merkel", "Cyd"]}),
        "test": pd.DataFrame({"text": ["Cyd and Cyd", "Cyd with Cyd", "Bob"]}),
    }

    def test_the_most_frequent_of_train_are_the_secrets(self):
        kept, secrets, dropped = persons.choose_and_keep(self.SPLITS, fake_tagger, 2, "train")
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

    def test_all_splits_are_counted_as_in_the_paper(self):
        kept, secrets, dropped = persons.choose_and_keep(self.SPLITS, fake_tagger, 2, "all")
        assert [secret.name for secret in secrets] == ["Cyd", "Bob"]  # 5 and 3 mentions
        assert {split: len(frame) for split, frame in kept.items()} == {"train": 2, "dev": 1, "test": 3}
        assert dropped == 4

    def test_surnames_are_replaced_by_full_names(self):
        _, secrets, _ = persons.choose_and_keep(self.SPLITS, fake_tagger, 5, "all")
        assert {"George W. Bush", "Angela Merkel"} <= {secret.name for secret in secrets}
        assert not {"Bush", "Merkel"} & {secret.name for secret in secrets}

    def test_every_distinct_text_is_tagged_once(self):
        seen = []
        splits = {name: pd.DataFrame({"text": ["Bob", "Bob", "Bob"]}) for name in ("train", "dev", "test")}
        kept, _, _ = persons.choose_and_keep(splits, lambda text: seen.append(text) or fake_tagger(text), 1, "train")
        assert seen == ["Bob"]
        assert len(kept["test"]) == 3

    def test_too_few_persons(self):
        message = refused(lambda: persons.choose_and_keep(self.SPLITS, fake_tagger, 4, "train"))
        assert message == "entities: 4 asked for, but the texts mention only 3 persons"

    def test_without_nltk_one_line_says_what_to_install(self, monkeypatch):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        line = "persons need NLTK: pip install nltk, then python -m nltk.downloader punkt_tab "
        assert refused(persons.tagger).startswith(line)
        assert refused(persons.identity).startswith(line)
        assert AgNewsspace.availability().endswith(persons.missing())
        assert Dw.availability().endswith(persons.missing())
        for made in (AgNewsspace(), Dw()):  # before the corpus is fetched
            assert refused(made.fingerprint) == refused(made.load) == persons.missing()

    def test_an_old_nltk_is_not_used(self, monkeypatch):
        pytest.importorskip("nltk")
        monkeypatch.setattr(importlib.metadata, "version", {"nltk": "3.8.1"}.__getitem__)
        assert refused(persons.tagger) == "NLTK 3.8.1 reads its models as pickles: pip install 'nltk>=3.9'"

    def test_models_that_are_missing_are_named(self, tmp_path, monkeypatch):
        only_folder(tmp_path / "models", monkeypatch)
        everything = " ".join(persons.MODELS)
        assert persons.missing() == f"persons need models of NLTK: python -m nltk.downloader {everything}"
        assert refused(persons.tagger) == persons.missing()
        (tmp_path / "models/corpora/words").mkdir(mode=0o700, parents=True)
        (tmp_path / "models/corpora/words/en-basic").write_text("a\n")
        assert persons.missing() == f"persons need models of NLTK: python -m nltk.downloader {everything[:-6]}"
        assert refused(persons.tagger) == persons.missing()

    def test_models_in_an_archive_are_found(self, tmp_path, monkeypatch):
        only_folder(tmp_path / "models", monkeypatch)
        toy_models(tmp_path / "unpacked")
        for package in sorted((tmp_path / "unpacked").glob("*/*")):
            folder = tmp_path / "models" / package.parent.name
            folder.mkdir(mode=0o700, exist_ok=True)
            shutil.make_archive(str(folder / package.name), "zip", package.parent, package.name)
        assert persons.missing() == persons.missing(persons._is_found) == ""

    def test_the_folders_are_those_of_nltk(self):
        nltk = pytest.importorskip("nltk")
        assert persons.folders() == nltk.data.path

    def test_models_that_nltk_refuses_to_read_are_not_used(self, tmp_path, monkeypatch):
        only_folder(tmp_path / "models", monkeypatch)
        toy_models(tmp_path / "models")
        (tmp_path / "models/corpora").chmod(0o777)
        with pytest.warns(RuntimeWarning, match="writable by"):
            message = refused(persons.tagger)
        assert message == "persons need models of NLTK: python -m nltk.downloader words"

    def test_nltk_with_models_of_seven_words(self, tmp_path, monkeypatch):
        only_folder(tmp_path / "models", monkeypatch)
        toy_models(tmp_path / "models")
        assert persons.missing() == ""
        before = persons.identity()
        tag = persons.tagger()
        assert tag("today Anna Bell met Bush.") == ["Anna Bell", "Bush"]
        assert tag("today") == tag(" ") == []
        (tmp_path / "models/corpora/words/en-basic").write_text("today\n")
        assert persons.identity() != before
