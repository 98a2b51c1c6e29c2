"""Trustpilot reviews with gender and age of their authors (Hovy, Johannsen and Søgaard 2015).

The files are the public release of Bianchi, Nozza and Hovy, "Language Invariant Properties in NLP" (2022), in English
or German. Secrets: gender, and age (under 35 or over 45). Ages in between are left out, as in Coavoux et al. (2018),
and so are the few reviews without a word; ``dropped_rows`` counts both.

This release has no rating, so the task is a topic found by LDA on the train split. The published test file is the test
split; dev is drawn from the published train file.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from leakboard.data.corpora import build_corpus, count_rows, draw_from_train, drop_copies
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.tabular import InputRow, clean_category, clean_text, read_rows
from leakboard.datasets._preparation.topics import TopicModel
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.suite.options import dataset

COMMIT = "805b206976dd4645966ca76e554c3929fd681e68"
URL = "https://raw.githubusercontent.com/MilaNLProc/language-invariant-properties"
CHECKSUMS = {
    "english": {
        "train": "sha256:0344df91bc358f09f981cb76b53fe51741591e1b9f6befa7e0d4054c769dc559",
        "test": "sha256:412af2d8c87bf5c615ac3b7e8fea013eb95d70956630a88cabcdac8202bec9c1",
    },
    "german": {
        "train": "sha256:62989aa7fb7d779e411daed8c95a1be02eac2ca920122c4dea82c8394928a4c3",
        "test": "sha256:2dd6621aa1a58b1b31a4f113c75370496cf409037814b0ea15872d3f7f95b7ce",
    },
}
GENDERS = {"M": 0, "F": 1}
SECRETS = (Secret("gender", ("male", "female"), "attribute"), Secret("age", ("over 45", "under 35"), "attribute"))
DEV_SHARE = 0.1
"""Share of the distinct texts of the published train file that is drawn for dev."""
SPLIT_SEED = 0


@dataset(revision=1)
class Trustpilot(Dataset):
    language: Literal["english", "german"] = "english"
    """Language of the reviews."""
    topics: Annotated[int, Field(ge=2, le=1000)] = 10
    """Number of LDA topics, the classes of the task."""
    passes: Annotated[int, Field(ge=1)] = 20
    """Passes of LDA over the train split."""
    topic_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of LDA."""
    duplicates: Literal["drop", "keep"] = "drop"
    """``drop``: remove texts of the test file from train and dev; ``keep``: leave the published files as they are."""
    show_secrets: bool = False
    """Put a word for each secret in front of every text (Coavoux et al. 2018, +DEMO); text classifiers read it too."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the files of both languages are present."""
        return availability([_file(language, split) for language in CHECKSUMS for split in ("train", "test")])

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an instance with two topics and one pass."""
        return cls(topics=2, passes=1)

    def fingerprint(self) -> str:
        """Return the checksums of the published files."""
        return ",".join(CHECKSUMS[self.language].values())

    def load(self) -> Corpus:
        """Read the files, fetched or found in ``LEAKBOARD_DATA``, and label the reviews with topics.

        Raises:
            RequestError: a file cannot be fetched or is not the published one.
        """
        frames, rows = {}, 0
        for split in ("train", "test"):
            path = _file(self.language, split).fetch()
            read = read_rows(str(path), ("text", "age", "gender"), _clean, on_bad_rows="error")
            frames[split] = read.frame(rows)
            rows += len(read.rows)
        kept = {split: frame[frame["kept"]] for split, frame in frames.items()}
        dropped = rows - count_rows(kept)
        splits = draw_from_train(kept, "dev", DEV_SHARE, SPLIT_SEED)
        if self.duplicates == "drop":
            splits = drop_copies(splits)
        copies = rows - dropped - count_rows(splits)
        model = TopicModel.fit(splits["train"]["text"].tolist(), self.topics, self.passes, self.topic_seed)
        splits = {split: frame.assign(label=model.label(frame["text"].tolist())) for split, frame in splits.items()}
        names = [f"topic {i}" for i in range(self.topics)]
        checks = {"dropped_rows": dropped, "dropped_copies": copies}
        return build_corpus("trustpilot", splits, SECRETS, names, checks, self.show_secrets)


def _file(language: str, split: str) -> PublicFile:
    url = f"{URL}/{COMMIT}/language_invariant_properties/data/trustpilot/{split}/{language}.csv"
    return PublicFile("trustpilot", f"{language}_{split}.csv", url, CHECKSUMS[language][split])


def _clean(row: InputRow) -> InputRow:
    """Return text, gender, age group, and whether the review is kept: it has words and an author in an age group."""
    gender, age = clean_category(row["gender"], "gender"), clean_category(row["age"], "age")
    if gender not in GENDERS or not age.isdecimal():
        raise ValueError(f"gender {gender!r}, age {age!r}; allowed: M or F, a whole number")
    between = 35 <= int(age) <= 45
    text = "" if not str(row["text"]).strip() else clean_text(row["text"], "text")
    return {"text": text, "gender": GENDERS[gender], "age": int(int(age) < 35), "kept": bool(text) and not between}
