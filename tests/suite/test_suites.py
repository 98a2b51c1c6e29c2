"""Suites: which cells a YAML file asks for."""

import json
import re
from typing import ClassVar

import pytest

from leakboard.board.reference import read_reference
from leakboard.errors import RequestError
from leakboard.suite.registry import Registry
from leakboard.suite.suites import find_suite, load_suite, suite_folder, suite_names

GOOD = {"datasets": ["letters"], "victims": ["hashed"], "attacks": ["ridge"]}


@pytest.fixture
def opened(bench):
    """Load a suite of the tiny plugins from its parts."""

    def load(**content):
        return load_suite(str(bench.suite(**content)), Registry(bench.files))

    return load


def labels(choices):
    return [choice.label for choice in choices]


def test_an_entry_is_a_name_or_a_name_with_options(opened):
    suite = opened(victims=["hashed", {"hashed": {"noise": 0.5}}, {"hashed": {"dimensions": 24, "noise": 0.25}}])
    assert labels(suite.victims) == ["hashed", "hashed(noise=0.5)", "hashed(noise=0.25)"]
    assert suite.victims[2].options == {"dimensions": 24, "noise": 0.25}
    assert suite.name == "tiny"


def test_a_grid_is_one_victim_a_combination(opened):
    suite = opened(victims=[{"hashed": {"grid": {"noise": [0.1, 1.0], "dimensions": [8, 24]}}}])
    assert labels(suite.victims) == [
        "hashed(dimensions=8, noise=0.1)",
        "hashed(noise=0.1)",
        "hashed(dimensions=8, noise=1.0)",
        "hashed(noise=1.0)",
    ]


def test_a_grid_joins_fixed_options(opened):
    suite = opened(victims=[{"hashed": {"dimensions": 8, "grid": {"noise": [0.1, 0.2]}}}])
    assert labels(suite.victims) == ["hashed(dimensions=8, noise=0.1)", "hashed(dimensions=8, noise=0.2)"]


def test_a_victim_may_have_seeds_of_its_own(opened):
    suite = opened(seeds=[0, 1, 2], victims=["hashed", {"hashed": {"seeds": [5], "grid": {"noise": [0.1, 0.2]}}}])
    assert labels(suite.victims) == ["hashed", "hashed(noise=0.1)", "hashed(noise=0.2)"]
    assert [(cell.victim.label, cell.seed) for cell in suite.cells()] == [
        ("hashed", 0),
        ("hashed", 1),
        ("hashed", 2),
        ("hashed(noise=0.1)", 5),
        ("hashed(noise=0.2)", 5),
    ]
    assert {cell.seed for cell in suite.cells(seeds=[7])} == {7}


def test_a_victim_may_have_attacks_of_its_own(opened):
    own = {"hashed": {"attacks": ["ridge", {"entity_presence": {"portfolio": "mlp"}}], "grid": {"noise": [0.1, 0.2]}}}
    suite = opened(victims=["hashed", own], attacks=["ridge", "nearest_neighbour"])
    assert [(cell.victim.label, cell.attack.label) for cell in suite.cells()] == [
        ("hashed", "ridge"),
        ("hashed", "nearest_neighbour"),
        ("hashed(noise=0.1)", "ridge"),
        ("hashed(noise=0.1)", "entity_presence(portfolio=mlp)"),
        ("hashed(noise=0.2)", "ridge"),
        ("hashed(noise=0.2)", "entity_presence(portfolio=mlp)"),
    ]


def test_the_default_auxiliary_is_not_told(opened):
    suite = opened(datasets=[{"letters": {"auxiliary": "within"}}])
    assert [source.label for source in suite.sources] == ["letters"]


