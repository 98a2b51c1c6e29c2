"""The victim ``static_encoder``: means of rows of a table, from a folder or from the installed package."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from leakboard.errors import RequestError
from leakboard.interfaces import Coverage, Texts
from leakboard.models import static_vectors
from leakboard.suite.files import FileName
from leakboard.victims.static_encoder import StaticEncoder

RNG = np.random.default_rng(0)


@pytest.fixture
def letters(tmp_path):
    """Return the example: a table of the letters a to z in rows 1 to 26, and of unknown signs in row 0."""
    return StaticEncoder.example(tmp_path)


def test_a_text_is_the_mean_of_its_tokens_rows(letters, corpus, tmp_path):
    table = load_file(tmp_path / "table.safetensors")["table"].astype(np.float32)
    vectors = letters.fit(corpus, 0).publish_documents(Texts(["abca", "b", "!z"]), RNG)
    assert vectors.dtype == np.float32
    expected = [(2 * table[1] + table[2] + table[3]) / 4, table[2], (table[0] + table[26]) / 2]
    assert np.allclose(vectors, expected, atol=1e-6)


def test_an_empty_text_is_zero_and_counted(letters, corpus):
    fitted, texts = letters.fit(corpus, 0), Texts(["a", "", "b", "c"])
    assert (fitted.publish_documents(texts, RNG) == 0).all(1).tolist() == [False, True, False, False]
    assert fitted.coverage(texts) == Coverage(unknown=0.25)


def test_many_texts_are_tokenised_in_parts(letters, corpus, monkeypatch):
    fitted, texts = letters.fit(corpus, 0), Texts([letter * 2 for letter in "abcdefg"])
    whole = fitted.publish_documents(texts, RNG)
    monkeypatch.setattr(static_vectors, "BATCH", 3)
    assert np.array_equal(fitted.publish_documents(texts, RNG), whole)


def test_the_fingerprint_is_of_both_files(letters, tmp_path):
    before = letters.fingerprint()
    save_file({"table": np.zeros((27, 8), np.float16)}, tmp_path / "table.safetensors")
    assert letters.fingerprint().split()[0] != before.split()[0]
    assert letters.fingerprint().split()[1] == before.split()[1]


def refusal(recipe, corpus):
    with pytest.raises(RequestError) as refused:
        recipe.fit(corpus, 0)
    return str(refused.value)


def test_missing_files_and_other_tables_are_refused(letters, corpus, tmp_path):
    (tmp_path / "empty").mkdir()
    message = refusal(StaticEncoder(folder=FileName(tmp_path / "empty")), corpus)
    assert message.endswith("has 0 .safetensors files and no tokenizer.json; allowed: one of each")
    save_file({"table": np.zeros((26, 8), np.float16)}, tmp_path / "table.safetensors")
    message = refusal(letters, corpus)
    assert message.endswith("table.safetensors has arrays of shape (26, 8); allowed: one array of shape (27, d)")


def test_without_the_package_it_says_how_to_get_it(corpus, monkeypatch):
    monkeypatch.setattr(static_vectors, "PACKAGE", "no-such-package")
    assert StaticEncoder.availability().startswith("no-such-package is missing: pip install")
    assert "no-such-package is not installed" in refusal(StaticEncoder(), corpus)


def test_the_packages_files_are_found_without_importing_it(letters, corpus, tmp_path, monkeypatch):
    """A package in the folder is as an installed one; importing it would fail."""
    package, info = tmp_path / "madeup", tmp_path / "madeup-1.0.dist-info"
    for folder in (package, info):
        folder.mkdir()
    (package / "__init__.py").write_text("raise ImportError('imported')")
    for old, new in (("table.safetensors", static_vectors.TABLE), ("tokenizer.json", static_vectors.TOKENIZER)):
        (package / new).write_bytes((tmp_path / old).read_bytes())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: madeup\nVersion: 1.0\n")
    files = ["__init__.py", static_vectors.TABLE, static_vectors.TOKENIZER]
    (info / "RECORD").write_text("".join(f"madeup/{name},,\n" for name in files))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(static_vectors, "PACKAGE", "madeup")
    texts = Texts(["abc", "xyz"])
    assert StaticEncoder.availability() == "ready"
    assert StaticEncoder().fingerprint() == letters.fingerprint()
    published = (recipe.fit(corpus, 0).publish_documents(texts, RNG) for recipe in (StaticEncoder(), letters))
    assert np.array_equal(*published)
