"""One suite for every plugin; it finds them by itself, so a new file joins without being listed here."""

import os
from pathlib import Path

import pins
import pytest

from leakboard.conformance.subjects import Group
from leakboard.conformance.suite import examine, promises_of
from leakboard.suite.registry import FOLDERS, Registry

CHECKOUT = Path(__file__).resolve().parent.parent
PROXIES = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
ENVIRONMENT = PROXIES | {
    "no_proxy": "",
    "NO_PROXY": "",
    "HF_HUB_OFFLINE": "1",
    "LEAKBOARD_DATA": os.environ.get("LEAKBOARD_DATA") or str(CHECKOUT.parent / "shared" / "data"),
}
"""No network; public files only if they are on this computer."""
REGISTRY = Registry()
LISTINGS = [listing for kind in FOLDERS for listing in REGISTRY.listings(kind)]
NAMES = [f"{listing.kind}/{listing.name}" for listing in LISTINGS]
LARGE = {"datasets/ag", "datasets/ag_newsspace", "datasets/trustpilot"}
"""Datasets whose public files take seconds to read."""
assert {*NAMES} >= LARGE


def case(name, *others):
    """Return a case of a test, with the test's other arguments."""
    identity = "-".join([name, *(other.name for other in others)])
    return pytest.param(name, *others, id=identity, marks=[pytest.mark.slow] if name in LARGE else [])


@pytest.fixture(scope="session")
def group(request, tmp_path_factory):
    """Hold the plugins whose tests run."""
    tests = [item for item in request.session.items if item.path == Path(__file__)]
    names = {item.callspec.params["name"] for item in tests}
    listings = [listing for listing, name in zip(LISTINGS, NAMES, strict=True) if name in names]
    return Group(REGISTRY, listings, tmp_path_factory.mktemp("conformance"), **ENVIRONMENT)


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("name", "promise"),
    [case(name, promise) for name in NAMES for promise in promises_of(name.split("/")[0])],
)
def test_a_plugin_keeps(name, promise, group):
    outcome = examine(promise, group.subjects[name])
    if outcome.status == "skipped":
        pytest.skip(outcome.reason)
    assert outcome.status == "passed", f"{outcome.location}: {outcome.reason}"


@pytest.mark.parametrize("name", [case(name) for name in NAMES])
def test_results_are_those_of_the_revision(name, group):
    """`make pins` writes the pins."""
    subject = group.subjects[name]
    if "not installed" in subject.listing.problem:
        pytest.skip(subject.listing.problem)
    answer = group.subprocess_answers[name]
    if name.startswith("datasets/") and not (answer.numbers and (pins.IS_WRITING or name in pins.read())):
        pytest.skip("its public file, or a model that it needs, is not here, or was not when pins were written")
    assert answer.numbers, answer.failure
    assert not pins.complaint(name, subject.cls.__leakboard_revision__, answer.numbers)