def test_auxiliary_regimes_and_other_datasets(opened):
    suite = opened(
        datasets=[
            {"letters": {"auxiliary": "overlap"}},
            {"letters": {"size": 60, "auxiliary": "disjoint"}},
            {"letters": {"auxiliary": "generated_reviews"}},
            {"letters": {"size": 60, "auxiliary": {"generated_reviews": {"users": 20}}}},
        ]
    )
    assert [source.label for source in suite.sources] == [
        "letters(auxiliary=overlap)",
        "letters(auxiliary=disjoint, size=60)",
        "letters(auxiliary=generated_reviews)",
        "letters(auxiliary=generated_reviews(users=20), size=60)",
    ]
    assert [source.regime for source in suite.sources] == ["overlap", "disjoint", None, None]
    assert suite.sources[3].other.options == {"users": 20}


def test_cells_of_one_fitted_victim_stand_together(opened):
    suite = opened(seeds=[3, 5], victims=["hashed", {"hashed": {"noise": 1.0}}], attacks=["ridge", "nearest_neighbour"])
    cells = suite.cells()
    assert len(cells) == 8
    assert [cell.label for cell in cells[:3]] == [
        "letters / hashed / ridge / seed 3",
        "letters / hashed / nearest_neighbour / seed 3",
        "letters / hashed / ridge / seed 5",
    ]
    assert [cell.seed for cell in suite.cells(seeds=[7])] == [7, 7, 7, 7]


def test_only_takes_names_labels_and_several_of_a_kind(opened):
    suite = opened(victims=["hashed", {"hashed": {"noise": 1.0}}, "word2vec"], attacks=["ridge", "nearest_neighbour"])

    def victims(*wanted):
        return list(dict.fromkeys(cell.victim.label for cell in suite.cells(only={"victim": wanted})))

    assert victims("hashed") == ["hashed", "hashed(noise=1.0)"]
    assert victims("hashed(noise=1.0)") == ["hashed(noise=1.0)"]
    assert victims("word2vec", "hashed(noise=1.0)") == ["hashed(noise=1.0)", "word2vec"]
    assert len(suite.cells(only={"victim": ["word2vec"], "attack": ["ridge"]})) == 1


def test_suites_are_found_by_name_folder_and_file(tmp_path):
    assert "demo" in suite_names()
    assert find_suite("demo").parts[-3:] == ("leaderboards", "demo", "suite.yaml")
    (tmp_path / "suite.yaml").write_text(json.dumps(GOOD))
    assert find_suite(str(tmp_path)) == find_suite(str(tmp_path / "suite.yaml"))
    with pytest.raises(RequestError, match=r"no suite 'dmo'.*did you mean 'demo'\?"):
        find_suite("dmo")


