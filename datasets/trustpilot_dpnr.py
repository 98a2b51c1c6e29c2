"""Trustpilot reviews from the United States or the United Kingdom, as preprocessed for DPNR (Lyu, He and Li 2020).

Task: rating (5 classes). Secrets: gender and age group. In the file, variable 0 means female and variable 1 means
young, as in the reader of Coavoux et al. (2018).
"""

from typing import Literal

from leakboard.data.downloads import availability
from leakboard.datasets._published.dpnlp import load, public_file
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.suite.options import dataset

FILES = {
    "uk": public_file("tp_uk", "tp_uk.txt", "git:1a67bd0c88cc5d4761551fd07b4b3a1651b46be9"),
    "us": public_file("tp_us", "tp_us.txt", "git:a77c01300a5d0af073537a1a51ef79cf5e00ce78"),
}
SECRETS = (Secret("gender", ("male", "female"), "attribute"), Secret("age", ("over 45", "under 35"), "attribute"))


@dataset(revision=1)
class TrustpilotDpnr(Dataset):
    country: Literal["uk", "us"] = "us"
    """Country of the reviews; each has its own file."""
    duplicates: Literal["drop", "keep"] = "drop"
    """``drop``: remove texts of dev and test from train; ``keep``: leave the published file as it is."""
    show_secrets: bool = False
    """Put a word for each secret in front of every text (Coavoux et al. 2018, +DEMO); text classifiers read it too."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the files of the two countries are present."""
        return availability(list(FILES.values()))

    def fingerprint(self) -> str:
        """Return the checksum of the country's file."""
        return FILES[self.country].checksum

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``."""
        path = FILES[self.country].fetch()
        return load("trustpilot_dpnr", path, SECRETS, None, self.duplicates, self.show_secrets)
