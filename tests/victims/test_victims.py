"""Victims that need no pretrained weights: word2vec and vectors from a file."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from leakboard.data.auxiliary import divide
from leakboard.data.tokens import words
from leakboard.datasets.table import Table
from leakboard.errors import RequestError
from leakboard.interfaces import Coverage, Texts
from leakboard.models.classifier import LinearClassifier
from leakboard.pipeline.publications import publish
from leakboard.randomness import Streams
from leakboard.victims.precomputed import Precomputed
from leakboard.victims.word2vec import Word2Vec, _start_vector

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def fitted(reviews):
    return Word2Vec(vector_size=16).fit(reviews.only("train", "dev"), 1)


class TestWord2Vec:
    """gensim's Word2Vec, made deterministic."""

    def test_same_seed_same_vectors_another_seed_others(self, reviews, fitted):
        again, other = (Word2Vec(vector_size=16).fit(reviews.only("train", "dev"), seed) for seed in (1, 2))
        assert again.vocabulary == fitted.vocabulary == other.vocabulary
        assert np.array_equal(again.vectors, fitted.vectors)
        assert not np.allclose(other.vectors, fitted.vectors)

    @pytest.mark.slow
    def test_does_not_depend_on_the_hash_seed(self):
        code = (
            "import hashlib;"
            "from leakboard.datasets.generated_reviews import GeneratedReviews as G;"
            "from leakboard.victims.word2vec import Word2Vec as W;"
            "c = G(users=20, texts_per_user=3).load().only('train', 'dev');"
            "f = [W(vector_size=8, min_count=2, initialisation=i).fit(c, 0) for i in ('gensim', 'word')];"
            "print([(hashlib.sha256(x.vectors.tobytes()).hexdigest(), x.vocabulary) for x in f])"
        )
        outputs = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(outputs) == 1

    def test_texts_without_a_known_word_are_counted(self, fitted):
        texts = Texts(["zzz qqq", fitted.vocabulary[0], "", f"zzz {fitted.vocabulary[1]}"])
        assert fitted.coverage(texts) == Coverage(unknown=0.5)
        assert (fitted.mean_vectors(texts) == 0).all(1).tolist() == [True, False, True, False]

    def test_vocabulary_is_what_occurs_often_enough(self, reviews, fitted):
        counts = Counter(word for text in reviews.texts("train") for word in words(text))
        assert set(fitted.vocabulary) == {word for word, count in counts.items() if count >= 5}

    def test_documents_are_the_mean_of_the_published_words(self, reviews, fitted):
        texts = reviews.texts("test")
        published = fitted.publish_words(texts, RNG)
        table = dict(zip(published.words, published.vectors, strict=True))
        expected = [np.mean([table[w] for w in words(text) if w in table], axis=0) for text in texts]
        np.testing.assert_allclose(fitted.publish_documents(texts, RNG), expected, atol=1e-6)
        assert published.text_index is None

    def test_a_text_without_a_known_word_is_zero(self, fitted):
        vectors = fitted.publish_documents(Texts(["zzzz qqqq", ""]), RNG)
        assert (vectors == 0).all()
        assert vectors.dtype == np.float32

    def test_start_vectors_by_word_are_alike_in_all_models(self, reviews):
        """Training with a negligible learning rate leaves the start vectors, of two halves and two seeds."""
        halves = divide(reviews, "overlap", np.random.default_rng(0))
        common = {}
        for initialisation in ("word", "gensim"):
            recipe = Word2Vec(
                vector_size=16, epochs=1, alpha=1e-9, min_alpha=1e-9, min_count=2, initialisation=initialisation
            )
            fitted = [recipe.fit(half.only("train", "dev"), seed) for seed, half in enumerate(halves)]
            tables = [dict(zip(f.vocabulary, f.vectors, strict=True)) for f in fitted]
            shared = sorted(set(tables[0]) & set(tables[1]))
            assert len(shared) > 50
            common[initialisation] = [np.array([table[word] for word in shared]) for table in tables]
        first, second = common["word"]
        np.testing.assert_allclose(first, second, atol=1e-7)
        first, second = common["gensim"]
        assert np.median(np.abs(first - second)) > 0.1 / 16

    def test_start_vectors_have_gensims_range_and_differ_by_word(self):
        a, b = _start_vector("apple", 50), _start_vector("pear", 50)
        assert np.abs(a).max() <= 0.5 / 50
        assert not np.allclose(a, b)

    def test_no_word_often_enough(self, reviews):
        with pytest.raises(RequestError, match="no word of generated_reviews occurs min_count=100000 times"):
            Word2Vec(min_count=100_000).fit(reviews.only("train", "dev"), 0)

    def test_the_task_is_learnt(self, reviews):
        victim = Word2Vec(vector_size=32, epochs=40)
        fitted = victim.fit(reviews.only("train", "dev"), 0)
        vectors, labels = fitted.publish_documents(reviews.texts("train"), RNG), reviews.column("train", "label")
        assert fitted.predict(vectors) is None
        assert np.mean(LinearClassifier.fit(vectors, labels).predict(vectors) == labels) > 0.6


