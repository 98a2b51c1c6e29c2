"""English descriptions of pictures, five of each: Multi30K, task 2 (Elliott, Frank, Sima'an and Specia 2016).

No task and no secrets: for attacks on texts, and on vector stores. 29,000 pictures in train, 1,014 in dev and 1,000 in
test, as published; descriptions have about 13 words. Line i of each of the five files of a split is about picture i. It
is the row's ``document``: descriptions of one picture are near copies. So splits are by picture, and so are intervals.

The descriptions are those of Flickr30k, for non-commercial research and education.
"""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from leakboard.data.corpora import build_corpus
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.tabular import InputRow, clean_text, read_lines
from leakboard.interfaces import Corpus, Dataset
from leakboard.store import digest
from leakboard.suite.options import Count, dataset

if TYPE_CHECKING:
    import pandas as pd

COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
CHECKSUMS = {
    "train": (
        "a0e057f07a9733199c0d755d77f6d583dc6f40a3180734b1130a216e2fdf3a3b",
        "d79dd70a9eafb2d1fe40151621278c4ae69b3c148c5052a53d7c7a41bf3ba023",
        "86e16fdcc699bcb6bca0f87c3cf1051f7de5ee3674dd588cedc5200194282749",
        "3771b84e010ad6197806d2a1188cb07c12149e3e0d178dd5966dee5763733686",
        "73988689307fe836994eae59735dc840c15da9775455fa76e6ed22606a042a91",
    ),
    "val": (
        "4ce8f8ffbef4a1c066e3f35a5ffc764666c26c318a733d9bdc6349577f1c6f9c",
        "4103944d652127e5af33ba2761d71cb6c0e1509c1a67d4387dc67ad768cfb752",
        "6ecd848713d98faa9c6db2e9e457a778335358e6e3a4743cf4e929a0516e399a",
        "bfab4f0cbdac6233f206bbbfbd324dc02b258e291c3f410a69f9884171008788",
        "4b6a6541b7b58d545eff7feead4187aeb0439a7178a7bed6951121e0ecbaee66",
    ),
    "test_2016": (
        "bf64274c8e1f73ba57d47409f707a640b3874a06e7e83adfb5a6d4c055bc6b29",
        "36c12dac199e336e74ebe91c5240a1c6cefce7af2a3f3a2054d184947932bc3c",
        "2188662d22b01c5ecf7ae6a7c003b45fc83c510d34999c2340078e75088b0f1f",
        "dcb6a0ad2ae40f54a1f9e9f20d3146c7f0a662feece2e78d2d511667bf229f08",
        "60e31317f0d960aed273d8ec527411935fb1ff3dee2c9cc9572259739ff193c0",
    ),
}
"""SHA-256 of the five files of each split, by the published names of the splits."""
SPLITS = {"train": "train", "dev": "val", "test": "test_2016"}


def _files(split: str) -> list[PublicFile]:
    names = [f"{split}.{number}.en.gz" for number in range(1, 6)]
    url = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task2/raw"
    return [
        PublicFile("captions", name, f"{url}/{name}", f"sha256:{checksum}")
        for name, checksum in zip(names, CHECKSUMS[split], strict=True)
    ]


FILES = {split: _files(published) for split, published in SPLITS.items()}


@dataset(revision=1)
class Captions(Dataset):
    descriptions: Annotated[int, Field(ge=1, le=5)] = 5
    """Number of descriptions of each picture: the first of the five files."""
    pictures: Count | None = None
    """Number of pictures of train, the first of the file; null: all 29,000."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the files are present."""
        return availability([file for files in FILES.values() for file in files])

    def fingerprint(self) -> str:
        """Return a digest of the published checksums."""
        return digest({file.name: file.checksum for files in FILES.values() for file in files})

    def load(self) -> Corpus:
        """Read the files, fetched or found in ``LEAKBOARD_DATA``.

        Raises:
            RequestError: a file cannot be fetched, or is not the published one.
        """
        import pandas as pd

        splits, first_row = {}, 0
        for split, files in FILES.items():
            most = self.pictures if split == "train" else None
            parts = [_read(file).iloc[:most] for file in files[: self.descriptions]]
            frame = pd.concat(parts, ignore_index=True)
            frame["document"] = split + " " + frame["document"].astype(str)
            frame["row"] = range(first_row, first_row + len(frame))
            splits[split], first_row = frame, first_row + len(frame)
        return build_corpus("captions", splits, (), None, {"source_rows": first_row, "dropped_rows": 0})


def _read(file: PublicFile) -> "pd.DataFrame":
    def clean(line: str) -> InputRow:
        return {"text": clean_text(line, "description")}

    frame = read_lines(file.fetch(), clean, None).frame()
    return frame.assign(document=range(len(frame)))
