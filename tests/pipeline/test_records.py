"""Records and what they cost are read as they were written, published or not, and altered ones are not read."""

import dataclasses
import gzip
import json

import pytest

from leakboard.claims import ReleaseClaim, TrainingClaim, claim_as_json
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import (
    PUBLISHED,
    Record,
    checked_costs,
    pack,
    published_records,
    read_costs,
    read_published,
    write_costs,
)
from leakboard.store import digest

FIRST, SECOND = "a" * 64, "b" * 64
COSTS = [{"stage": "attack", "seconds": 1.5}]


def record(key):
    return Record(
        "made",
        "hashed",
        "ridge",
        0,
        "ok",
        key=key,
        attack_metric="accuracy",
        secrets=[],
        sentences=[],
        metrics=[Metric("attack_score", 0.5)],
    )


@pytest.fixture
def folder(tmp_path):
    """Return a leaderboard with two records."""
    (tmp_path / PUBLISHED).write_bytes(pack([(record(FIRST), COSTS), (record(SECOND), [])]))
    return tmp_path


def test_the_wanted_records_are_read_with_their_costs(folder):
    assert read_published(folder, {FIRST}) == {FIRST: (record(FIRST), COSTS)}
    assert set(read_published(folder, {FIRST, SECOND, "c" * 64})) == {FIRST, SECOND}
    assert read_published(folder, set()) == {}
    assert sorted(published_records(folder), key=lambda each: each.key) == [record(FIRST), record(SECOND)]


@pytest.mark.parametrize("text", [b"0.5", b'"hashed"', b'"checksum"'])
def test_an_altered_record_is_not_read(text, folder):
    lines = gzip.decompress((folder / PUBLISHED).read_bytes()).splitlines()
    first, second = sorted(lines, key=lambda line: SECOND.encode() in line)
    assert text in first
    (folder / PUBLISHED).write_bytes(gzip.compress(first.replace(text, text[:-1] + b"7") + b"\n" + second))
    assert published_records(folder) == [record(SECOND)]
    assert read_published(folder, {FIRST}) == {}


def test_a_field_named_key_hides_no_record(tmp_path):
    noted = dataclasses.replace(record(FIRST), code={"key": SECOND})
    costs = [{"stage": "fit", "environment": {"machine": {"key": "of the door"}}}]
    (tmp_path / PUBLISHED).write_bytes(pack([(noted, costs)]))
    assert read_published(tmp_path, {FIRST}) == {FIRST: (noted, costs)}
    assert read_published(tmp_path, {SECOND}) == {}


def test_a_leaderboard_without_records_has_none(tmp_path):
    assert published_records(tmp_path) == []
    (tmp_path / PUBLISHED).write_bytes(b"no archive")
    assert published_records(tmp_path) == []


def test_altered_costs_are_not_read(tmp_path):
    assert (checked_costs(tmp_path), read_costs(tmp_path)) == ([], [])
    write_costs(tmp_path, COSTS)
    assert (checked_costs(tmp_path), read_costs(tmp_path)) == (COSTS, COSTS)
    text = (tmp_path / "costs.json").read_text()
    for altered in (text.replace("1.5", "1.4"), text.replace("attack", "fit"), text[:20], "{}", "[1]", "\x00"):
        (tmp_path / "costs.json").write_text(altered)
        assert (checked_costs(tmp_path), read_costs(tmp_path)) == (None, [])


def test_costs_of_earlier_versions_have_no_checksum(tmp_path):
    (tmp_path / "costs.json").write_text(json.dumps(COSTS))
    assert checked_costs(tmp_path) == COSTS


@pytest.mark.parametrize(
    ("headline", "claim", "threat"),
    [
        ("accuracy", None, "attributes"),
        ("f1", None, "entities"),
        ("recall@5", None, "words"),
        ("token_f1", None, "texts"),
        ("auc", None, "membership"),
        ("epsilon", claim_as_json(ReleaseClaim(1.0, 0.0, "vector", "noise", "1-norm")), "releases"),
        ("epsilon", claim_as_json(TrainingClaim(1.0, 0.0, "pair", 1, "poisson", 1, 9, 1.0, 1.0, "public")), "canaries"),
        ("epsilon", None, "canaries"),
        ("", None, ""),
    ],
)
def test_records_of_earlier_versions_get_their_threat(headline, claim, threat, tmp_path):
    status = "ok" if headline else "skipped"
    made = dataclasses.replace(record(FIRST), attack_metric=headline, claim=claim, status=status)
    content = json.loads(gzip.decompress(pack([(made, [])])))
    del content["checksum"], content["threat"]
    line = json.dumps({**content, "checksum": digest(content)})
    (tmp_path / PUBLISHED).write_bytes(gzip.compress(line.encode()))
    assert [each.threat for each in published_records(tmp_path)] == [threat]
