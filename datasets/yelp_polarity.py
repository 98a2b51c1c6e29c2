r"""Yelp review polarity: reviews of one or two stars against three or four (Zhang, Zhao and LeCun 2015).

Task: polarity (2 classes). No secrets: the corpus serves for utility and for attacks on words and texts; attacks on
attributes are skipped. 560,000 / 38,000 texts in train and test, as published on the Hugging Face hub. Line breaks are
written as ``\n``.

The re-test of DPNR by Zouhri and Abecidan (2021) has the first 30,000 training rows, 28,500 for train and 1,500 for
validation, and the whole test file: ``train_rows: 30000``. The reviews are under the terms of the Yelp Dataset
Challenge of 2015.
"""

from leakboard.data.downloads import availability
from leakboard.datasets._published.hub import HubOptions, hub_file, load
from leakboard.interfaces import Corpus
from leakboard.suite.options import dataset

REPOSITORY = "fancyzhx/yelp_polarity"
REVISION = "bbf1c97a1f0cf005e5aded43839fd814654a1557"
FILES = {
    split: hub_file(REPOSITORY, REVISION, f"plain_text/{split}-00000-of-00001.parquet", split)
    for split in ("train", "test")
}
POLARITIES = ("negative", "positive")


@dataset(revision=1)
class YelpPolarity(HubOptions):
    @classmethod
    def availability(cls) -> str:
        """Return whether the files are present."""
        return availability(list(FILES.values()))

    def fingerprint(self) -> str:
        """Return the checksums of the local files; the revision fixes the published ones."""
        return ",".join(file.identity() for file in FILES.values())

    def load(self) -> Corpus:
        """Read the files, fetched or found in ``LEAKBOARD_DATA``."""
        return load("yelp_polarity", FILES, POLARITIES, self)
