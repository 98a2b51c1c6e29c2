"""English news of Deutsche Welle that mention one of a few persons, as read by Coavoux et al. (2018); not public.

The corpus of the SUMMA project went to its partners only: a folder ``en_corpora_sets``, or a zip of it, with
``train/json``, ``dev/json`` and ``test/json``, and in each one JSON file an article, an object with ``text`` and
``categoryName`` (and more that is not read). Task: the most frequent categories of train. Secrets: presence of the
most frequent persons (`_persons`).

The splits are the given ones; texts of dev and test are taken out of train. Articles without text or category, of
another category, and without one of the persons are left out in every split and counted. Unlike the paper's the
persons are counted on train unless asked for, and no label stands for categories that train has not: those articles
are left out. That its sizes (5,435, 1,772 and 1,830 articles) come out could not be tried.
"""

import json
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from leakboard.data.corpora import SPLITS, build_corpus, drop_copies
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.archives import read_members
from leakboard.data.readers.tabular import clean_text
from leakboard.datasets._preparation.persons import choose_and_keep, identity, tagger, with_persons
from leakboard.datasets._published.files import folder_checksum, unpacked
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Dataset
from leakboard.suite.options import dataset

PARTNERS = "the partners of the SUMMA project (http://summa-project.eu)"
FILE = PublicFile("dw", "en_corpora_sets.zip", PARTNERS, by_hand=True)
FOLDER = "en_corpora_sets"


@dataset(revision=1)
class Dw(Dataset):
    categories: Annotated[int, Field(ge=2, le=1000)] = 20
    """How many categories are classes of the task: the most frequent of train."""
    entities: Annotated[int, Field(ge=1, le=100)] = 5
    """How many persons are secrets: the most frequent."""
    entities_from: Literal["train", "all"] = "train"
    """Texts whose mentions are counted; ``all`` is the paper's way, in which dev and test have a say in the choice."""
    duplicates: Literal["drop", "keep"] = "drop"
    """``drop``: texts of dev and test are taken out of train; ``keep``: the given splits as they are."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the corpus is here, and NLTK with its models."""
        return with_persons("there" if unpacked(FILE, FOLDER) else availability([FILE]))

    def fingerprint(self) -> str:
        """Return the checksums of the corpus and of NLTK's models."""
        tagged, folder = identity(), unpacked(FILE, FOLDER)
        corpus = folder_checksum(folder, ".json") if folder else FILE.identity()
        return f"{corpus},{tagged}"

    def load(self) -> Corpus:
        """Find the corpus in ``LEAKBOARD_DATA``, read it, and find the persons.

        Raises:
            RequestError: it is not there, an article is malformed, or NLTK or one of its models is missing.
        """
        import pandas as pd

        tag = tagger()
        path = unpacked(FILE, FOLDER) or FILE.fetch()
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
        copies = len(labelled) - sum(map(len, splits.values()))
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
    """Return the articles of the three splits; text or category is empty where the article has none."""
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
