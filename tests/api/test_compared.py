"""Sentences that compare releases: a difference is stated only where the intervals are apart."""

import pytest

from leakboard.api.compared import compare_releases


def row(victim, gain, low=None, high=None, threat="attributes", **fields):
    """Return a row of a leaderboard: from this release the strongest attack gains so much."""
    usual = {"dataset": "table", "victim": victim, "attack": "probe", "threat": threat, "attack_metric": "accuracy"}
    usual |= {"secret": "", "secrets": "gender", "attack_score": gain, "empirical_privacy": 1 - gain}
    return usual | {
        "attack_advantage": gain, "attack_advantage_low": low, "attack_advantage_high": high, **fields
    }  # fmt: skip


BEFORE = row("before", 0.71, 0.67, 0.74)


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (
            row("after", 0.55, 0.51, 0.58),
            "gender: 'after' gives away less than 'before': "
            "an attacker gains 0.55 (0.51 to 0.58), not 0.71 (0.67 to 0.74)",
        ),
        (
            row("after", 0.80, 0.75, 0.85),
            "gender: 'after' gives away more than 'before': "
            "an attacker gains 0.80 (0.75 to 0.85), not 0.71 (0.67 to 0.74)",
        ),
        (
            row("after", 0.65, 0.60, 0.67),  # the ends touch
            "gender: no difference between 'before' and 'after' is shown: an attacker gains 0.71 (0.67 to 0.74) and "
            "0.65 (0.60 to 0.67); the intervals overlap",
        ),
        (row("after", 0.55), "gender: 'after' is not compared with 'before': an interval is missing"),
    ],
)
def test_a_sentence_says_what_the_intervals_allow(after, sentence):
    assert compare_releases([BEFORE, after], ["before", "after"]) == [sentence]


def test_the_strongest_attack_on_each_release_counts():
    weak = row("before", 0.40, 0.35, 0.45, attack="weak")
    after = row("after", 0.55, 0.51, 0.58)
    assert compare_releases([weak, BEFORE, after], ["before", "after"]) == compare_releases(
        [BEFORE, after], ["before", "after"]
    )


def test_each_release_is_compared_with_the_first_and_each_secret_alone():
    def rows(victim, gain):
        means = row(victim, gain, gain - 0.01, gain + 0.01, secrets="age; gender")
        return [means, *(means | {"secret": name, "secrets": name, "privacy_best_constant": 0.5} for name in "ag")]

    releases = {"one": 0.9, "two": 0.8, "three": 0.95}
    shown = compare_releases([row for name, gain in releases.items() for row in rows(name, gain)], list(releases))
    starts = ["gives away less than 'one'", "gives away more than 'one'"] * 2
    assert [sentence.partition(":")[0] for sentence in shown] == ["a", "a", "g", "g"]
    assert all(start in sentence for start, sentence in zip(starts, shown, strict=True))


def test_intervals_are_wider_with_more_comparisons():
    """One comparison alone shows a difference; as one of ten it is within chance (Bonferroni: 2.81 / 1.96)."""
    after = row("after", 0.635, 0.605, 0.665)
    (alone,) = compare_releases([BEFORE, after], ["before", "after"])
    others = [row(f"other{i}", 0.71, 0.67, 0.74) for i in range(9)]
    first, *_ = compare_releases([BEFORE, after, *others], ["before", "after", *(other["victim"] for other in others)])
    assert "gives away less" in alone
    assert "no difference between 'before' and 'after' is shown" in first
    assert "0.64 (0.59 to 0.68)" in first  # 0.03 * 2.807 / 1.960 to either side


def test_one_release_is_compared_with_nothing():
    assert compare_releases([BEFORE], ["before"]) == compare_releases([BEFORE], []) == []
