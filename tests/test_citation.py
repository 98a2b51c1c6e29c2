"""The citation names a released version and its date; a release cannot forget it."""

from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version
from ruamel.yaml import YAML

import leakboard

CITATION = Path(__file__).parent.parent / "CITATION.cff"


def outdated(citation, version):
    """Return whether a citation does not fit a version: a release cites itself, another version an older one."""
    cited, own = Version(citation["version"]), Version(version)
    return cited >= own if own.is_devrelease else cited != own


def test_it_names_a_version_and_its_date():
    citation = YAML(typ="safe").load(CITATION.read_text("utf-8"))
    assert date.fromisoformat(citation["date-released"]) <= date.today()
    assert not outdated(citation, leakboard.__version__)


@pytest.mark.parametrize(
    ("cited", "version", "is_outdated"),
    [
        ("0.1.0", "0.2.0.dev0", False),
        ("0.2.0", "0.2.0", False),
        ("0.1.0", "0.2.0", True),
        ("0.2.0", "0.2.0.dev0", True),
    ],
)
def test_a_release_that_forgets_it_is_noticed(cited, version, is_outdated):
    assert outdated({"version": cited}, version) == is_outdated
