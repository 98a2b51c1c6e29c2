"""A few hundred texts of three letters' words, with an attribute and an entity that show in the words."""

from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from leakboard.data.corpora import build_corpus, divide
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.randomness import stream
from leakboard.suite.options import dataset

SECRETS = (Secret("colour", ("red", "blue"), "attribute"), Secret("anna", ("absent", "present"), "entity"))
SHOWN = {"label": ("bad", "good"), "colour": ("rot", "blau"), "anna": ("nil", "ann")}


@dataset(revision=1)
class Letters(Dataset):
    size: Annotated[int, Field(ge=30)] = 300
    """Number of texts."""

    def fingerprint(self) -> str:
        return "letters-1"

    def load(self) -> Corpus:
        rng = stream("letters", self.size)
        hidden = {name: rng.integers(2, size=self.size) for name in SHOWN}
        frame = pd.DataFrame({"row": np.arange(self.size), **hidden})
        frame["text"] = [self._write(rng, row) for _, row in frame.iterrows()]
        return build_corpus("letters", divide(frame, 0.15, 0.3, 0), SECRETS, ("no", "yes"))

    @staticmethod
    def _write(rng: np.random.Generator, row: "pd.Series[int]") -> str:
        told = [words[row[name]] for name, words in SHOWN.items() if rng.random() < 0.8]
        return " ".join([*told, *(f"w{k}" for k in rng.integers(90, size=6))])
