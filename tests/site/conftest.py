"""A small site: one published board, and one of made records with hostile names; and a real browser to open it."""

from itertools import product

import pytest
from made_records import FORMULA, HOSTILE, REVERSED, SCRIPT, record

from leakboard.site.build import build_site, write_page
from leakboard.site.content import make_board, read_board


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a board whose victims, attacks and datasets have hostile names."""
    victims = [*HOSTILE, *(f"plain{i}" for i in range(10))]
    records = [
        record(victim, attack, dataset, accuracy=0.5 + i / 50, privacy=0.45 - i / 50)
        for (i, victim), attack, dataset in product(enumerate(victims), ("attack", SCRIPT), ("data", REVERSED))
    ]
    folder = tmp_path_factory.mktemp("made")
    findings = f"# Is {SCRIPT} text?\n\nYes: {SCRIPT}.\n\n- [bad](javascript:alert(1)) {FORMULA}\n"
    (folder / "findings.md").write_text(findings)
    return make_board("made", SCRIPT, records, folder, folder)


@pytest.fixture(scope="session")
def site(tmp_path_factory, made):
    """Return the folder of a site of two boards."""
    folder = tmp_path_factory.mktemp("site")
    build_site([read_board("demo"), made], folder)
    write_page(read_board("demo"), folder / "alone.html")
    return folder


@pytest.fixture
def opened(browser, site, tmp_path):
    """Open pages of the site; afterwards no error may have been told, and nothing asked for but its own files."""
    told, asked, contexts = [], [], []

    def visit(path, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("dialog", lambda dialog: told.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"file://{site}/{path}")
        page.wait_for_selector("html[data-ready]")
        return page

    yield visit
    for number, context in enumerate(contexts):
        context.pages[0].screenshot(path=tmp_path / f"{number}.png", full_page=True)
        context.close()
    assert not told
    assert all(url.startswith((f"file://{site}/", "data:", "blob:")) for url in asked)
