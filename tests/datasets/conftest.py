"""What tests of corpora whose secrets are persons share."""

import pytest
from loading import fake

from leakboard.datasets import ag_newsspace, dw


@pytest.fixture
def tagged(monkeypatch):
    """Put a tagger in the place of NLTK's."""
    for module in (ag_newsspace, dw):
        monkeypatch.setattr(module, "tagger", lambda: fake)
        monkeypatch.setattr(module, "identity", lambda: "nltk 0")
