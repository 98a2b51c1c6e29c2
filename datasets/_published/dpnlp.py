"""Read the text format of the DPNR release (Lyu, He and Li 2020), for ``ag``, ``blog`` and ``trustpilot_dpnr``.

A line is ``label TAB text TAB numbers``, in UTF-8. The numbers, separated by blanks, are those of the private variables
that are present; there may be none. A line of twenty ``=`` ends each of train, dev and test, in this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from leakboard.data.corpora import SPLITS, build_corpus, count_rows, drop_copies
from leakboard.data.downloads import PublicFile
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Secret

if TYPE_CHECKING:
    import pandas as pd

COMMIT = "5b6b97ad9df449327466d0051ff8d2be94d5924d"
SEPARATOR = "=" * 20


def public_file(folder: str, name: str, checksum: str) -> PublicFile:
    """Return a file of the released repository at a pinned commit."""
    url = f"https://raw.githubusercontent.com/xlhex/dpnlp/{COMMIT}/data/{name}"
    return PublicFile(folder, name, url, checksum)


def load(
    name: str,
    path: Path,
    secrets: Sequence[Secret],
    labels: Sequence[str] | None,
    duplicates: Literal["drop", "keep"],
    show_secrets: bool = False,
) -> Corpus:
    """Read a corpus.

    Args:
        name: of the corpus.
        path: of the published file.
        secrets: in the order of their numbers in the file.
        labels: names of labels 0, 1, ...; None: the numbers.
        duplicates: ``drop`` keeps every distinct text in one split, ``keep`` leaves the file as it is.
        show_secrets: put a word for each secret in front of every text.

    Raises:
        RequestError: a line is malformed; the message names it.
    """
    splits = _parse(path, [secret.name for secret in secrets])
    rows = count_rows(splits)
    count = len(labels) if labels else 1 + max(int(frame["label"].max()) for frame in splits.values())
    for frame in splits.values():
        wrong = frame[frame["label"] >= count]
        if len(wrong):
            raise RequestError(f"{path}: label {wrong['label'].iloc[0]} is not one of 0 to {count - 1}")
    if duplicates == "drop":
        splits = drop_copies(splits)
    copies = rows - count_rows(splits)
    names = labels or [str(i) for i in range(count)]
    return build_corpus(name, splits, secrets, names, {"dropped_copies": copies}, show_secrets)


def _parse(path: Path, variables: Sequence[str]) -> dict[str, pd.DataFrame]:
    import pandas as pd

    parts: list[list[dict[str, object]]] = [[]]
    try:
        lines = path.read_text("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RequestError(f"{path}: not UTF-8 at byte {error.start}") from None
    for number, line in enumerate(lines, start=1):
        if line == SEPARATOR:
            parts.append([])
        elif line:
            parts[-1].append(_parse_line(line, f"{path}: line {number}", variables) | {"row": number - 1})
    if len(parts) != len(SPLITS) + 1 or parts[-1]:
        separators = f"{len(parts) - 1} separators of twenty '='"
        raise RequestError(f"{path}: {separators}; the format ends each of {', '.join(SPLITS)} with one")
    if not all(parts[:-1]):
        raise RequestError(f"{path}: a split has no texts")
    return {split: pd.DataFrame(part) for split, part in zip(SPLITS, parts, strict=False)}


def _parse_line(line: str, location: str, variables: Sequence[str]) -> dict[str, object]:
    fields = line.split("\t")
    if len(fields) != 3:
        raise RequestError(f"{location}: {len(fields)} fields, not label, text and present variables")
    label, text, present = fields
    allowed = {str(i) for i in range(len(variables))}
    if not label.isdecimal() or not set(present.split()) <= allowed:
        expected = f"a number, some of {', '.join(sorted(allowed))}"
        raise RequestError(f"{location}: label {label!r}, variables {present!r}; allowed: {expected}")
    return {"label": int(label), "text": text} | {
        name: int(str(i) in present.split()) for i, name in enumerate(variables)
    }
