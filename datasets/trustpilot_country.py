r"""Trustpilot reviews of one country with gender and age of their authors, as Coavoux et al. (2018) read them.

The corpus is that of Hovy, Johannsen and Søgaard, "User Review Sites as a Resource for Large-Scale Sociolinguistic
Studies" (2015), published without a licence. A line is a user, as a Python literal or a JSON object:

- ``user_id``, ``birth_year``, and ``gender`` (M or F; the authors filled in some from the first name);
- ``reviews``, each with ``date``, ``rating``, ``title`` and ``text`` (a list of paragraphs).

Task: 1 to 5 stars. Secrets: gender, and age in the year of the review (under 35 or over 45).

Users without gender or birth year are left out, and users aged 35 to 45. Only the first review of each user is kept.
Its text is the title and the paragraphs, joined by blanks; the paper's code puts the words STOP START between
paragraphs. The distinct texts are divided at random, a tenth each for dev and test, so that no text is in two splits.
The paper divides reviews, so that copies can be in two splits. Reviews are not filtered by language, and the groups are
not balanced, as in the paper; its later code does both.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from leakboard.data.corpora import build_corpus, divide
from leakboard.data.downloads import PublicFile, availability
from leakboard.data.readers.archives import members
from leakboard.data.readers.tabular import InputRow, OnBadRows, clean_category, clean_text, read_lines
from leakboard.datasets._preparation.random_rows import UnderHalf
from leakboard.datasets._published.local_files import first_present
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Dataset, Secret
from leakboard.suite.options import dataset

if TYPE_CHECKING:
    import pandas as pd

URL = "https://bitbucket.org/lowlands/release/raw/fd60e8b4fbb12f0175e0f26153e289bbe2bfd71c/WWW2015/data"
STEMS = {
    "denmark": "denmark.auto-adjusted_gender.NUTS-regions",
    "france": "france.auto-adjusted_gender.NUTS-regions",
    "germany": "germany.auto-adjusted_gender.NUTS-regions",
    "uk": "united_kingdom.auto-adjusted_gender.NUTS-regions",
    "us": "united_states.auto-adjusted_gender.geocoded",
}
FORMS = [f".jsonl{part}{packed}" for part in (".tmp", "") for packed in ("", ".gz", ".bz2", ".xz")]
"""Ends of the file's name when it is unpacked from the published zip, or packed again."""
GENDERS = {"M": 0, "F": 1}
COLUMNS = ["text", "label", "gender", "age", "user", "implausible", "dropped"]
STARS = ("1", "2", "3", "4", "5")
SECRETS = (Secret("gender", ("male", "female"), "attribute"), Secret("age", ("over 45", "under 35"), "attribute"))
LONGEST_LINE = 16 * 2**20
"""Longest line that is parsed (characters): parsing takes a hundred times its length in memory."""
REASONS = (
    "blank_lines",
    "dropped_without_demographics",
    "dropped_without_review",
    "dropped_between_ages",
    "dropped_repeated_users",
)
"""Reasons to leave a user out, as named in the checks."""
PLAUSIBLE = range(10, 101)
"""Plausible ages (years); other users are kept, as in the paper, but counted."""


@dataset(revision=1)
class TrustpilotCountry(Dataset):
    country: Literal["denmark", "france", "germany", "uk", "us"] = "us"
    """Country of the users; each has its own file."""
    show_secrets: bool = False
    """Put a word for each secret in front of every text (Coavoux et al. 2018, +DEMO); text classifiers read it too."""
    dev_share: UnderHalf = 0.1
    """Share of the distinct texts drawn for dev."""
    test_share: UnderHalf = 0.1
    """Share of the distinct texts drawn for test."""
    split_seed: Annotated[int, Field(ge=0)] = 10
    """Seed of the drawn split."""
    on_bad_rows: OnBadRows = "error"
    """Malformed lines (no literal, a wrong type, undecodable bytes): refuse the file, or drop and count them."""

    @classmethod
    def availability(cls) -> str:
        """Return whether the files of the five countries are present."""
        return availability([_file(country) for country in STEMS])

    def fingerprint(self) -> str:
        """Return the checksum of the country's file."""
        return _file(self.country).identity()

    def load(self) -> Corpus:
        """Read the file, fetched or found in ``LEAKBOARD_DATA``.

        Raises:
            RequestError: the file cannot be fetched or read, or has malformed lines.
        """
        path = _file(self.country).fetch()
        read = read_lines(path, _read, self.on_bad_rows, _member(path, STEMS[self.country]))
        users = read.frame(columns=COLUMNS)
        users["user"] = users["user"].astype(object).fillna("line " + (users["row"] + 1).astype(str))
        users.loc[users["dropped"].eq("") & _repeated(users), "dropped"] = "dropped_repeated_users"
        frame = users[users["dropped"].eq("")].astype({"label": int, "gender": int, "age": int})
        if frame.empty:
            raise RequestError(f"{path}: no user with gender, birth year and a review")
        parts = divide(frame.drop(columns="user"), self.dev_share, self.test_share, self.split_seed)
        splits = {name: frame.loc[part.index] for name, part in parts.items()}
        checks = {reason: int(users["dropped"].eq(reason).sum()) for reason in REASONS}
        checks |= {
            "source_rows": read.total,
            "dropped_rows": read.dropped,
            "implausible_ages": int(frame["implausible"].sum()),
        }
        return build_corpus("trustpilot_country", splits, SECRETS, STARS, checks, self.show_secrets)


