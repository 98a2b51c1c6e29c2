"""Two vectors, all zeros and all ones: the neighbours of the sanity check (Habernal 2022), for auditing mechanisms.

A text spells a vector, its numbers separated by blanks, so that what is made for texts serves for vectors too; the
secret is which of the two it is. Nothing is to be learned from it: every split holds both, once in dev and test.
"""

from typing import Annotated

from pydantic import Field

from leakboard.data.corpora import SPLITS, build_corpus
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.suite.options import dataset


@dataset(revision=1)
class ZerosAndOnes(Dataset):
    dimension: Annotated[int, Field(ge=1)] = 1
    """Numbers a vector."""

    def fingerprint(self) -> str:
        """Nothing is read."""
        return ""

    def load(self) -> Corpus:
        """Spell the two vectors."""
        import pandas as pd

        texts = [" ".join([digit] * self.dimension) for digit in "01"]
        splits = {
            split: pd.DataFrame({"text": texts, "row": [row, row + 1], "input": [0, 1]})
            for row, split in zip((0, 2, 4), SPLITS, strict=True)
        }
        return build_corpus("zeros_and_ones", splits, [Secret("input", ("zeros", "ones"), "attribute")], None)
