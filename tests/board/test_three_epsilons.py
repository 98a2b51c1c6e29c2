"""Test the claimed, proved and audited epsilons and the verdict in the rows of a leaderboard."""

import dataclasses
import math

import pytest
from made_records import CLAIM, scored

from leakboard.metrics.audits import VERDICT_ERROR, bound_metrics, verdict_error
from leakboard.privacy.auditing.bound import bound_from_counts
from leakboard.threats.sentence_parts import audit_sentence


def floored(bound):
    """Return a bound as tables write it: rounded down."""
    return f"{math.floor(bound * 10_000) / 10_000:.4f}"


class TestThreeEpsilons:
    """Every row of a victim with a claim has all three."""

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

    def test_of_claims_that_differ_between_seeds_the_weakest_is_shown_with_a_remark(self, rows):
        claims = [CLAIM | {"epsilon": epsilon, "proved": epsilon, "delta": 0.0} for epsilon in (0.5, 200.0, 3.0)]
        audits = [self.audit(seed, 900, 100, claim=claim) for seed, claim in enumerate(claims)]
        for records in (audits, audits[::-1]):
            (row,) = rows(records)
            assert [row[f"epsilon_{name}"] for name in ("claimed", "proved")] == ["200.0000", "200.0000"]
            assert row["verdict"] == "holds"
            assert "claims differ between seeds: epsilon 0.5 to 200" in row["status"]
        (same,) = rows([self.audit(seed, 900, 100) for seed in (0, 1)])
        assert "claims differ" not in same["status"]

    def test_a_bound_is_never_rounded_up(self, rows):
        written = {hits: rows([self.audit(0, hits, 100)])[0]["epsilon_audited"] for hits in range(800, 960, 10)}
        exact = {hits: bound_from_counts(hits, 100, (1000, 1000), 0.0, 0.05) for hits in written}
        assert all(exact[hits] - 1e-4 < float(text) <= exact[hits] for hits, text in written.items())
        assert any(f"{exact[hits]:.4f}" != text for hits, text in written.items())  # not rounded to the nearest

    @pytest.mark.parametrize(
        ("hits", "proved", "expected"), [(120, 4.0, "unproven"), (120, 0.5, "holds"), (900, 4.0, "violated")]
    )
    def test_a_weak_audit_refutes_nothing(self, hits, proved, expected, rows):
        audit = self.audit(0, hits, 100, claim=CLAIM | {"proved": proved})
        assert {row["verdict"] for row in rows([audit])} == {expected}

    @pytest.mark.parametrize(("proved", "verdict"), [(4.0, "unproven"), (0.5, "holds")])
    def test_a_verdict_needs_more_confidence_than_a_bound(self, proved, verdict, rows):
        """Of twenty bounds at 95 % confidence one exceeds a true claim, and a board has hundreds."""
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

    @pytest.mark.parametrize(("distance", "verdict"), [(1.0, "violated"), (10.0, "holds")])
    def test_a_claim_for_each_unit_of_a_distance(self, distance, verdict, rows):
        """The counts prove an epsilon of 2; at a distance of 10 the claim of 0.5 allows 5."""
        audit = self.audit(0, 900, 100, claim=CLAIM | {"proved": 0.5, "distance": "l1"})
        metrics = bound_metrics(900, 100, (1000, 1000), 0.0, distance)
        (row,) = rows([dataclasses.replace(audit, metrics=metrics)])
        expected = bound_from_counts(900, 100, (1000, 1000), 0.0, 0.05)
        assert (row["epsilon_audited"], row["verdict"]) == (floored(expected / distance), verdict)
        assert row["privacy_unit"] == "unit of l1 distance between documents"
        sentence = audit_sentence({**row, "epsilon_claimed": 0.5, "epsilon_audited": expected / distance})
        assert sentence.startswith("epsilon for each unit of l1 distance between documents is at least")

    def test_a_claim_about_a_text_of_some_words(self, rows):
        claim = CLAIM | {"unit": "document", "words": 20}
        assert rows([self.audit(0, 900, 100, claim=claim)])[0]["privacy_unit"] == "document of 20 words"

    def test_a_missing_proof_is_infinite(self, rows):
        row = rows([scored(0, 0.7, claim=CLAIM | {"proved": math.inf})])[0]
        assert (row["epsilon_proved"], row["epsilon_audited"], row["verdict"]) == ("inf", "", "unproven")

    @pytest.mark.parametrize(
        ("exact", "shown", "verdict"),
        [(0.3, "0.3000", "unproven"), (0.7, "0.7000", "violated"), (math.inf, "inf", "violated")],
    )
    def test_a_computed_epsilon_needs_no_audit(self, exact, shown, verdict, rows):
        claim = CLAIM | {"exact": exact}
        (row,) = rows([scored(0, 0.7, claim=claim)])
        assert (row["epsilon_audited"], row["verdict"]) == (shown, verdict)
        audited = rows([self.audit(0, 900, 100, claim=claim), scored(0, 0.7, claim=claim)])
        expected = max(bound_from_counts(900, 100, (1000, 1000), 0.0, 0.05), exact)
        assert {row["epsilon_audited"] for row in audited} == {shown if math.isinf(exact) else floored(expected)}

    def test_a_computed_epsilon_may_show_that_a_proved_claim_holds(self, rows):
        (row,) = rows([scored(0, 0.7, claim=CLAIM | {"proved": 0.5, "exact": 0.5})])
        assert row["verdict"] == "holds"

    def test_a_row_of_several_observations_has_the_composed_claim(self, rows):
        many = scored(0, 0.7, attack="many", claim=CLAIM | {"epsilon": 8.0, "proved": 64.0, "observations": 16})
        audit, composed = sorted(rows([self.audit(0, 900, 100), many]), key=lambda row: row["attack"])
        assert (composed["epsilon_claimed"], composed["observations"]) == ("8.0000", "16")
        assert composed["verdict"] == audit["verdict"] == "violated"
        assert composed["epsilon_audited"] == audit["epsilon_audited"]

    def test_without_a_claim_only_an_audit_has_epsilon_and_unit(self, rows):
        audited = self.audit(0, 900, 100, claim=None, audited={"unit": "user", "delta": 0.0})
        audit, attack = sorted(rows([scored(0, 0.7), audited]), key=lambda row: row["attack"])
        expected = bound_from_counts(900, 100, (1000, 1000), 0.0, 0.05)
        names = ("epsilon_audited", "privacy_unit", "verdict", "epsilon_claimed", "epsilon_proved")
        assert [audit[name] for name in names] == [f"{expected:.4f}", "user", "", "", ""]
        assert {attack[name] for name in names} == {""}
