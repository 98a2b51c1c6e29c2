"""The pages in a real browser, opened from disk; screenshots lie in the tests' temporary folders."""

import csv
import json
import re

import pytest
from made_records import FORMULA, HOSTILE, REVERSED, SCRIPT

from leakboard.site.content import read_board, slug
from leakboard.site.views import keeps_most, views

BOARD = "boards/demo/index.html"
MADE = "boards/made/index.html"


def pages(site):
    """Return one page of each kind."""
    kinds = ["index.html", BOARD, MADE, "attacks/index.html", "papers/index.html"]
    kinds += [str(next(site.glob(f"{folder}/*-*.html")).relative_to(site)) for folder in ("boards/demo", "attacks")]
    return [*kinds, "alone.html"]


def column(page, name):
    """Return the numbers of a column of the table that is shown, in the order of its rows."""
    table = page.locator(".view:not([hidden]) table")
    texts = table.locator("thead tr").last.locator("th").all_inner_texts()
    first = table.locator("thead tr").first.locator("th[rowspan]").count()
    place = first + next(i for i, text in enumerate(texts) if text.startswith(name)) + 1
    cells = table.locator(f"tbody tr > :nth-child({place})").all_inner_texts()
    return [float(cell.split()[0]) for cell in cells]


def test_a_click_on_a_column_sorts_by_it(opened):
    page = opened(MADE)
    before = column(page, "task accuracy")
    button = page.locator(".view:not([hidden]) th", has_text="task accuracy").get_by_role("button")
    button.click()
    assert column(page, "task accuracy") == sorted(before)
    button.press("Enter")
    assert column(page, "task accuracy") == sorted(before, reverse=True)


def test_the_filter_leaves_the_rows_that_match(opened):
    page = opened(MADE)
    rows = page.locator(".view:not([hidden]) tbody tr")
    assert rows.count() == 14
    page.get_by_label("Filter").first.fill("plain3")
    assert rows.all_inner_texts()[0].count("plain3") == 1
    assert rows.count() == 1


def test_a_deep_link_shows_the_row_even_in_another_view(opened, site):
    text = (site / BOARD).read_text()
    anchor = re.findall(r'<tr id="(victim-[^"]*-[23])"', text)[-1]
    page = opened(f"{BOARD}#{anchor}")
    row = page.locator(f"#{anchor}")
    assert row.is_visible()
    assert row.evaluate("row => row.matches(':target') && row.getBoundingClientRect().top < innerHeight")
    assert page.locator(".view:not([hidden])").count() == 1


def test_a_point_tells_its_victim_and_leads_to_its_page(opened):
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


def test_csv_and_json_are_downloaded_with_the_same_rows(opened):
    page = opened(MADE)
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


def test_the_page_chooses_as_python_does(opened):
    page = opened(BOARD)
    for number, view in enumerate(views(read_board("demo")), start=1):
        page.locator("#view-picker").select_option(f"view-{number}")
        section = page.locator(f"#view-{number}")
        for loss in (0, 2, 10, 30, 60):
            section.locator("input[type=number]").fill(str(loss))
            choice = keeps_most(view, loss)
            assert section.locator("tr.chosen").get_attribute("data-slug") == choice.best["slug"]
            text = section.locator(".result").inner_text()
            assert choice.best["victim"] in text
            assert ("cannot be told from" in text) == bool(choice.ties)
            assert ("more than none" in text) == choice.no_better


def test_colours_follow_the_system_charts_too(opened):
    shades = {}
    for scheme in ("light", "dark"):
        page = opened(BOARD, scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.locator(".xtitle").first.evaluate("text => getComputedStyle(text).fill")
        shades[scheme] = [sum(map(int, re.findall(r"\d+", shade)[:3])) for shade in (colour, ink)]
    assert shades["light"][0] > 600 > 300 > shades["light"][1]
    assert shades["dark"][0] < 150 < 500 < shades["dark"][1]


def test_charts_change_with_the_system_while_they_are_open(opened):
    page = opened(BOARD)
    before = page.locator(".xtitle").first.evaluate("text => getComputedStyle(text).fill")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"getComputedStyle(document.querySelector('.xtitle')).fill !== '{before}'")


def test_it_prints_in_dark_ink_on_the_width_of_the_paper(opened):
    page = opened(BOARD, width=1000, scheme="dark")
    page.emulate_media(media="print")
    page.wait_for_function("getComputedStyle(document.querySelector('.xtitle')).fill === 'rgb(0, 0, 0)'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    assert not page.get_by_role("navigation").is_visible()


def test_no_page_is_wider_than_a_narrow_screen(opened, site):
    for path in pages(site)[:-1]:
        page = opened(path, width=390)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_the_keyboard_reaches_the_content_first_and_sees_where_it_is(opened):
    page = opened(BOARD)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize(("scheme", "kinds"), [("light", (0, 1, 3, 5)), ("dark", (1,))])
def test_axe_finds_nothing_serious(opened, site, scheme, kinds):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for path in [pages(site)[kind] for kind in kinds]:
        found = axe.run(opened(path, scheme=scheme), options={"preload": False}).response["violations"]
        serious = [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, path


def test_hostile_names_stay_text(opened):
    page = opened(MADE)
    body = page.locator("main").inner_text()
    assert all(name in body for name in HOSTILE)
    assert page.title() != "run"
    assert page.locator("img, main script:not([type])").count() == 0
    assert page.locator("a[href^=javascript]").count() == 0
    page.locator("#view-picker").select_option("view-2")
    assert page.locator("#view-2-title bdi", has_text=REVERSED).count() == 1
    page = opened(f"boards/made/{slug(SCRIPT)}.html")
    assert page.locator("h1").inner_text() == SCRIPT
    point = opened(MADE).locator(".view:not([hidden]) .scatterlayer .points path").first
    point.hover(force=True)
    label = point.page.locator(".hoverlayer .hovertext").first
    label.wait_for()
    assert any(name in label.text_content() for name in ("plain", *HOSTILE))


def test_a_page_that_stands_alone_has_all_of_it(opened, site):
    assert (site / "alone.html").stat().st_size < 3 * 2**20
    page = opened("alone.html")
    assert page.locator(".view:not([hidden]) .scatterlayer .points path").count() == 5
    assert page.locator("details .main-svg").count() == 0  # charts wait until they are seen
    page.locator(".view:not([hidden]) tbody th a").first.click()
    details = page.locator("details.victim[open]")
    details.wait_for()
    assert details.count() == 1
    assert "Every attack on" in details.inner_text()
