"""Test the identities of threats: published results are lost if a threat changes its name or revision."""

import pytest

from leakboard.errors import RequestError
from leakboard.threats.canaries import CanariesThreat
from leakboard.threats.membership import MembershipThreat
from leakboard.threats.releases import ReleasesThreat
from leakboard.threats.secrets import AttributesThreat, EntitiesThreat, SecretsAttack
from leakboard.threats.texts import TextsThreat
from leakboard.threats.threat import Threat
from leakboard.threats.words import WordsThreat

THREATS = [AttributesThreat, CanariesThreat, EntitiesThreat, MembershipThreat, ReleasesThreat, TextsThreat, WordsThreat]


def test_names_revisions_and_needs_are_those_of_published_results():
    assert {threat.name: (threat.identity or threat.name, threat.revision, threat.needs) for threat in THREATS} == {
        "attributes": ("secrets", 1, "documents"),
        "canaries": ("canaries", 2, "words"),
        "entities": ("secrets", 1, "documents"),
        "membership": ("membership", 1, "words"),
        "releases": ("releases", 1, "releases"),
        "texts": ("texts", 1, "documents"),
        "words": ("words", 1, "words"),
    }


def test_the_kind_of_secrets_decides_the_threat():
    class OnEntities(SecretsAttack):
        kind = "entity"

    class OnAttributes(OnEntities):
        kind = "attribute"

    names = [attack.threat.name for attack in (SecretsAttack, OnEntities, OnAttributes)]
    assert names == ["attributes", "entities", "attributes"]


def test_subclasses_of_an_attack_that_names_its_threat_keep_it():
    class Rarer(AttributesThreat):
        pass

    class OnRarer(SecretsAttack):
        threat = Rarer()

    class OnEntities(OnRarer):
        kind = "entity"

    assert OnEntities.threat is OnRarer.threat


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"name": "words"}, "Odd: name = 'words' is the name of WordsThreat; choose another"),
        ({"headline": None}, "Odd: headline missing; a threat has name, headline, needs and revision"),
        ({"found": "{who} is found"}, "Odd.found: KeyError('who') in its placeholders; allowed: {what}, {score}, {con"),
        ({"nothing_found": "{score"}, "Odd.nothing_found: ValueError"),
    ],
)
def test_a_threat_that_could_not_be_shown_is_refused(members, reason):
    good = {"name": "odd", "headline": "accuracy", "needs": "words", "revision": 1}
    type("Odd", (Threat,), good)
    with pytest.raises(RequestError) as error:
        type("Odd", (Threat,), {key: value for key, value in (good | members).items() if value})
    assert str(error.value).startswith(reason)
