"""Fixtures for corpora with persons as secrets."""

import pytest
from loading import fake_tagger

from leakboard.datasets import ag_newsspace, dw


@pytest.fixture
def tagged(monkeypatch):
    """Replace NLTK's tagger by a fake."""
    for module in (ag_newsspace, dw):
        monkeypatch.setattr(module, "tagger", lambda: fake_tagger)
        monkeypatch.setattr(module, "identity", lambda: "nltk 0")
