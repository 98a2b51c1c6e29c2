"""Test the pages in a real browser, opened from disk; screenshots go to a temporary folder."""

import csv
import itertools
import json
import re

import pytest
from made_records import FORMULA, HOSTILE, REVERSED, SCRIPT, SECRETS, WINDOW_WIDTH, record

from leakboard.site.build import write_report
from leakboard.site.choices import keeps_most
from leakboard.site.content import make_board, read_board, slug
from leakboard.site.own_report import Notes
from leakboard.site.views import views

BOARD = "boards/demo/index.html"
MADE = "boards/made/index.html"
COMPARED = "compared.html"
SLACK = 1.5
"""Pixels by which the empty border of a line of text may reach into a point."""


def pages(site):
    """Return one page of each kind."""
    kinds = ["index.html", BOARD, MADE, "attacks/index.html", "papers/index.html", "encoders/index.html"]
    kinds += [str(next(site.glob(f"{folder}/*-*.html")).relative_to(site)) for folder in ("boards/demo", "attacks")]
    return [*kinds, COMPARED, "alone.html"]


def texts_of(page, name):
    """Return the texts of a column of the visible table, in the order of its rows."""
    table = page.locator(".view:not([hidden]) table")
    texts = table.locator("thead tr").last.locator("th").all_inner_texts()
    first = table.locator("thead tr").first.locator("th[rowspan='2']").count()
    position = first + next(i for i, text in enumerate(texts) if text.startswith(name)) + 1
    return table.locator(f"tbody tr > :nth-child({position})").all_inner_texts()


def column(page, name):
    """Return the numbers of a column of the visible table, in the order of its rows."""
    return [float(text.split()[0]) for text in texts_of(page, name)]


def wait_until_sorted(page, direction):
    """Wait until the table is in its new order: it is sorted a moment after a click."""
    page.locator(f".view:not([hidden]) th[aria-sort={direction}]").first.wait_for()


def test_a_click_on_a_column_sorts_by_it(opened):
    page = opened(MADE)
    before = column(page, "task accuracy")
    button = page.locator(".view:not([hidden]) th", has_text="task accuracy").get_by_role("button")
    button.click()
    wait_until_sorted(page, "ascending")
    assert column(page, "task accuracy") == sorted(before)
    button.press("Enter")
    wait_until_sorted(page, "descending")
    assert column(page, "task accuracy") == sorted(before, reverse=True)


@pytest.mark.slow
def test_missing_and_infinite_numbers_are_sorted_last(opened):
    page = opened(BOARD)
    page.set_viewport_size({"width": 1920, "height": 900})  # wide screens show the epsilons
    page.locator(".view:not([hidden]) th", has_text="proved").get_by_role("button").click()
    wait_until_sorted(page, "ascending")
    proved = [text.strip() for text in texts_of(page, "proved")]
    count = sum(text not in ("", "none") for text in proved)
    numbers = [float(text) for text in proved[:count]]
    assert len(set(numbers)) > 1
    assert numbers == sorted(numbers)
    assert proved[count:] == sorted(proved[count:], reverse=True)


@pytest.mark.slow
def test_a_chosen_view_has_an_address(shared, opened):
    page = shared(BOARD)
    page.locator("#view-picker").select_option("view-2")
    assert page.url.endswith("#view-2")
    page.locator("#view-picker").select_option("view-1")
    assert opened(f"{BOARD}#view-2").locator(".view:not([hidden])").get_attribute("id") == "view-2"


@pytest.mark.slow
def test_the_filter_leaves_the_rows_that_match(shared):
    page = shared(MADE)
    rows = page.locator(".view:not([hidden]) tbody tr")
    assert rows.count() == 14
    page.get_by_label("Filter").first.fill("plain3")
    assert rows.all_inner_texts()[0].count("plain3") == 1
    assert rows.count() == 1
    page.get_by_label("Filter").first.fill("")
    assert rows.count() == 14


