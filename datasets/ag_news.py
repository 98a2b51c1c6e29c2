"""AG News: titles and first sentences of news, one of four topics (Zhang, Zhao and LeCun 2015).

Task: topic (4 classes). No secrets: the corpus serves for utility and for attacks on words and texts; attacks on
attributes are skipped. 120,000 / 7,600 texts in train and test, as published on the Hugging Face hub.

The re-test of DPNR by Zouhri and Abecidan (2021) has the first 30,000 training rows, 28,500 for train and 1,500 for
validation, and the whole test file: ``train_rows: 30000``. The corpus is for research and other non-commercial use. It
is not the file of ``ag``, which DPNR's authors made.
"""

from leakboard.data.downloads import availability
from leakboard.datasets._published.hub import HubOptions, hub_file, load
from leakboard.interfaces import Corpus
from leakboard.suite.options import dataset

REPOSITORY = "fancyzhx/ag_news"
REVISION = "eb185aade064a813bc0b7f42de02595523103ca4"
CHECKSUMS = {
    "train": "sha256:fc508d6d9868594e3da960a8cfeb63ab5a4746598b93428c224397080c1f52ee",
    "test": "sha256:71de87ec66bc5737752a2502204dfa6d7fe9856ade3ea444dc6317789a4f13fb",
}
FILES = {
    split: hub_file(REPOSITORY, REVISION, f"data/{split}-00000-of-00001.parquet", split, checksum)
    for split, checksum in CHECKSUMS.items()
}
TOPICS = ("World", "Sports", "Business", "Sci/Tech")


@dataset(revision=1)
class AgNews(HubOptions):
    @classmethod
    def availability(cls) -> str:
        """Return whether the files are present."""
        return availability(list(FILES.values()))

    def fingerprint(self) -> str:
        """Return the checksums of the published files."""
        return ",".join(file.identity() for file in FILES.values())

    def load(self) -> Corpus:
        """Read the files, fetched or found in ``LEAKBOARD_DATA``."""
        return load("ag_news", FILES, TOPICS, self)
