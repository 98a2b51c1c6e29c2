"""The ``precomputed`` victim: rows joined by id or by position, and files that do not fit the dataset."""

import json
import os
import pickle

import numpy as np
import pandas as pd
import pytest

from leakboard.datasets.table import Table
from leakboard.errors import RequestError
from leakboard.interfaces import Secret, Texts
from leakboard.pipeline.publications import publish
from leakboard.randomness import Streams
from leakboard.suite.files import FileName
from leakboard.suite.options import build, named
from leakboard.suite.plan import identity_of
from leakboard.victims.precomputed import Precomputed

RNG = np.random.default_rng(0)
KEYS = [f"key {i}" for i in range(40)]


@pytest.fixture
def lines(monkeypatch):
    """Return the lines that a victim logs."""
    logged = []
    monkeypatch.setattr("leakboard.victims.precomputed.log_progress", logged.append)
    monkeypatch.setattr("leakboard.victims.precomputed.log_warning", lambda text: logged.append(f"warning: {text}"))
    return logged


@pytest.fixture
def corpora(tmp_path):
    """Return forty rows, with and without their ids."""
    rows = pd.DataFrame({"key": KEYS, "text": [f"text {i}" for i in range(40)], "label": ["a", "b"] * 20})
    rows.to_csv(tmp_path / "a.csv", index=False)
    with_ids = Table(path=str(tmp_path / "a.csv"), label="label", id="key").load()
    return with_ids, Table(path=str(tmp_path / "a.csv"), label="label").load()


@pytest.fixture
def corpus(corpora):
    """Return forty rows without ids."""
    return corpora[1]


@pytest.fixture
def good(tmp_path):
    """Return the path of a file with the forty rows' vectors, in order."""
    np.save(tmp_path / "good.npy", vectors(range(40)).astype(np.float64))
    return str(tmp_path / "good.npy")


def vectors(rows):
    """Return vectors that show the row of the table."""
    return np.stack([np.asarray(rows, np.float32), -np.asarray(rows, np.float32)], axis=1)


def write(path, rows, keys):
    np.savez(path, id=np.array(keys), vectors=vectors(rows))
    return str(path)


def fit(path, corpus):
    return Precomputed(vectors=str(path)).fit(corpus.only("train", "dev"), 0)


def published(path, corpus):
    """Return the rows that the published vectors show, after saving and loading."""
    fit(path, corpus)
    loaded = Precomputed(vectors=str(path)).load(None).publish_documents(corpus.texts("test"), RNG)
    assert loaded.dtype == np.float32
    return loaded[:, 0].tolist()


class TestJoin:
    def test_rows_are_joined_by_id_in_any_order(self, tmp_path, corpora, lines):
        order = np.random.default_rng(1).permutation(40)
        path = write(tmp_path / "v.npz", [*order, 99, 98], [*(KEYS[i] for i in order), "other", "more"])
        assert published(path, corpora[0]) == corpora[0].texts("test").rows.tolist()
        assert lines == [f"{path}: 42 vectors are joined by id with the dataset's 40 rows"]

    def test_without_ids_on_both_sides_rows_are_joined_by_position(self, tmp_path, corpora, good, lines):
        for corpus in corpora:
            assert published(good, corpus) == corpus.texts("test").rows.tolist()
        assert lines == [f"warning: {good} has no ids; joined by position"]
        lines.clear()
        order = np.random.default_rng(1).permutation(40)
        path = write(tmp_path / "v.npz", order, [KEYS[i] for i in order])
        assert published(path, corpora[1]) == [order[row] for row in corpora[1].texts("test").rows]
        reason = "joined by position and not by id, since the dataset names no column of ids"
        assert lines == [f"warning: {path}: {reason}"]

    def test_a_missing_id_is_reported_with_file_and_row(self, tmp_path, corpora):
        row = int(corpora[0].texts("train").rows[0])
        path = write(tmp_path / "v.npz", range(40), [key if key != KEYS[row] else f"{key}!" for key in KEYS])
        message = (
            rf"v.npz: no vector has the id 'key {row}' of row {row + 1} of the dataset; did you mean .*; 1 of 32 rows"
        )
        with pytest.raises(RequestError, match=message):
            fit(path, corpora[0])

    def test_ids_that_do_not_identify_are_refused_if_they_join(self, tmp_path, corpora):
        path = write(tmp_path / "v.npz", range(40), [*KEYS[:30], KEYS[3], *KEYS[31:]])
        with pytest.raises(RequestError, match=r"v.npz: rows 4 and 31 have the same id, 'key 3'"):
            fit(path, corpora[0])
        fit(path, corpora[1])
        (tmp_path / "v.jsonl").write_text("\n".join(json.dumps({"id": k, "v": [1, 2]}) for k in [KEYS[0], None]))
        with pytest.raises(RequestError, match=r"v.jsonl: row 2: id is missing"):
            fit(tmp_path / "v.jsonl", corpora[0])

    def test_whole_numbers_are_ids_in_every_format(self, tmp_path):
        rows = [
            {"id": 1000 - i, "vector": [i, -i], "payload": {"text": f"text {i}", "sex": "fm"[i % 2]}} for i in range(40)
        ]
        (tmp_path / "dump.jsonl").write_text("\n".join(map(json.dumps, rows)))
        names = {"text": "payload.text", "secrets": ("payload.sex",), "id": "id"}
        corpus = Table(path=str(tmp_path / "dump.jsonl"), **names).load()
        (tmp_path / "back.jsonl").write_text("\n".join(map(json.dumps, rows[::-1])))
        np.savez(tmp_path / "back.npz", id=1000.0 - np.arange(40)[::-1], v=vectors(range(40))[::-1])
        for name in ("dump.jsonl", "back.jsonl", "back.npz"):
            assert published(tmp_path / name, corpus) == corpus.texts("test").rows.tolist()