@pytest.mark.slow
def test_a_row_unfolds_below_itself_and_folds_again(opened):
    page = opened(BOARD)
    more = page.locator(".view:not([hidden]) details.more").first
    unfolded = page.locator(".view:not([hidden]) tr.unfolded")
    assert unfolded.count() == 0
    more.locator("summary").click()
    unfolded.wait_for()
    assert "Three epsilons" in unfolded.inner_text()
    assert not more.locator(".folded").is_visible()
    more.locator("summary").click()
    unfolded.wait_for(state="detached")


@pytest.mark.slow
def test_answer_chart_verdict_and_first_rows_are_in_sight(opened):
    page = opened(BOARD)
    rows = page.locator(".view:not([hidden]) tbody tr")
    assert rows.nth(2).bounding_box()["y"] < 1800
    assert page.locator(".view:not([hidden]) .chart").first.bounding_box()["y"] < 600
    for heading in ("verdict", "strongest attack"):
        box = page.locator(".view:not([hidden]) thead th", has_text=heading).bounding_box()
        assert box["x"] + box["width"] <= WINDOW_WIDTH


@pytest.mark.slow
@pytest.mark.parametrize("board", [BOARD, MADE])
def test_names_of_points_hide_no_point_and_no_other_name(opened, board):
    page = opened(board)

    def boxes(what):
        return page.locator(f".view:not([hidden]) .scatterlayer {what}").evaluate_all(
            "parts => parts.map(part => part.getBoundingClientRect().toJSON()).filter(box => box.width)"
        )

    names, points = boxes(".textpoint"), boxes(".points path")
    assert len(names) >= 3
    assert len(points) > len(names)  # a ring is a point
    for i, one in enumerate(names):
        for other in names[:i] + points:
            apart = one["left"] >= other["right"] or other["left"] >= one["right"]
            assert apart or one["top"] >= other["bottom"] - SLACK or other["top"] >= one["bottom"] - SLACK


@pytest.mark.slow
def test_names_of_points_have_a_halo_in_the_colour_of_the_page(shared):
    page = shared(BOARD)
    name = page.locator(".view:not([hidden]) .textpoint text").first
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    order, halo = name.evaluate("text => [getComputedStyle(text).paintOrder, getComputedStyle(text).stroke]")
    assert (order.split()[0], halo) == ("stroke", paper)


@pytest.mark.slow
def test_the_menu_of_tables_fits_a_narrow_screen(shared):
    page = shared(BOARD)
    page.set_viewport_size({"width": 390, "height": 900})
    needed = page.locator("#view-picker").evaluate(
        """menu => {
          const copy = menu.cloneNode(true);
          Object.assign(copy.style, { width: "max-content", maxWidth: "none", position: "absolute" });
          menu.parentElement.append(copy);
          const { width } = copy.getBoundingClientRect();
          copy.remove();
          return width;
        }"""
    )
    page.set_viewport_size({"width": WINDOW_WIDTH, "height": 900})
    assert needed <= 390


@pytest.mark.slow
def test_a_deep_link_shows_its_row_in_another_view(opened, site):
    text = (site / BOARD).read_text()
    anchor = re.findall(r'<tr role="row" id="(victim-[^"]*-[23])"', text)[-1]
    page = opened(f"{BOARD}#{anchor}")
    row = page.locator(f"#{anchor}")
    assert row.is_visible()
    assert row.evaluate("row => row.matches(':target') && row.getBoundingClientRect().top < innerHeight")
    assert page.locator(".view:not([hidden])").count() == 1


@pytest.mark.slow
def test_a_point_of_the_chart_shows_and_links_its_victim(opened):
    page = opened(BOARD)
    point = page.locator(".view:not([hidden]) .scatterlayer .points path").first
    point.hover(force=True)
    label = page.locator(".hoverlayer .hovertext").first
    label.wait_for()
    victim = label.locator("text").first.text_content().split("strongest attack:")[0]
    assert victim in page.locator(".view:not([hidden]) tbody").inner_text()
    point.click(force=True)
    page.wait_for_url("**/boards/demo/*-*.html")
    assert page.locator("h1").inner_text().startswith(victim.split("(")[0])


