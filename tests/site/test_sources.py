"""Test what published boards call things: one name for one thing, and a paper that it comes from."""

import pytest

from leakboard.site.sources import Source, common_names, source_of, sources
from leakboard.victims.adversarial import METHODS


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("net(size=2)", True),
        ("net(encoder=lstm(dimension=2), size=2)", True),
        ("net(size=3)", False),
        ("net(size=2, epsilon=1.0)", False),
        ("other(size=2)", False),
    ],
)
def test_an_entry_matches_labels_with_its_options(label, expected):
    assert Source("net", {"size": "2"}, without=("epsilon",)).matches(label) == expected


def test_an_option_that_is_a_plugin_matches_any_of_its_sizes():
    source = Source("dpnr", {"encoder": "lstm"})
    assert source.matches("dpnr(encoder=lstm(dimension=2), epsilon=1.0)")
    assert not source.matches("dpnr(encoder=bert)")


class TestCommonNames:
    ADVERSARIAL = "adversarial(encoder={}, method=gradient_reversal)"

    def test_one_thing_has_one_name_on_two_boards(self):
        labels = [self.ADVERSARIAL.format(encoder) for encoder in ("bert(epochs=3)", "lstm")]
        boards = [common_names({("victim", label): f"own name {i}"}) for i, label in enumerate(labels)]
        assert [list(names.values()) for names in boards] == [["gradient reversal"]] * 2

    def test_what_differs_is_added(self):
        labels = [self.ADVERSARIAL.format(encoder) for encoder in ("bert", "lstm(dimension=2)")]
        names = common_names({("victim", label): label for label in labels})
        assert list(names.values()) == [
            "gradient reversal (encoder=bert)",
            "gradient reversal (encoder=lstm(dimension=2))",
        ]

    def test_some_options_are_always_shown(self):
        names = common_names({("victim", "dpnr(encoder=bert, epsilon=5.0)"): "mine"})
        assert list(names.values()) == ["DPNR, as in the paper (epsilon=5)"]

    def test_what_has_no_entry_keeps_its_name(self):
        assert list(common_names({("victim", "mine(a=1)"): "My net"}).values()) == ["My net"]

    def test_a_name_that_is_taken_is_not_given_twice(self):
        names = common_names({("victim", "lstm"): "a", ("victim", "mine"): "LSTM, no defence"})
        assert sorted(names.values()) == ["LSTM, no defence", "a"]


def test_each_method_of_adversarial_training_has_a_sentence_of_its_own():
    texts = [source_of("victim", f"adversarial(encoder=bert, method={name})").about for name in METHODS]
    assert all(texts)
    assert len(set(texts)) == len(METHODS)


def test_papers_have_addresses_and_controls_are_marked():
    assert source_of("victim", "dpnr(encoder=bert, epsilon=1.0)").paper.code.startswith("https://github.com/")
    assert [source_of("victim", f"mechanism(epsilon=1.0, name={name})").control for name in ("adept", "copy")] == [
        False,
        True,
    ]
    papers = [source.paper for kind in sources().values() for source in kind if source.paper]
    assert all(paper.url.startswith("https://") for paper in papers)
