"""A published record of a wrong form is refused in one line that names its place, and is never believed."""

import copy
import gzip
import json
import re

import pytest

from leakboard.claims import ReleaseClaim, claim_as_json
from leakboard.errors import RequestError
from leakboard.pipeline import records
from leakboard.pipeline.records import PUBLISHED, published_records, read_published
from leakboard.store import digest

METRIC = {
    "name": "attack_score",
    "value": 0.5,
    "variable": "",
    "group": "",
    "low": 0.4,
    "high": 0.6,
    "n": 9,
    "status": "",
}
ENVIRONMENT = {"commit": "a" * 40, "leakboard": "0.1.0", "machine": {"cores": 2}, "packages": {"numpy": "2.0"}}
RECORD = {
    "dataset": "texts", "victim": "lsa", "attack": "ridge", "seed": 0, "status": "ok", "reason": "", "key": "a" * 64,
    "code": {}, "secrets": ["gender"], "threat": "attributes", "attack_metric": "accuracy", "test_size": 9,
    "claim": claim_as_json(ReleaseClaim(1.0, 0.0, "vector", "Laplace", "1-norm 2", proved=1.0)),
    "audited": None, "details": "", "checks": {"test_copies": 0.0},
    "metrics": [METRIC], "sentences": [], "costs": [{"stage": "fit", "seconds": 1.0, "environment": ENVIRONMENT}],
}  # fmt: skip


@pytest.fixture
def published(tmp_path):
    """Return a function that publishes records with right checksums, and returns the folder."""

    def write(*contents):
        lines = [json.dumps({**content, "checksum": digest(content)}) for content in contents]
        (tmp_path / PUBLISHED).write_bytes(gzip.compress("\n".join(lines).encode()))
        return tmp_path

    return write


def changed(*path, value):
    """Return the record with another value at a path."""
    content = copy.deepcopy(RECORD)
    part = content
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    return content


def test_a_record_of_the_right_form_is_read(published):
    (record,) = published_records(published(RECORD))
    assert (record.metrics[0].high, record.claim["epsilon"]) == (0.6, 1.0)
    (record,) = published_records(published(changed("claim", "proved", value="Infinity")))
    assert record.claim["proved"] == float("inf")


WRONG = [
    (("seed",), "one", "record.seed: 'one' is not allowed"),
    (("seed",), -1, "record.seed: -1 is not allowed"),
    (("seed",), True, "record.seed: True is not allowed"),
    (("dataset",), "", "record.dataset: '' is not allowed"),
    (("victim",), ["bert"], "record.victim: ['bert'] is not allowed"),
    (("attack",), "a\ud800b", "record.attack: 'a\\ud800b' is not allowed: no control characters"),
    (("attack",), "\x1b[31mred", "record.attack"),
    (("reason",), "x" * 200_000, "at most 100,000 characters"),
    (("status",), "fine", "record.status: 'fine' is not allowed"),
    (("key",), "a" * 63, "record.key"),
    (("test_size",), -9, "record.test_size: -9 is not allowed"),
    (("attack_metric",), "", "attack_metric is empty"),
    (("secrets",), "gender", "record.secrets"),
    (("checks",), {"test_copies": "all"}, "record.checks.test_copies: 'all' is not allowed"),
    (("audited",), {"unit": "vector"}, "record.audited.delta: required, but missing"),
    (("claim",), {}, "record.claim: {} is not allowed: about: one of release, training"),
    (("claim", "about"), {"a": 1}, "about: one of release, training"),
    (("claim", "epsilon"), -1.0, "epsilon=-1.0 is not allowed"),
    (("claim", "epsilon"), "one", "record.claim"),
    (("claim", "unit"), "galaxy", "record.claim"),
    (("claim", "mechanism"), "\ud800", "no control characters, no lone surrogates"),
    (("claim", "observations"), 0, "observations=0 is not allowed"),
    (("claim",), {"about": "release", "epsilon": 1.0}, "delta is missing"),
    (("metrics", 0, "value"), "high", "record.metrics[0].value: 'high' is not allowed"),
    (("metrics", 0, "value"), True, "record.metrics[0].value: True is not allowed"),
    (("metrics", 0, "value"), [], "record.metrics[0].value"),
    (("metrics", 0, "low"), 0.7, "low is 0.7 and high 0.6; allowed: low at most high"),
    (("metrics", 0, "n"), -1, "record.metrics[0].n: -1 is not allowed"),
    (("metrics", 0, "n"), 2**70, "record.metrics[0].n"),
    (("metrics", 0, "colour"), "red", "record.metrics[0].colour: unknown name 'colour'"),
    (("metrics",), [METRIC | {"value": 0.45}, METRIC], "metrics: attack_score is given twice"),
    (("metrics", 0, "high"), 7.5, "metrics: attack_score is 7.5; allowed: from 0 to 1"),
    (("metrics",), [METRIC | {"name": "empirical_privacy", "high": 1.5}], "empirical_privacy is 1.5; allowed: from 0"),
    (
        ("metrics",),
        [METRIC | {"name": "rows_match", "value": 9e-5, "low": None}],
        "rows_match is 9e-05; allowed: whole",
    ),
    (("metrics",), [METRIC | {"name": "task_gap_p", "value": -0.1, "low": None}], "task_gap_p is -0.1; allowed: from"),
    (("claim", "distance"), "cosine", "record.claim.distance: 'cosine' is not allowed"),
    (("claim", "words"), 3, "words=3 is not allowed"),
    (("metrics",), [METRIC | {"name": "audit_distance", "high": None}], "audit_distance is given; allowed with a dist"),
    (("metrics",), None, "record.metrics: None is not allowed"),
    (("metrics",), [[]], "record.metrics[0]: [] is not allowed"),
    (("sentences",), [{"text": "a text of the corpus"}], "record.sentences"),
    (("costs", 0, "seconds"), -1, "record.costs[0].seconds: -1 is not allowed"),
    (("costs", 0, "environment", "commit"), "--output=x", "environment.commit: '--output=x' is not allowed"),
    (("costs", 0, "environment", "leakboard"), "new", "a version, as 0.2.0"),
    (("note",), "far better", "record.note: unknown name 'note'"),
]


