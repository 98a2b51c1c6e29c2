"""Pages as text: what is escaped, what is told where there is no script, and how large they are."""

import csv
import dataclasses
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_records import FORMULA, SCRIPT, record

from leakboard.board.reference import read_reference
from leakboard.errors import RequestError
from leakboard.metrics.measures import Metric
from leakboard.pipeline.results import published_homes
from leakboard.site import libraries, pages
from leakboard.site.board_pages import board_page
from leakboard.site.build import build_site
from leakboard.site.charts import curves, scatter, trade_off
from leakboard.site.content import make_board, published_boards, read_board, slug
from leakboard.site.pages import markdown, page, table_data
from leakboard.site.papers import explanations, paper_of
from leakboard.site.rendering import cell, filled
from leakboard.site.views import views
from leakboard.threats.column import Column

LIMIT = 3 * 2**20


@pytest.fixture(scope="module")
def files(tmp_path_factory, made):
    folder = tmp_path_factory.mktemp("files")
    build_site([made, read_board("dpnr")], folder)
    return folder


def test_every_link_leads_to_a_file_of_the_site(files):
    for path in files.rglob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"]*)"', path.read_text("utf-8")):
            assert target.startswith(("#", "data:,")) or (path.parent / target.split("#")[0]).is_file(), (path, target)


