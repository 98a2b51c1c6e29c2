"""Licences of dependencies: every package says one, and none asks for more than LeakBoard can keep."""

import re
import tomllib
from email.message import Message
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from leakboard.site.licences import UNKNOWN, licences

ROOT = Path(__file__).parents[2]
COPYLEFT = {"certifi": "MPL", "gensim": "LGPL", "pebble": "LGPL", "tqdm": "MPL"}
"""Imported, not modified: neither licence reaches LeakBoard's own code."""


@pytest.fixture(scope="module")
def needed():
    return {entry.package: entry for entry in licences()}


def test_every_dependency_says_its_licence(needed):
    assert [name for name, entry in needed.items() if entry.licence == UNKNOWN] == []


def test_the_list_has_what_leakboard_names_and_what_that_needs(needed):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {re.sub(r"[-_.]+", "-", re.split("[>=]", name)[0]).lower() for name in project["dependencies"]}
    assert {name for name, entry in needed.items() if entry.direct} == named
    assert {"huggingface-hub", "urllib3"} <= needed.keys() - named
    assert "leakboard" not in needed


def test_copyleft_is_known(needed):
    found = {
        name: entry.licence for name, entry in needed.items() if re.search("GPL|MPL|Mozilla|Affero", entry.licence)
    }
    assert found.keys() == COPYLEFT.keys()
    assert all(re.search(COPYLEFT[name], text) for name, text in found.items())


class Made:
    """An installed package that says this."""

    version = "1"

    def __init__(self, requires=(), **says):
        self.requires, self.metadata = list(requires), Message()
        for name, values in says.items():
            for value in [values] if isinstance(values, str) else values:
                self.metadata[name.replace("_", "-")] = value


PACKAGES = {
    "top": Made(["a>=1", "B.c[fast]; python_version > '3'", "never; python_version < '3'", "x; extra == 'other'"]),
    "a": Made(["gone"], License_Expression="MIT", License="no"),
    "b-c": Made(
        ["d; extra == 'fast'", "e; extra == 'slow'"], Classifier=["License :: OSI Approved :: ISC", "Topic :: X"]
    ),
    "d": Made(["a"], License="Own\nlicence"),
    "e": Made(),
}


def find(name):
    if name not in PACKAGES:
        raise PackageNotFoundError(name)
    return PACKAGES[name]


def test_what_packages_say_and_need():
    assert [(p.package, p.licence, p.direct) for p in licences("top", find)] == [
        ("a", "MIT", True),
        ("b-c", "ISC", True),
        ("d", "Own licence", False),
    ]


def test_a_package_that_says_none_is_noticed():
    (first, *_) = licences("top", lambda name: Made() if name == "a" else find(name))
    assert (first.package, first.licence) == ("a", UNKNOWN)
