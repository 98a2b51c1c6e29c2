"""Word vectors in text files: with and without a first line of counts, and refused where they are damaged."""

import numpy as np
import pytest

from leakboard.data.readers.word_vectors import read_word_vectors
from leakboard.errors import RequestError


def written(folder, content):
    path = folder / "vectors.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_both_formats_are_read(tmp_path, header):
    words, vectors = read_word_vectors(written(tmp_path, header + "the 0.5 -1\ncafé 1e-3 2 \n. . . 3 4\n"))
    assert words == ["the", "café", ". . ."]
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, np.array([[0.5, -1], [1e-3, 2], [3, 4]], np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1 2\nb 1\n", ":2: allowed: a word and 2 numbers"),
        ("a 1 2\n\nb 1 3\n", ":2: allowed: a word and 2 numbers"),
        ("2 2\na 1 2\na 1 2\n", ":3: the word 'a' is in line 2, too"),
        ("3 2\na 1 2\nb 1 2\n", ": 2 words; its first line says 3"),
        ("a 1 nan\n", ":1: the vector of 'a' is not finite"),
        ("a 1 2\nb 1 x\n", ":2: the vector of 'b' has a bad number"),
        ("", ": has no word"),
        (b"a 1 2\n\xff 1 2\n", ": cannot be read as word vectors"),
    ],
)
def test_damaged_files_are_refused_with_their_line(tmp_path, content, message):
    with pytest.raises(RequestError) as caught:
        read_word_vectors(written(tmp_path, content))
    assert message in str(caught.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(RequestError, match="cannot be read as word vectors"):
        read_word_vectors(tmp_path / "missing.txt")
