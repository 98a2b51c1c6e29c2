"""Test the declarations of threats: identities of published results, sentences, and refusals."""

import pytest

from leakboard.column import Column
from leakboard.errors import RequestError
from leakboard.threats import threat as threat_module
from leakboard.threats.canaries import CanariesThreat
from leakboard.threats.membership import MembershipThreat
from leakboard.threats.releases import ReleasesThreat
from leakboard.threats.secrets import AttributesThreat, EntitiesThreat, SecretsAttack
from leakboard.threats.texts import TextsThreat
from leakboard.threats.threat import Threat, known_threats, threat_named
from leakboard.threats.words import WordsThreat

THREATS = [AttributesThreat, CanariesThreat, EntitiesThreat, MembershipThreat, ReleasesThreat, TextsThreat, WordsThreat]


def test_names_revisions_and_needs_are_those_of_published_results():
    assert {threat.name: (threat.identity or threat.name, threat.revision, threat.needs) for threat in THREATS} == {
        "attributes": ("secrets", 4, "documents"),
        "canaries": ("canaries", 3, "words"),
        "entities": ("secrets", 4, "documents"),
        "membership": ("membership", 3, "words"),
        "releases": ("releases", 2, "releases"),
        "texts": ("texts", 5, "documents"),
        "words": ("words", 4, "words"),
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


def with_column(tables, kind="number"):
    """Return the members of a threat with one column."""
    return {"columns": (Column("miles", "Miles.", tables, kind=kind),)}


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"name": "words"}, "Odd: name = 'words' is the name of WordsThreat; choose another"),
        ({"headline": None}, "Odd: headline missing; a threat has name, headline, needs and revision"),
        ({"found": "{who} is found"}, "Odd.found: KeyError('who') in its placeholders; allowed: {what}, {score}, {con"),
        ({"nothing_found": "{score"}, "Odd.nothing_found: ValueError"),
        ({"revision": "one"}, "Odd: revision = 'one' is not allowed: a whole number from 1 on"),
        ({"revision": -1}, "Odd: revision = -1 is not allowed: a whole number from 1 on"),
        (with_column(("report",)), "Odd: column 'miles': its tables are report; allowed: leaderboard.csv, alone or"),
        (with_column(()), "Odd: column 'miles': its tables are none; allowed: leaderboard.csv, alone or with"),
        (with_column(("leaderboard.csv", "page: costs")), "Odd: column 'miles': its tables are leaderboard.csv, page"),
        (with_column(("leaderboard.csv",), kind="numbr"), "Odd: column 'miles': kind 'numbr' is not one of baseline"),
    ],
)
def test_a_threat_that_could_not_be_shown_is_refused(members, reason, monkeypatch):
    monkeypatch.setattr(threat_module, "_THREATS", dict(threat_module._THREATS))
    good = {"name": "odd", "headline": "accuracy", "needs": "words", "revision": 1}
    type("Odd", (Threat,), good)
    with pytest.raises(RequestError) as error:
        type("Odd", (Threat,), {key: value for key, value in (good | members).items() if value})
    assert str(error.value).startswith(reason)


@pytest.mark.parametrize("name", known_threats())
def test_every_threat_describes_its_result_in_a_sentence(name):
    threat = threat_named(name)
    assert threat.headline
    row = {"secrets": "age", "attack_metric": threat.headline, "attack_score": 0.7, "privacy_best_constant": 0.5}
    row |= {"attack_advantage": 0.4, "epsilon_audited": 0.7, "epsilon_claimed": 0.5, "verdict": "violated"}
    assert "0.7" in threat.sentence(row) or "70 %" in threat.sentence(row)
    if not threat.bounds_epsilon:
        assert "gains 0.40 of what there is to gain (no interval; this may be chance)" in threat.sentence(row)
        nothing = {**row, "attack_advantage": 0.0}
        end = "; this does not show that there is nothing to find"
        assert threat.sentence({**nothing, "test_size": 1600}).endswith(f" (1,600 {threat.things}){end}")
        assert "(" not in threat.sentence({**nothing, "test_size": None})