class TestPublication:
    def test_the_task_is_read_from_the_published_vectors(self, reviews, tmp_path):
        rows = sum(len(part) for part in reviews.splits.values())
        table = np.random.default_rng(0).standard_normal((rows, 3))
        for split in reviews.splits:
            table[reviews.texts(split).rows, 1] = reviews.column(split, "label")
        np.save(tmp_path / "v.npy", table)
        victim = Precomputed(vectors=str(tmp_path / "v.npy"))
        fitted = victim.fit(reviews.only("train", "dev"), 0)
        assert fitted.predict(fitted.publish_documents(reviews.texts("test"), RNG)) is None
        result = publish(victim, lambda: fitted, reviews, Streams(0, reviews.name, "precomputed"))
        assert np.array_equal(result.predicted, reviews.column("test", "label"))

    def test_new_texts_are_refused(self, good, corpus):
        fitted = fit(good, corpus)
        with pytest.raises(RequestError, match="cannot encode new texts"):
            fitted.publish_documents(Texts(["something new"]), RNG)
        with pytest.raises(RequestError, match="FittedPrecomputed publishes no words"):
            fitted.publish_words(corpus.texts("test"), RNG)

    def test_the_fingerprint_follows_the_bytes(self, good, tmp_path):
        first = Precomputed(vectors=good).fingerprint()
        np.save(tmp_path / "b.npy", np.load(good))
        assert first == Precomputed(vectors=str(tmp_path / "b.npy")).fingerprint()
        np.save(tmp_path / "b.npy", np.load(good) + 1)
        assert first != Precomputed(vectors=str(tmp_path / "b.npy")).fingerprint()

    def test_new_options_leave_old_identities_as_they_were(self):
        assert named(Precomputed(vectors="v.npy", column="c")) == {"vectors": "v.npy", "column": "c"}
        expected = {"path": "a.csv", "label": "y", "secrets": ["s"]}
        assert named(Table(path="a.csv", label="y", secrets=("s",))) == expected