class TestPrecomputed:
    """Vectors from a file, row by row of the source."""

    @pytest.fixture
    def table(self, reviews):
        """Vectors whose first number is the source row and whose second tells the label."""
        rows = sum(len(part) for part in reviews.splits.values())
        table = np.zeros((rows, 3), np.float32)
        table[:, 0] = np.arange(rows)
        for split in reviews.splits:
            table[reviews.texts(split).rows, 1] = reviews.column(split, "label")
        return table

    @staticmethod
    def write(path, table):
        if path.suffix == ".npy":
            np.save(path, table)
        elif path.suffix == ".npz":
            np.savez(path, vectors=table)
        else:
            pd.DataFrame({"vectors": list(table)}).to_parquet(path)
        return str(path)

    @pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.parquet"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_rows_belong_to_source_rows(self, reviews, table, tmp_path, name, dtype):
        path = self.write(tmp_path / name, table.astype(dtype))
        fitted = Precomputed(vectors=path).fit(reviews.only("train", "dev"), 0)
        texts = reviews.texts("test")
        vectors = fitted.publish_documents(texts, RNG)
        assert vectors.dtype == np.float32
        assert np.array_equal(vectors[:, 0], texts.rows)
        assert fitted.predict(vectors) is None

    def test_the_task_is_read_from_the_published_vectors(self, reviews, table, tmp_path):
        victim = Precomputed(vectors=self.write(tmp_path / "v.npy", table))
        streams = Streams(0, reviews.name, "precomputed")
        published = publish(victim, victim.fit(reviews.only("train", "dev"), 0), reviews, streams)
        assert np.array_equal(published.predicted, reviews.column("test", "label"))

    @pytest.mark.parametrize("name", ["v.npz", "v.parquet"])
    def test_the_column_must_be_named_where_there_are_several(self, reviews, table, tmp_path, name):
        path = tmp_path / name
        if path.suffix == ".npz":
            np.savez(path, ids=np.arange(3), vectors=table)
        else:
            pd.DataFrame({"ids": list(table), "vectors": list(table)}).to_parquet(path)
        corpus = reviews.only("train", "dev")
        assert Precomputed(vectors=str(path), column="vectors").fit(corpus, 0).table.shape == table.shape
        with pytest.raises(RequestError, match="column 'vector' is not one of ids, vectors; did you mean 'vectors'"):
            Precomputed(vectors=str(path), column="vector").fit(corpus, 0)
        with pytest.raises(RequestError, match="several columns may hold vectors: ids, vectors; name one by `column`"):
            Precomputed(vectors=str(path)).fit(corpus, 0)

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
    def test_arrays_of_another_kind_are_refused(self, reviews, tmp_path, table, message, suffix):
        path = tmp_path / f"v.{suffix}"
        (np.save if suffix == "npy" else np.savez)(path, table)
        with pytest.raises(RequestError, match=message) as caught:
            Precomputed(vectors=str(path)).fit(reviews.only("train", "dev"), 0)
        assert str(path) in str(caught.value)

    def test_a_pickle_is_not_loaded(self, reviews, tmp_path):
        import pickle

        class Trap:
            def __reduce__(self):
                return (os.mkdir, (str(tmp_path / "sprung"),))

        for name in ("v.npy", "v.npz"):
            (tmp_path / name).write_bytes(pickle.dumps(Trap()))
            with pytest.raises(RequestError, match="cannot be read"):
                Precomputed(vectors=str(tmp_path / name)).fit(reviews.only("train", "dev"), 0)
        assert not (tmp_path / "sprung").exists()

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip file", b"\x93NUMPY\x01\x00"])
    @pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.parquet"])
    def test_broken_files_are_told_in_one_line(self, reviews, tmp_path, name, content):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(RequestError, match="cannot be read") as caught:
            Precomputed(vectors=str(path)).fit(reviews.only("train", "dev"), 0)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize("column", [[1.0, 2.0], ["ab", "cd"], [[1.0], [1.0, 2.0]], [[1.0], None], [["a"], ["b"]]])
    def test_parquet_columns_that_are_no_vectors(self, reviews, tmp_path, column):
        path = tmp_path / "v.parquet"
        pd.DataFrame({"vectors": column}).to_parquet(path)
        with pytest.raises(RequestError):
            Precomputed(vectors=str(path)).fit(reviews.only("train", "dev"), 0)

    def test_too_few_rows_a_missing_file_and_an_unknown_format(self, reviews, table, tmp_path):
        corpus = reviews.only("train", "dev")
        short = self.write(tmp_path / "v.npy", table[:10])
        with pytest.raises(RequestError, match=r"v.npy: 10 vectors, but the dataset has a row \d+"):
            Precomputed(vectors=short).fit(corpus, 0)
        missing = Precomputed(vectors=str(tmp_path / "none.npy"))
        for call in (lambda: missing.fit(corpus, 0), missing.fingerprint):
            with pytest.raises(RequestError, match=r"none\.npy: no such file"):
                call()
        with pytest.raises(RequestError, match=r"unknown format '\.docx' \(allowed: \.npy, \.npz, \.parquet, "):
            Precomputed(vectors=self.write(tmp_path / "v.npy", table).replace("npy", "docx")).fit(corpus, 0)

    @pytest.mark.parametrize("rows", [9, 11, 300])
    def test_a_store_of_another_table_is_refused(self, tmp_path, rows):
        texts = pd.DataFrame({"text": [f"text {i}" for i in range(10)], "label": [i % 2 for i in range(10)]})
        texts.to_csv(tmp_path / "a.csv", index=False)
        corpus = Table(path=str(tmp_path / "a.csv"), label="label", dev_share=0.2, test_share=0.2).load()
        good = self.write(tmp_path / "good.npy", np.eye(10, 2, dtype=np.float32))
        assert len(Precomputed(vectors=good).fit(corpus.only("train", "dev"), 0).table) == 10
        bad = self.write(tmp_path / "bad.npy", np.eye(rows, 2, dtype=np.float32))
        with pytest.raises(RequestError, match=rf"bad.npy: {rows} vectors, but the dataset's files have 10 rows"):
            Precomputed(vectors=bad).fit(corpus.only("train", "dev"), 0)

    def test_new_texts_are_refused(self, reviews, table, tmp_path):
        fitted = Precomputed(vectors=self.write(tmp_path / "v.npy", table)).fit(reviews.only("train", "dev"), 0)
        with pytest.raises(RequestError, match="cannot encode new texts"):
            fitted.publish_documents(Texts(["something new"]), RNG)
        with pytest.raises(RequestError, match="FittedPrecomputed publishes no words"):
            fitted.publish_words(reviews.texts("test"), RNG)

    def test_the_fingerprint_follows_the_bytes(self, table, tmp_path):
        first = Precomputed(vectors=self.write(tmp_path / "a.npy", table)).fingerprint()
        assert first == Precomputed(vectors=self.write(tmp_path / "b.npy", table)).fingerprint()
        assert first != Precomputed(vectors=self.write(tmp_path / "b.npy", table + 1)).fingerprint()