def _file(country: str) -> PublicFile:
    stem = STEMS[country]
    published = PublicFile("trustpilot_country", f"{stem}.jsonl.zip", f"{URL}/{stem}.jsonl.zip")
    return first_present(published, [stem + form for form in FORMS])


def _member(path: Path, stem: str) -> str:
    """Return the name of the country's file in a zip, which may also have files of a Macintosh; empty: no zip."""
    if path.suffix != ".zip":
        return ""
    names = [name for name in members(path, "") if PurePosixPath(name).name.startswith(stem)]
    if len(names) != 1:
        raise RequestError(f"{path}: {len(names)} files in it begin with {stem}, not one")
    return names[0]


def _repeated(users: pd.DataFrame) -> pd.Series:
    """Return for each user whether an earlier line that is kept has the same user."""
    kept = users.loc[users["dropped"].eq(""), "user"]
    return kept.duplicated().reindex(users.index, fill_value=False)


def _read(line: str) -> InputRow:
    """Return a user's first review: text, label, gender, age group, user, and whether the age is implausible.

    ``dropped`` is the reason to leave the user out; empty: the user is kept.

    Raises:
        ValueError: the line is malformed.
    """
    if not line.strip():
        return {"dropped": "blank_lines"}
    if not re.match(r"\s*\{.*\}\s*$", line):
        raise ValueError("not one literal in braces")
    if "gender" not in line or "birth_year" not in line:  # most users; parsing is slow
        return {"dropped": "dropped_without_demographics"}
    user = _parse(line)
    if user.get("gender") in (None, "") or user.get("birth_year") in (None, ""):
        return {"dropped": "dropped_without_demographics"}
    gender, born = clean_category(user["gender"], "gender"), clean_category(user["birth_year"], "birth_year")
    if gender not in GENDERS or not re.fullmatch(r"\d{1,4}", born):
        raise ValueError(f"gender {gender!r}, birth_year {born!r}; allowed: M or F, a year")
    reviews = user.get("reviews")
    if not isinstance(reviews, list | None):
        raise ValueError(f"reviews is {type(reviews).__name__}, not a list")
    if not reviews:
        return {"dropped": "dropped_without_review"}
    review = reviews[0]
    if not isinstance(review, dict):
        raise ValueError(f"the first review is {type(review).__name__}, not a dict")
    text = _text(review)
    if not text or review.get("rating") is None:
        return {"dropped": "dropped_without_review"}
    stars = clean_category(review["rating"], "rating")
    if stars not in STARS:
        raise ValueError(f"rating is {stars!r}; allowed: {', '.join(STARS)}")
    date = re.match(r"(\d{4})-", clean_category(review.get("date"), "date"))
    if not date:
        raise ValueError(f"date is {review['date']!r}, not a date that begins with its year")
    age = int(date[1]) - int(born)
    if 35 <= age <= 45:
        return {"dropped": "dropped_between_ages"}
    return {
        "text": text,
        "label": STARS.index(stars),
        "gender": GENDERS[gender],
        "age": int(age < 35),
        "user": clean_category(user["user_id"], "user_id") if user.get("user_id") else None,
        "implausible": age not in PLAUSIBLE,
        "dropped": "",
    }


def _parse(line: str) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise ValueError(f"{len(line):,} characters; allowed: {LONGEST_LINE:,}")
    try:
        user = json.loads(line)
    except (ValueError, RecursionError):
        try:
            user = ast.literal_eval(line.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            reason = " ".join(str(error).split())[:80]
            raise ValueError(f"neither a Python literal nor JSON ({reason})") from None
    if not isinstance(user, dict):
        raise ValueError(f"a {type(user).__name__}, not a dict")
    return user


def _text(review: dict[str, Any]) -> str:
    """Return title and paragraphs of a review, joined by blanks; empty: the review has no text."""
    title, body = review.get("title"), review.get("text")
    if body is None:
        return ""
    parts = [*([] if title is None else [title]), *(body if isinstance(body, list) else [body])]
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("title or text is not text")
    text = " ".join(parts)
    return clean_text(text, "text") if text.strip() else ""
