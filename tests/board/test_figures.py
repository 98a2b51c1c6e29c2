"""Test the charts of a leaderboard: points, their error bars, the Pareto front, and lines that can be told apart."""

import json

import pandas as pd
import plotly.graph_objects as go
import pytest

from leakboard.board.curves import line_style
from leakboard.board.figures import COLOURS, pareto_front, privacy_utility


def table(*rows):
    return pd.DataFrame([{"victim": v, "attack": a, "task_accuracy": x, "empirical_privacy": y} for v, a, x, y in rows])


def test_the_strongest_attack_on_each_victim_is_drawn():
    rows = ("a", "weak", 0.8, 0.4), ("a", "strong", 0.8, 0.1), ("b", "weak", 0.7, 0.3)
    front, points = privacy_utility(table(*rows)).data
    assert list(zip(points.x, points.y, strict=True)) == [(0.8, 0.1), (0.7, 0.3)]
    assert "strong" in points.hovertext[0]
    assert "weak" not in points.hovertext[0]
    assert list(front.x) == [0.7, 0.8]


@pytest.mark.parametrize(("on_dev", "privacy"), [([0.6, 0.7], 0.2), ([0.6, float("nan")], 0.1)])
def test_dev_decides_which_attack_is_the_strongest(on_dev, privacy):
    frame = table(("a", "lucky", 0.8, 0.1), ("a", "better", 0.8, 0.2)).assign(attack_score_dev=on_dev)
    assert list(privacy_utility(frame).data[1].y) == [privacy]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(1, 1), (2, 2)], [(2, 2)]),
        ([(1, 2), (2, 1), (1, 1)], [(1, 2), (2, 1)]),
        ([(1, 2), (1, 3)], [(1, 3)]),
        ([(1, 2), (2, 2)], [(2, 2)]),
        ([], []),
    ],
)
def test_the_front_holds_the_rows_that_no_row_beats(rows, expected):
    front = pareto_front([{"x": x, "y": y} for x, y in rows], "x", "y")
    assert [(row["x"], row["y"]) for row in front] == expected


def test_error_bars_are_intervals_or_else_standard_deviations():
    frame = table(("a", "", 0.8, 0.4), ("b", "", 0.7, 0.3)).assign(
        empirical_privacy_low=[0.3, None], empirical_privacy_high=[0.6, None], empirical_privacy_sd=[0.01, 0.02]
    )
    bars = privacy_utility(frame).data[1].error_y
    assert bars.array == pytest.approx([0.2, 0.02])
    assert bars.arrayminus == pytest.approx([0.1, 0.02])


def test_each_dataset_has_its_own_front():
    frame = table(("a", "", 0.8, 0.4), ("a", "", 0.7, 0.3)).assign(dataset=["one", "two"])
    assert len(privacy_utility(frame).data) == 4


def test_names_are_escaped_and_rows_without_numbers_are_left_out():
    points = privacy_utility(table(("<script>", "<b>", 0.8, 0.4), ("audited", "", 0.8, float("nan")))).data[1]
    assert len(points.x) == 1
    assert "&lt;script&gt;" in points.hovertext[0]
    assert "&lt;b&gt;" in points.hovertext[0]
    assert not privacy_utility(table(("a", "", None, None))).data


def test_twice_as_many_lines_as_colours_can_be_told_apart():
    styles = [line_style(i) for i in range(2 * len(COLOURS))]
    assert len({json.dumps(style, sort_keys=True) for style in styles}) == len(styles)
    figure = go.Figure([go.Scatter(x=[1], y=[1], **style) for style in styles])  # refuses unknown symbols and dashes
    assert figure.data[len(COLOURS)].marker.symbol == "circle-open"
