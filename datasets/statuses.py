"""Status updates of 250 users with their Big Five personality: the public part of myPersonality.

The file is that of DPUGC (Vu, Tran and Jiang 2019). A row is an author: statuses joined by line breaks, a score and a
class for each of five traits, and measures of the author's network, which are not read.

Every status is a text with its ``user``. Secrets: the five classes. Numeric targets: the five scores, such as
``extraversion_score``, the same for all texts of a user. No task, unless ``task`` makes a class the label. Splits are
by user. The paper has 200 users for training and 50 for test; here dev is drawn from the 200.

Each trait's class is written as one of two numbers, of which the even one means yes: 0 and 1 for extraversion, 2 and 3
for openness, and so on. The original release (Celli, Pianesi, Stillwell and Kosinski 2013) has y and n, which are read
too. Some statuses contain remains of that release's rows, with their scores. These are the lines with a tab; they are
left out and counted (``glued_lines``).

myPersonality was closed in 2018; its public part is for research. The paper's regression features are not made here.
"""

import math
import re
from typing import Literal

from leakboard.data.corpora import build_corpus, count_rows
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.tabular import InputRow, OnBadRows, clean_category, clean_text, read_rows
from leakboard.datasets._preparation.random_rows import DrawnSplits, SplitShare
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Secret
from leakboard.suite.options import dataset

COMMIT = "422ca5db3b60daa59de7fd5304e6603e08480f6d"
URL = f"https://raw.githubusercontent.com/sonvx/dpText/{COMMIT}/data/personality/Full_Data.csv"
FILE = PublicFile("statuses", "Full_Data.csv", URL, "git:838d5a07026adab8de9515355b03cd95811bc306")
TRAITS = {
    "extraversion": ("EXT", "0", "1"),
    "neuroticism": ("NEU", "8", "9"),
    "agreeableness": ("AGR", "4", "5"),
    "conscientiousness": ("CON", "6", "7"),
    "openness": ("OPN", "2", "3"),
}
"""For each trait: the end of its columns' names, and the codes of yes and no."""
VALUES = ("no", "yes")
SCORES = (0.0, 5.5)
"""Lowest and highest allowed score; the questionnaire's scale is 1 to 5."""


@dataset(revision=1)
class Statuses(DrawnSplits):
    dev_share: SplitShare = 0.1
    """Share of the users that is drawn for dev."""
    test_share: SplitShare = 0.2
    """Share of the users that is drawn for test (the paper: 50 of 250)."""
    unit: Literal["status", "user"] = "status"
    """Content of a text: one status, or all statuses of a user, one in each line."""
    task: Literal["extraversion", "neuroticism", "agreeableness", "conscientiousness", "openness"] | None = None
    """Trait whose class is the task's label instead of a secret; null: no task."""
    on_bad_rows: OnBadRows = "error"
    """Bad rows (no such class, no such score, no status): refuse the file, or drop and count them."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the file is present."""
        return availability([FILE])

    def fingerprint(self) -> str:
        """Return the checksum of the local file; the commit fixes the published one."""
        return FILE.identity()

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``.

        Raises:
            RequestError: the file cannot be fetched, or has bad rows.
        """
        path = FILE.fetch()
        columns = ["AUTHID", "STATUS", *(kind + ending for ending, *_ in TRAITS.values() for kind in "sc")]
        read = read_rows(str(path), columns, _clean, self.on_bad_rows, delimiter=";")
        authors = read.frame()
        if repeated := authors["user"][authors["user"].duplicated()].tolist():
            raise RequestError(f"{path}: author {repeated[0]!r} has more than one row")
        lines = authors.explode("text", ignore_index=True).assign(row=lambda frame: range(len(frame)))
        glued = lines["text"].str.contains("\t")
        blank = ~glued & (lines["text"].str.strip() == "")
        frame = lines[~glued & ~blank]
        if self.unit == "user":
            joined = frame.groupby("user", sort=False)["text"].agg("\n".join)
            frame = frame.drop_duplicates("user").assign(text=lambda kept: kept["user"].map(joined))
        splits = self.divide(frame)
        if self.task:
            splits = {name: part.rename(columns={self.task: "label"}) for name, part in splits.items()}
        secrets = [Secret(trait, VALUES, "attribute") for trait in TRAITS if trait != self.task]
        checks = {
            "source_rows": read.total,
            "dropped_rows": read.dropped,
            "glued_lines": int(glued.sum()),
            "blank_lines": int(blank.sum()),
            "dropped_copies": len(frame) - count_rows(splits),
        }
        targets = [f"{trait}_score" for trait in TRAITS]
        return build_corpus("statuses", splits, secrets, VALUES if self.task else None, checks, numeric_targets=targets)


def _clean(row: InputRow) -> InputRow:
    """Return the author of a row with all lines, scores and classes."""
    clean: InputRow = {"user": clean_category(row["AUTHID"], "AUTHID")}
    clean["text"] = re.split(r"\r?\n", clean_text(row["STATUS"], "STATUS"))
    for trait, (ending, yes, no) in TRAITS.items():
        codes = {no: 0, yes: 1, "n": 0, "y": 1}
        written = clean_category(row["c" + ending], "c" + ending)
        if written not in codes:
            raise ValueError(f"c{ending} is {written!r}; allowed: {', '.join(codes)}")
        clean[trait] = codes[written]
        clean[f"{trait}_score"] = _score(row["s" + ending], "s" + ending)
    return clean


def _score(value: str, column: str) -> float:
    try:
        score = float(value.replace(",", "."))
    except ValueError:
        score = math.nan
    if not SCORES[0] <= score <= SCORES[1]:
        raise ValueError(f"{column} is {value!r}; allowed: a number from {SCORES[0]:g} to {SCORES[1]:g}")
    return score
