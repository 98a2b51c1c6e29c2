"""What published results are filed under: a threat that changes its name or revision leaves them all behind."""

from leakboard.threats.canaries import CanariesThreat
from leakboard.threats.membership import MembershipThreat
from leakboard.threats.releases import ReleasesThreat
from leakboard.threats.secrets import SecretsThreat
from leakboard.threats.texts import TextsThreat
from leakboard.threats.words import WordsThreat

THREATS = (CanariesThreat, MembershipThreat, ReleasesThreat, SecretsThreat, TextsThreat, WordsThreat)


def test_names_revisions_and_what_is_needed_are_those_of_published_results():
    assert {threat.name: (threat.revision, threat.needs) for threat in THREATS} == {
        "canaries": (2, "words"),
        "membership": (1, "words"),
        "releases": (1, "releases"),
        "secrets": (1, "documents"),
        "texts": (1, "documents"),
        "words": (1, "words"),
    }