@pytest.mark.parametrize(
    ("path", "value", "message"), WRONG, ids=[f"{'.'.join(map(str, p))}={str(v)[:20]!r}" for p, v, _ in WRONG]
)
def test_a_wrong_form_is_refused_in_one_line(published, path, value, message):
    second = changed(*path, value=value) | ({"key": "b" * 64} if path != ("key",) else {})
    folder = published(RECORD, second)
    with pytest.raises(RequestError, match=r"records\.jsonl\.gz: line 2: ") as caught:
        published_records(folder)
    text = str(caught.value)
    assert message in text
    assert "\n" not in text
    assert len(text) < 1_000
    assert not read_published(folder, {"b" * 64})  # a run does not take it over either


EVENT = [("audit_delta", 0.01, 50), ("true_positives", 40, 50), ("false_positives", 2, 50), ("audit_tosses", 100, 100)]
GUESSES = [("audit_delta", 0.01, 9), ("canaries", 9, 9), ("canary_group", 1, 9), ("canary_guesses", 8, 9)]
GUESSES += [("canary_right", 7, 9), ("canary_tried", 6, 9)]
AUDITED = {"audited": {"unit": "vector", "delta": 0.01}, "threat": "releases", "attack_metric": "epsilon"}


def audit(counts, **changes):
    """Return an audit's record with these counts, each with its ``n``, and with other values of some of them."""
    measured = [{"name": name, "value": changes.pop(name, value), "n": n} for name, value, n in counts]
    measured[1] |= changes
    return RECORD | AUDITED | {"metrics": [METRIC | {"value": 2.5, "low": None, "high": None}, *measured]}