def test_csv_and_json_are_downloaded_with_the_same_rows(shared):
    page = shared(MADE)
    contents = {}
    for kind in ("CSV", "JSON"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=f"Download {kind}").click()
        assert waiting.value.suggested_filename == f"made.{kind.lower()}"
        contents[kind] = waiting.value.path().read_text("utf-8")
    rows = list(csv.DictReader(contents["CSV"].splitlines()))
    loaded = json.loads(contents["JSON"])
    assert len(rows) == len(loaded) == 56
    assert {row["victim"] for row in loaded} >= set(HOSTILE)
    assert {row["victim"] for row in rows} >= {f"'{FORMULA}", SCRIPT}
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())


@pytest.mark.slow
def test_the_page_chooses_the_same_defence_as_python(opened):
    page = opened(BOARD)
    made = views(read_board("demo"))
    assert [keeps_most(view) is None for view in made] == [False, False, True]  # words have no such choice
    for number, view in enumerate(made[:2], start=1):
        page.locator("#view-picker").select_option(f"view-{number}")
        section = page.locator(f"#view-{number}")
        for loss in (0, 2, 10, 30, 60):
            section.locator("input[type=number]").fill(str(loss))
            choice = keeps_most(view, loss)
            marked = section.locator("tr.chosen").evaluate_all("rows => rows.map(row => row.dataset.slug)")
            assert marked == ([] if choice.no_better else [choice.best["slug"]])
            text = section.locator(".result").inner_text()
            assert choice.best["victim"] in text
            assert ("interval overlaps" in text) == bool(choice.ties)
            assert ("more than none" in text) == choice.no_better


def wait_until_it_fits(page, width):
    """Wait until nothing is wider than the window: charts follow it a moment later."""
    page.wait_for_function(f"document.documentElement.scrollWidth <= {width}", timeout=5_000)


@pytest.mark.slow
def test_colours_of_pages_and_open_charts_follow_the_system(shared):
    page = shared(BOARD)
    shades = {}
    for scheme in ("light", "dark"):
        paper, ink = (f"getComputedStyle(document.querySelector('{part}'))" for part in ("body", ".xtitle"))
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"{ink}.fill !== '{shades.get('light', [None, ''])[1]}'")
        shades[scheme] = [page.evaluate(f"{paper}.backgroundColor"), page.evaluate(f"{ink}.fill")]
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"{ink}.fill === '{shades['light'][1]}'")
    light, dark = ([sum(map(int, re.findall(r"\d+", shade)[:3])) for shade in pair] for pair in shades.values())
    assert light[0] > 600 > 300 > light[1]
    assert dark[0] < 150 < 500 < dark[1]


@pytest.mark.slow
def test_pages_print_in_dark_ink_and_fit_the_paper(shared):
    page = shared(BOARD)
    page.set_viewport_size({"width": 1000, "height": 900})
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_function("getComputedStyle(document.querySelector('.xtitle')).fill === 'rgb(0, 0, 0)'")
    wait_until_it_fits(page, 1000)
    assert not page.get_by_role("navigation").is_visible()
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size({"width": WINDOW_WIDTH, "height": 900})
    assert page.get_by_role("navigation").is_visible()


def test_a_report_has_a_row_for_each_secret_and_a_label_for_each_difference(opened):
    rows = opened(COMPARED).locator(".decide .matrix tbody tr")
    assert [row.split()[0] for row in rows.all_inner_texts()] == [secret.split()[0] for secret in SECRETS]
    cells = rows.first.locator("td").all_inner_texts()
    assert [cell.split()[0] for cell in cells] == ["0.200", "0.200", "less", "more"]