class TestBadFiles:
    """How files are read is tested with the readers."""

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (np.zeros(5), r"float64 array of shape \(5,\)"),
            (np.zeros((5, 2, 2)), r"shape \(5, 2, 2\)"),
            (np.array([["a", "b"]]), "array of shape"),
            (np.zeros((2, 2), complex), "complex128 array"),
            (np.array([[1, None]], dtype=object), "cannot be read"),
        ],
    )
    @pytest.mark.parametrize("suffix", ["npy", "npz"])
    def test_arrays_of_another_kind_are_refused(self, corpus, tmp_path, table, message, suffix):
        path = tmp_path / f"v.{suffix}"
        (np.save if suffix == "npy" else np.savez)(path, table)
        with pytest.raises(RequestError, match=message) as caught:
            fit(path, corpus)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize("name", ["v.npy", "v.npz"])
    def test_a_pickle_is_not_loaded(self, corpus, tmp_path, name):
        class Trap:
            def __reduce__(self):
                return (os.mkdir, (str(tmp_path / "sprung"),))

        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        with pytest.raises(RequestError, match="cannot be read"):
            fit(tmp_path / name, corpus)
        assert not (tmp_path / "sprung").exists()

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip file", b"\x93NUMPY\x01\x00"])
    @pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.parquet"])
    def test_broken_files_are_one_clear_line(self, corpus, tmp_path, name, content):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(RequestError, match=f"^[^\n]*{name}[^\n]*cannot be read[^\n]*$"):
            fit(tmp_path / name, corpus)

    @pytest.mark.parametrize("column", [[1.0, 2.0], ["ab", "cd"], [[1.0], [1.0, 2.0]], [[1.0], None], [["a"], ["b"]]])
    def test_parquet_columns_that_are_no_vectors(self, corpus, tmp_path, column):
        pd.DataFrame({"vectors": column}).to_parquet(tmp_path / "v.parquet")
        with pytest.raises(RequestError):
            fit(tmp_path / "v.parquet", corpus)

    def test_a_missing_file_has_no_fingerprint(self, tmp_path):
        with pytest.raises(RequestError, match=r"none\.npy: no such file"):
            Precomputed(vectors=str(tmp_path / "none.npy")).fingerprint()

    @pytest.mark.parametrize("rows", [39, 41, 300])
    def test_a_file_of_another_table_is_refused(self, tmp_path, corpus, rows):
        np.save(tmp_path / "bad.npy", vectors(range(rows)))
        with pytest.raises(RequestError, match=rf"bad.npy: {rows} vectors, but the dataset's files have 40 rows"):
            fit(tmp_path / "bad.npy", corpus)

    def test_a_row_beyond_the_file_is_refused(self, reviews, good):
        """The reviews are generated, so that nothing is known of their files."""
        with pytest.raises(RequestError, match=r"good.npy: 40 vectors, but the dataset has a row \d+"):
            fit(good, reviews)

    def test_dimensions_that_never_vary_are_reported(self, tmp_path, corpus, lines):
        table = np.random.default_rng(0).standard_normal((40, 5))
        table[:, [1, 3]] = 0.5
        np.save(tmp_path / "v.npy", table)
        fit(tmp_path / "v.npy", corpus)
        message = "2 of 5 dimensions are the same in all rows; the first is 2"
        assert lines == [f"warning: {tmp_path / 'v.npy'}: {message}"]
        np.save(tmp_path / "v.npy", np.ones((40, 5)))
        with pytest.raises(RequestError, match=r"v.npy: all 40 vectors are the same"):
            fit(tmp_path / "v.npy", corpus)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_numbers_that_are_left_out_are_named(tmp_path, make_corpus, lines, suffix):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 5))).add_prefix("e")
    frame = frame.assign(last=frame["e0"], age5=frame["e1"], age=[0, 1] * 20, id=range(40), name=["a", "b"] * 20)
    path = tmp_path / f"both.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    rows = {"row": list(range(40)), "age": [0, 1] * 20, "label": [0, 1] * 20}
    corpus = make_corpus(dict.fromkeys(("train", "dev", "test"), rows), [Secret("age", ("0", "1"), "attribute")])
    Precomputed(vectors=FileName(path)).fit(corpus, 0)
    assert f"warning: {path}: columns of numbers that are not among the dimensions e0 to e4: last, age5" in lines


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_secret_is_no_dimension(tmp_path, make_corpus, suffix):
    """Rows and vectors may be one file, in which the secret is called as a further dimension would be."""
    code = np.arange(40) % 2
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["e0", "e1", "e2"]).assign(e3=code)
    path = tmp_path / f"both.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    rows = {"row": list(range(40)), "e3": code.tolist(), "label": [0, 1] * 20}
    corpus = make_corpus(dict.fromkeys(("train", "dev", "test"), rows), [Secret("e3", ("0", "1"), "attribute")])
    with pytest.raises(RequestError, match="'e3' is a secret and would be a dimension, too; rename it"):
        Precomputed(vectors=FileName(path)).fit(corpus, 0)


