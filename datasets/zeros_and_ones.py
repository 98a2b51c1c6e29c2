"""Two vectors, all zeros and all ones: the neighbours of the sanity check (Habernal 2022), for auditing mechanisms.

A text spells a vector as numbers separated by blanks, so that the pipeline for texts can carry it. The secret is which
of the two vectors it is. Each split has both texts once; nothing is to be learned from them.
"""

from typing import Annotated

from pydantic import Field

from leakboard.data.corpora import SPLITS, build_corpus
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.suite.options import dataset


@dataset(revision=1)
class ZerosAndOnes(Dataset):
    dimension: Annotated[int, Field(ge=1)] = 1
    """Numbers in a vector."""

    def fingerprint(self) -> str:
        """Return no fingerprint: no file is read."""
        return ""

    def load(self) -> Corpus:
        """Return both vectors as texts, in every split."""
        import pandas as pd

        texts = [" ".join([digit] * self.dimension) for digit in "01"]
        splits = {
            split: pd.DataFrame({"text": texts, "row": [row, row + 1], "input": [0, 1]})
            for row, split in zip((0, 2, 4), SPLITS, strict=True)
        }
        return build_corpus("zeros_and_ones", splits, [Secret("input", ("zeros", "ones"), "attribute")], None)
