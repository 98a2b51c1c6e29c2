"""Test the matrix of audited mechanisms: the worst verdict over all epsilons, failures first, controls apart."""

import pytest
from made_records import record

from leakboard.metrics.audits import bound_metrics
from leakboard.site.claims import claims_page
from leakboard.site.content import make_board
from leakboard.site.matrix import MatrixCell, matrix
from leakboard.site.views import views


def audit(name, dataset, epsilon, broken=False, proved=None):
    """Return an audit that counts 900 hits for 1 false alarm of a broken mechanism, and 510 for 500 of a sound one."""
    metrics = bound_metrics(*((900, 1) if broken else (510, 500)), (1000, 1000), 0.0)
    claim = {"about": "release", "epsilon": epsilon, "delta": 0.0, "unit": "vector", "mechanism": "", "sensitivity": ""}
    claim |= {"proved": epsilon if proved is None else proved}
    fields = {"threat": "releases", "attack_metric": "epsilon", "secrets": ("claim",), "metrics": metrics}
    return record(f"mechanism(epsilon={epsilon}, name={name})", "audit", dataset, claim=claim, **fields)


@pytest.fixture
def compared(tmp_path):
    """Return a function that gives the matrix of a board of these records."""
    return lambda *records: matrix(views(make_board("b", "", records, tmp_path, tmp_path)))


def test_a_cell_is_the_worst_verdict_over_all_epsilons(compared):
    once = [audit("laplace", "d2", epsilon, broken=epsilon == 1.0) for epsilon in (1.0, 2.0)]
    made = compared(*once, audit("laplace", "d10", 1.0), audit("laplace", "d10", 2.0, proved=4.0))
    assert made.datasets == ["d2", "d10"]
    (laplace,) = made.mechanisms
    assert list(laplace.cells) == [MatrixCell("violated", 1, 2, 1), MatrixCell("unproven", 1, 2, 2)]
    assert [cell.text for cell in laplace.cells] == ["violated, 1 of 2", "unproven, 1 of 2"]


def test_failures_come_first_and_controls_apart(compared):
    records = [
        audit(name, dataset, 1.0, broken=name != "laplace" and dataset in where)
        for name, where in (("laplace", ()), ("adept", ("d2",)), ("dptext", ("d1", "d2")), ("copy", ("d1", "d2")))
        for dataset in ("d1", "d2")
    ]
    made = compared(*records)
    assert [(m.name, m.paper.title) for m in made.published] == [
        ("mechanism(name=dptext)", "Beigi et al. 2019"),
        ("mechanism(name=adept)", "Krishna, Gupta and Dupuy 2021"),
        ("mechanism(name=laplace)", "Dwork, McSherry, Nissim and Smith 2006"),
    ]
    assert [m.name for m in made.controls] == ["mechanism(name=copy)"]
    assert made.answer == (
        "Broken: mechanism(name=dptext) (everywhere); mechanism(name=adept) (except in d1). "
        "Not refuted: mechanism(name=laplace)."
    )


def test_boards_with_guesses_or_one_dataset_have_none(compared):
    assert compared(record("a"), record("a", dataset="other")) is None
    assert compared(audit("laplace", "d1", 1.0)) is None


class TestClaims:
    """The page that compares claims across boards."""

    @pytest.fixture
    def page(self, tmp_path):
        records = [
            audit(name, "d1", epsilon, broken=name != "laplace" and epsilon < most)
            for name, most in (("adept", 2.0), ("laplace", 0.0), ("copy", 9.0))
            for epsilon in (0.5, 1.0, 2.0)
        ]
        boards = [
            make_board("b", "", records, tmp_path, tmp_path),
            make_board("c", "", [record("a")], tmp_path, tmp_path),
        ]
        return claims_page(boards, "docs/index.html")

    def test_mechanisms_of_papers_have_a_row_each_failures_first(self, page):
        (table,) = page["listings"]
        rows = [[row[name] for name in ("victim", "verdict", "settings", "epsilon_claimed")] for row in table["rows"]]
        assert rows == [["ADePT", "violated", "2 of 3", 0.5], ["Laplace", "holds", "3 of 3", 0.5]]
        assert table["rows"][0]["board_href"] == "../boards/b/index.html"

    def test_its_text_names_what_is_broken(self, page):
        assert page["text"].startswith(
            "1 of 2 audited mechanisms of papers break their claim in at least one setting: ADePT."
        )
        assert "(../docs/released_sanitisers.html)" in page["text"]
