"""Build, check, divide and store corpora.

Every corpus is checked when it is built. Test texts that are also in train help attacks that memorise, so copies across
splits are reported with every score.
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
    """Return train and dev of a corpus with more texts in train.

    Each unit of texts is a user of its own. A unit that is not ``present`` gets empty texts, which contribute nothing.
    Users and numeric targets are kept; a new unit gets the numeric targets of another row. Labels and secrets are not.
    """
    from datasets import DatasetDict, concatenate_datasets

    features = corpus.splits["train"].features
    kept = [name for name in ("text", "row", "user", *corpus.numeric_targets) if name in features]
    parts = {split: corpus.splits[split].select_columns(kept) for split in ("train", "dev")}
    texts = [text if is_present else "" for unit, is_present in zip(units, present, strict=True) for text in unit]
    numbers = [number for number, unit in enumerate(units) for _ in unit]
    columns: dict[str, Any] = {"text": texts, "row": [-1] * len(texts), "user": [f"added {n}" for n in numbers]}
    for target in corpus.numeric_targets:
        values = parts["train"][target][:]
        columns[target] = [values[number % len(values)] for number in numbers]
    added = type(parts["train"]).from_dict({name: columns[name] for name in kept}, features=parts["train"].features)
    parts["train"] = concatenate_datasets([parts["train"], added])
    return dataclasses.replace(corpus, splits=DatasetDict(parts), secrets=())


def one_user_a_text(corpus: Corpus) -> Corpus:
    """Return a corpus without users with a user of its own for each text."""
    parts = {
        split: part.add_column("user", [f"author {row}" for row in range(len(part))])
        for split, part in corpus.splits.items()
    }
    return dataclasses.replace(corpus, splits=type(corpus.splits)(parts))


def build_corpus(
    name: str,
    splits: Mapping[str, pd.DataFrame],
    secrets: Sequence[Secret],
    labels: Sequence[str] | None,
    checks: Mapping[str, float] | None = None,
    show_secrets: bool = False,
    numeric_targets: Sequence[str] = (),
) -> Corpus:
    """Build a corpus from one frame for each split.

    Args:
        name: of the corpus.
        splits: train, dev, test. Columns: ``row``, each secret (number of the value), ``label`` (number, with
            ``labels``); optional: ``text``, ``id``, ``user``, ``document``, and ``posterior:<secret>`` (a list of
            probabilities).
        secrets: their values name the numbers in their columns.
        labels: names of the task's classes; None: no task.
        checks: the loader's own counts (dropped rows), to be added to those of `check`.
        show_secrets: put a word for each secret in front of every text (+DEMO of Coavoux et al. 2018).
        numeric_targets: columns of finite numbers to keep.

    Raises:
        RequestError: a split is empty, a text is missing, a number is no class, or a numeric target is not a finite
            number.
    """
    from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

    classes = {secret.name: secret.values for secret in secrets} | ({"label": tuple(labels)} if labels else {})
    types: dict[str, Any] = {column: Value("string") for column in ("text", "id", "user", "document")}
    types["row"] = Value("int64")
    types |= {column: Value("float64") for column in numeric_targets}
    types |= {column: ClassLabel(names=list(values)) for column, values in classes.items()}
    parts = {}
    for split in SPLITS:
        frame = splits[split]
        if not len(frame):
            raise RequestError(f"{name}: the {split} split has no texts")
        if wrong := [c for c in numeric_targets if c not in frame or not np.isfinite(frame[c].astype(float)).all()]:
            raise RequestError(f"{name}: {wrong[0]} is not a finite number for every text of {split}")
        for column, values in classes.items():
            _check_codes(frame[column], len(values), f"{name}: {column} of {split}")
        if "text" in frame and (missing := frame["text"].isna().to_numpy()).any():
            raise RequestError(f"{name}: the text of row {int(missing.argmax())} of {split} is missing")
        columns = [c for c in frame.columns if c in types or c.startswith(POSTERIOR)]
        features = Features({c: types.get(c, List(Value("float64"))) for c in columns})
        parts[split] = Dataset.from_dict({c: frame[c].tolist() for c in columns}, features=features)
    corpus = Corpus(name, tuple(secrets), DatasetDict(parts), numeric_targets=tuple(numeric_targets))
    corpus = dataclasses.replace(corpus, checks={**(checks or {}), **check(corpus)})
    return _showing_secrets(corpus) if show_secrets else corpus


def _check_codes(codes: pd.Series[Any], classes: int, place: str) -> None:
    """Raise a RequestError if the number of a class is missing, fractional or out of range."""
    numbers = codes.to_numpy(np.float64)
    wrong = ~((numbers >= 0) & (numbers < classes) & (numbers == np.floor(numbers)))
    if wrong.any():
        raise RequestError(f"{place}: {codes.iloc[int(wrong.argmax())]} is not one of the {classes} classes, from 0 on")


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

    | name | meaning |
    |---|---|
    | ``dev_copies``, ``test_copies`` | share of the split's texts that are also in train, verbatim |
    | ``empty_texts`` | number of blank texts |
    | ``conflicting_labels`` | number of distinct texts with more than one label |
    | ``dev_users``, ``test_users`` | share of the split's texts by authors who also wrote texts of train |
    | ``dev_documents``, ``test_documents`` | share of the split's texts of documents that train has parts of |

    A count is left out if the corpus lacks the texts, labels or users that it needs.
    """
    counts: dict[str, float] = {}
    if corpus.has_texts:
        texts = {split: part["text"][:] for split, part in corpus.splits.items()}  # row by row is ten times slower
        counts |= {f"{split}_copies": share for split, share in _shares_in_train(texts).items()}
        counts["empty_texts"] = sum(not text.strip() for split in texts.values() for text in split)
        if corpus.has_labels:
            labels_of: dict[str, set[int]] = {}
            for split, part in corpus.splits.items():
                for text, label in zip(texts[split], part["label"][:], strict=True):
                    labels_of.setdefault(text, set()).add(label)
            counts["conflicting_labels"] = sum(len(labels) > 1 for labels in labels_of.values())
    for column in ("user", "document"):
        if column in corpus.splits["train"].column_names:
            names = {split: part[column][:] for split, part in corpus.splits.items()}
            counts |= {f"{split}_{column}s": share for split, share in _shares_in_train(names).items()}
    return counts


