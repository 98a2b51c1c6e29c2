"""English or French sentences of Tatoeba, from the pairs that manythings.org makes for the Anki flash cards.

No task and no secrets: for attacks on words and texts. In the easiest setting of the word2vec study (Zouhri and
Abecidan 2021), the user's and the attacker's corpora are two independent halves of the sentences of one language. In a
suite: ``tatoeba: {language: french, auxiliary: overlap}``.

Lines are ``English TAB French TAB attribution``; older files have no attribution. A sentence that occurs in several
pairs is kept once; ``dropped_copies`` counts the others. As in the study, sentences are equal if they have the same
words, whatever their case and punctuation.

The file grows month by month (the study's had 179,903 pairs), so the corpus is identified by the local file's checksum.
Sentences are under CC BY 2.0 France, with the attributions in the file.
"""

from typing import Literal

from leakboard.data.corpora import build_corpus
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.tabular import InputRow, OnBadRows, clean_text, read_lines
from leakboard.datasets._preparation.random_rows import DrawnSplits, distinct
from leakboard.interfaces import Corpus
from leakboard.suite.options import dataset

FILE = PublicFile("tatoeba", "fra-eng.zip", "https://www.manythings.org/anki/fra-eng.zip")
"""Without a checksum: the publisher adds sentences to the file. Each file is identified by its own checksum."""
MEMBER = "fra.txt"
FIELDS = {"english": 0, "french": 1}


@dataset(revision=1)
class Tatoeba(DrawnSplits):
    language: Literal["english", "french"] = "english"
    """Which sentence of each pair."""
    on_bad_rows: OnBadRows = "error"
    """Bad lines (not two or three fields, no sentence, undecodable bytes): refuse the file, or drop and count them."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the file is present."""
        return availability([FILE])

    def fingerprint(self) -> str:
        """Return the checksum of the local file."""
        return FILE.identity()

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``.

        Raises:
            RequestError: the file cannot be fetched, is damaged, or has bad lines.
        """
        read = read_lines(FILE.fetch(), self._clean, self.on_bad_rows, MEMBER)
        whole = read.frame()
        frame = distinct(whole)
        checks = {
            "source_rows": read.total,
            "dropped_rows": read.dropped,
            "dropped_copies": len(whole) - len(frame),
        }
        return build_corpus("tatoeba", self.divide(frame), (), None, checks)

    def _clean(self, line: str) -> InputRow:
        fields = line.split("\t")
        if len(fields) not in (2, 3):
            raise ValueError(f"{len(fields)} fields, not English, French and perhaps an attribution")
        return {"text": clean_text(fields[FIELDS[self.language]], self.language)}
