"""Build a small site of one published board and one board with hostile names, and open it in a browser."""

from itertools import product

import pytest
from made_records import FORMULA, HOSTILE, REVERSED, SCRIPT, WINDOW_WIDTH, record, write_comparison

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
    """Return the folder of a site of two boards that links to a documentation."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "docs").mkdir()
    (folder / "docs" / "index.html").write_text("documentation")
    build_site([read_board("demo"), made], folder)
    write_page(read_board("demo"), folder / "alone.html")
    write_comparison(folder / "compared.html")
    return folder


class Visits:
    """Open pages of the site in a browser, and keep their errors and requests."""

    def __init__(self, browser, site):
        self.browser, self.site = browser, site
        self.errors, self.requests, self.shared = [], [], {}

    def open(self, path):
        """Open a page in a new window and wait for its scripts."""
        page = self.browser.new_page(viewport={"width": WINDOW_WIDTH, "height": 900}, color_scheme="light")
        page.on("console", lambda message: message.type in ("error", "warning") and self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(f"file://{self.site}/{path}")
        page.wait_for_selector("html[data-ready]")
        return page

    def share(self, path):
        """Return a page that several tests use and leave unchanged."""
        if path not in self.shared:
            self.shared[path] = self.open(path)
        return self.shared[path]

    def check(self):
        """Check that there were no errors, and no requests for files outside the site."""
        errors, requests = self.errors[:], self.requests[:]
        self.errors.clear()
        self.requests.clear()
        assert not errors
        assert all(url.startswith((f"file://{self.site}/", "data:", "blob:")) for url in requests)


@pytest.fixture(scope="session")
def visits(browser, site):
    """Return the open pages of the site."""
    return Visits(browser, site)


@pytest.fixture
def opened(visits):
    """Return a function that opens a page; check for errors and foreign requests afterwards."""
    pages = []
    yield lambda path: pages.append(visits.open(path)) or pages[-1]
    for page in pages:
        page.close()
    visits.check()


@pytest.fixture
def shared(visits):
    """Return a function that returns a shared page; tests must leave it unchanged."""
    yield visits.share
    visits.check()