class TestProtection:
    @pytest.fixture
    def path(self, tmp_path):
        """Return the path of a file with forty vectors of any length."""
        np.save(tmp_path / "any.npy", 5 * np.random.default_rng(3).normal(size=(40, 6)))
        return str(tmp_path / "any.npy")

    def test_the_default_leaves_vectors_and_identity_as_they_were(self, path, corpus):
        assert named(Precomputed(vectors=FileName(path))) == {"vectors": path}
        identity = identity_of("precomputed", Precomputed(vectors=FileName("v.npy")))
        assert identity == {"name": "precomputed", "options": {"vectors": "v.npy"}, "fingerprint": "", "revision": 4}
        vectors = fit(path, corpus).publish_documents(corpus.texts("test"), RNG)
        assert np.array_equal(vectors, np.load(path).astype(np.float32)[corpus.texts("test").rows])

    def test_vectors_are_protected_with_one_saved_key(self, path, corpus, tmp_path):
        recipe = build(Precomputed, {"vectors": path, "protection": "rotation"}, "victim precomputed")
        (tmp_path / "saved").mkdir()
        fitted = recipe.fit(corpus.only("train", "dev"), 0)
        fitted.save(tmp_path / "saved")
        loaded, texts = recipe.load(tmp_path / "saved"), corpus.texts("test")
        protected, plain = loaded.publish_documents(texts, RNG), loaded.in_file(texts)
        assert np.array_equal(protected, fitted.publish_documents(texts, RNG))
        assert np.array_equal(plain, np.load(path).astype(np.float32)[texts.rows])
        units = plain / np.linalg.norm(plain, axis=1, keepdims=True)
        assert np.allclose(protected @ protected.T, units @ units.T, atol=1e-5)
        assert not np.allclose(protected, units, atol=0.1)

    def test_it_has_the_protections_claim(self, path, corpus):
        noise = {"metric_laplace": {"epsilon": 4.0}}
        recipe = build(Precomputed, {"vectors": path, "protection": noise}, "victim precomputed")
        assert recipe.fit(corpus.only("train", "dev"), 0).claim.epsilon == 8
        assert fit(path, corpus).claim is None


class TestKnownEncoder:
    """What attackers of stores may know: nothing, the file before its protection, an encoder, or a second file."""

    @pytest.fixture
    def path(self, tmp_path):
        np.save(tmp_path / "stored.npy", np.random.default_rng(3).normal(size=(40, 6)))
        np.save(tmp_path / "known.npy", np.random.default_rng(4).normal(size=(40, 3)).astype(np.float32))
        return tmp_path / "stored.npy"

    def make(self, path, **options):
        return build(Precomputed, {"vectors": str(path), **options}, "victim precomputed")

    def test_vectors_of_an_unknown_encoder_are_not_granted(self, path, corpus):
        """Else an attacker would link each stored vector to its own copy."""
        train = corpus.only("train", "dev")
        assert fit(path, corpus).unprotected(corpus.texts("test")) is None
        protected = self.make(path, protection="rotation").fit(train, 0)
        assert np.array_equal(protected.unprotected(train.texts("dev")), protected.in_file(train.texts("dev")))

    def test_a_named_encoder_encodes_any_text_also_after_saving(self, path, corpus, tmp_path):
        recipe = self.make(path, protection="rotation", encoder={"embedding_bag": {"dimension": 4, "epochs": 1}})
        fitted, texts = recipe.fit(corpus.only("train", "dev"), 0), Texts(["a new text", "another"])
        (tmp_path / "saved").mkdir()
        fitted.save(tmp_path / "saved")
        assert fitted.unprotected(texts).shape == (2, 4)
        loaded = recipe.load(tmp_path / "saved")
        assert np.array_equal(loaded.unprotected(texts), fitted.unprotected(texts))
        stored = loaded.publish_documents(corpus.texts("test"), RNG)
        assert np.array_equal(stored, fitted.publish_documents(corpus.texts("test"), RNG))
        assert recipe.encoder_reads_texts
        assert recipe.fingerprint() != self.make(path).fingerprint()

    def test_a_second_file_has_the_encoders_vectors_of_the_same_rows(self, path, corpus, tmp_path):
        recipe = self.make(path, encoded=str(tmp_path / "known.npy"))
        fitted, texts = recipe.fit(corpus.only("train", "dev"), 0), corpus.texts("test")
        assert np.array_equal(fitted.unprotected(texts), np.load(tmp_path / "known.npy")[texts.rows])
        assert np.array_equal(fitted.publish_documents(texts, RNG), np.load(path).astype(np.float32)[texts.rows])
        assert not recipe.encoder_reads_texts
        with pytest.raises(RequestError, match=r"known\.npy cannot encode new texts"):
            fitted.unprotected(Texts(["a new text"]))

    def test_a_second_file_of_other_rows_is_refused(self, path, corpus, tmp_path):
        np.save(tmp_path / "known.npy", np.eye(39))
        with pytest.raises(RequestError, match=r"known.npy: 39 vectors, but the dataset's files have 40 rows"):
            self.make(path, encoded=str(tmp_path / "known.npy")).fit(corpus.only("train", "dev"), 0)

    def test_both_are_refused(self, path):
        with pytest.raises(RequestError, match="encoder and encoded are both given; allowed: one of them, or neither"):
            self.make(path, encoded=str(path), encoder="embedding_bag")

    def test_an_encoder_needs_texts(self, path, corpus, tmp_path):
        silent = Table(path=str(tmp_path / "a.csv"), text=None, label="label").load()
        assert self.make(path, encoder="embedding_bag").why_not_applicable(silent) == "the encoder needs texts"
        assert not self.make(path).why_not_applicable(silent)
