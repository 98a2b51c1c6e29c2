"""Trustpilot by country: users become reviews, and users left out are counted; all sentences are invented."""

import bz2
import gzip
import hashlib
import json
import re
import zipfile

import pytest
from loading import everything, refused, rows_of, sizes

from leakboard.datasets.trustpilot_country import TrustpilotCountry
from leakboard.suite.options import build

pytestmark = pytest.mark.usefixtures("data")


def user(number, **changes):
    review = {
        "company_id": "www.shop.example",
        "date": "2013-10-21T06:39:08.000+00:00",
        "rating": "5",
        "title": f"Title {number}",
        "text": [f"first paragraph {number}", "second one"],
    }
    known = {
        "user_id": str(1000 + number),
        "country": "denmark",
        "item_type": "user",
        "gender": "F" if number % 2 else "M",
        "birth_year": 1990 if number % 3 else "1950",
        "profile_text": "",
    }
    return known | {"reviews": [review | changes.pop("review", {})]} | changes


def write_users(folder, users, form=".jsonl.tmp", write=repr):
    (folder / "trustpilot_country").mkdir(exist_ok=True)
    lines = [write(item) if isinstance(item, dict) else item for item in users]
    path = folder / "trustpilot_country" / f"denmark.auto-adjusted_gender.NUTS-regions{form}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
    return path


def denmark(**options):
    return TrustpilotCountry(country="denmark", **options).load()


USERS = [user(number) for number in range(40)]


