"""Building, checking, dividing and storing corpora.

Every corpus is checked as it is built. A test text that also stands in train helps any attack that memorises, so a
corpus with copies across splits is reported wherever it is scored.
"""

from __future__ import annotations

import dataclasses
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakboard.errors import RequestError
from leakboard.interfaces import POSTERIOR, Corpus, Secret, Texts

if TYPE_CHECKING:
    import pandas as pd

SPLITS = ("train", "dev", "test")


def with_texts(corpus: Corpus, units: Sequence[Texts], present: Sequence[bool] | NDArray[np.bool_]) -> Corpus:
    """Return train and dev of a corpus with the texts of more units in train, each unit a user of its own.

    Where a unit is not ``present`` it has empty texts: it is there, and contributes nothing. Of what is known of the
    other texts, users and numeric targets are kept; a new unit takes the numbers of another row.
    """
    from datasets import DatasetDict, concatenate_datasets

    features = corpus.splits["train"].features
    kept = [name for name in ("text", "row", "user", *corpus.numeric_targets) if name in features]
    parts = {split: corpus.splits[split].select_columns(kept) for split in ("train", "dev")}
    texts = [text if is_present else "" for unit, is_present in zip(units, present, strict=True) for text in unit]
    users = [f"added {number}" for number, unit in enumerate(units) for _ in unit]
    columns: dict[str, Any] = {"text": texts, "row": [-1] * len(texts), "user": users}
    for target in corpus.numeric_targets:  # each unit takes the value of another row
        values = parts["train"][target][:]
        columns[target] = [values[number % len(values)] for number, unit in enumerate(units) for _ in unit]
    added = type(parts["train"]).from_dict({name: columns[name] for name in kept}, features=parts["train"].features)
    parts["train"] = concatenate_datasets([parts["train"], added])
    return dataclasses.replace(corpus, splits=DatasetDict(parts), secrets=())


def one_user_a_text(corpus: Corpus) -> Corpus:
    """Return a corpus that names no users with each text by a user of its own."""
    from datasets import DatasetDict

    parts = {
        split: part.add_column("user", [f"author {row}" for row in range(len(part))])
        for split, part in corpus.splits.items()
    }
    return dataclasses.replace(corpus, splits=DatasetDict(parts))


def build_corpus(
    name: str,
    splits: Mapping[str, pd.DataFrame],
    secrets: Sequence[Secret],
    labels: Sequence[str] | None,
    checks: Mapping[str, float] | None = None,
    show_secrets: bool = False,
    numeric_targets: Sequence[str] = (),
) -> Corpus:
    """Build a corpus from one frame a split.

    Args:
        name: of the corpus.
        splits: train, dev, test; columns ``row``, one integer column a secret, ``label`` (integer) when ``labels`` are
            given, optionally ``text``, ``id``, ``user`` and ``posterior:<secret>`` (a list of probabilities).
        secrets: their values name the numbers in their columns.
        labels: names of the task's classes, None without a task.
        checks: what the loader counted itself (dropped rows), added to the checks made here.
        show_secrets: put a word for each secret in front of every text (+DEMO of Coavoux et al. 2018).
        numeric_targets: columns of finite numbers to keep.

    Raises:
        RequestError: a split is empty, or a numeric target is not a finite number.
    """
    from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

    classes = {secret.name: secret.values for secret in secrets} | ({"label": tuple(labels)} if labels else {})
    kinds: dict[str, Any] = {name: Value("string") for name in ("text", "id", "user")} | {"row": Value("int64")}
    kinds |= {column: Value("float64") for column in numeric_targets}
    kinds |= {column: ClassLabel(names=list(values)) for column, values in classes.items()}
    parts = {}
    for split in SPLITS:
        frame = splits[split]
        if not len(frame):
            raise RequestError(f"{name}: the {split} split has no texts")
        if wrong := [c for c in numeric_targets if c not in frame or not np.isfinite(frame[c].astype(float)).all()]:
            raise RequestError(f"{name}: {wrong[0]} is not a finite number for every text of {split}")
        for column, values in classes.items():
            _check_codes(frame[column], len(values), f"{name}: {column} of {split}")
        columns = [c for c in frame.columns if c in kinds or c.startswith(POSTERIOR)]
        features = Features({c: kinds.get(c, List(Value("float64"))) for c in columns})
        parts[split] = Dataset.from_dict({c: frame[c].tolist() for c in columns}, features=features)
    corpus = Corpus(name, tuple(secrets), DatasetDict(parts), numeric_targets=tuple(numeric_targets))
    corpus = dataclasses.replace(corpus, checks={**(checks or {}), **check(corpus)})
    return _showing_secrets(corpus) if show_secrets else corpus


def _check_codes(codes: pd.Series[Any], classes: int, what: str) -> None:
    """Refuse numbers of classes that are none.

    Raises:
        RequestError: one is missing, fractional or out of range.
    """
    numbers = codes.to_numpy(np.float64)
    wrong = ~((numbers >= 0) & (numbers < classes) & (numbers == np.floor(numbers)))
    if wrong.any():
        raise RequestError(f"{what}: {codes.iloc[int(wrong.argmax())]} is not one of the {classes} classes, from 0 on")


def _showing_secrets(corpus: Corpus) -> Corpus:
    """Return the corpus with words such as ``genderfemale ageunder35`` in front of its texts.

    Raises:
        RequestError: two values of a secret make the same word.
    """
    shown = {s.name: [re.sub(r"\W", "", s.name + value) for value in s.values] for s in corpus.secrets}
    for name, words in shown.items():
        if len(set(words)) < len(words):
            raise RequestError(f"{corpus.name}: show_secrets: the values of {name} make the words {', '.join(words)}")

    def with_words(row: dict[str, Any]) -> dict[str, str]:
        return {"text": " ".join([*(words[row[name]] for name, words in shown.items()), row["text"]])}

    return dataclasses.replace(corpus, splits=corpus.splits.map(with_words))


