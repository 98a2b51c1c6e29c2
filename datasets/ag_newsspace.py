"""AG news texts that mention one of a few persons, made from the news corpus itself, as by Coavoux et al. (2018).

The corpus is A. Gulli's, gathered by ComeToMyHead since 2004, for research and other non-commercial use. It is one XML
file, in which the fields of all items follow each other: ``source``, ``url``, ``title``, ``image``, ``category``,
``description``, ``rank`` and ``pubdate``.

Task: one of four categories. Secrets: presence of the most frequent persons (`_preparation.persons`). The text is title
and description, separated by a blank. Backslashes become blanks. XML is unescaped once more, since the corpus is
escaped twice.

The distinct texts are divided at random, a tenth each for dev and test. Unlike in the paper, no text is in two splits,
and the persons are counted on train. `ag` is the file that DPNR published; it follows the paper in every step. NLTK
reads one text at a time, so building the corpus takes long; this is done once.

The tab-separated dump newsSpace.bz2 of the same page is another form of the corpus, which is not read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal
from xml.parsers import expat
from xml.sax.saxutils import unescape

from pydantic import Field

from leakboard.data.corpora import build_corpus, divide
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.archives import open_bytes
from leakboard.datasets._preparation.persons import choose_and_keep, identity, tagger, with_persons
from leakboard.datasets._preparation.random_rows import UnderHalf
from leakboard.datasets._published.local_files import first_present
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Dataset
from leakboard.logs import log_progress
from leakboard.suite.options import dataset

FILE = PublicFile("ag_newsspace", "newsspace200.xml.bz", "https://groups.di.unipi.it/~gulli/newsspace200.xml.bz")
"""Without a checksum: none is published. Each file is identified by its own checksum."""
FORMS = ("newsspace200.xml.bz2", "newsspace200.xml.gz", "newsspace200.xml.xz", "newsspace200.xml")
TOPICS = ("World", "Entertainment", "Sports", "Business")
FIRST = "source"
FIELDS = (FIRST, "url", "title", "image", "category", "description", "rank", "pubdate", "video")
NEEDED = ("title", "category", "description")


@dataset(revision=1)
class AgNewsspace(Dataset):
    entities: Annotated[int, Field(ge=1, le=100)] = 5
    """Number of persons, the most frequent, that are secrets."""
    entities_from: Literal["train", "all"] = "train"
    """Texts whose mentions are counted; ``all``, as in the paper, lets dev and test influence the choice."""
    dev_share: UnderHalf = 0.1
    """Share of the distinct texts drawn for dev."""
    test_share: UnderHalf = 0.1
    """Share of the distinct texts drawn for test."""
    split_seed: Annotated[int, Field(ge=0)] = 10
    """Seed of the drawn split."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the file, NLTK and its models are present."""
        return with_persons(availability([_file()]))

    def fingerprint(self) -> str:
        """Return the checksums of the file and of NLTK's models."""
        tagged = identity()  # first, so that a missing NLTK is reported before the corpus is fetched
        return f"{_file().identity()},{tagged}"

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``, and find the persons.

        Raises:
            RequestError: the file cannot be fetched or is malformed, or NLTK or one of its models is missing.
        """
        import pandas as pd

        tag = tagger()
        path = _file().fetch()
        rows, items, empty = [], 0, 0
        for number, item in enumerate(read_items(path)):
            items += 1
            if item["category"] in TOPICS:
                text = clean(item["title"], item["description"])
                empty += not text
                rows += [{"text": text, "label": TOPICS.index(item["category"]), "row": number}] if text else []
        if not rows:
            raise RequestError(f"{path}: no item of the categories {', '.join(TOPICS)}")
        splits = divide(pd.DataFrame(rows), self.dev_share, self.test_share, self.split_seed)
        splits, secrets, without = choose_and_keep(splits, tag, self.entities, self.entities_from)
        checks = {
            "source_rows": items,
            "dropped_other_categories": items - len(rows) - empty,
            "dropped_empty": empty,
            "dropped_without_entity": without,
        }
        return build_corpus("ag_newsspace", splits, secrets, TOPICS, checks)


def _file() -> PublicFile:
    return first_present(FILE, FORMS)


def clean(title: str, description: str) -> str:
    """Return the text of an item: title, blank, description."""
    return unescape(f"{title} {description}".replace("\\", " ")).strip()


def read_items(path: Path) -> Iterator[dict[str, str]]:
    """Yield the items of the file one by one, each as a mapping of field to text.

    Raises:
        RequestError: the file is no XML or declares a document type, or an item has missing or unknown fields.
    """
    items = _Items()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = items.start
    parser.EndElementHandler = items.end
    parser.CharacterDataHandler = items.text
    parser.StartDoctypeDeclHandler = items.doctype
    logged = 0
    try:
        with open_bytes(path) as stream:
            while chunk := stream.read(2**20):
                parser.Parse(chunk, False)
                yield from items.take()
                if items.number // 100_000 > logged:
                    logged = items.number // 100_000
                    log_progress(f"{items.number:,} items read")
        parser.Parse(b"", True)
    except (expat.ExpatError, LookupError) as error:  # LookupError: an unknown encoding
        raise RequestError(f"{path}: not XML ({error})") from None
    except ValueError as error:
        if isinstance(error, RequestError):
            raise
        line = parser.CurrentLineNumber
        raise RequestError(f"{path}: line {line}, item {items.number + 1}: {error}") from None
    yield from items.take()


class _Items:
    """Groups the fields into items: each ``source`` begins an item."""

    def __init__(self) -> None:
        self.number = 0
        """Number of complete items."""
        self._complete: list[dict[str, str]] = []
        self._item: dict[str, str] = {}
        self._open: list[str] = []

    def take(self) -> list[dict[str, str]]:
        """Return the items that were completed since the last call."""
        complete, self._complete = self._complete, []
        return complete

    def doctype(self, *_: object) -> None:
        raise ValueError("declares a document type, which the corpus does not; entities could fill the memory")

    def start(self, tag: str, _: object) -> None:
        self._open.append(tag)
        if len(self._open) == 1:
            return
        if len(self._open) > 2 or tag not in FIELDS:
            raise ValueError(f"field {tag!r} is not allowed here; allowed: {', '.join(FIELDS)}, one after the other")
        if tag == FIRST:
            self._finish()
        if tag in self._item or (tag != FIRST and not self._item):
            raise ValueError(f"a second {tag!r}, or one without a {FIRST!r} in front")
        self._item[tag] = ""

    def text(self, text: str) -> None:
        if len(self._open) == 2:
            self._item[self._open[-1]] += text

    def end(self, _: str) -> None:
        self._open.pop()
        if not self._open:
            self._finish()

    def _finish(self) -> None:
        if self._item:
            if absent := [field for field in NEEDED if field not in self._item]:
                raise ValueError(f"{absent[0]} is missing")
            self._complete.append(self._item)
            self.number += 1
        self._item = {}
