"""A small site: one published board, and one of made records with hostile names; and a real browser to open it."""

from itertools import product

import pytest
from made_records import FORMULA, HOSTILE, REVERSED, SCRIPT, record

from leakboard.site.build import build_site, write_page
from leakboard.site.content import make_board, read_board

WIDTH = 1280
"""Of a window, in pixels, where a test does not change it."""


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
    """Return the folder of a site of two boards that leads to a documentation."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "docs").mkdir()
    (folder / "docs" / "index.html").write_text("documentation")
    build_site([read_board("demo"), made], folder)
    write_page(read_board("demo"), folder / "alone.html")
    return folder


class Visits:
    """Pages of the site in a browser; what went wrong in them, and what they asked for, is kept."""

    def __init__(self, browser, site):
        self.browser, self.site = browser, site
        self.complaints, self.requests, self.kept = [], [], {}

    def open(self, path):
        """Open a page in a window of its own, with a script's work done."""
        page = self.browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.on("console", lambda message: message.type in ("error", "warning") and self.complain(message.text))
        page.on("pageerror", lambda error: self.complain(str(error)))
        page.on("dialog", lambda dialog: self.complain(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(f"file://{self.site}/{path}")
        page.wait_for_selector("html[data-ready]")
        return page

    def keep(self, path):
        """Return a page that several tests look at, and leave as they found it."""
        if path not in self.kept:
            self.kept[path] = self.open(path)
        return self.kept[path]

    def complain(self, text):
        """Note what should not have happened."""
        self.complaints.append(text)


@pytest.fixture(scope="session")
def visits(browser, site):
    """Return the open pages of the site."""
    return Visits(browser, site)


@pytest.fixture
def opened(visits):
    """Open pages; afterwards no error may have been shown, and nothing asked for but the site's own files."""
    pages = []
    yield lambda path: pages.append(visits.open(path)) or pages[-1]
    for page in pages:
        page.close()
    _check(visits)


@pytest.fixture
def kept(visits):
    """Open pages that are shared; they must be left as they were."""
    yield visits.keep
    _check(visits)


def _check(visits):
    complaints, requests = visits.complaints[:], visits.requests[:]
    visits.complaints.clear()
    visits.requests.clear()
    assert not complaints
    assert all(url.startswith((f"file://{visits.site}/", "data:", "blob:")) for url in requests)