def check(corpus: Corpus) -> dict[str, float]:
    """Return what a reader must know about a corpus before believing its scores.

    ``dev_copies``, ``test_copies``: share of the split's texts that occur verbatim in train; ``conflicting_labels``:
    number of distinct texts that occur with more than one label; ``empty_texts``: number of texts without a word;
    ``dev_users``, ``test_users``: share of the split's texts whose author also wrote texts of train. Where the corpus
    has no texts there are no copies to count.
    """
    counts = _check_texts(corpus) if corpus.has_texts else {}
    if "user" in corpus.splits["train"].features:
        authors = set(corpus.splits["train"]["user"][:])
        counts |= {
            f"{split}_users": float(np.mean([user in authors for user in corpus.splits[split]["user"][:]]))
            for split in corpus.splits
            if split != "train"
        }
    return counts


def _check_texts(corpus: Corpus) -> dict[str, float]:
    texts = {split: corpus.splits[split]["text"][:] for split in corpus.splits}  # row by row takes ten times as long
    train_texts = set(texts["train"])
    counts: dict[str, float] = {
        f"{split}_copies": float(np.mean([text in train_texts for text in texts[split]]))
        for split in corpus.splits
        if split != "train"
    }
    counts["empty_texts"] = sum(not text.strip() for split in texts.values() for text in split)
    if corpus.has_labels:
        labels_of: dict[str, set[int]] = {}
        for split in corpus.splits:
            for text, label in zip(texts[split], corpus.splits[split]["label"][:], strict=True):
                labels_of.setdefault(text, set()).add(label)
        counts["conflicting_labels"] = sum(len(labels) > 1 for labels in labels_of.values())
    return counts


def drop_copies(splits: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Keep every distinct text in one split only: test keeps all of its rows, then dev, then train.

    The test split stays as its authors made it, so scores with and without copies are over the same texts. Rows
    without texts are all kept.
    """
    if "text" not in splits["train"]:
        return dict(splits)
    test, dev, train = splits["test"], splits["dev"], splits["train"]
    dev = dev[~dev["text"].isin(set(test["text"]))]
    train = train[~train["text"].isin(set(test["text"]) | set(dev["text"]))]
    return {"train": train, "dev": dev, "test": test}


def divide(frame: pd.DataFrame, dev_share: float, test_share: float, seed: int) -> dict[str, pd.DataFrame]:
    """Divide rows into splits at random, by user where there is one, else by distinct text, else by row.

    No user and no text is in two splits: where users of two splits wrote the same text, its rows stay in one split
    only and are left out of the other (`drop_copies`).
    """
    group = frame[next(name for name in ("user", "text", "row") if name in frame)]
    names = group.drop_duplicates()
    order = np.random.default_rng(seed).permutation(len(names))
    n_test, n_dev = (max(1, round(share * len(names))) for share in (test_share, dev_share))
    split_of = np.full(len(names), "train", dtype=object)
    split_of[order[:n_test]] = "test"
    split_of[order[n_test : n_test + n_dev]] = "dev"
    split = group.map(dict(zip(names, split_of, strict=True)))
    return drop_copies({name: frame[split == name] for name in SPLITS})


def save_corpus(corpus: Corpus, folder: Path) -> None:
    """Write a corpus into an empty folder (Arrow and JSON)."""
    corpus.splits.save_to_disk(str(folder / "splits"))
    about = {
        "name": corpus.name,
        "secrets": [dataclasses.asdict(secret) for secret in corpus.secrets],
        "checks": dict(corpus.checks),
        "numeric_targets": list(corpus.numeric_targets),
    }
    (folder / "corpus.json").write_text(json.dumps(about, indent=1), encoding="utf-8")


def load_corpus(folder: Path) -> Corpus:
    """Return what `save_corpus` wrote; a process keeps the last two, since every stage of a cell asks for them."""
    written = (folder / "corpus.json").stat()
    return _loaded(folder, written.st_ino, written.st_mtime_ns)


@lru_cache(maxsize=2)
def _loaded(folder: Path, inode: int, changed: int) -> Corpus:
    """Return the corpus of a folder; one that was written anew has another inode or time of change."""
    from datasets import DatasetDict

    about = json.loads((folder / "corpus.json").read_text("utf-8"))
    secrets = tuple(Secret(s["name"], tuple(s["values"]), s["kind"]) for s in about["secrets"])
    splits = DatasetDict.load_from_disk(str(folder / "splits"))
    return Corpus(about["name"], secrets, splits, about["checks"], tuple(about.get("numeric_targets", ())))


def detached(corpus: Corpus) -> Corpus:
    """Return a copy of a corpus in memory, which names no files: beside those of its splits lie the other splits'."""
    from datasets import Dataset, DatasetInfo

    parts = {
        name: Dataset(part.with_format("arrow")[:], DatasetInfo(features=part.features), fingerprint=uuid.uuid4().hex)
        for name, part in corpus.splits.items()
    }
    return dataclasses.replace(corpus, splits=type(corpus.splits)(parts))


def posterior(corpus: Corpus, split: str, secret: str) -> np.ndarray | None:
    """Return the exact probabilities of a secret's values given each text, float64 (n, values), where known."""
    part = corpus.splits[split]
    name = POSTERIOR + secret
    return np.asarray(part[name], dtype=np.float64) if name in part.features else None
