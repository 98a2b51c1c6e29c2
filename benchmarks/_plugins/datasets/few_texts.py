"""Load 120 short texts with one secret."""

import numpy as np
import pandas as pd

from leakboard.data.corpora import build_corpus, divide
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.suite.options import dataset


@dataset(revision=1)
class FewTexts(Dataset):
    def fingerprint(self) -> str:
        return "few-texts-1"

    def load(self) -> Corpus:
        rows = np.arange(120)
        columns = {"row": rows, "text": [f"text {i}" for i in rows], "label": rows % 2, "age": rows // 2 % 2}
        splits = divide(pd.DataFrame(columns), 0.2, 0.4, 0)
        secret = Secret("age", ("young", "old"), "attribute")
        return build_corpus("few_texts", splits, (secret,), ("no", "yes"))
