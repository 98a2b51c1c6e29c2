"""Privacy claims: required fields, allowed values, wording, and a round trip through JSON."""

import json
import math

import pytest

from leakboard.claims import ReleaseClaim, TrainingClaim, claim_as_json, claim_from_json, unit_of

RELEASE = {"epsilon": 1.0, "delta": 0.0, "unit": "word", "mechanism": "Laplace", "sensitivity": "1 in L1"}
TRAINING = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "unit": "user",
    "steps": 100,
    "sampling": "poisson",
    "expected_batch_size": 50,
    "units": 2000,
    "noise_multiplier": 1.5,
    "clipping_norm": 0.1,
    "vocabulary": "is public",
}


@pytest.mark.parametrize(("kind", "given"), [(ReleaseClaim, RELEASE), (TrainingClaim, TRAINING)])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": -1.0}, "claim: epsilon=-1.0 is not allowed"),
        ({"epsilon": math.inf}, "claim: epsilon=inf is not allowed"),
        ({"epsilon": math.nan}, "claim: epsilon=nan is not allowed"),
        ({"delta": 1.0}, "claim: delta=1.0 is not allowed"),
        ({"delta": -0.1}, "claim: delta=-0.1 is not allowed"),
        ({"proved": math.nan}, "claim: proved=nan is not allowed"),
        ({"proved": -1.0}, "claim: proved=-1.0 is not allowed"),
        ({"unit": "wrod"}, "claim: unit='wrod' is not allowed: one of "),
    ],
)
def test_impossible_numbers_and_units_are_refused(kind, given, changes, message):
    kind(**given)
    with pytest.raises(ValueError, match=message):
        kind(**{**given, **changes})


@pytest.mark.parametrize(
    ("kind", "given", "unit", "allowed"),
    [
        (ReleaseClaim, RELEASE, "user", "one of word, document, vector, coordinate"),
        (ReleaseClaim, RELEASE, "pair", "one of word, document, vector, coordinate"),
        (TrainingClaim, TRAINING, "word", "one of pair, document, user"),
    ],
)
def test_releases_and_training_data_have_different_units(kind, given, unit, allowed):
    with pytest.raises(ValueError, match=f"claim: unit='{unit}' is not allowed: {allowed}"):
        kind(**{**given, "unit": unit})


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [
        (ReleaseClaim, RELEASE, "sensitivity"),
        (ReleaseClaim, RELEASE, "mechanism"),
        (TrainingClaim, TRAINING, "vocabulary"),
    ],
)
@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_field_is_named(kind, given, name, empty):
    with pytest.raises(ValueError, match=f"claim: {name} is empty"):
        kind(**{**given, name: empty})


@pytest.mark.parametrize("claim", [ReleaseClaim(**RELEASE), TrainingClaim(**TRAINING), None])
def test_a_claim_is_read_as_it_was_written(claim):
    """As strict JSON, which has no infinity: that is the proved epsilon of a claim without a proof."""
    text = json.dumps(claim_as_json(claim), allow_nan=False)
    assert claim_from_json(json.loads(text)) == claim
    assert type(claim_from_json(json.loads(text))) is type(claim)


def test_a_training_claim_as_text_lists_its_fields():
    assert str(TrainingClaim(**TRAINING)) == (
        "100 steps on poisson batches of 50 of 2000 users, Gaussian noise of 1.5 times the clipping norm 0.1; "
        "vocabulary is public"
    )
    assert str(TrainingClaim(**TRAINING, details="budgets of 2, 4")).endswith("vocabulary is public; budgets of 2, 4")


class TestDistance:
    """Claims per unit of a distance, and per text of some words."""

    @pytest.mark.parametrize(
        ("changes", "unit"),
        [
            ({}, "word"),
            ({"distance": "euclidean", "unit": "vector"}, "unit of euclidean distance between vectors"),
            ({"words": 20, "unit": "document"}, "document of 20 words"),
            ({"exact": math.inf}, "word"),
        ],
    )
    def test_the_unit_in_words(self, changes, unit):
        claim = ReleaseClaim(**{**RELEASE, **changes})
        assert unit_of(claim_as_json(claim)) == unit
        text = json.dumps(claim_as_json(claim), allow_nan=False)
        assert claim_from_json(json.loads(text)) == claim

    def test_claims_without_a_distance_are_written_as_before(self):
        assert not {"distance", "words", "exact"} & claim_as_json(ReleaseClaim(**RELEASE)).keys()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"distance": "cosine"}, "claim: distance='cosine' is not allowed: one of euclidean, l1, angular, mah"),
            ({"distance": "l1", "unit": "coordinate"}, "claim: unit='coordinate' is not allowed with a distance"),
            ({"exact": math.nan}, "claim: exact=nan is not allowed: a number from 0, infinity, or None"),
            ({"words": 3}, "claim: words=3 is not allowed: a whole number from 1, with the unit 'document'"),
            ({"words": 0, "unit": "document"}, "claim: words=0 is not allowed"),
            ({"words": 3, "unit": "document", "distance": "l1"}, "claim: words=3 is not allowed"),
        ],
    )
    def test_impossible_claims_are_refused(self, changes, message):
        with pytest.raises(ValueError, match=message):
            ReleaseClaim(**{**RELEASE, **changes})

    def test_a_text_costs_the_sum_over_its_words(self):
        claim = ReleaseClaim(**{**RELEASE, "delta": 1e-6, "proved": 2.0}).of_text(10)
        assert (claim.epsilon, claim.proved, claim.delta, claim.unit, claim.words) == (
            10,
            20,
            pytest.approx(1e-5),
            "document",
            10,
        )

    @pytest.mark.parametrize("words", [0, -1, math.nan])
    def test_a_text_has_a_word(self, words):
        with pytest.raises(ValueError, match=f"claim: words={words} is not allowed: a whole number from 1$"):
            ReleaseClaim(**RELEASE).of_text(words)

    def test_deltas_of_a_text_stay_below_one(self):
        claim = ReleaseClaim(**{**RELEASE, "delta": 0.25})
        assert claim.of_text(3).delta == 0.75
        with pytest.raises(ValueError, match=r"claim: delta=0\.25 adds up to 1 over 4 words; allowed: below 1"):
            claim.of_text(4)

    @pytest.mark.parametrize("changes", [{"unit": "document"}, {"distance": "l1"}])
    def test_only_claims_about_a_word_add_up(self, changes):
        with pytest.raises(ValueError, match="does not add up over words; allowed: one word"):
            ReleaseClaim(**{**RELEASE, **changes}).of_text(2)
