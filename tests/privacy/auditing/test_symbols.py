"""Outputs that are words, texts and sets: their parts, their scores, and the words of their events."""

import numpy as np
import pytest

from leakboard.privacy.auditing.events import Event, Pair, Threshold
from leakboard.privacy.auditing.symbols import Part, as_objects, members_of, parts_of, shortened, symbol_scores


def outputs(*values):
    return as_objects(values)


class TestParts:
    @pytest.mark.parametrize(
        ("output", "members"),
        [
            ("one", ()),
            ("a b a", ["a", "b", "a"]),
            (("a", 1), ("a", 1)),
            (frozenset("a"), ("a",)),
            (5, ()),
            (None, ()),
            ("", ()),
        ],
    )
    def test_members(self, output, members):
        assert members_of(output) == members

    def test_parts_of_a_text_have_positions_and_parts_of_a_set_have_none(self):
        assert list(parts_of("a b a")) == [Part("a"), Part("b"), Part("a", 0), Part("b", 1), Part("a", 2)]
        assert list(parts_of(frozenset("ba"))) == [Part("a"), Part("b")]

    @pytest.mark.parametrize(
        ("part", "output", "expected"),
        [
            (Part("b"), "a b", True),
            (Part("b", 1), "a b", True),
            (Part("b", 0), "a b", False),
            (Part("b", 2), "a b", False),
            (Part("bc"), "a bcd", False),  # a word, not a piece of one
            (Part("b"), frozenset("ab"), True),
            (Part("b"), 5, False),
        ],
    )
    def test_a_part_is_in_an_output(self, part, output, expected):
        assert part.is_in(output) == expected


def test_sets_and_lists_become_hashable():
    assert outputs({1}, [1, 2], "a b", (3, 4)).tolist() == [[frozenset({1})], [(1, 2)], ["a b"], [(3, 4)]]
    assert outputs().shape == (0, 1)
    with pytest.raises(TypeError, match="unhashable type: 'dict'"):
        outputs({})


def test_literals_are_short_and_sets_are_sorted():
    assert shortened(frozenset("cab")) == "{'a', 'b', 'c'}"
    assert len(shortened("x" * 100)) == 60
    assert shortened("line\nbreak") == r"'line\nbreak'"


class TestScores:
    """Three outputs of either input: x is likelier for the first, z for the second, y for neither."""

    FIRST, SECOND = outputs(*"xxxxyz"), outputs(*"xyzzzz")

    @pytest.fixture
    def rank(self):
        return symbol_scores("a", "b", self.FIRST, self.SECOND)[1]["output"]

    def test_outputs_are_ranked_by_their_log_ratio_and_others_are_in_the_middle(self, rank):
        assert rank(outputs("x", "y", "z", "new")).tolist() == [2, 1, -1, 0]

    @pytest.mark.parametrize(
        ("side", "value", "words"),
        [
            ("==", 2, "the output is 'x'"),
            (">=", 1, "the output is 'x' or 'y'"),
            ("<", 0, "the output is 'z'"),
            (">=", 0, "the output is not 'z'"),
            ("==", 0, "the output is not 'x' or 'y' or 'z'"),
        ],
    )
    def test_an_event_names_its_outputs(self, rank, side, value, words):
        event = Event(Pair("", *outputs("a", "b")), "output", rank, Threshold(value, side, 0.0))
        assert event.description == words
        inside = event.holds(outputs("x", "y", "z", "new"))
        assert inside.tolist() == Threshold(value, side, 0.0).holds(np.array([2, 1, -1, 0])).tolist()

    def test_words_of_a_text_have_events_of_their_own(self):
        first, second = outputs(*["the cat sat"] * 5, "a dog sat"), outputs(*["the dog sat"] * 5, "a dog ran")
        scores, _ = symbol_scores("the cat sat", "the dog sat", first, second)
        has_cat = scores["part 'cat'"]
        assert has_cat(outputs("one cat", "no catch", "cat")).tolist() == [1, 0, 0]  # a single word is an output
        described = Event(Pair("", *outputs("a", "b")), "part", has_cat, Threshold(1, "<", 0.0)).description
        assert described == "the output does not have 'cat'"
        assert scores["parts of the first input minus parts of the second"](outputs("cat ran", "a dog")).tolist() == [
            1,
            -1,
        ]
        ratios = scores["density ratio of the parts"](outputs("the cat", "the dog", "new words"))
        assert ratios[0] > 0 > ratios[1]
        assert ratios[2] == 0

    def test_the_number_of_words_is_a_score(self):
        scores, _ = symbol_scores("a", "b", outputs("a b", "a"), outputs("b", "b"))
        assert scores["size of the output"](outputs("a b c", "", frozenset("ab"), 7)).tolist() == [3, 0, 2, 0]
