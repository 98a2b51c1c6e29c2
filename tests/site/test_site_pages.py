"""Test the HTML of pages: escaping, links, size, and their content without scripts."""

import csv
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_records import FORMULA, SCRIPT, record, with_metrics

from leakboard.board.published_numbers import read_reference
from leakboard.column import Column
from leakboard.errors import RequestError
from leakboard.metrics.measures import Metric
from leakboard.pipeline.results import published_homes
from leakboard.site import front, libraries, pages
from leakboard.site.board_pages import board_page
from leakboard.site.build import build_site
from leakboard.site.charts import curves, lengths, scatter, trade_off
from leakboard.site.content import make_board, published_boards, read_board, slug
from leakboard.site.pages import breakable, markdown, page, table_data
from leakboard.site.papers import explanations, paper_of
from leakboard.site.rendering import cell, filled
from leakboard.site.views import views


@pytest.fixture(scope="module")
def files(tmp_path_factory, made):
    folder = tmp_path_factory.mktemp("files")
    build_site([made, read_board("dpnr")], folder)
    return folder


def test_every_link_leads_to_a_file_of_the_site(files):
    for path in files.rglob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"]*)"', path.read_text("utf-8")):
            assert target.startswith(("#", "data:,", "https://")) or (path.parent / target.split("#")[0]).is_file(), (
                path,
                target,
            )


def test_the_door_for_defences_names_the_readme_without_documentation():
    doors = {
        name: next(door for door in front.doors(name) if "defence" in door["title"]) for name in ("", "docs/index.html")
    }
    assert [door["href"] for door in doors.values()] == ["", "docs/how_to/own_defence.html"]
    assert ["README" in door["text"] for door in doors.values()] == [True, False]


def test_a_victims_measures_have_titles(files):
    (path, *_) = [path for path in (files / "boards/dpnr").glob("*.html") if path.name != "index.html"]
    names = re.findall('data-label="measure"><bdi>(.*?)</bdi>', path.read_text("utf-8"))
    assert names
    assert not any("_" in name for name in names)


def test_the_list_of_attacks_says_what_each_does_and_where(files):
    text = (files / "attacks/index.html").read_text("utf-8")
    assert 'data-label="what it does"' in text
    assert 'data-label="boards"><bdi>dpnr' in text