def _shares_in_train(values: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return for dev and test the share of values that are also in train."""
    known = set(values["train"])
    return {split: float(np.mean([v in known for v in values[split]])) for split in values if split != "train"}


def count_rows(splits: Mapping[str, pd.DataFrame]) -> int:
    """Return the number of rows in all splits."""
    return sum(map(len, splits.values()))


def drop_copies(splits: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Keep every distinct text in one split only: test keeps all its rows, then dev, then train.

    The test split stays as its authors made it, so that scores with and without copies are about the same texts. Rows
    without texts are all kept.
    """
    if "text" not in splits["train"]:
        return dict(splits)
    test, dev, train = splits["test"], splits["dev"], splits["train"]
    dev = dev[~dev["text"].isin(set(test["text"]))]
    train = train[~train["text"].isin(set(test["text"]) | set(dev["text"]))]
    return {"train": train, "dev": dev, "test": test}


def divide(frame: pd.DataFrame, dev_share: float, test_share: float, seed: int) -> dict[str, pd.DataFrame]:
    """Divide rows into splits at random: by user, else by document, by distinct text or by row.

    No user and no text is in two splits. If two splits have the same text, only one of them keeps its rows
    (`drop_copies`).

    Raises:
        RequestError: there are fewer than three users (documents, texts or rows), or the shares leave no train split.
    """
    column = next(name for name in ("user", "document", "text", "row") if name in frame)
    group = frame[column]
    names = group.drop_duplicates()
    if len(names) < len(SPLITS):
        raise RequestError(f"{len(names)} different {column}s cannot be divided into {', '.join(SPLITS)}: 3 are needed")
    order = np.random.default_rng(seed).permutation(len(names))
    if dev_share + test_share >= 1:
        raise RequestError(f"dev_share={dev_share:g}, test_share={test_share:g}: allowed: below 1 together")
    n_test, n_dev = (max(1, round(share * len(names))) for share in (test_share, dev_share))
    split_of = np.full(len(names), "train", dtype=object)
    split_of[order[:n_test]] = "test"
    split_of[order[n_test : n_test + n_dev]] = "dev"
    split = group.map(dict(zip(names, split_of, strict=True)))
    return drop_copies({name: frame[split == name] for name in SPLITS})


def draw_from_train(splits: Mapping[str, pd.DataFrame], split: str, share: float, seed: int) -> dict[str, pd.DataFrame]:
    """Return the splits with a random share of train moved to another split, drawn as in `divide`."""
    drawn = divide(splits["train"], share, share, seed)[split]
    return {**splits, "train": splits["train"].drop(drawn.index), split: drawn}


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
    """Return what `save_corpus` wrote; a process keeps the last two corpora, since all stages of a cell need them."""
    status = (folder / "corpus.json").stat()
    return _loaded(folder, status.st_ino, status.st_mtime_ns)


@lru_cache(maxsize=2)
def _loaded(folder: Path, inode: int, modified: int) -> Corpus:
    """Return the corpus of a folder; a rewritten one has another inode or time of change."""
    from datasets import DatasetDict

    about = json.loads((folder / "corpus.json").read_text("utf-8"))
    secrets = tuple(Secret(s["name"], tuple(s["values"]), s["kind"]) for s in about["secrets"])
    splits = DatasetDict.load_from_disk(str(folder / "splits"))
    return Corpus(about["name"], secrets, splits, about["checks"], tuple(about.get("numeric_targets", ())))


def detached(corpus: Corpus) -> Corpus:
    """Return a copy of a corpus in memory without file names: they would lead to the files of other splits."""
    from datasets import Dataset, DatasetInfo

    parts = {
        name: Dataset(part.with_format("arrow")[:], DatasetInfo(features=part.features), fingerprint=uuid.uuid4().hex)
        for name, part in corpus.splits.items()
    }
    return dataclasses.replace(corpus, splits=type(corpus.splits)(parts))


def posterior(corpus: Corpus, split: str, secret: str) -> np.ndarray | None:
    """Return the exact probabilities of a secret's values given each text, float64 (n, values); None: not known."""
    part = corpus.splits[split]
    name = POSTERIOR + secret
    return np.asarray(part[name], dtype=np.float64) if name in part.column_names else None
