"""Test the warning about results of different environments: only differences that may change numbers are reported."""

import pytest

from leakboard.board.run_meta import environment_differences
from leakboard.pipeline.records import read_costs, write_costs


def cost(stage="fit", device="cpu", processor="A", **packages):
    versions = {"torch": "2.5", "numpy": "2.1", "scikit-learn": "1.5", "pandas": "2.2"} | packages
    environment = {"machine": {"processor": processor}, "packages": versions}
    return {"stage": stage, "device": device, "environment": environment}


@pytest.mark.parametrize(
    ("costs", "line"),
    [
        ([("bert", [cost()]), ("bert", [cost()])], ""),
        ([("bert", [cost(device="H100"), cost("attack")]), ("lsa", [cost()])], ""),  # each stage on its own device
        ([("bert", [cost(pandas="2.1")]), ("bert", [cost()])], ""),
        ([("bert", [{"stage": "fit"}]), ("bert", [cost()]), ("lsa", [])], ""),
        ([("bert", [cost(torch="2.4")]), ("bert", [cost()])], "torch: 2.4, 2.5"),
        ([("bert", [cost(device="H100")]), ("bert", [cost()])], "fit of bert: H100, cpu"),
        ([("bert", [cost(processor="B")]), ("lsa", [cost()])], "processor: A, B"),
        ([("bert", [cost() | {"auto_precision": "bfloat16"}]), ("lsa", [cost()])], ""),  # lsa does not record it
        ([("bert", [cost() | {"auto_precision": p} for p in ("bfloat16", "float32")])], "precision: bfloat16, float32"),
    ],
)
def test_only_differences_that_may_change_numbers_are_reported(costs, line):
    assert environment_differences(costs) == line


def test_report_warns_in_one_line(copied, output_of):
    assert "different environments" not in output_of(*copied.arguments("report"))
    path = next(iter(copied.run.glob("cells/*/costs.json")))
    costs = read_costs(path.parent)
    costs[0]["environment"]["packages"]["torch"] = "0.1"
    write_costs(path.parent, costs)
    out = output_of(*copied.arguments("report"))
    assert out.count("warning: computed in different environments: torch: 0.1, ") == 1