class TestTrustpilot:
    """REFERENCE.md, section 3c."""

    def test_a_review_becomes_text_stars_gender_and_age_group(self, data):
        write_users(data, USERS)
        corpus = denmark()
        rows = rows_of(corpus)
        assert rows["text"].tolist() == [f"Title {n} first paragraph {n} second one" for n in range(40)]
        assert rows["user"].tolist() == [str(1000 + n) for n in range(40)]
        assert corpus.values("label") == ("1", "2", "3", "4", "5")
        assert set(rows["label"]) == {4}
        assert rows["gender"].tolist() == [n % 2 for n in range(40)]  # F is 1, female
        assert rows["age"].tolist() == [int(n % 3 > 0) for n in range(40)]  # 23 years is 1, under 35; 63 is over 45
        assert [(s.name, s.values) for s in corpus.secrets] == [
            ("gender", ("male", "female")),
            ("age", ("over 45", "under 35")),
        ]
        assert sizes(corpus) == {"train": 32, "dev": 4, "test": 4}
        assert {name: count for name, count in corpus.checks.items() if count} == {"source_rows": 40}

    def test_only_the_first_review_counts_and_a_missing_title_is_no_text(self, data):
        first = USERS[0]["reviews"][0] | {"title": None, "rating": 2}
        changed = USERS[0] | {"reviews": [first, USERS[0]["reviews"][0]]}
        write_users(data, [changed, *USERS[1:]])
        rows = rows_of(denmark())
        assert (rows.loc[0, "text"], rows.loc[0, "label"]) == ("first paragraph 0 second one", 1)
        assert len(rows) == 40

    @pytest.mark.parametrize(
        ("born", "group"), [(1979, 1), (1978, None), (1968, None), (1967, 0)], ids=["34", "35", "45", "46"]
    )
    def test_ages_from_35_to_45_are_left_out(self, data, born, group):
        write_users(data, [*USERS, user(40, birth_year=born)])
        corpus = denmark()
        rows = rows_of(corpus)
        assert (rows.loc[40, "age"] if 40 in rows.index else None) == group
        assert corpus.checks["dropped_between_ages"] == (group is None)

    def test_users_left_out_are_counted(self, data):
        others = [
            user(40, gender=None),
            user(41, birth_year=""),
            {"user_id": "7", "reviews": []},
            user(43, reviews=[]),
            user(44, review={"rating": None}),
            user(45, review={"text": None}),
            user(46, review={"text": [" "], "title": None}),
            USERS[0],
            user(48, birth_year=1800),
            user(49, birth_year=2015),
        ]
        write_users(data, [*USERS, *others, ""])
        checks = denmark().checks
        assert checks["dropped_without_demographics"] == 3
        assert checks["dropped_without_review"] == 4
        assert checks["dropped_repeated_users"] == 1
        assert checks["blank_lines"] == 1
        assert checks["source_rows"] == 51 == 42 + 3 + 4 + 1 + 1
        assert checks["implausible_ages"] == 2  # 213 years and -2: kept, as in the paper
        assert sum(map(len, denmark().splits.values())) == 42

    def test_no_text_is_in_two_splits(self, data):
        same = [user(number, review={"title": "Super", "text": [f"copy {number % 20}"]}) for number in range(60)]
        write_users(data, same)
        corpus = denmark()
        assert sizes(corpus) == {"train": 48, "dev": 6, "test": 6}
        assert corpus.checks["dev_copies"] == corpus.checks["test_copies"] == 0
        assert corpus.checks["dev_users"] == corpus.checks["test_users"] == 0
        assert everything(denmark()) == everything(corpus)
        assert everything(denmark(split_seed=11)) != everything(corpus)

    def test_every_form_of_the_file_gives_the_same_corpus(self, data):
        path = write_users(data, USERS)
        whole, content = everything(denmark()), path.read_bytes()
        path.unlink()
        stem = path.name.removesuffix(".jsonl.tmp")
        for form, pack in ((".jsonl.tmp.gz", gzip.compress), (".jsonl.bz2", bz2.compress)):
            packed = path.with_name(stem + form)
            packed.write_bytes(pack(content))
            assert everything(denmark()) == whole
            packed.unlink()
        with zipfile.ZipFile(path.with_name(f"{stem}.jsonl.zip"), "w") as archive:
            archive.writestr(path.name, content)
            archive.writestr(f"__MACOSX/._{path.name}", b"\0\1")
        assert everything(denmark()) == whole
        path.with_name(f"{stem}.jsonl.zip").unlink()
        write_users(data, USERS, ".jsonl", json.dumps)
        assert everything(denmark()) == whole

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("{'gender': 'F', 'birth_year': ", "not one literal in braces"),
            ("{'user_id': 'cut befo", "not one literal in braces"),
            ("no line of this corpus", "not one literal in braces"),
            ("{'gender': 'F', 'birth_year': __import__('os')}", "neither a Python literal nor JSON"),
            ("{'gender birth_year'}", "a set, not a dict"),
            (user(41, gender="X"), "gender 'X', birth_year '1990'; allowed: M or F, a year"),
            (user(41, birth_year="about 1950"), "birth_year 'about 1950'"),
            (user(41, reviews={}), "reviews is dict, not a list"),
            (user(41, reviews=["good"]), "the first review is str, not a dict"),
            (user(41, review={"rating": 6}), "rating is '6'; allowed: 1, 2, 3, 4, 5"),
            (user(41, review={"date": "yesterday"}), "date is 'yesterday'"),
            (user(41, review={"date": None}), "date is missing"),
            (user(41, review={"text": [1]}), "title or text is not text"),
            ("{'gender': 'F', 'birth_year': 1990, 'x': 'na\udcefve'}", "bytes that are not UTF-8"),
            ("{" * 3000 + "gender birth_year}", "neither a Python literal nor JSON"),
        ],
    )
    def test_a_malformed_line_is_named_or_dropped(self, data, line, reason):
        path = write_users(data, [*USERS, line])
        message = refused(denmark)
        assert message.startswith(f"{path}: 1 bad lines (line 41: ")
        assert reason in message
        assert message.endswith("; on_bad_rows: drop, in `evaluate` --drop-missing, leaves them out")
        corpus = denmark(on_bad_rows="drop")
        assert corpus.checks["dropped_rows"] == 1
        assert len(rows_of(corpus)) == 40

    def test_a_very_long_line_is_not_parsed(self, data, monkeypatch):
        monkeypatch.setattr("leakboard.datasets.trustpilot_country.LONGEST_LINE", 1000)
        write_users(data, [*USERS, user(41, profile_text="x" * 1000)])
        assert re.search(r"line 41: 1,\d\d\d characters; allowed: 1,000", refused(denmark))

    def test_broken_files(self, data):
        path = write_users(data, USERS)
        content = gzip.compress(path.read_bytes())
        path.write_text("{}\n")
        assert "no user with gender, birth year and a review" in refused(denmark)
        path.unlink()
        packed = path.with_name(path.name + ".gz")
        packed.write_bytes(content[:-30])
        assert f"{packed}: truncated or damaged" in refused(denmark)
        packed.unlink()
        archived = path.with_name(path.name.replace(".tmp", ".zip"))
        with zipfile.ZipFile(archived, "w") as archive:
            archive.writestr("france.jsonl.tmp", b"")
        assert "0 files in it begin with denmark.auto-adjusted_gender.NUTS-regions, not one" in refused(denmark)
        archived.write_bytes(b"PK")
        assert f"{archived}: truncated or damaged" in refused(denmark)

    def test_missing_and_present_files(self, data):
        assert TrustpilotCountry.availability().startswith(
            "not fetched yet denmark.auto-adjusted_gender.NUTS-regions.jsonl.zip, france"
        )
        message = refused(TrustpilotCountry(country="us").load)
        assert "WWW2015/data/united_states.auto-adjusted_gender.geocoded.jsonl.zip: cannot be fetched" in message
        path = write_users(data, USERS)
        assert TrustpilotCountry.availability().startswith("not fetched yet france")
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
        assert TrustpilotCountry(country="denmark").fingerprint() == f"sha256:{checksum}"

    def test_shown_secrets_and_unknown_options(self, data):
        write_users(data, USERS)
        rows = rows_of(denmark(show_secrets=True))
        assert rows.loc[0, "text"] == "gendermale ageover45 Title 0 first paragraph 0 second one"
        assert rows.loc[1, "text"] == "genderfemale ageunder35 Title 1 first paragraph 1 second one"
        message = refused(lambda: build(TrustpilotCountry, {"country": "sweden"}, "suite"))
        assert message.startswith("suite.country: 'sweden' is not allowed")
