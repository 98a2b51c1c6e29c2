r"""Lines of blogs with topic, age group and gender of their authors, made from the Blog Authorship Corpus itself.

The corpus is that of Schler, Koppel, Argamon and Pennebaker, "Effects of Age and Gender on Blogging" (2006): 19,320
bloggers, one file each, named ``id.gender.age.industry.sign.xml``; free for non-commercial research.

The recipe is that of Coavoux et al. (2018). Every line without markup is a document. Task: its topic, found by LDA.
Secrets: age (under 20 or over 30; bloggers in their twenties are left out) and gender, in the order of `blog`. A
document is kept if the share of its topic exceeds ``dominance``. Then the four groups of age and gender are cut to the
size of the smallest.

Four things differ from the paper. Documents are divided by blogger. Topics are found on train only. Groups are cut in
each split. A line that is not UTF-8 is read as Latin-1 and counted; the paper's code loses the rest of its file.

The files are no well-formed XML and are not read as XML: entities stay as they are. `blog` is the file that DPNR
published. How long the topics of all lines take was not tried.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from pydantic import Field

from leakboard.data.corpora import build_corpus, count_rows, divide
from leakboard.data.downloads import PublicFile
from leakboard.data.readers.archives import read_members
from leakboard.datasets._preparation.random_rows import UnderHalf
from leakboard.datasets._preparation.topics import TopicModel
from leakboard.datasets._published.local_files import ZipOrFolder
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.logs import log_progress
from leakboard.suite.options import dataset

if TYPE_CHECKING:
    import pandas as pd

URL = "https://u.cs.biu.ac.il/~koppel/blogs/blogs.zip"
CHECKSUM = "sha256:1dfa6996663515a4baf8c1b71713ce8fe9a314b13778701447e4663bbc64c983"
CORPUS = ZipOrFolder(PublicFile("blog_authorship", "blogs.zip", URL, CHECKSUM), "blogs", ".xml")
NAME = re.compile(r"(?P<user>\d+)\.(?P<gender>male|female)\.(?P<age>\d{1,3})\.[^.]+\.[^.]+\.xml")
GENDERS = {"male": 0, "female": 1}
SECRETS = (Secret("age", ("over 30", "under 20"), "attribute"), Secret("gender", ("male", "female"), "attribute"))


@dataset(revision=1)
class BlogAuthorship(Dataset):
    topics: Annotated[int, Field(ge=2, le=1000)] = 10
    """Number of LDA topics, the classes of the task."""
    passes: Annotated[int, Field(ge=1)] = 20
    """Passes of LDA over the train split."""
    topic_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of LDA."""
    dominance: Annotated[float, Field(ge=0, lt=1)] = 0.8
    """Documents are kept if their topic has a larger share than this."""
    balanced: bool = True
    """Whether the four groups of age and gender are cut, at random, to the size of the smallest, in each split."""
    dev_share: UnderHalf = 0.1
    """Share of the bloggers drawn for dev."""
    test_share: UnderHalf = 0.1
    """Share of the bloggers drawn for test."""
    split_seed: Annotated[int, Field(ge=0)] = 10
    """Seed of the drawn split and of the cuts."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the corpus is present."""
        return CORPUS.availability()

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an instance with two topics and one pass."""
        return cls(topics=2, passes=1)

    def fingerprint(self) -> str:
        """Return the checksum of the published file, or of the files in the folder."""
        return CORPUS.identity()

    def load(self) -> Corpus:
        """Read the blogs, fetched or found in ``LEAKBOARD_DATA``, and label their lines with topics.

        Raises:
            RequestError: the corpus cannot be fetched or is not the published one, or a file's name is malformed.
        """
        import pandas as pd

        path = CORPUS.fetch()
        rows, checks = _read(path)
        if not rows:
            raise RequestError(f"{path}: no line of a blogger under 20 or over 30")
        frame = pd.DataFrame(rows)
        divided = divide(frame, self.dev_share, self.test_share, self.split_seed)
        checks["dropped_copies"] = len(frame) - count_rows(divided)
        if divided["train"].empty:
            raise RequestError(f"{path}: the train split has no texts")
        log_progress(f"topics of {len(divided['train']):,} lines")
        model = TopicModel.fit(divided["train"]["text"].tolist(), self.topics, self.passes, self.topic_seed)
        splits = {split: self._keep(model, part) for split, part in divided.items()}
        dominated = count_rows(splits)
        checks["dropped_without_dominating_topic"] = count_rows(divided) - dominated
        if self.balanced:
            splits = {split: self._balance(path, split, part) for split, part in splits.items()}
        checks["dropped_for_balance"] = dominated - count_rows(splits)
        names = [f"topic {i}" for i in range(self.topics)]
        return build_corpus("blog_authorship", splits, SECRETS, names, checks)

    def _keep(self, model: TopicModel, frame: pd.DataFrame) -> pd.DataFrame:
        labels, shares = model.dominating(frame["text"].tolist())
        return frame.assign(label=labels)[shares > self.dominance]

    def _balance(self, path: Path, split: str, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows in their order, cut so that all groups have the size of the smallest."""
        group = 2 * frame["age"] + frame["gender"]
        cells = [frame.index[group == number] for number in range(4)]
        size = min(map(len, cells))
        if not size:
            reason = f"a group of age and gender has no text in {split}"
            raise RequestError(f"{path}: {reason}; balanced: false keeps the others")
        rng = np.random.default_rng(self.split_seed)
        kept = np.concatenate([rng.permutation(cell.to_numpy())[:size] for cell in cells])
        return frame[frame.index.isin(kept)]


def _read(path: Path) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the documents of bloggers under 20 and over 30, and counts for `Corpus.checks`."""
    rows: list[dict[str, Any]] = []
    checks: dict[str, float] = dict.fromkeys(("bloggers", "dropped_bloggers_in_twenties", "lines_read_as_latin1"), 0)
    number = 0
    for name, content in read_members(path, ".xml"):
        match = NAME.fullmatch(PurePosixPath(name).name)
        if not match:
            raise RequestError(f"{path}: {name} is not named as id.gender.age.industry.sign.xml")
        lines = [line for line in map(bytes.strip, content.splitlines()) if line and not line.startswith(b"<")]
        checks["bloggers"] += 1
        if 20 <= int(match["age"]) < 30:
            checks["dropped_bloggers_in_twenties"] += 1
        else:
            blogger = {"user": match["user"], "age": int(int(match["age"]) < 20), "gender": GENDERS[match["gender"]]}
            for row, line in enumerate(lines, start=number):
                text, latin = _decode(line)
                checks["lines_read_as_latin1"] += latin
                if text:
                    rows.append({"text": text, "row": row} | blogger)
        number += len(lines)
        if checks["bloggers"] % 1_000 == 0:
            log_progress(f"{checks['bloggers']:,} blogs read")
    return rows, checks


def _decode(line: bytes) -> tuple[str, bool]:
    """Return a line as text, and whether it was read as Latin-1 because it is not UTF-8."""
    try:
        return line.decode("utf-8-sig").strip(), False
    except UnicodeDecodeError:
        return line.decode("latin-1").strip(), True
