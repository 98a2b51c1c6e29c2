"""Test that each number in the findings of a board, or on the page about papers, is in published tables or settings."""

from decimal import Decimal
from pathlib import Path

import pytest
from findings_numbers import NUMBER, as_decimal, problems
from test_published_boards import COMPUTED_AGAIN

from leakboard.suite.suites import find_suite, suite_folder

ORIGINS = Path(__file__).parent / "numbers"
"""Has a file for each board, with an `Origin` for each number of its findings, in their order; and `PAPERS`."""

PAPERS = "papers"
"""Name of the file for the numbers of ``papers.md``, those of the papers and ours."""

MADE_UP = {
    "findings.md": "# Is A named?\n\nA quarter of 2,000 words (Vu 2020), table 3: 0.25,\n0.07 to 0.85.\n\n"
    "- At least 1.6 at epsilon 5; MAP is 0.31.\n",
    "leaderboard.csv": "victim,attack_score,words\nA 1,0.2540,2000\nB,0.0650,2000\nC,0.8466,2000\nD,,2000\n",
    "audits/fairness.csv": "victim,epsilon\nA 1,1.6999\nB,inf\n",
    "suite.yaml": "victims: [{a: {grid: {epsilon: [1, 5]}}}]\nseeds: [0, 7]\n",
    "README.md": "## X, words\n\n| rank | victim |\n| ---: | --- |\n| 1 | A\\_1 |\n\n"
    "| victim | other | map |\n| --- | ---: | ---: |\n| A\\_1 |  | 0.314 |\n\n"
    "## Y, words\n\n| victim | map |\n| --- | ---: |\n| A\\_1 | 0.4 |\n",
    "numbers.yaml": """
- {number: "A quarter", where: victim == 'A 1', column: attack_score}
- {number: "2,000", column: words}
- {number: "0.25", where: victim == 'A 1', column: attack_score}
- {number: "0.07", column: attack_score, aggregate: min}
- {number: "0.85", column: attack_score, aggregate: max}
- {number: "1.6", table: audits/fairness.csv, where: victim == 'A 1', column: epsilon, rounded: down}
- {number: "5", suite: epsilon}
- {number: "0.31", table: README.md, where: "victim == 'A_1' and section == 'X, words'", column: map}
""",
}
"""The files of a board whose findings agree with its tables."""


@pytest.mark.parametrize("name", sorted(COMPUTED_AGAIN | {path.stem for path in ORIGINS.glob("*.yaml")} - {PAPERS}))
def test_the_numbers_of_the_findings_are_in_the_tables(name):
    assert problems(find_suite(name).parent, ORIGINS / f"{name}.yaml") == []


def test_the_numbers_of_the_page_about_papers_are_in_the_tables():
    assert problems(suite_folder(), ORIGINS / f"{PAPERS}.yaml", "papers.md") == []


@pytest.fixture
def of_made_up(tmp_path):
    """Return a function that writes the board, with replacements in all files, and returns its problems."""

    def check(*replaced):
        for name, text in MADE_UP.items():
            for file, old, new in replaced:
                assert file != name or old in text
                text = text.replace(old, new) if file == name else text
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, "utf-8")
        return problems(tmp_path, tmp_path / "numbers.yaml")

    return check


def test_findings_that_agree_have_no_problem(of_made_up):
    assert of_made_up() == []
    assert of_made_up(("findings.md", "0.07", "0.06"), ("numbers.yaml", '"0.07"', '"0.06"')) == []  # 0.0650 is rounded


@pytest.mark.parametrize(("epsilon", "agrees"), [("7", True), ("8", False), ("5", False)])
def test_a_page_may_take_numbers_from_several_boards(epsilon, agrees, tmp_path):
    for board, value in (("a", 5), ("b", 7)):
        (tmp_path / board).mkdir()
        (tmp_path / board / "suite.yaml").write_text(f"epsilon: {value}\n")
    (tmp_path / "page.md").write_text(f"## A 2020\n\nB has epsilon {epsilon}.\n")
    (tmp_path / "page.yaml").write_text(f'- {{number: "{epsilon}", table: b/leaderboard.csv, suite: epsilon}}\n')
    assert (problems(tmp_path, tmp_path / "page.yaml", "page.md") == []) is agrees


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0.25", "0.26", "number 3 of findings.md is 0.26, but numbers.yaml lists 0.25"),
        ("A quarter", "A third", "number 1 of findings.md is A third"),
        ("0.31.", "0.31 or 85 %.", "number 9 of findings.md is 85 %, but numbers.yaml lists None"),
        ("0.07 to 0.85", "0.85 to 0.07", "number 4 of findings.md is 0.85"),
        ("; MAP is 0.31", "", "number 8 of findings.md is None, but numbers.yaml lists 0.31"),
    ],
)
def test_a_number_without_an_origin_is_a_problem(old, new, expected, of_made_up):
    (problem,) = of_made_up(("findings.md", old, new))
    assert problem.startswith(expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A quarter", "A third"),
        ("2,000", "2,001"),
        ("0.25", "0.26"),
        ("0.07", "0.08"),
        ("0.85", "0.84"),
        ("1.6", "1.7"),
        ("epsilon 5", "epsilon 6"),
        ("epsilon 5", "epsilon 7"),  # a value under another key
        ("0.31", "0.40"),  # of another section
    ],
)
def test_a_changed_number_is_a_problem_although_it_is_listed(old, new, of_made_up):
    before, after = (number.removeprefix("epsilon ") for number in (old, new))
    (problem,) = of_made_up(("findings.md", old, new), ("numbers.yaml", f'"{before}"', f'"{after}"'))
    assert f"number='{after}'" in problem


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("leaderboard.csv", "0.2540", "0.2560"),
        ("leaderboard.csv", "C,0.8466,2000", "C,0.8466,2001"),  # a single row of several
        ("leaderboard.csv", "A 1", "A 2"),  # the query finds nothing
        ("audits/fairness.csv", "1.6999", "1.7000"),
        ("audits/fairness.csv", "1.6999", ""),
        ("audits/fairness.csv", "1.6999", "inf"),
        ("numbers.yaml", "rounded: down", "rounded: up"),
        ("suite.yaml", "[1, 5]", "[1, 6]"),
    ],
)
def test_a_changed_table_or_setting_is_a_problem(file, old, new, of_made_up):
    assert of_made_up((file, old, new))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Word2Vec has 0.25, at 1e-6 and 1/128 of 6,880.", ["0.25", "1e-6", "1/128", "6,880"]),
        ("Vu (2019), figure 3, Text8: -0.1 or 85 %; 1, 5 and 10.", ["-0.1", "85 %", "1", "5", "10"]),
        ("A tenth, or half of five, or a quarterly 2050", ["A tenth", "2050"]),
    ],
)
def test_what_counts_as_a_number(text, named):
    assert NUMBER.findall(text) == named


def test_numbers_keep_their_digits():
    written = {
        "0.50": "0.50",
        "6,880": "6880",
        "1e-6": "0.000001",
        "1/128": "0.0078125",
        "10 %": "0.10",
        "A third": "0.33",
    }
    for number, expected in written.items():
        assert as_decimal(number).as_tuple() == Decimal(expected).as_tuple()