def test_pages_link_to_the_documentation_if_it_exists(files, made, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.html").write_text("documentation")
    build_site([made], tmp_path)
    for path in tmp_path.rglob("*.html"):
        root = "../" * (len(path.relative_to(tmp_path).parts) - 1)
        assert path.parent.name == "docs" or f'href="{root}docs/index.html"' in path.read_text("utf-8"), path
    assert all("docs/index.html" not in path.read_text("utf-8") for path in files.rglob("*.html"))


def test_the_picture_of_the_threat_model_is_valid_and_in_the_page(files):
    picture = (Path(pages.__file__).parent / "templates" / "threat_model.svg").read_text("utf-8")
    assert picture.rstrip() in (files / "index.html").read_text("utf-8")
    assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme: dark" in picture


def test_pages_are_small_and_share_their_libraries(files):
    assert all(path.stat().st_size < 3 * 2**20 for path in files.rglob("*.html"))
    assert {path.name for path in (files / "assets").iterdir()} == {*libraries.NAMES, "site.css", "site.js"}


def test_the_same_records_give_the_same_bytes(files, made, tmp_path):
    build_site([made], tmp_path)
    path = "boards/made/index.html"
    assert (tmp_path / path).read_bytes() == (files / path).read_bytes()


def text_of(path):
    """Return the text of a page's main part, without tags."""
    text = path.read_text("utf-8")
    return " ".join(re.sub(r"<[^>]*>", "", text[text.index("<main") :]).split())


def test_the_page_itself_states_the_best_defence_at_two_points(files):
    text = text_of(files / "boards/dpnr/index.html")
    best = "DPNR, as in the paper (epsilon=1, mu=0.1) keeps most privacy: 0.392 at a task accuracy of 0.772"
    assert f"At a loss of at most 2 points {best}" in text
    assert (
        "Its privacy claim: violated. Its attackers saw fewer publications of a text than those of other victims."
        in text
    )


def test_pages_describe_results_in_sentences(tmp_path):
    plain, defended = record("net", accuracy=0.8, privacy=0.2), record("defence(encoder=net)", accuracy=0.79)
    site, folders = tmp_path / "site", [tmp_path / name for name in ("one", "two")]
    boards = [make_board(folder.name, "", [plain, defended], folder, folder) for folder in folders]
    build_site(boards, site)
    victim = text_of(site / f"boards/one/{slug('net')}.html")
    assert "The same victim on other boards: two " in victim
    assert "gender: an attacker gains 0.60 of what there is to gain (0.56 to 0.64; 100 texts); right in 80 %" in victim
    attack = text_of(next(site.glob("attacks/attack-*.html")))
    assert "tried on 4 victims. It beat the best constant guess beyond chance in 4 of 4 rows." in attack


def test_a_board_links_to_its_papers(files):
    links = re.findall(r'href="../../(papers/[^"]*)"', (files / "boards/dpnr/index.html").read_text("utf-8"))
    assert any((files / path).is_file() for path in links if path != "papers/index.html")


def test_every_compared_paper_has_an_explanation():
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


def test_markdown_escapes_html_and_drops_script_links():
    html = markdown(f"{SCRIPT} [x](javascript:alert(1)) **bold**")
    assert "<script" not in html
    assert "<a " not in html
    assert "<strong>bold</strong>" in html


def test_names_break_after_marks_and_stay_escaped():
    assert breakable("attack_score<b>(x=1)") == "attack_score&lt;b&gt;<wbr>(x=1)"
    assert breakable("inner=the_attribute_inference(x=1)") == "inner=<wbr>the_<wbr>attribute_<wbr>inference<wbr>(x=1)"


def test_downloads_hold_no_formula_and_keep_numbers():
    data = table_data([{"dataset": FORMULA, "delta": -0.5}, {"dataset": "plain", "delta": float("inf")}])
    positions = [data["columns"].index(name) for name in ("dataset", "delta")]
    assert [[row[i] for i in positions] for row in data["rows"]] == [[FORMULA, -0.5], ["plain", "inf"]]
    lines = [*csv.reader(data["csv"].splitlines())]
    assert [[line[i] for i in positions] for line in lines[1:]] == [["'" + FORMULA, "-0.5"], ["plain", "inf"]]


def test_empty_columns_are_left_out():
    columns = [Column("a", "", ()), Column("b", "", (), kind="number")]
    assert filled(columns, [{"a": "x", "b": None}]) == columns[:1]
    assert filled(columns, [{"a": "x", "b": 0.0}]) == columns


def test_infinity_is_a_word_and_sorted_last():
    cells = [cell(Column("a", "", (), kind="epsilon"), {"a": value}) for value in (1.0, float("inf"), None)]
    assert [c.text for c in cells] == ["1", "none", ""]
    assert cell(Column("a", "", (), kind="epsilon"), {"a": 6884.2}).text == "6,884"
    assert [c.order for c in cells] == sorted(c.order for c in cells)


def test_options_with_three_values_have_curves(tmp_path):
    def titles(*epsilons):
        records = [record(f"v(epsilon={epsilon}, x=1)") for epsilon in epsilons]
        (view,) = views(make_board("b", "", records, tmp_path, tmp_path))
        return [title for title, _ in curves(view)]

    assert titles(1, 2, 3) == ["Privacy against epsilon", "Task accuracy against epsilon"]
    assert titles(1, 2) == []


def test_datasets_that_differ_in_length_have_a_chart(tmp_path):
    def drawn(*words, threats=("attributes",)):
        records = [
            record("v", threat, f"cut(of=reviews, words={n})", score=0.9 - n / 100, threat=threat)
            for threat in threats
            for n in words
        ]
        records.append(record("w", dataset="cut(of=reviews, words=8)"))
        return lengths(views(make_board("b", "", records, tmp_path, tmp_path)))

    title = "Advantage of the strongest attack against the length of texts"
    two = drawn(64, 8, 16, threats=("attributes", "entities"))
    assert [shown for shown, _ in two] == [f"{title} (attributes)", f"{title} (entities)"]
    ((shown, figure),) = drawn(64, 8, 16)
    assert shown == title
    (line,) = figure["data"]
    assert (line["name"], line["x"]) == ("v", [8, 16, 64])
    assert line["y"] == pytest.approx([0.64, 0.48, -0.48])
    assert line["error_y"]["array"] == pytest.approx([0.04] * 3)
    assert figure["layout"]["xaxis"]["type"] == "log"
    assert drawn(8, 16) == []


def test_an_audit_is_drawn_below_a_refuted_claim():
    counts = {"true_positives": 90, "false_positives": 0, "audit_delta": 0}
    audit = record("v", metrics=[Metric(name, value, n=100) for name, value in counts.items()])
    _, claim, events = trade_off([audit], 1.0)["data"]
    assert (events["x"], events["y"]) == ([0.0], [pytest.approx(0.1)])
    assert claim["y"][0] == 1
    assert min(claim["y"]) == 0
    corners = [Metric("audit_trade_off", missed, f"fpr={alarms:g}") for alarms, missed in ((0, 1), (0.1, 0.4), (1, 0))]
    curve = trade_off([with_metrics(audit, *corners)], 1.0)["data"][2]
    assert curve["x"] == [0, 0.1, 1]
    assert curve["y"] == pytest.approx([1, 0.4, 0])
    assert trade_off([record("v")], 1.0) is None


@pytest.mark.parametrize(("distances", "limit"), [((), ["1.5"]), ((2.0,), ["3"]), ((2.0, 3.0), [])])
def test_a_claim_for_each_unit_of_a_distance_is_drawn_at_the_distance_of_the_audit(distances, limit):
    """Audits at several distances have several limits. None is drawn."""
    counts = {"true_positives": 90, "false_positives": 5, "audit_delta": 0}
    audits = [
        record(
            "v", seed=i, metrics=[Metric(n, v, n=100) for n, v in {**counts, "audit_distance": distance}.items() if v]
        )
        for i, distance in enumerate(distances or (None,))
    ]
    names = [trace["name"] for trace in trade_off(audits, 1.5)["data"] if "name" in trace]
    limits = [name for name in names if name.startswith("least that the claimed epsilon")]
    assert limits == [f"least that the claimed epsilon {epsilon} allows" for epsilon in limit]


def test_a_page_shows_the_whole_board_without_scripts(made):
    text = page("board", **board_page(made), root="", alone=False, version="0")
    assert text.count("<caption>") == 2
    assert 'class="picker" hidden' in text
    assert text.count('scope="col"') == 12
    assert text.count('<details class="more">') == text.count("<th scope=row")


def test_an_unpublished_board_is_named(tmp_path):
    (tmp_path / "mine.yaml").write_text("description: mine\n")
    with pytest.raises(RequestError, match="no published records"):
        published_boards([str(tmp_path / "mine.yaml")])
    with pytest.raises(RequestError, match="did you mean 'dpnr'"):
        published_boards(["dpnrr"])


def test_libraries_are_classic_scripts():
    assert not re.search(r"^export\s*\{", libraries.library("datatables.js"), re.MULTILINE)
    assert "globalThis.DataTable=" in libraries.library("datatables.js")
