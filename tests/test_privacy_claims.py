"""Privacy claims: required fields, allowed values, wording, and a round trip through JSON."""

import json
import math

import pytest

from leakboard.claims import ReleaseClaim, TrainingClaim, claim_as_json, claim_from_json

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
