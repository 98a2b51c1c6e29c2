"""Blog posts with LDA topics, as preprocessed for DPNR (Lyu, He and Li 2020).

Task: LDA topic. Secrets: age group (under 20, over 30) and gender, in this order: Coavoux et al. (2018) number the two
in the opposite order for Trustpilot.
"""

from typing import Literal

from leakboard.data.downloads import availability
from leakboard.datasets._published.dpnlp import load, public_file
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.suite.options import dataset

FILE = public_file("blog", "blog_data.txt", "git:b9c3677dca475d4848b1c34a26f13c72e0de37c6")
SECRETS = (Secret("age", ("over 30", "under 20"), "attribute"), Secret("gender", ("male", "female"), "attribute"))


@dataset(revision=1)
class Blog(Dataset):
    duplicates: Literal["drop", "keep"] = "drop"
    """``drop``: remove texts of dev and test from train; ``keep``: leave the published file as it is."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the file is present."""
        return availability([FILE])

    def fingerprint(self) -> str:
        """Return the checksum of the published file."""
        return FILE.checksum

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``."""
        return load("blog", FILE.fetch(), SECRETS, None, self.duplicates)
