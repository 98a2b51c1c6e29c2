"""Fixtures for corpora with persons as secrets, and for files that tests write themselves."""

import dataclasses

import pytest
from loading import fake_tagger

from leakboard.datasets import ag_newsspace, dw, statuses, tweets


@pytest.fixture
def tagged(monkeypatch):
    """Replace NLTK's tagger by a fake."""
    for module in (ag_newsspace, dw):
        monkeypatch.setattr(module, "tagger", lambda: fake_tagger)
        monkeypatch.setattr(module, "identity", lambda: "nltk 0")


@pytest.fixture
def own_files(monkeypatch):
    """Accept files of statuses and tweets that a test has written: without a checksum, any file is accepted."""
    monkeypatch.setattr(statuses, "FILE", dataclasses.replace(statuses.FILE, checksum=""))
    monkeypatch.setitem(tweets.FILES, "small", dataclasses.replace(tweets.FILES["small"], checksum=""))