@pytest.mark.slow
@pytest.mark.parametrize("many", [False, True])
def test_the_part_for_people_who_decide_fits_one_printed_page(opened, site, many):
    made = make_board("own vectors", "", [record("net"), record("other", privacy=0.1)], site, site)
    write_report(made, site / "own.html", "2026-11-27", Notes(warnings=["few texts"]))
    page = opened(COMPARED if many else "own.html")
    assert page.locator(".findings li").count() >= (len(SECRETS) if many else 2)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 900})  # A4 without margins of 1.5 cm, at 96 dots an inch
    assert page.locator(".decide").bounding_box()["height"] < 1009
    assert page.locator(".decide").evaluate("part => getComputedStyle(part).breakAfter") == "page"


@pytest.mark.slow
def test_no_page_is_wider_than_a_narrow_screen(shared, site):
    for path in pages(site)[:-1]:
        page = shared(path)
        for width in (390, WINDOW_WIDTH):
            page.set_viewport_size({"width": width, "height": 900})
            wait_until_it_fits(page, width)


@pytest.mark.slow
def test_a_narrow_screen_stacks_the_cells_of_a_victim(shared):
    page = shared(BOARD)
    page.set_viewport_size({"width": 390, "height": 900})
    row = page.locator(".view:not([hidden]) .stacks tbody tr").first
    boxes = [cell.bounding_box() for cell in row.locator(":scope > *").all() if cell.is_visible()]
    page.set_viewport_size({"width": WINDOW_WIDTH, "height": 900})
    assert len(boxes) > 3
    assert all(box["x"] + box["width"] <= 390 for box in boxes)
    assert all(above["y"] + above["height"] <= below["y"] + 1 for above, below in itertools.pairwise(boxes))


@pytest.mark.slow
def test_the_first_tab_stop_skips_to_the_content_and_is_visible(opened):
    page = opened("index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "kinds"), [("light", (0, 1, 3, 5, 6, 8)), ("dark", (1, 8))])
def test_axe_finds_nothing_serious(shared, site, scheme, kinds):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for path in [pages(site)[kind] for kind in kinds]:
        page = shared(path)
        page.emulate_media(color_scheme=scheme)
        violations = axe.run(page, options={"preload": False, "resultTypes": ["violations"]}).response["violations"]
        page.emulate_media(color_scheme="light")
        serious = [(v["id"], v["nodes"][0]["html"][:200]) for v in violations if v["impact"] in ("serious", "critical")]
        assert not serious, path


def test_hostile_names_stay_text(shared, opened):
    page = shared(MADE)
    body = page.locator("main").inner_text()
    assert all(name in body for name in HOSTILE)
    assert page.title() != "run"
    assert page.locator("img, main script:not([type])").count() == 0
    assert page.locator("a[href^=javascript]").count() == 0
    page.locator("#view-picker").select_option("view-2")
    assert page.locator("#view-2-title bdi", has_text=REVERSED).count() == 1
    page.locator("#view-picker").select_option("view-1")
    page.locator(".view:not([hidden]) .scatterlayer .points path").first.hover(force=True)
    label = page.locator(".hoverlayer .hovertext").first
    label.wait_for()
    assert any(name in label.text_content() for name in ("plain", *HOSTILE))
    assert opened(f"boards/made/{slug(SCRIPT)}.html").locator("h1").inner_text() == SCRIPT


@pytest.mark.slow
def test_a_single_page_holds_the_whole_board(opened, site):
    assert (site / "alone.html").stat().st_size < 3 * 2**20
    page = opened("alone.html")
    assert page.locator(".view:not([hidden]) .scatterlayer .points path").count() == 5 + 1  # a ring
    assert page.locator("details .main-svg").count() == 0  # charts are drawn when they become visible
    page.locator(".view:not([hidden]) tbody th a").first.click()
    details = page.locator("details.victim[open]")
    details.wait_for()
    assert details.count() == 1
    assert "Every attack on" in details.inner_text()
