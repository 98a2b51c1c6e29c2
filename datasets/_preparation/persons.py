"""Find the persons that texts mention, and make the most frequent ones secrets: the recipe of Coavoux et al. (2018).

NLTK splits a text into tokens, tags them and groups them into chunks (``word_tokenize``, ``pos_tag``, ``ne_chunk``).
Each chunk with the label PERSON is a mention; its name is the tokens joined by blanks. Four surnames are replaced by
the full name. The most frequent persons become the secrets. Texts that mention none of them are left out.

Unlike in the paper, persons are counted on train by default: if test counted too, it would decide what is measured.

NLTK before 3.9 is refused: it reads its models from pickles, later versions from tables and JSON.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from leakboard.data.corpora import count_rows
from leakboard.errors import RequestError
from leakboard.interfaces import Secret
from leakboard.logs import log_progress

if TYPE_CHECKING:
    import pandas as pd

Tagger = Callable[[str], list[str]]
"""Returns the names of the persons that a text mentions, one for each mention."""

ALIASES = {
    "Bush": "George W. Bush",
    "Kerry": "John Kerry",
    "Arafat": "Yasser Arafat",
    "Merkel": "Angela Merkel",
}
MIN_VERSION = (3, 9)
MODELS = {
    "punkt_tab": [
        f"tokenizers/punkt_tab/english/{name}"
        for name in ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")
    ],
    "averaged_perceptron_tagger_eng": [
        f"taggers/averaged_perceptron_tagger_eng/averaged_perceptron_tagger_eng.{part}.json"
        for part in ("weights", "tagdict", "classes")
    ],
    "maxent_ne_chunker_tab": [
        f"chunkers/maxent_ne_chunker_tab/english_ace_multiclass/{name}"
        for name in ("weights.txt", "mapping.tab", "labels.txt", "alwayson.tab")
    ],
    "words": ["corpora/words/en-basic"],
}
"""NLTK's data packages, and the files of each that the tagger reads."""


def missing(has_file: Callable[[str], bool] | None = None) -> str:
    """Return how to get NLTK or its missing models, as part of a sentence; empty: nothing is missing.

    Args:
        has_file: returns whether a file of `MODELS` is present; None: look into NLTK's folders without importing NLTK,
            which takes seconds.
    """
    if importlib.util.find_spec("nltk") is None:
        return f"persons need NLTK: pip install nltk, then python -m nltk.downloader {' '.join(MODELS)}"
    try:
        version = importlib.metadata.version("nltk")
    except importlib.metadata.PackageNotFoundError:  # it is on the path but not installed
        return "NLTK has no version: pip install 'nltk>=3.9'"
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < MIN_VERSION:
        return f"NLTK {version} reads its models as pickles: pip install 'nltk>=3.9'"
    absent = [package for package, files in MODELS.items() if not all(map(has_file or _is_present, files))]
    return f"persons need models of NLTK: python -m nltk.downloader {' '.join(absent)}" if absent else ""


def with_persons(availability: str) -> str:
    """Add the tagger's missing parts to a dataset's line for ``list``."""
    return "; ".join(part for part in (availability, missing()) if part)


def identity() -> str:
    """Identify NLTK and its models: its version and the SHA-256 of the models' files.

    Raises:
        RequestError: one of them is missing.
    """
    _require()
    import nltk

    models = hashlib.sha256()
    for files in MODELS.values():
        for file in files:
            with nltk.data.find(file).open() as stream:
                models.update(hashlib.sha256(stream.read()).digest())
    return f"nltk {nltk.__version__}:{models.hexdigest()}"


def tagger() -> Tagger:
    """Return NLTK's tagger, with its models loaded.

    Raises:
        RequestError: NLTK or a model is missing.
    """
    _require()
    import nltk

    chunker = nltk.chunk.ne_chunker()

    def tag(text: str) -> list[str]:
        tokens = nltk.pos_tag(nltk.word_tokenize(text))
        return names(chunker.parse(tokens)) if tokens else []

    return tag


def names(tree: Iterable[Any]) -> list[str]:
    """Return the persons of a chunked text: its PERSON subtrees, with their tokens joined by blanks."""
    chunks = [chunk for chunk in tree if hasattr(chunk, "label") and chunk.label() == "PERSON"]
    return [" ".join(token for token, _ in chunk) for chunk in chunks]


def choose_and_keep(
    splits: Mapping[str, pd.DataFrame], tag: Tagger, count: int, counted: Literal["train", "all"]
) -> tuple[dict[str, pd.DataFrame], list[Secret], int]:
    """Choose the most frequent persons, mark them in each text, and keep the texts that mention one of them.

    Args:
        splits: with a column ``text``.
        tag: finds the persons of a text.
        count: number of persons to choose; equally frequent ones are taken in the order of the alphabet.
        counted: the splits in which mentions are counted.

    Returns:
        The splits with a 0/1 column for each person; the persons as secrets, most frequent first; and the number of
        texts that were left out.

    Raises:
        RequestError: the texts mention too few persons.
    """
    persons_of = _mentions([text for frame in splits.values() for text in frame["text"]], tag)
    counted_splits = splits if counted == "all" else {"train": splits["train"]}
    mentions = Counter(name for frame in counted_splits.values() for text in frame["text"] for name in persons_of[text])
    persons = sorted(mentions, key=lambda name: (-mentions[name], name))[:count]
    if len(persons) < count:
        raise RequestError(f"entities: {count} asked for, but the texts mention only {len(persons)} persons")
    kept = {}
    for split, frame in splits.items():
        marked = frame.assign(**{name: [int(name in persons_of[text]) for text in frame["text"]] for name in persons})
        kept[split] = marked[marked[persons].any(axis=1)]
    secrets = [Secret(name, ("absent", "present"), "entity") for name in persons]
    return kept, secrets, count_rows(splits) - count_rows(kept)


def _mentions(texts: Sequence[str], tag: Tagger) -> dict[str, list[str]]:
    """Return the persons of every distinct text, one for each mention, with surnames replaced by full names."""
    persons_of: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        persons_of[text] = [ALIASES.get(name, name) for name in tag(text)]
        if len(persons_of) % 1_000 == 0:
            log_progress(f"persons of {len(persons_of):,} of at most {len(texts):,} texts")
    return persons_of


def folders() -> list[str]:
    """Return the folders in which NLTK looks for its models: `nltk.data.path` on Linux and macOS."""
    named = [os.path.expanduser(folder) for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    inside = [os.path.join(sys.prefix, *parts, "nltk_data") for parts in ((), ("share",), ("lib",))]
    shared = [f"{root}/{part}/nltk_data" for part in ("share", "lib") for root in ("/usr", "/usr/local")]
    return [*named, os.path.expanduser("~/nltk_data"), *inside, *shared]


def _is_present(file: str) -> bool:
    """Return whether a file of a package, or the package as a ZIP archive, is in one of the folders."""
    archive = "/".join(file.split("/")[:2]) + ".zip"
    return any(os.path.exists(os.path.join(folder, part)) for folder in folders() for part in (file, archive))


def _is_found(file: str) -> bool:
    """Return whether NLTK finds a file; it skips folders that other users can write to."""
    import nltk

    try:
        nltk.data.find(file)
    except LookupError:
        return False
    return True


def _require() -> None:
    if absent := missing(_is_found):
        raise RequestError(absent)
