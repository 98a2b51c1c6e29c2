"""Claimed, proved and audited epsilons of a victim, and the verdict, in the rows of a leaderboard."""

import math

import pytest
from scored_records import CLAIM, scored

from leakboard.metrics.audits import VERDICT_ERROR, bound_metrics, verdict_error
from leakboard.privacy.auditing.bound import bound_from_counts
from leakboard.threats.wording import audit_sentence


def floored(bound):
    """Return a bound as tables write it: no more than was proved."""
    return f"{math.floor(bound * 10_000) / 10_000:.4f}"


class TestThreeEpsilons:
    """Claimed, proved and audited stand in every row of a victim that claims."""

    @staticmethod
    def audit(seed, hits, misses, **more):
        given = {"attack": "audit", "threat": "releases", "attack_metric": "epsilon", "claim": CLAIM} | more
        given["metrics"] = bound_metrics(hits, misses, (1000, 1000), 0.0)
        return scored(seed, 0.5, **given)

    def test_the_audits_of_all_seeds_bound_the_victim_together(self, rows):
        records = [scored(0, 0.7, claim=CLAIM), self.audit(0, 900, 100), self.audit(1, 500, 400)]
        expected = bound_from_counts(900, 100, (1000, 1000), 0.0, 0.05 / 2)
        for row in rows(records):
            assert row["epsilon_claimed"] == "0.5000"
            assert row["epsilon_proved"] == "4.0000"
            assert row["epsilon_audited"] == floored(expected)
            assert row["verdict"] == "violated"

    def test_a_bound_is_never_rounded_up(self, rows):
        found = {hits: rows([self.audit(0, hits, 100)])[0]["epsilon_audited"] for hits in range(800, 960, 10)}
        exact = {hits: bound_from_counts(hits, 100, (1000, 1000), 0.0, 0.05) for hits in found}
        assert all(exact[hits] - 1e-4 < float(text) <= exact[hits] for hits, text in found.items())
        assert any(f"{exact[hits]:.4f}" != text for hits, text in found.items())  # the nearest would be more

    @pytest.mark.parametrize(("hits", "expected"), [(120, "unproven"), (900, "violated")])
    def test_a_weak_audit_refutes_nothing(self, hits, expected, rows):
        assert {row["verdict"] for row in rows([self.audit(0, hits, 100)])} == {expected}

    @pytest.mark.parametrize(("proved", "verdict"), [(4.0, "unproven"), (0.5, "holds")])
    def test_a_verdict_is_beyond_doubt(self, proved, verdict, rows):
        """One bound at 95 % confidence in twenty exceeds a claim that holds, and a board has hundreds."""
        claim = CLAIM | {"proved": proved, "delta": 0.0}
        (doubtful,) = rows([self.audit(0, 245, 100, claim=claim)])
        bounds = [bound_from_counts(245, 100, (1000, 1000), 0.0, error) for error in (0.05, VERDICT_ERROR)]
        assert bounds[0] > 0.5 > bounds[1]
        assert (doubtful["epsilon_audited"], doubtful["verdict"]) == (floored(bounds[0]), verdict)
        sentence = audit_sentence({**doubtful, "epsilon_claimed": 0.5, "epsilon_audited": bounds[0]})
        assert ("is not refuted" if verdict == "holds" else "is not proved") in sentence
        assert rows([self.audit(0, 900, 100, claim=claim)])[0]["verdict"] == "violated"

    @pytest.mark.parametrize(("delta", "verdict"), [(0.0, "unproven"), (1e-6, "violated")])
    def test_a_claim_with_a_delta_is_refuted_at_another_confidence(self, delta, verdict, rows):
        bounds = [bound_from_counts(245, 100, (1000, 1000), 0.0, verdict_error(of)) for of in (0.0, 1e-6)]
        assert bounds[0] < 0.5 < bounds[1]
        assert rows([self.audit(0, 245, 100, claim=CLAIM | {"delta": delta})])[0]["verdict"] == verdict

    def test_what_holds(self, rows):
        row = rows([self.audit(0, 120, 100, claim=CLAIM | {"proved": 0.5})])[0]
        assert row["verdict"] == "holds"

    def test_no_proof_is_infinite(self, rows):
        row = rows([scored(0, 0.7, claim=CLAIM | {"proved": math.inf})])[0]
        assert (row["epsilon_proved"], row["epsilon_audited"], row["verdict"]) == ("inf", "", "unproven")

    def test_a_row_of_several_observations_has_the_composed_claim(self, rows):
        many = scored(0, 0.7, attack="many", claim=CLAIM | {"epsilon": 8.0, "proved": 64.0, "observations": 16})
        found = {row["attack"]: row for row in rows([self.audit(0, 900, 100), many])}
        assert (found["many"]["epsilon_claimed"], found["many"]["observations"]) == ("8.0000", "16")
        assert found["many"]["verdict"] == found["audit"]["verdict"] == "violated"
        assert found["many"]["epsilon_audited"] == found["audit"]["epsilon_audited"]

    def test_without_a_claim_an_audit_says_what_it_is_about(self, rows):
        about = {"unit": "user", "delta": 0.0}
        records = [scored(0, 0.7), self.audit(0, 900, 100, claim=None, audited=about)]
        plain, audit = sorted(rows(records), key=lambda row: row["attack"] == "audit")
        expected = bound_from_counts(900, 100, (1000, 1000), 0.0, 0.05)
        assert [audit[name] for name in ("epsilon_audited", "privacy_unit", "verdict")] == [
            f"{expected:.4f}",
            "user",
            "",
        ]
        assert [plain[name] for name in ("epsilon_audited", "privacy_unit")] == ["", ""]

    def test_without_a_claim_the_fields_are_empty(self, rows):
        row = rows([scored(0, 0.7)])[0]
        assert {row[name] for name in ("epsilon_claimed", "epsilon_proved", "epsilon_audited", "verdict")} == {""}
