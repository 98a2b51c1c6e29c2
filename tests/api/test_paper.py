"""A leaderboard becomes a LaTeX table in natural order, and an entry of BibTeX."""

import dataclasses

import made_records
import pytest

from leakboard.api.report import Report
from leakboard.errors import RequestError


def report(*epsilons, **fields):
    usual = {"accuracy": 0.9, "score": 0.7, "constant": 0.4, "test_size": 200, "secrets": ("gender",)}
    records = [
        made_records.record(f"noise(epsilon={e})", "probe", "made_set", key=str(e), **(usual | fields))
        for e in epsilons
    ]
    return Report("my_board", "Noise & words", {}, records)


class TestLatex:
    def test_epsilon_5_comes_before_10(self):
        rows = [line for line in report(10, 5, 0.5).latex(["victim"]).splitlines() if "noise" in line]
        assert rows == [f"noise(epsilon={e}) \\\\" for e in ("0.5", "5", "10")]

    def test_a_number_has_its_interval_next_to_it(self):
        text = report(1, privacy=0.3, margin=0.05).latex(["task_accuracy", "empirical_privacy"])
        assert r"0.900 & 0.300 [0.250, 0.350] \\" in text
        assert r"\begin{tabular}{rr}" in text

    def test_a_number_without_interval_stands_alone(self):
        assert "0.700 \\\\\n" in report(1, score=0.7).latex(["victim", "attack_score"])

    def test_special_characters_are_escaped(self):
        assert r"made\_set" in report(1).latex(["dataset"])

    def test_it_uses_booktabs_and_floats_only_with_a_caption(self):
        plain, floating = report(1).latex(["victim"]), report(1).latex(["victim"], caption="All", label="tab:all")
        assert r"\toprule" in plain
        assert r"\begin{table}" not in plain
        assert all(part in floating for part in (r"\begin{table}", r"\caption{All}", r"\label{tab:all}"))

    def test_an_unknown_column_is_refused(self):
        with pytest.raises(RequestError, match=r"latex: 'victims' is no column .*did you mean"):
            report(1).latex(["victims"])


class TestCurves:
    def test_victims_that_differ_in_epsilon_alone_are_a_line(self):
        (line,) = report(10, 5, 0.5, privacy=0.3).curves("epsilon", "empirical_privacy").data
        assert (list(line.x), line.name) == ([0.5, 5, 10], "noise")
        assert list(line.y) == pytest.approx([0.3] * 3)

    def test_a_line_is_drawn_at_the_strongest_attack(self):
        weak, strong = report(1, 2, 3, privacy=0.3, score=0.7), report(1, 2, 3, privacy=0.1, score=0.9)
        stronger = [dataclasses.replace(record, attack="other", key=record.key + "other") for record in strong.records]
        both = dataclasses.replace(weak, records=[*weak.records, *stronger])
        (line,) = both.curves().data
        assert list(line.y) == pytest.approx([0.1] * 3)

    def test_several_datasets_have_lines_of_their_own(self):
        moved = [dataclasses.replace(r, dataset="more", key=r.key + "more") for r in report(1, 2, 3).records]
        both = Report("both", "", {}, [*report(1, 2, 3).records, *moved])
        assert {line.name for line in both.curves().data} == {"noise, made_set", "noise, more"}

    @pytest.mark.parametrize("made", [report(1, 2), report()])
    def test_without_three_values_it_is_refused(self, made):
        with pytest.raises(RequestError, match="no three victims differ only in 'epsilon'"):
            made.curves()


class TestCite:
    def test_it_names_the_board_the_version_and_the_cells(self):
        text = report(1, 2).cite()
        assert text.startswith("@misc{leakboard-my-board,\n")
        assert r"title = {{LeakBoard}: Noise \& words}" in text
        assert "2 cells" in text

    def test_other_cells_are_cited_otherwise(self):
        assert report(1, 2).cite() != report(1, 3).cite()
        assert report(1, 2).cite() == report(2, 1).cite()
