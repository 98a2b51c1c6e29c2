"""Draw random splits and random shares of a corpus that comes without splits, and leave out copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from leakboard.data import corpora
from leakboard.data.tokens import words
from leakboard.interfaces import Dataset
from leakboard.suite.options import shared

if TYPE_CHECKING:
    import pandas as pd

SplitShare = Annotated[float, Field(gt=0, lt=1)]
UnderHalf = Annotated[float, Field(gt=0, lt=0.5)]
SampleShare = Annotated[float, Field(gt=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Duplicates = Literal["drop", "keep"]


@shared
class DrawnSplits(Dataset):
    """How dev and test are drawn: by user, or by distinct text if there are no users."""

    dev_share: SplitShare = 0.05
    """Share of the users that is drawn for dev, or of the distinct texts if there are no users."""
    test_share: SplitShare = 0.05
    """Share of the users that is drawn for test, or of the distinct texts if there are no users."""
    split_seed: Seed = 0
    """Seed of the drawn splits."""

    def divide(self, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Return train, dev and test."""
        return corpora.divide(frame, self.dev_share, self.test_share, self.split_seed)


def sample(frame: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Return a random share of the rows, at least one, without repetition, in the order of the source."""
    count = max(1, round(share * len(frame)))
    chosen = np.random.default_rng(seed).choice(len(frame), size=count, replace=False)
    return frame.iloc[np.sort(chosen)]


def distinct(frame: pd.DataFrame, duplicates: Duplicates = "drop") -> pd.DataFrame:
    """Return the rows without later copies of a text: texts with the same words, whatever their case and punctuation.

    Args:
        frame: rows with a ``text``.
        duplicates: ``keep`` returns all rows.
    """
    if duplicates == "keep":
        return frame
    return frame[~frame["text"].map(lambda text: " ".join(words(text))).duplicated()]
