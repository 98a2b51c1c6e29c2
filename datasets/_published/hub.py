"""Read labelled texts from Parquet files of the Hugging Face hub, for ``ag_news`` and ``yelp_polarity``.

The columns are ``text`` and ``label`` (a whole number from 0). The published test file is the test split; dev is drawn
from the published train file. Texts are not changed; escape sequences stay in them.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from leakboard.data.corpora import build_corpus, count_rows, draw_from_train, drop_copies
from leakboard.data.downloads import PublicFile
from leakboard.data.readers.tabular import InputRow, OnBadRows, clean_text, read_rows
from leakboard.datasets._preparation.random_rows import Seed, SplitShare
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Dataset
from leakboard.suite.options import shared


@shared
class HubOptions(Dataset):
    """Options that choose texts of the published files."""

    train_rows: Annotated[int, Field(ge=2)] | None = None
    """Number of rows of the published train file, from its start, for train and dev (the study: 30000); null: all."""
    dev_share: SplitShare = 0.05
    """Share of the distinct texts of train that is drawn for dev (the study: 1,500 of 30,000)."""
    split_seed: Seed = 0
    """Seed of the drawn dev split."""
    duplicates: Literal["drop", "keep"] = "drop"
    """``drop``: remove texts of the test file from train and dev; ``keep``: leave the published files as they are."""
    on_bad_rows: OnBadRows = "error"
    """Bad rows (no such label, undecodable bytes): refuse the file, or drop and count them."""


def hub_file(repository: str, revision: str, path: str, split: str, checksum: str = "") -> PublicFile:
    """Return a file of a dataset of the hub; the revision fixes its content even without a checksum."""
    name = repository.rpartition("/")[2]
    url = f"https://huggingface.co/datasets/{repository}/resolve/{revision}/{path}"
    return PublicFile(name, f"{name}_{split}.parquet", url, checksum)


def load(name: str, files: Mapping[str, PublicFile], labels: Sequence[str], options: HubOptions) -> Corpus:
    """Fetch (or find in ``LEAKBOARD_DATA``) and read the files.

    Args:
        name: of the corpus.
        files: the published train and test file.
        labels: names of labels 0, 1, ...
        options: choose the texts.

    Raises:
        RequestError: a file cannot be fetched, is not the published one, has bad rows or too few rows.
    """
    frames, first, bad = {}, 0, 0
    for split in ("train", "test"):
        path = files[split].fetch()
        read = read_rows(str(path), ("text", "label"), partial(_clean, labels=labels), options.on_bad_rows)
        frames[split] = read.frame(first)
        first += read.total
        bad += read.dropped
        if split == "train" and options.train_rows:
            if first < options.train_rows:
                raise RequestError(f"{path}: {first} rows; train_rows={options.train_rows} is not allowed")
            frames[split] = frames[split][frames[split]["row"] < options.train_rows]
    rows = count_rows(frames)
    frames = {split: frame[frame["text"] != ""] for split, frame in frames.items()}
    kept = count_rows(frames)
    splits = draw_from_train(frames, "dev", options.dev_share, options.split_seed)
    if options.duplicates == "drop":
        splits = drop_copies(splits)
    copies = kept - count_rows(splits)
    checks = {"source_rows": first, "dropped_rows": bad, "blank_rows": rows - kept, "dropped_copies": copies}
    return build_corpus(name, splits, (), labels, checks)


def _clean(row: InputRow, labels: Sequence[str]) -> InputRow:
    """Return text and label; a blank text becomes empty, to be counted and left out later."""
    if type(row["label"]) is not int or not 0 <= row["label"] < len(labels):
        raise ValueError(f"label is {row['label']!r}; allowed: 0 to {len(labels) - 1}")
    blank = isinstance(row["text"], str) and not row["text"].strip()
    return {"text": "" if blank else clean_text(row["text"], "text"), "label": row["label"]}
