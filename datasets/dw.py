"""English news of Deutsche Welle that mention one of a few persons, as read by Coavoux et al. (2018); not public.

Only the partners of the SUMMA project have the corpus: a folder ``en_corpora_sets``, or a zip of it. It has the folders
``train/json``, ``dev/json`` and ``test/json``, with one JSON file for each article. An article is an object with
``text`` and ``categoryName``; other fields are not read.

Task: the most frequent categories of train. Secrets: presence of the most frequent persons (`_preparation.persons`).

The splits are the given ones; texts of dev and test are removed from train. Three kinds of articles are left out of
every split and counted: without text or category, of another category, and without one of the persons. Unlike in the
paper, persons are counted on train by default, and articles of categories that are not in train are left out. Whether
the paper's sizes result (5,435, 1,772 and 1,830 articles) could not be tried.
"""

import json
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from leakboard.data.corpora import SPLITS, build_corpus, count_rows, drop_copies
from leakboard.data.downloads import PublicFile
from leakboard.data.readers.archives import read_members
from leakboard.data.readers.tabular import clean_text
from leakboard.datasets._preparation.persons import choose_and_keep, identity, tagger, with_persons
from leakboard.datasets._published.local_files import ZipOrFolder
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Dataset
from leakboard.suite.options import dataset

PARTNERS = "the partners of the SUMMA project (http://summa-project.eu)"
CORPUS = ZipOrFolder(PublicFile("dw", "en_corpora_sets.zip", PARTNERS, by_hand=True), "en_corpora_sets", ".json")


@dataset(revision=1)
class Dw(Dataset):
    categories: Annotated[int, Field(ge=2, le=1000)] = 20
    """Number of categories, the most frequent of train, that are classes of the task."""
    entities: Annotated[int, Field(ge=1, le=100)] = 5
    """Number of persons, the most frequent, that are secrets."""
    entities_from: Literal["train", "all"] = "train"
    """Texts whose mentions are counted; ``all``, as in the paper, lets dev and test influence the choice."""
    duplicates: Literal["drop", "keep"] = "drop"
    """``drop``: remove texts of dev and test from train; ``keep``: leave the given splits as they are."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the corpus, NLTK and its models are present."""
        return with_persons(CORPUS.availability())

    def fingerprint(self) -> str:
        """Return the checksums of the corpus and of NLTK's models."""
        tagged = identity()  # first, so that a missing NLTK is reported before the corpus
        return f"{CORPUS.identity()},{tagged}"

    def load(self) -> Corpus:
        """Read the corpus, found in ``LEAKBOARD_DATA``, and find the persons.

        Raises:
            RequestError: the corpus is missing, an article is malformed, or NLTK or one of its models is missing.
        """
        import pandas as pd

        tag = tagger()
        path = CORPUS.fetch()
        articles = pd.DataFrame(_read(path), columns=["split", "text", "category", "row"])
        kept = articles[articles["text"].ne("") & articles["category"].ne("")]
        counts = Counter(kept.loc[kept["split"] == "train", "category"])
        labels = sorted(counts, key=lambda name: (-counts[name], name))[: self.categories]
        if len(labels) < 2:
            raise RequestError(f"{path}: {len(labels)} categories in train; the task needs two")
        labelled = kept[kept["category"].isin(labels)]
        labelled = labelled.assign(label=labelled["category"].map(labels.index))
        splits = {split: labelled[labelled["split"] == split] for split in SPLITS}
        if self.duplicates == "drop":
            splits = drop_copies(splits)
        copies = len(labelled) - count_rows(splits)
        splits, secrets, without = choose_and_keep(splits, tag, self.entities, self.entities_from)
        checks = {
            "source_rows": len(articles),
            "dropped_without_text_or_category": len(articles) - len(kept),
            "dropped_other_categories": len(kept) - len(labelled),
            "dropped_copies": copies,
            "dropped_without_entity": without,
        }
        return build_corpus("dw", splits, secrets, labels, checks)


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the articles of the three splits; a missing text or category is empty."""
    rows: list[dict[str, Any]] = []
    for name, content in read_members(path, ".json"):
        parts = PurePosixPath(name).parts
        split = parts[-3] if len(parts) > 2 and parts[-2] == "json" else ""
        if split not in SPLITS:
            raise RequestError(f"{path}: {name} is not in train/json, dev/json or test/json")
        try:
            article = json.loads(content.decode("utf-8-sig"))
            if not isinstance(article, dict):
                raise ValueError(f"a JSON {type(article).__name__}, not an object")
            fields = {field: _field(article, field) for field in ("text", "categoryName")}
        except (ValueError, RecursionError) as error:
            reason = " ".join(str(error).split())[:120]
            raise RequestError(f"{path}: {name}: not an article ({reason})") from None
        rows.append({"split": split, "text": fields["text"], "category": fields["categoryName"], "row": len(rows)})
    return rows


def _field(article: dict[str, Any], name: str) -> str:
    value = article.get(name)
    absent = value is None or (isinstance(value, str) and not value.strip())
    return "" if absent else clean_text(value, name).strip()