@pytest.mark.parametrize(
    "path", sorted(suite_folder().glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_suites_that_come_along_are_valid(path):
    """Their published numbers are of victims and attacks in them, but for one paper's public features."""
    suite = load_suite(str(path), Registry())
    known = {
        (cell.source.label, cell.victim.label, attack) for cell in suite.cells() for attack in ("", cell.attack.label)
    }
    rows = read_reference(suite.home)
    asked = {(row["dataset"], row["victim"], row["attack"]) for row in rows if row["victim"] != "public features alone"}
    assert asked <= known


def test_entries_of_a_broken_plugin_keep_apart(bench, opened):
    (bench.folder / "torn.py").write_text("def f(:\n")
    bench.files.append(bench.folder / "torn.py")
    suite = opened(victims=["hashed", "torn", {"torn": {"grid": {"noise": [1, 2]}}}])
    assert labels(suite.victims) == ["hashed", "torn", "torn(noise=1)", "torn(noise=2)"]
    assert [bool(victim.problem) for victim in suite.victims] == [False, True, True, True]


def test_a_key_given_twice_is_refused(bench):
    path = bench.suite()
    path.write_text(path.read_text() + "seeds: [7]\n")
    with pytest.raises(RequestError, match=r"tiny.yaml: not readable YAML: .*line \d+: 'seeds' is given twice"):
        load_suite(str(path), Registry(bench.files))


def test_an_option_given_twice_is_refused(bench):
    path = bench.suite()
    text = path.read_text().replace("- hashed\n", "- hashed:\n    noise: 1.0\n    noise: 2.0\n")
    path.write_text(text)
    with pytest.raises(RequestError, match="'noise' is given twice"):
        load_suite(str(path), Registry(bench.files))


def test_a_suite_is_named_after_its_folder_wherever_one_stands(bench, monkeypatch):
    folder = bench.folder / "cautious"
    folder.mkdir()
    (folder / "suite.yaml").write_bytes(bench.suite().read_bytes())
    monkeypatch.chdir(folder)
    suite = load_suite("suite.yaml", Registry(bench.files))
    assert suite.name == "cautious"
    assert suite.home.resolve() == folder
    assert load_suite("../tiny.yaml", Registry(bench.files)).home.resolve() == bench.folder / "tiny"


def test_numbers_and_merges_are_read_as_people_write_them(bench):
    path = bench.suite()
    shared = "- hashed: &base\n    noise: 5e-2\n- hashed:\n    <<: *base\n    dimensions: 8\n"
    path.write_text(path.read_text().replace("- hashed\n", shared))
    suite = load_suite(str(path), Registry(bench.files))
    assert labels(suite.victims) == ["hashed(noise=0.05)", "hashed(dimensions=8, noise=0.05)"]


def test_merges_of_merges_are_no_repeats(bench):
    path = bench.suite()
    shared = """- hashed: &base
    noise: 1.0
- hashed: &deep
    <<: *base
    noise: 2.0
- hashed:
    <<: *deep
    dimensions: 8
"""
    path.write_text(path.read_text().replace("- hashed\n", shared))
    suite = load_suite(str(path), Registry(bench.files))
    assert labels(suite.victims) == ["hashed(noise=1.0)", "hashed(noise=2.0)", "hashed(dimensions=8, noise=2.0)"]


def test_a_file_that_names_itself(bench):
    path = bench.suite()
    path.write_text("datasets: &a [*a]\n")
    with pytest.raises(RequestError, match="not readable YAML: line 1: &a holds itself"):
        load_suite(str(path), Registry(bench.files))


def test_a_bottomless_file_is_one_line(bench):
    path = bench.suite()
    path.write_text("datasets: " + "[" * 5000)
    with pytest.raises(RequestError, match="not readable YAML"):
        load_suite(str(path), Registry(bench.files))


class TestMappings:
    """A suite given as a mapping is what a file would hold."""

    CONTENT: ClassVar = {"datasets": ["letters"], "victims": [{"hashed": {"noise": 0.5}}], "attacks": ["ridge"]}

    def test_it_asks_for_the_same_cells_as_a_file(self, bench):
        registry = Registry(bench.files)
        of_file = load_suite(str(bench.suite(**self.CONTENT)), registry)
        of_mapping = load_suite(self.CONTENT, registry)
        assert of_mapping.cells() == of_file.cells()
        assert (of_mapping.name, of_file.name) == ("suite", "tiny")
        assert of_mapping.checksum != load_suite({**self.CONTENT, "seeds": [1]}, registry).checksum
        assert self.CONTENT["victims"] == [{"hashed": {"noise": 0.5}}]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"victims": ["hased"]}, "suite: victims[0]: no victim is named 'hased'"),
            ({"victims": [{"hashed": {"noise": -1.0}}]}, "suite: victims[0].hashed.noise: -1.0 is not allowed"),
            ({"atacks": []}, "suite: atacks: unknown name 'atacks'"),
            ({"seeds": {1, 2}}, "suite: not what a YAML file can hold"),
        ],
    )
    def test_what_is_wrong_is_told_by_its_place(self, bench, change, message):
        with pytest.raises(RequestError, match=re.escape(message)):
            load_suite({**self.CONTENT, **change}, Registry(bench.files))