@pytest.mark.parametrize(
    ("counts", "changes", "message"),
    [
        (EVENT, {"true_positives": "Infinity"}, "true_positives is inf; allowed: whole numbers from 0 to"),
        (EVENT, {"true_positives": 39.9999}, "true_positives is 39.9999; allowed: whole numbers"),
        (EVENT, {"true_positives": -5}, "true_positives is -5.0; allowed: whole numbers"),
        (EVENT, {"true_positives": 51}, "true_positives is 51 of 50; allowed: right guesses <= guesses"),
        (EVENT, {"n": 0}, "true_positives is 40 of 0; allowed: right guesses <= guesses"),
        (EVENT, {"audit_delta": 0.0101}, "audit_delta is [0.0101]; allowed: 0.01, as in audited"),
        (GUESSES, {"canary_group": 0}, "canary_group is 0.0; allowed: whole numbers from 1"),
        (GUESSES, {"canary_group": 10**12}, "canary_group is 1000000000000.0; allowed: whole numbers from 1 to 10000"),
        (GUESSES, {"canary_tried": 0}, "canary_tried is 0.0; allowed: whole numbers from 1"),
        (GUESSES, {"canary_right": 480}, "canary_right is 480, canary_guesses 8.0; allowed: right guesses <= guesses"),
        (GUESSES, {"canary_guesses": 10}, "canary_guesses is 10, canaries 9.0; allowed: right guesses <= guesses"),
        (GUESSES[:1] + GUESSES[2:], {}, "canary_guesses is 8, canaries missing; allowed: right guesses <= guesses"),
        (GUESSES, {"canaries": 2 * 10**8}, "canaries is 200000000.0; allowed: whole numbers from 1 to 1e+06"),
        (
            [*EVENT, ("audit_trade_off", 0.5, 50)],
            {},
            "the variable of audit_trade_off is ''; allowed: fpr= and a number",
        ),
    ],
)
def test_impossible_counts_of_an_audit_are_refused(published, counts, changes, message):
    assert len(published_records(published(audit(EVENT), audit(GUESSES) | {"key": "b" * 64}))) == 2
    with pytest.raises(RequestError, match=r"records\.jsonl\.gz: line 1: record: ") as caught:
        published_records(published(audit(counts, **changes)))
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["dataset", "seed", "status", "key", "metrics", "costs"])
def test_a_missing_field_is_refused(published, name):
    content = {key: value for key, value in RECORD.items() if key != name}
    with pytest.raises(RequestError, match=rf"line 1: record\.{name}: required, but missing"):
        published_records(published(content))


def test_two_records_of_one_cell_are_refused(published):
    folder = published(RECORD, changed("metrics", 0, "value", value=0.55))
    with pytest.raises(RequestError, match="line 2: a second record of the cell aaaaaaaa; allowed: one"):
        published_records(folder)


@pytest.mark.parametrize("constant", ["NaN", "Infinity"])
def test_numbers_that_are_no_json_are_not_read(published, constant, tmp_path):
    text = json.dumps({**RECORD, "checksum": digest(RECORD)}).replace('"value": 0.5', f'"value": {constant}')
    (tmp_path / PUBLISHED).write_bytes(gzip.compress(text.encode()))
    assert published_records(tmp_path) == []


def test_a_name_with_two_values_is_refused_from_others(tmp_path):
    text = json.dumps({**RECORD, "checksum": digest(RECORD)}).replace('"value": 0.5', '"value": 0.9, "value": 0.5')
    (tmp_path / PUBLISHED).write_bytes(gzip.compress(text.encode()))
    with pytest.raises(RequestError):
        published_records(tmp_path, is_foreign=True)
    (tmp_path / PUBLISHED).write_bytes(gzip.compress(text.replace('"value": 0.9, ', "").encode()))
    assert len(published_records(tmp_path, is_foreign=True)) == 1


def test_a_small_file_cannot_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_BYTES", 1 << 20)
    (tmp_path / PUBLISHED).write_bytes(gzip.compress(b" " * (1 << 20)))
    assert published_records(tmp_path) == []
    (tmp_path / PUBLISHED).write_bytes(gzip.compress(b" " * (1 << 24)))
    with pytest.raises(RequestError, match=re.escape(f"{PUBLISHED}: more than 1 MiB uncompressed")):
        published_records(tmp_path)


def test_of_a_foreign_board_an_altered_record_is_refused(published):
    folder = published(RECORD)
    text = gzip.decompress((folder / PUBLISHED).read_bytes()).decode()
    (folder / PUBLISHED).write_bytes(gzip.compress(f"{text}\n{text.replace('0.6', '0.9')}".encode()))
    assert len(published_records(folder)) == 1
    with pytest.raises(RequestError, match="line 2: no record, or one that was altered"):
        published_records(folder, is_foreign=True)
