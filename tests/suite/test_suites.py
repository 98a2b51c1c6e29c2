"""A suite asks for the right cells, from a YAML file or a mapping."""

import json
import re
from typing import ClassVar

import pytest

from leakboard.board.published_numbers import read_reference
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


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            {"grid": {"noise": [0.1, 1.0], "dimensions": [8, 24]}},
            ["dimensions=8, noise=0.1", "noise=0.1", "dimensions=8, noise=1.0", "noise=1.0"],
        ),
        ({"dimensions": 8, "grid": {"noise": [0.1, 0.2]}}, ["dimensions=8, noise=0.1", "dimensions=8, noise=0.2"]),
    ],
)
def test_a_grid_makes_a_victim_for_each_combination(opened, entry, expected):
    assert labels(opened(victims=[{"hashed": entry}]).victims) == [f"hashed({options})" for options in expected]


def test_a_victim_may_have_other_seeds(opened):
    suite = opened(seeds=[0, 1], victims=["hashed", {"hashed": {"seeds": [5], "grid": {"noise": [0.1, 0.2]}}}])
    expected = [("hashed", 0), ("hashed", 1), ("hashed(noise=0.1)", 5), ("hashed(noise=0.2)", 5)]
    assert [(cell.victim.label, cell.seed) for cell in suite.cells()] == expected
    assert {cell.seed for cell in suite.cells(seeds=[7])} == {7}


def test_a_victim_may_have_other_attacks(opened):
    entry = {"attacks": ["ridge", {"entity_presence": {"portfolio": "mlp"}}], "grid": {"noise": [0.1, 0.2]}}
    suite = opened(victims=["hashed", {"hashed": entry}], attacks=["ridge", "nearest_neighbour"])
    attacks = {}
    for cell in suite.cells():
        attacks.setdefault(cell.victim.label, []).append(cell.attack.label)
    noisy = ["ridge", "entity_presence(portfolio=mlp)"]
    assert attacks == {
        "hashed": ["ridge", "nearest_neighbour"],
        "hashed(noise=0.1)": noisy,
        "hashed(noise=0.2)": noisy,
    }


def test_a_dataset_may_have_other_attacks_and_some_of_the_victims(opened):
    mine = {"letters": {"size": 90, "attacks": ["nearest_neighbour"], "victims": ["noisy"]}}
    noisy = {"hashed": {"noise": 0.5, "attacks": ["ridge", "nearest_neighbour"]}, "name": "noisy"}
    suite = opened(datasets=["letters", mine], victims=["hashed", noisy], attacks=["ridge"])
    first, second = labels(source for source in suite.sources)
    assert [(cell.source.label, cell.victim.title, cell.attack.label) for cell in suite.cells()] == [
        (first, "", "ridge"),
        (first, "noisy", "ridge"),
        (first, "noisy", "nearest_neighbour"),
        (second, "noisy", "nearest_neighbour"),
    ]
    everywhere = opened(datasets=["letters", mine], victims=["hashed", noisy], attacks="all")
    assert {cell.attack.label for cell in everywhere.cells() if cell.source.label == second} == {"nearest_neighbour"}


def test_a_label_has_the_auxiliary_corpus_unless_it_is_the_default(opened):
    entries = {
        "letters": {"auxiliary": "within"},
        "letters(auxiliary=overlap)": {"auxiliary": "overlap"},
        "letters(auxiliary=disjoint, size=60)": {"size": 60, "auxiliary": "disjoint"},
        "letters(auxiliary=generated_reviews)": {"auxiliary": "generated_reviews"},
        "letters(auxiliary=generated_reviews(users=20), size=60)": {
            "size": 60,
            "auxiliary": {"generated_reviews": {"users": 20}},
        },
    }
    sources = opened(datasets=[{"letters": options} for options in entries.values()]).sources
    assert labels(sources) == list(entries)
    assert [source.regime for source in sources] == ["within", "overlap", "disjoint", None, None]
    assert sources[4].other.options == {"users": 20}


def test_cells_of_one_fitted_victim_are_next_to_each_other(opened):
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
    """Their published numbers are about their cells, except one paper's public features."""
    suite = load_suite(str(path), Registry())
    known = {
        (cell.source.label, cell.victim.label, attack) for cell in suite.cells() for attack in ("", cell.attack.label)
    }
    rows = read_reference(suite.home)
    referred = {
        (row["dataset"], row["victim"], row["attack"]) for row in rows if row["victim"] != "public features alone"
    }
    assert referred <= known


def test_entries_of_a_broken_plugin_stay_apart(bench, opened):
    (bench.folder / "torn.py").write_text("def f(:\n")
    bench.files.append(bench.folder / "torn.py")
    suite = opened(victims=["hashed", "torn", {"torn": {"grid": {"noise": [1, 2]}}}])
    assert labels(suite.victims) == ["hashed", "torn", "torn(noise=1)", "torn(noise=2)"]
    assert [bool(victim.problem) for victim in suite.victims] == [False, True, True, True]


def test_all_attacks_on_a_broken_victim_fail_with_its_reason(bench, opened, command_line):
    bench.plugin("hashed", "torn", ("import numpy as np\n", "import numpy as np\nimport absent\n"))
    suite = opened(victims=["hashed", "torn"], attacks="all")
    attacks = {
        name: {cell.attack.name for cell in suite.cells() if cell.victim.name == name} for name in ("hashed", "torn")
    }
    assert attacks["hashed"] < attacks["torn"]
    code, out, err = command_line(*bench.arguments("run", "--only", "victim=torn"))
    assert code == 1
    assert "needs absent, not installed" in out + err
    assert f"{len(attacks['torn'])} failed" in out + err


def test_a_suite_is_named_after_its_folder_from_anywhere(bench, monkeypatch):
    folder = bench.folder / "cautious"
    folder.mkdir()
    (folder / "suite.yaml").write_bytes(bench.suite().read_bytes())
    monkeypatch.chdir(folder)
    suite = load_suite("suite.yaml", Registry(bench.files))
    assert suite.name == "cautious"
    assert suite.home.resolve() == folder
    assert load_suite("../tiny.yaml", Registry(bench.files)).home.resolve() == bench.folder / "tiny"


def test_numbers_and_merges_of_yaml_reach_the_options(bench):
    path = bench.suite()
    shared = "- hashed: &base\n    noise: 5e-2\n- hashed:\n    <<: *base\n    dimensions: 8\n"
    path.write_text(path.read_text().replace("- hashed\n", shared))
    suite = load_suite(str(path), Registry(bench.files))
    assert labels(suite.victims) == ["hashed(noise=0.05)", "hashed(dimensions=8, noise=0.05)"]


class TestMappings:
    """A mapping asks for the same as a file with its content."""

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
    def test_an_error_names_its_place(self, bench, change, message):
        with pytest.raises(RequestError, match=re.escape(message)):
            load_suite({**self.CONTENT, **change}, Registry(bench.files))
