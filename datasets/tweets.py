"""Tweets in English, one on each line: questions and answers in turn, collected by Marsan Ma (chat_corpus).

No task and no secrets: for attacks on words and texts. In the hardest setting of the word2vec study (Zouhri and
Abecidan 2021), the attacker's corpus is 30 % of the tweets. A tweet that occurs again is left out, whatever its case
and punctuation; ``dropped_copies`` counts these. Then each is cut to its first 10 words. The user's corpus is questions
of ``quora``.

The study does not name its file. ``size: big`` needs the two published parts joined by hand
(``cat twitter_en_big.txt.gz.parta* > twitter_en_big.txt.gz``). The files do not name the authors of the tweets. The
repository states no licence; tweets are under the terms of Twitter.
"""

from typing import Annotated, Literal

from pydantic import Field

from leakboard.data.corpora import build_corpus
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.tabular import InputRow, OnBadRows, clean_text, read_lines
from leakboard.datasets._preparation.random_rows import DrawnSplits, Duplicates, SampleShare, Seed, distinct, sample
from leakboard.interfaces import Corpus
from leakboard.suite.options import dataset

COMMIT = "c9c2230c4ed0b55139d26e34586c2ad6ffd89717"
REPOSITORY = "https://github.com/Marsan-Ma-zz/chat_corpus"
FILES = {
    "small": PublicFile(
        "tweets",
        "twitter_en.txt.gz",
        f"{REPOSITORY}/raw/{COMMIT}/twitter_en.txt.gz",
        "git:0547a4b828a84b1794eab20651d4d952ffdfe031",
    ),
    "big": PublicFile("tweets", "twitter_en_big.txt.gz", REPOSITORY, by_hand=True),
}
"""The big file has no checksum: it is published in two parts, and users join them."""


@dataset(revision=2)
class Tweets(DrawnSplits):
    size: Literal["small", "big"] = "small"
    """``small``: twitter_en.txt.gz; ``big``: twitter_en_big.txt.gz, millions of tweets."""
    max_words: Annotated[int, Field(ge=1)] | None = None
    """Number of words after which a tweet is cut, split on white space (the study: 10); null: not cut."""
    share: SampleShare = 1.0
    """Share of the tweets that is drawn at random (the study: 0.3)."""
    sample_seed: Seed = 0
    """Seed of the drawn share."""
    duplicates: Duplicates = "drop"
    """Whole tweets of the share that occur again: leave them out, as in the study, or keep them."""
    on_bad_rows: OnBadRows = "drop"
    """Bad lines (empty, undecodable bytes): refuse the file, or drop and count them."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the small file is present, the only one that can be fetched."""
        return availability([FILES["small"]])

    def fingerprint(self) -> str:
        """Return the checksum of the local file."""
        return FILES[self.size].identity()

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``, and draw the share.

        Raises:
            RequestError: the file cannot be fetched, is damaged, or has bad lines.
        """
        read = read_lines(FILES[self.size].fetch(), self._clean, self.on_bad_rows)
        drawn = sample(read.frame(), self.share, self.sample_seed)
        frame = distinct(drawn, self.duplicates)
        if self.max_words is not None:
            frame = frame.assign(text=[" ".join(tweet.split()[: self.max_words]) for tweet in frame["text"]])
        checks = {
            "source_rows": read.total,
            "sampled_rows": len(drawn),
            "dropped_rows": read.dropped,
            "dropped_copies": len(drawn) - len(frame),
        }
        return build_corpus("tweets", self.divide(frame), (), None, checks)

    def _clean(self, line: str) -> InputRow:
        return {"text": clean_text(line, "tweet")}
