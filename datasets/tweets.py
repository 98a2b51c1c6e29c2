"""Tweets in English, one a line: questions and their answers in turn, collected by Marsan Ma (chat_corpus).

No task and no secrets: for attacks on words and texts. The hardest setting of the word2vec study (Zouhri and Abecidan
2021): the attacker's corpus is 30 % of the tweets, each cut to its first 10 words, the user's are questions of
``quora``. Which of the two files the study took is not said; ``size: big`` needs its two published parts joined by hand
(``cat twitter_en_big.txt.gz.parta* > twitter_en_big.txt.gz``). Who wrote a tweet is not in the files. The repository
states no licence; tweets are under the terms of Twitter.
"""

from typing import Annotated, Literal

from pydantic import Field

from leakboard.data.corpora import build_corpus
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.tabular import OnBadRows, Row, clean_text, read_lines
from leakboard.datasets._preparation.sampling import DrawnSplits, SampleShare, Seed, sample
from leakboard.interfaces import Corpus
from leakboard.suite.options import dataset

REPOSITORY = "https://github.com/Marsan-Ma-zz/chat_corpus"
FILES = {
    "small": PublicFile("tweets", "twitter_en.txt.gz", f"{REPOSITORY}/raw/master/twitter_en.txt.gz"),
    "big": PublicFile("tweets", "twitter_en_big.txt.gz", REPOSITORY, by_hand=True),
}


@dataset(revision=1)
class Tweets(DrawnSplits):
    size: Literal["small", "big"] = "small"
    """``small``: twitter_en.txt.gz; ``big``: twitter_en_big.txt.gz, millions of tweets."""
    max_words: Annotated[int, Field(ge=1)] | None = None
    """Cut every tweet after so many words, split on white space (the study: 10); null keeps tweets as they are."""
    share: SampleShare = 1.0
    """Share of the tweets that is drawn at random (the study: 0.3)."""
    sample_seed: Seed = 0
    """Seed of the drawn share."""
    on_bad_rows: OnBadRows = "drop"
    """Bad lines (empty, undecodable bytes): refuse the file, or count and leave them out."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the file that can be fetched is here."""
        return availability([FILES["small"]])

    def fingerprint(self) -> str:
        """Return the checksum of the file that is found."""
        return FILES[self.size].identity()

    def load(self) -> Corpus:
        """Fetch (or find in ``LEAKBOARD_DATA``) and read the file, and draw the share.

        Raises:
            RequestError: the file cannot be fetched, is damaged, or has bad lines.
        """
        read = read_lines(FILES[self.size].fetch(), self._clean, self.on_bad_rows)
        whole = read.frame()
        drawn = sample(whole, self.share, self.sample_seed)
        checks = {
            "source_rows": len(whole) + read.dropped,
            "sampled_rows": len(drawn),
            "dropped_rows": read.dropped,
        }
        return build_corpus("tweets", self.divide(drawn), (), None, checks)

    def _clean(self, line: str) -> Row:
        tweet = clean_text(line, "tweet")
        return {"text": tweet if self.max_words is None else " ".join(tweet.split()[: self.max_words])}
