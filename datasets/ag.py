"""AG news texts that mention one of five politicians, as preprocessed for DPNR (Lyu, He and Li 2020).

Task: topic (4 classes). Secrets: presence of five persons. 11,657 / 1,457 / 1,457 texts in train, dev and test. A third
of the texts of dev and test are also in train, verbatim; the option ``duplicates`` decides whether they stay there. The
corpus is for non-commercial research.
"""

from typing import Literal

from leakboard.data.downloads import availability
from leakboard.datasets._published.dpnlp import load, public_file
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.suite.options import dataset

FILE = public_file("ag", "ag_data.txt", "sha256:3c8d8591fac833fd556ad0536e0cee79fcaaad73bf4c09c0dec39a1afdc06259")
ENTITIES = ("George W. Bush", "John Kerry", "Yasser Arafat", "Tony Blair", "Ariel Sharon")
TOPICS = ("World", "Entertainment", "Sports", "Business")


@dataset(revision=1)
class Ag(Dataset):
    duplicates: Literal["drop", "keep"] = "drop"
    """``drop``: remove texts of dev and test from train; ``keep``: leave the papers' file as it is."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the file is present."""
        return availability([FILE])

    def fingerprint(self) -> str:
        """Return the checksum of the published file."""
        return FILE.checksum

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``."""
        secrets = [Secret(name, ("absent", "present"), "entity") for name in ENTITIES]
        return load("ag", FILE.fetch(), secrets, TOPICS, self.duplicates)
