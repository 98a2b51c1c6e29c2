"""Quora question pairs, one column at a time (Iyer, Dandekar and Csernai 2017).

No task and no secrets: for attacks on words and texts. The word2vec study of Zouhri and Abecidan (2021) has two
settings with it. In setting 2 the user's corpus is 40 % of the first questions, the attacker's 70 % of the second. In
setting 3 the user's corpus is 70 % of the first questions, and the attacker's are tweets. In a suite:

    datasets:
      - quora: {column: question1, share: 0.4, auxiliary: {quora: {column: question2, share: 0.7}}}
      - quora: {column: question1, share: 0.7, auxiliary: {tweets: {max_words: 10, share: 0.3}}}

The share is drawn from the rows of the file (161,716 and 283,003 of 404,290). Drawn rows without a question are dropped
and counted (``blank_rows``). Then, as in the study, a question is kept once: ``dropped_copies`` counts the others.
Questions are equal if they have the same words, whatever their case and punctuation. The study trains on its whole
share; here dev and test are drawn from it. Whether a pair means the same is not read. The data are under Quora's terms
of service: non-commercial use.
"""

from typing import Literal

from leakboard.data.corpora import build_corpus
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.tabular import InputRow, OnBadRows, clean_text, read_rows
from leakboard.datasets._preparation.random_rows import DrawnSplits, Duplicates, SampleShare, Seed, distinct, sample
from leakboard.interfaces import Corpus
from leakboard.suite.options import dataset

URL = "https://qim.fs.quoracdn.net/quora_duplicate_questions.tsv"
CHECKSUM = "sha256:b3350dbb1d98db1f5abca85d736ba514bf4da253fae53939303d79fe921ec7c8"
FILES = {
    "quora_duplicate_questions.tsv": PublicFile("quora", "quora_duplicate_questions.tsv", URL, CHECKSUM),
    "train.csv": PublicFile("quora", "train.csv", "https://www.kaggle.com/c/quora-question-pairs/data", by_hand=True),
    "questions.csv": PublicFile(
        "quora", "questions.csv", "https://www.kaggle.com/datasets/quora/question-pairs-dataset", by_hand=True
    ),
}


@dataset(revision=2)
class Quora(DrawnSplits):
    column: Literal["question1", "question2"] = "question1"
    """Which question of each pair."""
    share: SampleShare = 1.0
    """Share of the rows that is drawn at random."""
    sample_seed: Seed = 0
    """Seed of the drawn share."""
    duplicates: Duplicates = "drop"
    """Questions of the share that occur again: leave them out, as in the study, or keep them."""
    file: Literal["quora_duplicate_questions.tsv", "train.csv", "questions.csv"] = "quora_duplicate_questions.tsv"
    """Quora's own file, or one of Kaggle's two, which need an account."""
    on_bad_rows: OnBadRows = "error"
    """Bad rows (too few fields, undecodable bytes): refuse the file, or drop and count them."""

    @classmethod
    def availability(cls) -> str:
        """Return whether Quora's own file is present, and which of Kaggle's are."""
        first, *others = FILES.values()
        present = [f"file: {file.name} is there" for file in others if file.local_path()]
        return "; ".join([availability([first]), *present])

    def fingerprint(self) -> str:
        """Return the checksum of the file."""
        return FILES[self.file].identity()

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``, and draw the share.

        Raises:
            RequestError: the file cannot be fetched, is not the published one, or has bad rows.
        """
        path = FILES[self.file].fetch()
        read = read_rows(str(path), ("question1", "question2"), self._clean, self.on_bad_rows)
        drawn = sample(read.frame(), self.share, self.sample_seed)
        asked = drawn[drawn["text"] != ""]
        frame = distinct(asked, self.duplicates)
        splits = self.divide(frame)
        checks = {
            "source_rows": read.total,
            "sampled_rows": len(drawn),
            "dropped_rows": read.dropped,
            "blank_rows": len(drawn) - len(asked),
            "dropped_copies": len(asked) - len(frame),
        }
        return build_corpus("quora", splits, (), None, checks)

    def _clean(self, row: InputRow) -> InputRow:
        """Return the question; a blank one becomes empty, to be counted and left out later."""
        question = row[self.column]
        return {"text": clean_text(question, self.column) if question.strip() else ""}
