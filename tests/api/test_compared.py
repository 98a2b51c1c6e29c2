"""Sentences that compare releases: a difference is stated only where the intervals are apart."""

import dataclasses

import numpy as np
import pytest

from leakboard.api.compared import comparisons
from leakboard.interfaces import Secret
from leakboard.metrics.row_guesses import RowGuesses, SecretScores


def row(victim, gain, low=None, high=None, threat="attributes", **fields):
    """Return a row of a leaderboard: from this release the strongest attack gains so much."""
    usual = {"dataset": "table", "victim": victim, "attack": "probe", "threat": threat, "attack_metric": "accuracy"}
    usual |= {"secret": "", "secrets": "gender", "attack_score": gain, "empirical_privacy": 1 - gain}
    return usual | {
        "attack_advantage": gain, "attack_advantage_low": low, "attack_advantage_high": high, **fields
    }  # fmt: skip


BEFORE = row("before", 0.71, 0.67, 0.74)


def sentences(rows, releases):
    return [comparison.sentence for comparison in comparisons(rows, releases)]


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
    assert sentences([BEFORE, after], ["before", "after"]) == [sentence]


def test_the_strongest_attack_on_each_release_counts():
    weak = row("before", 0.40, 0.35, 0.45, attack="weak", attack_advantage_dev=0.4)
    before, after = BEFORE | {"attack_advantage_dev": 0.7}, row("after", 0.55, 0.51, 0.58)
    names = ["before", "after"]
    assert sentences([weak, before, after], names) == sentences([before, after], names)


def test_an_attack_that_test_chose_counts_as_one_comparison_with_each_other():
    weak, after = row("before", 0.40, 0.35, 0.45, attack="weak"), row("after", 0.55, 0.51, 0.58)
    (chosen,) = comparisons([weak, BEFORE, after], ["before", "after"])
    (alone,) = comparisons([BEFORE, after], ["before", "after"])
    assert (chosen.comparisons, alone.comparisons) == (2, 1)
    wider = 2.2414 / 1.9600  # normal quantiles of 1 - 0.05 / 4 and of 0.975
    assert chosen.gains[0] == pytest.approx((0.71, 0.71 - 0.04 * wider, 0.71 + 0.03 * wider), abs=1e-4)


def test_each_release_is_compared_with_the_first_and_each_secret_alone():
    def rows(victim, gain):
        means = row(victim, gain, gain - 0.01, gain + 0.01, secrets="age; gender")
        return [means, *(means | {"secret": name, "secrets": name, "privacy_best_constant": 0.5} for name in "ag")]

    releases = {"one": 0.9, "two": 0.8, "three": 0.95}
    shown = sentences([row for name, gain in releases.items() for row in rows(name, gain)], list(releases))
    starts = ["gives away less than 'one'", "gives away more than 'one'"] * 2
    assert [sentence.partition(":")[0] for sentence in shown] == ["a", "a", "g", "g"]
    assert all(start in sentence for start, sentence in zip(starts, shown, strict=True))


def test_intervals_are_wider_with_more_comparisons():
    """One comparison alone shows a difference; as one of ten it is within chance (Bonferroni: 2.81 / 1.96)."""
    after = row("after", 0.635, 0.605, 0.665)
    (alone,) = sentences([BEFORE, after], ["before", "after"])
    others = [row(f"other{i}", 0.71, 0.67, 0.74) for i in range(9)]
    first, *_ = sentences([BEFORE, after, *others], ["before", "after", *(other["victim"] for other in others)])
    assert "gives away less" in alone
    assert "no difference between 'before' and 'after' is shown" in first
    assert "0.64 (0.59 to 0.68)" in first  # 0.03 * 2.807 / 1.960 to either side


def test_scores_from_too_few_vectors_are_not_compared():
    """The sentence about each release leaves out the share at 1 % false links, so their difference says nothing."""
    few = {"threat": "linking", "secrets": "text", "linked_first": 0.9, "attack_advantage_p": 0.0, "test_size": 120}
    rows = [row(name, gain, low, 1.0, **few) for name, gain, low in (("before", 1.0, 0.0), ("after", 0.3, 0.2))]
    (shown,) = comparisons(rows, ["before", "after"])
    reason = "too few vectors to tell how many at 1 % false links"
    assert shown.sentence == f"which text a vector is of: 'after' is not compared with 'before': {reason}"
    assert shown.row["gives_away"] == reason
    assert [shown.row[name] for name in ("first_advantage", "attack_advantage", "difference")] == [None] * 3
    (clear,) = comparisons([one | {"attack_advantage_low": 0.2} for one in rows], ["before", "after"])
    assert "not compared" not in clear.sentence
    assert clear.row["attack_advantage"] == 0.3


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_missing_interval_is_the_same_reason_in_sentence_and_table(end, paired):
    """Guesses whose paired interval excludes 0 do not change this."""
    before, after = rows(3)
    guessed = paired([1.0] * 3, [0.5] * 3)
    (shown,) = comparisons([before, after | {f"attack_advantage_{end}": None}], ["before", "after"], guessed)
    assert shown.difference.high < 0
    assert shown.sentence.endswith("is not compared with 'before': an interval is missing")
    assert shown.row["gives_away"] == "an interval is missing"
    assert shown.row["attack_advantage"] == 0.5
    assert shown.row[f"attack_advantage_{end}"] is None
    assert shown.gives_away == ""