def test_pages_link_to_the_documentation_where_it_stands(files, made, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.html").write_text("documentation")
    build_site([made], tmp_path)
    for path in tmp_path.rglob("*.html"):
        root = "../" * (len(path.relative_to(tmp_path).parts) - 1)
        assert path.parent.name == "docs" or f'href="{root}docs/index.html"' in path.read_text("utf-8"), path
    assert all("docs/index.html" not in path.read_text("utf-8") for path in files.rglob("*.html"))


def test_the_picture_of_the_threat_model_stands_alone_and_in_the_page(files):
    picture = (Path(pages.__file__).parent / "templates" / "threat_model.svg").read_text("utf-8")
    assert picture.rstrip() in (files / "index.html").read_text("utf-8")
    assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme: dark" in picture


def test_pages_are_small_and_share_their_libraries(files):
    assert all(path.stat().st_size < LIMIT for path in files.rglob("*.html"))
    assert {path.name for path in (files / "assets").iterdir()} == {*libraries.NAMES, "site.css", "site.js"}


def test_the_same_records_give_the_same_bytes(files, made, tmp_path):
    build_site([made], tmp_path)
    path = "boards/made/index.html"
    assert (tmp_path / path).read_bytes() == (files / path).read_bytes()


def test_the_answer_at_two_points_stands_in_the_page_itself(files):
    text = re.sub(r"<[^>]*>", "", (files / "boards/dpnr/index.html").read_text("utf-8"))
    text = " ".join(text.split())
    best = "DPNR, as in the paper (epsilon=5.0) keeps most privacy: 0.284 at a task accuracy of 0.781"
    assert f"At a loss of at most 2 points {best}" in text
    assert "Its privacy claim: violated." in text


def words(path):
    """Return what a page says, without its tags."""
    text = path.read_text("utf-8")
    return " ".join(re.sub(r"<[^>]*>", "", text[text.index("<main") :]).split())


def test_pages_say_in_sentences_what_was_found(tmp_path):
    plain, defended = record("net", accuracy=0.8, privacy=0.2), record("defence(encoder=net)", accuracy=0.79)
    site, folders = tmp_path / "site", [tmp_path / name for name in ("one", "two")]
    boards = [make_board(folder.name, "", [plain, defended], folder, folder) for folder in folders]
    build_site(boards, site)
    victim = words(site / f"boards/one/{slug('net')}.html")
    assert "The same victim on other boards: two " in victim
    assert "gender can be guessed in 80 % of the texts; without the vectors, 50 %" in victim
    attack = words(next(site.glob("attacks/attack-*.html")))
    assert (
        "tried on 4 victims. It guessed better than the best constant, beyond the interval, in 4 of 4 rows." in attack
    )


def test_a_board_leads_to_the_papers_that_it_answers(files):
    found = re.findall(r'href="../../(papers/[^"]*)"', (files / "boards/dpnr/index.html").read_text("utf-8"))
    assert any((files / path).is_file() for path in found if path != "papers/index.html")


def test_every_paper_beside_our_numbers_is_explained():
    rows = [row for home in published_homes() for row in read_reference(home)]
    assert {paper_of(row) for row in rows} - {""} == set(explanations())


def test_the_scatter_rings_the_undefended_encoder_and_the_best_defence(tmp_path):
    plain, defended = record("net", accuracy=0.8, privacy=0.2), record("defence(encoder=net)", accuracy=0.79)
    records = [plain, defended, record("costly(encoder=net)", accuracy=0.5, privacy=0.4)]
    (view,) = views(make_board("b", "", records, tmp_path, tmp_path))
    lines = scatter(view)["data"]
    rings = [(line["name"], line["x"]) for line in lines if line.get("marker", {}).get("symbol") == "circle-open"]
    assert [(name.split(":")[0], x[0]) for name, x in rings] == [
        ("no defence", 0.8),
        ("most privacy at a loss of at most 2 points", 0.79),
    ]


def test_hostile_names_are_escaped_everywhere(files):
    for path in files.rglob("*.html"):
        assert SCRIPT not in path.read_text("utf-8"), path


def test_markdown_shows_html_as_text_and_drops_scripts_in_links():
    found = markdown(f"{SCRIPT} [x](javascript:alert(1)) **bold**")
    assert "<script" not in found
    assert "<a " not in found
    assert "<strong>bold</strong>" in found


def test_no_cell_of_a_download_is_a_formula_and_numbers_stay_numbers():
    data = table_data([{"dataset": FORMULA, "delta": -0.5}, {"dataset": "plain", "delta": float("inf")}])
    places = [data["columns"].index(name) for name in ("dataset", "delta")]
    assert [[row[place] for place in places] for row in data["rows"]] == [[FORMULA, -0.5], ["plain", "inf"]]
    lines = [*csv.reader(data["csv"].splitlines())]
    assert [[line[place] for place in places] for line in lines[1:]] == [["'" + FORMULA, "-0.5"], ["plain", "inf"]]


def test_columns_without_anything_to_show_are_left_out():
    columns = [Column("a", "", ()), Column("b", "", (), kind="number")]
    assert filled(columns, [{"a": "x", "b": None}]) == columns[:1]
    assert filled(columns, [{"a": "x", "b": 0.0}]) == columns


def test_infinity_is_told_in_words_and_sorted_last():
    cells = [cell(Column("a", "", (), kind="epsilon"), {"a": value}) for value in (1.0, float("inf"), None)]
    assert [shown.text for shown in cells] == ["1", "none", ""]
    assert [shown.order for shown in cells] == sorted(shown.order for shown in cells)


def test_curves_are_of_options_with_three_values_or_more(tmp_path):
    def titles(*epsilons):
        records = [record(f"v(epsilon={epsilon}, x=1)") for epsilon in epsilons]
        (view,) = views(make_board("b", "", records, tmp_path, tmp_path))
        return [title for title, _ in curves(view)]

    assert titles(1, 2, 3) == ["Privacy against epsilon", "Task accuracy against epsilon"]
    assert titles(1, 2) == []


def test_an_audit_is_drawn_below_the_claim_that_it_refutes():
    counts = [Metric("true_positives", 90, n=100), Metric("false_positives", 0, n=100), Metric("audit_delta", 0, n=100)]
    audit = dataclasses.replace(record("v"), metrics=counts)
    _, claim, events = trade_off([audit], 1.0)["data"]
    assert (events["x"], events["y"]) == ([0.0], [pytest.approx(0.1)])
    assert claim["y"][0] == 1
    assert min(claim["y"]) == 0
    corners = [Metric("audit_trade_off", missed, f"fpr={alarms:g}") for alarms, missed in ((0, 1), (0.1, 0.4), (1, 0))]
    curve = trade_off([dataclasses.replace(audit, metrics=[*audit.metrics, *corners])], 1.0)["data"][2]
    assert curve["x"] == [0, 0.1, 1]
    assert curve["y"] == pytest.approx([1, 0.4, 0])
    assert trade_off([record("v")], 1.0) is None


def test_a_board_is_all_on_its_page_without_scripts(made):
    text = page("board", **board_page(made), root="", alone=False, version="0")
    assert text.count("<caption>") == 2
    assert 'class="picker" hidden' in text
    assert text.count('scope="col"') == 10


def test_one_line_says_which_board_is_not_published(tmp_path):
    (tmp_path / "mine.yaml").write_text("description: mine\n")
    with pytest.raises(RequestError, match="no published records"):
        published_boards([str(tmp_path / "mine.yaml")])
    with pytest.raises(RequestError, match="did you mean 'dpnr'"):
        published_boards(["dpnrr"])


def test_libraries_are_classic_scripts():
    assert not re.search(r"^export\s*\{", libraries.library("datatables.js"), re.MULTILINE)
    assert "globalThis.DataTable=" in libraries.library("datatables.js")
