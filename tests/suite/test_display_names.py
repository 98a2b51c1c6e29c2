"""Rows are named by the entry's name, by the options that a grid varies, and by the options that differ."""

import pytest

from leakboard.errors import RequestError
from leakboard.suite.names import natural
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite


@pytest.fixture
def load(bench):
    """Return a function that loads a suite of the tiny plugins."""
    return lambda **content: load_suite(str(bench.suite(**content)), Registry(bench.files))


def names(suite, kind="victim"):
    return [name for (of_kind, _), name in suite.names.names.items() if of_kind == kind]


def test_options_that_all_entries_share_are_listed_once(load):
    suite = load(victims=[{"hashed": {"dimensions": 8}}, {"hashed": {"dimensions": 8, "noise": 0.5}}])
    assert names(suite) == ["hashed", "hashed (noise=0.5)"]
    assert suite.names.common == {"hashed": "dimensions=8"}


@pytest.mark.parametrize("values", [[0.0, 0.5], [0.0]])
def test_a_grids_values_are_always_named(load, values):
    """Also a default, and the one value of a grid."""
    suite = load(victims=[{"hashed": {"grid": {"noise": values}}}])
    assert names(suite) == [f"hashed (noise={value})" for value in values]


def test_an_entry_may_have_a_name(load):
    suite = load(
        victims=[{"hashed": {"noise": 0.5}, "name": "DPNR, as released"}, "hashed"],
        attacks=[{"name": "ridge's", "ridge": {"grid": {"penalty": [1.0, 2.0]}}}],
        datasets=[{"letters": {"auxiliary": "overlap"}, "name": "half"}, "letters"],
    )
    assert set(names(suite)) == {"DPNR, as released", "hashed"}
    assert names(suite, "attack") == ["ridge's (penalty=1.0)", "ridge's (penalty=2.0)"]
    assert set(names(suite, "dataset")) == {"half", "letters"}


def test_the_auxiliary_corpus_is_named(load):
    suite = load(datasets=["letters", {"letters": {"auxiliary": "overlap"}}])
    assert names(suite, "dataset") == ["letters", "letters (auxiliary=overlap)"]


def test_a_name_given_once_holds_for_the_same_attack_elsewhere(load):
    suite = load(
        victims=[{"hashed": {"attacks": ["ridge"]}}, {"hashed": {"noise": 0.5}}],
        attacks=[{"ridge": {}, "name": "a ridge"}],
    )
    assert names(suite, "attack") == ["a ridge"]


@pytest.mark.parametrize("name", ["", " x", "a\nb", 7, None])
def test_a_name_that_is_not_a_line_of_text_is_refused(load, name):
    with pytest.raises(RequestError, match=r"victims\[0\]\.name: .* is not allowed: a line of text"):
        load(victims=[{"hashed": {}, "name": name}])


def test_two_entries_with_one_name_are_refused(load):
    with pytest.raises(RequestError, match="victims: two entries are called 'x'"):
        load(victims=[{"hashed": {}, "name": "x"}, {"hashed": {"noise": 0.5}, "name": "x"}])


def test_names_do_not_change_identities(bench, command_line):
    bench.suite()
    assert command_line(*bench.arguments("run"))[0] == 0
    bench.suite(victims=[{"hashed": {}, "name": "renamed"}])
    code, out, _ = command_line(*bench.arguments("run", "--dry-run", "--only", "victim=renamed"))
    assert code == 0, out
    assert "1 cell, 1 done, 0 to compute" in out
    assert command_line(*bench.arguments("run"))[0] == 0
    (row,) = bench.leaderboard().reset_index().to_dict("records")
    assert (row["victim"], row["victim_options"]) == ("renamed", "hashed")


def test_all_attacks_are_those_on_what_a_victim_publishes(load):
    suite = load(victims=["hashed", {"hashed": {"noise": 0.5, "attacks": ["ridge"]}}], attacks="all")
    first, second = suite.victims
    chosen = {attack.name for attack in first.attacks}
    assert {"attribute_inference", "entity_presence", "ridge", "reconstruction"} <= chosen
    assert not chosen & {"nearest_neighbour", "membership_inference", "canary_audit"}
    assert [attack.name for attack in second.attacks] == ["ridge"]


def test_an_attack_that_takes_very_long_must_be_named(load):
    assert "search" not in {attack.name for attack in load(victims=["hashed"], attacks="all").victims[0].attacks}
    assert [attack.name for attack in load(victims=["hashed"], attacks=["search"]).attacks] == ["search"]


def test_a_broken_plugin_file_is_not_left_out_of_all_attacks(bench, load):
    path = bench.folder / "broken.py"
    path.write_text("def f(:\n")
    bench.files.append(path)
    with pytest.raises(RequestError, match=r"attacks: all: --plugin .*broken.py is broken: SyntaxError"):
        load(victims=["hashed"], attacks="all")


def test_numbers_in_names_are_sorted_by_value():
    in_order = ["k", "k=8", "k=9", "k=80", "k=81", "k=81, noise=1e-05", "k=81, noise=0.01", "k=81, noise=0.1", "l=1"]
    by_letters = sorted(in_order)
    assert by_letters != in_order == sorted(by_letters, key=natural)
    assert sorted(["a=1.0", "a=1"], key=natural) == sorted(["a=1", "a=1.0"], key=natural)
