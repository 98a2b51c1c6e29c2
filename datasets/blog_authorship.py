r"""Lines of blogs with topic, age group and gender of their authors, made from the Blog Authorship Corpus itself.

The corpus is that of Schler, Koppel, Argamon and Pennebaker, "Effects of Age and Gender on Blogging" (2006): 19,320
bloggers, one file each, named ``id.gender.age.industry.sign.xml``; free for non-commercial research. The recipe is that
of Coavoux et al. (2018): every line that is no markup is a document. Task: its topic, found by LDA. Secrets: age, under
20 or over 30 (bloggers in their twenties are left out), and gender, in the order of `blog`. Kept are the documents of
which one topic makes up more than ``dominance``; then the four groups of age and gender are cut to the smallest.

Unlike in the paper the documents are divided by blogger, the topics are found on train alone and not on all documents,
and the groups are cut in each split. The paper's code loses what follows the first line of a file that is not UTF-8;
here such a line is read as Latin-1 and counted. The files are no well-formed XML and are not read as XML: entities
stay as they are. `blog` is the file that DPNR published. How long the topics of all lines take was not tried.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from pydantic import Field

from leakboard.data.corpora import build_corpus, divide
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.archives import read_members
from leakboard.datasets._preparation.topics import TopicModel
from leakboard.datasets._published.files import folder_checksum, unpacked
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.logs import log_progress
from leakboard.suite.options import dataset

if TYPE_CHECKING:
    import pandas as pd

FILE = PublicFile(
    "blog_authorship",
    "blogs.zip",
    "https://u.cs.biu.ac.il/~koppel/blogs/blogs.zip",
    "sha256:1dfa6996663515a4baf8c1b71713ce8fe9a314b13778701447e4663bbc64c983",
)
FOLDER = "blogs"
NAME = re.compile(r"(?P<user>\d+)\.(?P<gender>male|female)\.(?P<age>\d{1,3})\.[^.]+\.[^.]+\.xml")
GENDERS = {"male": 0, "female": 1}
SECRETS = (Secret("age", ("over 30", "under 20"), "attribute"), Secret("gender", ("male", "female"), "attribute"))

Share = Annotated[float, Field(gt=0, lt=0.5)]


@dataset(revision=1)
class BlogAuthorship(Dataset):
    topics: Annotated[int, Field(ge=2, le=1000)] = 10
    """Number of LDA topics, the classes of the task."""
    passes: Annotated[int, Field(ge=1)] = 20
    """Passes of LDA over the train split."""
    topic_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of LDA."""
    dominance: Annotated[float, Field(ge=0, lt=1)] = 0.8
    """Share of a document that its topic must exceed for the document to be kept."""
    balanced: bool = True
    """Whether the four groups of age and gender are cut, at random, to the smallest, in each split."""
    dev_share: Share = 0.1
    """Share of the bloggers drawn for dev."""
    test_share: Share = 0.1
    """Share of the bloggers drawn for test."""
    split_seed: Annotated[int, Field(ge=0)] = 10
    """Seed of the drawn split, and of what is cut from the groups."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the corpus is here."""
        return "there" if unpacked(FILE, FOLDER) else availability([FILE])

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return two topics, found in one pass."""
        return cls(topics=2, passes=1)

    def fingerprint(self) -> str:
        """Return the checksum of the published file, or of the files in the folder."""
        folder = unpacked(FILE, FOLDER)
        return folder_checksum(folder, ".xml") if folder else FILE.identity()

    def load(self) -> Corpus:
        """Fetch (or find in ``LEAKBOARD_DATA``) and read the blogs, and label their lines with topics.

        Raises:
            RequestError: the corpus cannot be fetched, is not the published one, or a file's name is malformed.
        """
        import pandas as pd

        path = unpacked(FILE, FOLDER) or FILE.fetch()
        rows, checks = _read(path)
        if not rows:
            raise RequestError(f"{path}: no line of a blogger under 20 or over 30")
        frame = pd.DataFrame(rows)
        divided = divide(frame, self.dev_share, self.test_share, self.split_seed)
        checks["dropped_copies"] = len(frame) - sum(map(len, divided.values()))
        if divided["train"].empty:
            raise RequestError(f"{path}: the train split has no texts")
        log_progress(f"topics of {len(divided['train']):,} lines")
        model = TopicModel.fit(divided["train"]["text"].tolist(), self.topics, self.passes, self.topic_seed)
        splits = {split: self._keep(model, part) for split, part in divided.items()}
        dominated = sum(map(len, splits.values()))
        checks["dropped_without_dominating_topic"] = sum(map(len, divided.values())) - dominated
        if self.balanced:
            splits = {split: self._balance(path, split, part) for split, part in splits.items()}
        checks["dropped_for_balance"] = dominated - sum(map(len, splits.values()))
        names = [f"topic {i}" for i in range(self.topics)]
        return build_corpus("blog_authorship", splits, SECRETS, names, checks)

    def _keep(self, model: TopicModel, frame: pd.DataFrame) -> pd.DataFrame:
        labels, shares = model.dominating(frame["text"].tolist())
        return frame.assign(label=labels)[shares > self.dominance]

    def _balance(self, path: Path, split: str, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows in their order, as many of each group as the smallest has."""
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
    """Return the documents of bloggers under 20 and over 30, and the counts of what was left out or read otherwise."""
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
    """Return a line as text, and whether its bytes were no UTF-8 and were read as Latin-1."""
    try:
        return line.decode("utf-8-sig").strip(), False
    except UnicodeDecodeError:
        return line.decode("latin-1").strip(), True