def test_one_release_is_compared_with_nothing():
    assert sentences([BEFORE], ["before"]) == sentences([BEFORE], []) == []


SECRET = Secret("gender", ("f", "m"), "attribute")


def guesses(rng, strength, truth, shared):
    """Return guesses of rows: scores that show the second value with this strength, around shared noise."""
    margin = strength * truth + 0.9 * shared + 0.3 * rng.normal(size=len(truth))
    scores = np.stack([np.zeros(len(truth)), margin], axis=1)
    return RowGuesses(
        np.arange(len(truth)), secrets={"gender": SecretScores(SECRET, scores, truth, scores[:0], truth[:0])}
    )


@pytest.fixture
def paired():
    """Return rows whose intervals overlap, and a function from strengths to guesses on the same 300 rows."""
    rng = np.random.default_rng(3)
    truth, shared = rng.integers(2, size=300), rng.normal(size=300)

    def guessed(before, after):
        cells = {name: [guesses(rng, s, truth, shared) for s in each] for name, each in zip("ba", (before, after))}  # noqa: B905
        return lambda row: cells[row["victim"][0]]

    return guessed


def rows(seeds):
    return [row("before", 0.6, 0.5, 0.7, seeds=seeds), row("after", 0.5, 0.4, 0.6, seeds=seeds)]


class TestPaired:
    NAMES = ("before", "after")

    def test_a_difference_that_overlapping_intervals_hide_is_shown_with_several_seeds(self, paired):
        (shown,) = comparisons(rows(3), self.NAMES, paired([1.0] * 3, [0.5] * 3))
        assert (shown.gives_away, shown.difference.high < 0) == ("less", True)
        assert (
            "'after' gives away less than 'before': an attacker gains 0.50 (0.40 to 0.60), not 0.60" in shown.sentence
        )
        assert shown.sentence.endswith("; the difference is {:.2f} ({:.2f} to {:.2f})".format(*shown.difference))

    def test_a_release_that_does_not_help_shows_none(self, paired):
        (shown,) = comparisons(rows(3), self.NAMES, paired([1.0] * 3, [1.0] * 3))
        assert (shown.gives_away, shown.difference.low < 0 < shown.difference.high) == ("", True)
        assert "no difference between 'before' and 'after' is shown" in shown.sentence

    def test_a_difference_of_one_seed_among_unlike_ones_is_not_shown(self, paired):
        (shown,) = comparisons(rows(3), self.NAMES, paired([1.0, 1.6, 0.6], [0.5, 1.0, 1.3]))
        assert shown.gives_away == ""

    def test_one_seed_shows_none_where_the_intervals_overlap(self, paired):
        (shown,) = comparisons(rows(1), self.NAMES, paired([1.0], [0.5]))
        assert (shown.gives_away, shown.difference.high < 0) == ("", True)
        assert shown.sentence.endswith("but with one seed it may be chance in training")

    def test_one_seed_shows_one_where_they_are_apart(self, paired):
        apart = [row("before", 0.6, 0.55, 0.65), row("after", 0.2, 0.15, 0.25)]
        (shown,) = comparisons(apart, self.NAMES, paired([1.0], [0.3]))
        assert shown.gives_away == "less"
        (turned,) = comparisons(apart, self.NAMES, paired([1.0], [1.0]))  # the paired interval must agree
        assert turned.gives_away == ""

    def test_few_texts_show_none(self, paired):
        few = [given | {"test_size": 29} for given in rows(3)]
        (shown,) = comparisons(few, self.NAMES, paired([1.0] * 3, [0.5] * 3))
        assert shown.gives_away == ""
        assert shown.sentence.endswith("fewer than 30 are too few for a claim")

    @pytest.mark.parametrize("change", ["rows", "seeds", "truth"])
    def test_guesses_of_other_rows_or_seeds_are_not_paired(self, change, paired):
        guessed = paired([1.0] * 3, [0.5] * 3)

        def other(given):
            cells = guessed(given)
            if given["victim"] == "before":
                return cells
            if change == "seeds":
                return cells[:2]
            if change == "rows":
                return [dataclasses.replace(cell, rows=cell.rows + 1) for cell in cells]
            turned = {
                "gender": dataclasses.replace(cells[0].secrets["gender"], truth=1 - cells[0].secrets["gender"].truth)
            }
            return [dataclasses.replace(cell, secrets=turned) for cell in cells]

        (shown,) = comparisons(rows(3), self.NAMES, other)
        assert (shown.difference, shown.gives_away) == (None, "")

    def test_a_row_of_the_table_has_the_same_numbers(self, paired):
        (shown,) = comparisons(rows(3), self.NAMES, paired([1.0] * 3, [0.5] * 3))
        difference = shown.difference
        assert shown.row == pytest.approx({
            "secret": "gender", "release": "after", "compared_with": "before",
            "attack_advantage": 0.5, "attack_advantage_low": 0.4, "attack_advantage_high": 0.6,
            "first_advantage": 0.6, "first_advantage_low": 0.5, "first_advantage_high": 0.7,
            "difference": difference.value, "difference_low": difference.low, "difference_high": difference.high,
            "seeds": 3, "comparisons": 1, "gives_away": "less",
        })  # fmt: skip
