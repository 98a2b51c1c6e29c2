"""Status updates of 250 users with their Big Five personality: the public part of myPersonality.

The file of DPUGC (Vu, Tran and Jiang 2019), one row an author: statuses joined by line breaks, a score and a class for
each of five traits, and measures of the author's network, which are not read. Every status is a text with its ``user``.
Secrets: the five classes. Numeric targets: the five scores, ``extraversion_score`` and so on, the same for all texts
of a user. No task, unless ``task`` makes a class the label. Splits by user; the paper has 200 users for training and 50
for test, here dev is drawn from the 200.

The file writes a class as one of two numbers of its own, the even one being yes (0 and 1 for extraversion, 2 and 3 for
openness, and so on); the release that it was made of (Celli, Pianesi, Stillwell and Kosinski 2013) writes y and n,
which are read as well. It also holds remains of that release's rows inside a status, scores and all: lines with a tab
are such remains, are left out, and are counted (``glued_lines``). myPersonality was closed in 2018; its public part is
for research. The paper's regression features are not made here.
"""

import math
import re
from typing import Literal

from leakboard.data.corpora import build_corpus
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.tabular import OnBadRows, Row, clean_category, clean_text, read_rows
from leakboard.datasets._preparation.sampling import DrawnSplits, SplitShare
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Secret
from leakboard.suite.options import dataset

COMMIT = "422ca5db3b60daa59de7fd5304e6603e08480f6d"
URL = f"https://raw.githubusercontent.com/sonvx/dpText/{COMMIT}/data/personality/Full_Data.csv"
FILE = PublicFile("statuses", "Full_Data.csv", URL)
TRAITS = {
    "extraversion": ("EXT", "0", "1"),
    "neuroticism": ("NEU", "8", "9"),
    "agreeableness": ("AGR", "4", "5"),
    "conscientiousness": ("CON", "6", "7"),
    "openness": ("OPN", "2", "3"),
}
"""Of each trait the ending of its columns, and how the file writes yes and no."""
VALUES = ("no", "yes")
SCORES = (0.0, 5.5)
"""Lowest and highest score that is believed; the questionnaire's scale is 1 to 5."""


@dataset(revision=1)
class Statuses(DrawnSplits):
    dev_share: SplitShare = 0.1
    """Share of the users that is drawn for dev."""
    test_share: SplitShare = 0.2
    """Share of the users that is drawn for test (the paper: 50 of 250)."""
    unit: Literal["status", "user"] = "status"
    """What a text is: one status, or all statuses of a user, one a line."""
    task: Literal["extraversion", "neuroticism", "agreeableness", "conscientiousness", "openness"] | None = None
    """Trait whose class is the task's label, and no secret; null: no task."""
    on_bad_rows: OnBadRows = "error"
    """Bad rows (no such class, no such score, no status): refuse the file, or count and leave them out."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the file is here."""
        return availability([FILE])

    def fingerprint(self) -> str:
        """Return the checksum of the file that is found; the commit fixes what is fetched."""
        return FILE.identity()

    def load(self) -> Corpus:
        """Fetch (or find in ``LEAKBOARD_DATA``) and read the file.

        Raises:
            RequestError: the file cannot be fetched, or has bad rows.
        """
        path = FILE.fetch()
        columns = ["AUTHID", "STATUS", *(kind + ending for ending, *_ in TRAITS.values() for kind in "sc")]
        read = read_rows(str(path), columns, _clean, self.on_bad_rows, delimiter=";")
        authors = read.frame()
        if twice := authors["user"][authors["user"].duplicated()].tolist():
            raise RequestError(f"{path}: author {twice[0]!r} has more than one row")
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
            "source_rows": len(authors) + read.dropped,
            "dropped_rows": read.dropped,
            "glued_lines": int(glued.sum()),
            "blank_lines": int(blank.sum()),
            "dropped_copies": len(frame) - sum(map(len, splits.values())),
        }
        targets = [f"{trait}_score" for trait in TRAITS]
        return build_corpus("statuses", splits, secrets, VALUES if self.task else None, checks, numeric_targets=targets)


def _clean(row: Row) -> Row:
    """Return an author with all lines, scores and classes."""
    clean: Row = {"user": clean_category(row["AUTHID"], "AUTHID")}
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
