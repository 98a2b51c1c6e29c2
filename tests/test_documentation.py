"""The README and the documentation run as shown; the site is built, is complete, and asks no other host."""

import csv
import html
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from snippets import NOT_RUN, ROOT, Reader, blocks, check_command, command_lines

from leakboard.cli import commands
from leakboard.execution.engines import InProcess
from leakboard.pipeline import runner
from leakboard.pipeline.records import published_records
from leakboard.site.licences import licences
from leakboard.suite import options
from leakboard.suite.registry import FOLDERS, Registry
from leakboard.suite.suite_file import SuiteFile
from leakboard.suite.suites import suite_names

DOCS = ROOT / "docs"
ORDER = [DOCS / "tutorial.md", ROOT / "README.md", DOCS / "how_to" / "own_data.md"]
"""Pages that make the data, names and files of the other pages."""
PAGES = [*ORDER, *(page for page in sorted(DOCS.rglob("*.md")) if page not in ORDER)]
OF_STORES = DOCS / "how_to" / "own_store.md"
"""Page that needs the clients of vector databases."""
README = (ROOT / "README.md").read_text("utf-8")


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def in_new_folder(tmp_path, monkeypatch):
    """Work in a new folder, and run tasks in this process."""
    monkeypatch.chdir(tmp_path)
    execute = runner.execute
    monkeypatch.setattr(
        runner, "execute", lambda opened, display, engine, force: execute(opened, display, InProcess(), force)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("in_new_folder")
def test_what_the_pages_show_works_in_order_and_passes_its_own_tests():
    """A reader follows all pages in one folder."""
    reader = Reader()
    for page in [page for page in PAGES if page != OF_STORES]:
        print(f"reading {page.relative_to(ROOT)}")
        reader.read(page.read_text("utf-8"))
    for name in ("lsa", "nearest_texts"):
        assert Path(f"mine/tests/test_{name}.py").is_file()
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "mine/tests"]
    assert subprocess.run(call).returncode == 0
    for name in ("mine", "with_mine", "my_attack", "my_release", "with_bins"):
        rows = rows_of(Path(f"runs/{name}/leaderboard.csv"))
        assert rows
        assert not any(re.search("fail(?!ed: no better)|skipped", row["status"]) for row in rows)
    assert {row["verdict"] for row in rows_of(Path("runs/my_release/leaderboard.csv"))} == {"violated"}


@pytest.mark.slow
@pytest.mark.usefixtures("in_new_folder")
def test_the_page_of_sanitisers_prints_its_shares_to_two_digits():
    """Its numbers are from 0 to 1, so two percent points of other pages would hide any change."""
    Reader(allowed=0.02).read((DOCS / "sanitisers.md").read_text("utf-8"))


def test_the_page_on_reading_texts_has_the_numbers_of_its_board():
    board = pd.read_csv(ROOT / "leaderboards" / "text_inversion" / "leaderboard.csv")
    names = {"Word2Vec, mean of the words": "mean of word2vec", "LSTM, trained for a task": "LSTM"}
    page = (ROOT / "docs" / "text_inversion.md").read_text("utf-8")
    lines = page[page.index("| without the vectors") :].partition("\n\n")[0].splitlines()
    for line in lines:
        encoder, *shown, found = [cell.strip() for cell in line.strip("|").split("|")]
        of_encoder = board[board["victim"] == names.get(encoder, encoder)]
        for dataset, number in zip([*(f"reviews, {n} words" for n in (8, 16, 32, 64)), "AG"], shown, strict=True):
            rows = (of_encoder if found else board)[lambda rows, name=dataset: rows["dataset"] == name]
            guessed = 1 - rows.loc[rows["attack"] == "stacked_words", "privacy_best_constant"].min()
            best = rows["attack_score"].max() if found else guessed
            assert float(number) == pytest.approx(best, abs=0.0051), line
        if found:
            made = of_encoder[of_encoder["dataset"].str.startswith("made")]
            assert float(found.strip(" %")) == pytest.approx(100 * made["capitalised_words_found"].max(), abs=0.5)
    board = board[~board["victim"].isin(["MiniLM, int8", "MiniLM, Gaussian noise of 0.05", "MiniLM, secret rotation"])]
    made = board[board["dataset"].str.startswith("made")]
    numbers, found_in = (rows.groupby(by)["numbers_found"].max() for rows, by in ((board, "dataset"), (made, "victim")))
    shares = [found_in.pop("mean of word2vec"), found_in.max(), numbers["AG"], numbers["reviews, 8 words"]]
    sentences = (
        "{:.0f} % came back from Word2Vec, and at most {:.0f} % from other encoders",
        "it was up to {:.0f} % in news and {:.0f} % in reviews of 8 words",
    )
    for sentence, shown in zip(sentences, (shares[:2], shares[2:]), strict=True):
        assert sentence.format(*(100 * share for share in shown)) in " ".join(page.split())


def test_the_page_on_reading_texts_counts_exact_solutions_and_questions_as_its_board():
    exact, asked = {}, {}
    for record in published_records(ROOT / "leaderboards" / "text_inversion"):
        if record.attack.startswith("basis_pursuit") and record.details:
            of, found = re.match(r"of (\d+) texts (\d+) exact", record.details).groups()
            exact[record.victim, record.dataset] = int(found), int(of)
            asked[record.victim, record.dataset] = record.value("queries").value
    reviews = {n: f"excerpts(of=trustpilot, test=200, words={n})" for n in (8, 16, 32, 64)}
    made, news = (next(name for _, name in exact if f"of={of}" in name) for of in ("generated_reviews", "ag"))
    short = [sum(exact["word2vec", reviews[n]][i] for n in (8, 16, 32)) for i in (0, 1)]
    long, long_static = (exact[victim, reviews[64]] for victim in ("word2vec", "static_encoder"))
    word2vec = [short, exact["word2vec", made], exact["word2vec", news], long]
    static = [exact["static_encoder", name] for name in (reviews[8], made, news)] + [long_static]
    questions = [asked["word2vec", name] for name in reviews.values()]
    page = " ".join((DOCS / "text_inversion.md").read_text("utf-8").split())
    for sentence, numbers in {
        "{} of {} reviews of 8 to 32 words, {} of {} generated reviews, {} of {} news, {} of {} reviews": word2vec,
        "{} of {} reviews of 8 words, {} of {} generated reviews, {} of {} news, {} of {} reviews": static,
    }.items():
        assert sentence.format(*(number for pair in numbers for number in pair)) in page
    rounded = [100 * round(number / 100) for number in (min(questions), max(questions), asked["word2vec", news])]
    assert "{:,} to {:,} questions on reviews, {:,} on news".format(*rounded) in page


def test_the_sentences_on_reading_texts_have_the_numbers_of_its_board():
    board = pd.read_csv(ROOT / "leaderboards" / "text_inversion" / "leaderboard.csv")
    rows = board.set_index(["dataset", "victim", "attack"]).sort_index()
    german = [
        rows.loc[("German reviews, 16 words", victim), "attack_score"].max()
        for victim in ("MiniLM", "static vectors", "mean of word2vec")
    ]
    noisy = rows.loc[("reviews, 8 words", "MiniLM, Gaussian noise of 0.05"), "attack_score"]
    trained = ("MiniLM, last layer trained", "MiniLM, last layer and pooler trained", "MiniLM")
    recall = [rows.loc[("AG", victim), "retrieval_recall@10"].max() for victim in trained]
    page = " ".join((ROOT / "docs" / "text_inversion.md").read_text("utf-8").split())
    for sentence, numbers in {
        "gives an F1 of {}, static vectors {} and Word2Vec {}": german,
        "vectors of 8 words give {}, and {} to an attacker": [
            noisy.drop("stacked_words, fresh noise").max(),
            noisy["stacked_words, fresh noise"],
        ],
        "gives {} for captions of MiniLM at 1,000 pairs, and {} for news of the trained MiniLM at 20": [
            rows.loc[(dataset, victim, f"stacked words, another encoder (pairs={pairs})"), "attack_score"]
            for dataset, victim, pairs in (
                ("captions, unknown encoder", "MiniLM", 1000),
                ("AG, unknown encoder", "MiniLM, last layer trained", 20),
            )
        ],
        "on news recall@10 is {}, and {} behind the pooler ({} as released)": recall,
    }.items():
        assert sentence.format(*(f"{number:.2f}".removeprefix("0") for number in numbers)) in page


def test_the_table_of_few_pairs_has_the_numbers_of_its_board():
    board = pd.read_csv(ROOT / "leaderboards" / "text_inversion" / "leaderboard.csv")
    names = {"news": "AG, unknown encoder", "captions": "captions, unknown encoder"}
    page = (ROOT / "docs" / "text_inversion.md").read_text("utf-8")
    _, _, *lines = page[page.index("| texts | encoder of the victim") :].partition("\n\n")[0].splitlines()
    assert len(lines) == 5
    for line in lines:
        texts, encoder, *shown = [cell.strip() for cell in line.strip("|").split("|")]
        rows = board[(board["dataset"] == names[texts]) & (board["victim"] == encoder)].set_index("attack")
        attacks = [f"words, another encoder (pairs={pairs})" for pairs in (20, 100, 1000)]
        expected = [*rows.loc[attacks, "attack_score"], 1 - rows.loc[attacks[0], "privacy_best_constant"]]
        assert list(map(float, shown)) == pytest.approx(expected, abs=0.0051), line
        named = {("captions", "MiniLM"): 1000, ("news", "MiniLM, last layer trained"): 20}  # with their own numbers
        for pairs, attack in zip((20, 100, 1000), attacks, strict=True):
            if pairs != named.get((texts, encoder)):
                assert abs(rows.loc[f"stacked {attack}", "attack_score"] - rows.loc[attack, "attack_score"]) < 0.0215


@pytest.mark.slow
def test_the_page_of_own_stores_works_on_the_reviews_of_the_tutorial(tmp_path, monkeypatch):
    for client in ("chromadb", "qdrant_client"):
        pytest.importorskip(client)
    monkeypatch.chdir(tmp_path)
    reader = Reader()
    reader.read_python(blocks((DOCS / "tutorial.md").read_text("utf-8"), "python")[0][1])
    reader.read(OF_STORES.read_text("utf-8"))
    noisy, gated = (rows_of(Path(f"runs/{name}/leaderboard.csv")) for name in ("noisy/suite", "store/suite"))
    assert float(noisy[0]["linked_first"]) < float(gated[0]["linked_first"]) == 1


def test_the_pages_show_every_kind_of_command():
    shown = [text for page in PAGES for _, text in blocks(page.read_text("utf-8"), "sh")]
    lines = [line for text in shown for line, _ in command_lines(text) if not line.startswith(NOT_RUN)]
    public = [command for command in commands.app.registered_commands if not command.hidden]
    expected = {command.name or command.callback.__name__ for command in public}
    run = {line.split()[2] for line in lines}
    named = set(re.findall(r"`(?:make )?([a-z]+)[ `]", "".join(page.read_text("utf-8") for page in PAGES)))
    assert {name.rstrip("_") for name in expected} <= run | named


@pytest.mark.parametrize("wrong", ["make cake", "pip install '.[cake]'", "pip install torch==1.0"])
def test_commands_that_are_not_run_are_checked(wrong):
    check_command("make demo")
    check_command("pip install -e '.[docs,test]'")
    with pytest.raises(AssertionError):
        check_command(wrong)


def test_output_that_is_not_printed_is_noticed():
    reader = Reader(output="gender: right in 74 % of the texts\n")
    reader.read_text("gender: right in 75 % of the texts\n")
    for wrong in ("gender: right in 90 % of the texts\n", "age: right in 74 % of the texts\n"):
        with pytest.raises(AssertionError):
            reader.read_text(wrong)
    shares = Reader(output="kept 0.37\n", allowed=0.02)
    shares.read_text("kept 0.38\n")
    with pytest.raises(AssertionError):
        shares.read_text("kept 0.47\n")


@pytest.mark.parametrize(("kind", "name", "lines"), [("victim", "Lsa", 25), ("attack", "NearestTexts", 20)])
def test_its_classes_are_those_that_new_writes(kind, name, lines):
    template = (ROOT / "leakboard" / "cli" / "templates" / f"{kind}.py.txt").read_text("utf-8")
    _, decorator, classes = template.replace("$Class", name).partition(f"@{kind}")
    page = (DOCS / "how_to" / f"own_{kind}.md").read_text("utf-8")
    assert ("python", decorator + classes) in blocks(page)
    assert len([line for line in (decorator + classes).splitlines() if line]) <= lines


def test_the_design_names_every_core_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.split("[>=]", dependency)[0] for dependency in project["dependencies"]}
    table = (DOCS / "design.md").read_text("utf-8").partition("| package |")[2]
    assert set(re.findall(r"^\| ([a-z][\w.-]+) \|", table, re.M)) == names


def seconds_of(costs):
    """Return the seconds of each stage; a fit and its publication, listed with every attack on them, count once."""
    stages = {}
    for row in costs:
        attack = row["attack"] if row["stage"] == "attack" else ""
        stages[row["dataset"], row["victim"], row["seed"], row["stage"], attack] = float(row["seconds"] or 0)
    return stages.values()


class TestReadme:
    @pytest.mark.parametrize("page", [README, (DOCS / "index.md").read_text("utf-8")], ids=["README", "index"])
    def test_its_first_commands_install_in_an_order_that_works(self, page):
        """Torch without CUDA comes before the package, which would bring torch with CUDA."""
        lines = [line for line, _ in command_lines(blocks(page, "sh")[0][1])]
        starts = ["python3 -m venv .venv", ". .venv/bin/activate", "pip install torch==", "pip install -c"]
        assert all(line.startswith(start) for line, start in zip(lines[:4], starts, strict=True))

    def test_its_links_lead_to_files(self):
        links = [link for link in re.findall(r"\]\(([^)#]+)", README) if not link.startswith("http")]
        assert len(links) > 15
        assert not [link for link in links if not (ROOT / link).is_file()]

    def test_its_table_has_every_board_with_the_time_that_it_took(self):
        rows = dict(re.findall(r"^\| \[`(\w+)`\][^|]*\|[^|]*\|[^|]*\| ([^|]*) \|", README, re.M))
        assert set(rows) == set(suite_names())
        for name, duration in rows.items():
            seconds = sum(seconds_of(rows_of(ROOT / "leaderboards" / name / "costs.csv")))
            shown = f"{seconds / 60:.0f} minutes" if seconds < 3600 else f"{seconds / 3600:.1f} hours"
            assert duration == shown, name

    def test_its_row_is_one_of_the_table_that_is_checked(self):
        head = "| DPNR at epsilon 0.05 |"
        table = README[README.index(head) :].partition("\n\n")[0].splitlines()
        checked = (DOCS / "privacy.md").read_text("utf-8")
        assert len(table) == 3
        assert all(line in checked.splitlines() for line in table)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the documentation site."""
    pytest.importorskip("material", reason="no MkDocs Material: the extra docs has it")
    folder = tmp_path_factory.mktemp("built") / "docs"
    call = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_its_pictures_are_files_of_the_checkout(page):
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text("utf-8"))
    assert not [name for name in pictures if not (page.parent / name).is_file()]


class TestSite:
    def test_every_picture_is_in_the_site(self, built):
        for page in built.rglob("*.html"):
            pictures = re.findall(r'<img\b[^>]*?\bsrc="([^"]+)"', page.read_text("utf-8"))
            assert not [name for name in pictures if not (page.parent / name).is_file()], page

    def test_no_page_asks_another_host(self, built):
        sources = r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//"""
        pages = list(built.rglob("*.html"))
        assert len(pages) > 18
        assert not [page for page in pages if re.search(sources, page.read_text("utf-8"))]
        styles = [page for kind in ("*.html", "*.css") for page in built.rglob(kind)]
        assert not [page for page in styles if re.search(r"url\(['\"]?https?:|@import", page.read_text("utf-8"))]

    def test_every_page_links_to_the_leaderboards(self, built):
        for page in built.rglob("*.html"):
            if page.name != "404.html":
                root = "../" * len(page.relative_to(built).parts)
                assert f'href="{root}index.html"' in page.read_text("utf-8"), page

    def test_the_reference_has_every_plugin_and_option(self, built):
        registry = Registry([])
        for kind in FOLDERS:
            page = html.unescape((built / "reference" / f"{kind}.html").read_text("utf-8"))
            for listing in registry.listings(kind):
                section = page.partition(f'<h2 id="{listing.name}">')[2].partition("<h2")[0]
                names = [o.name for o in options.describe(registry.load(kind, listing.name))]
                assert section
                assert not [name for name in names if f"<code>{name}</code>" not in section]

    def test_the_reference_has_every_key_of_a_suite_with_its_meaning(self, built):
        page = html.unescape((built / "reference" / "suites.html").read_text("utf-8"))
        described = options.describe(SuiteFile)
        assert {option.name for option in described} == set(SuiteFile.model_fields)
        assert all(f"<code>{option.name}</code>" in page and option.text for option in described)

    def test_the_reference_has_the_licence_of_every_dependency(self, built):
        page = html.unescape((built / "reference" / "licences.html").read_text("utf-8"))
        assert all(f"<code>{entry.package}</code>" in page and entry.licence in page for entry in licences())

    def test_the_search_works_from_disk_and_nothing_else_is_asked(self, built, browser):
        urls, errors = [], []
        page = browser.new_page()
        page.on("request", lambda request: urls.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"file://{built}/how_to/gates.html")
        page.locator(".md-search__input").click()
        page.keyboard.type("canary")
        link = page.locator(".md-search-result__link").first
        link.wait_for()
        assert link.get_attribute("href").startswith(f"file://{built}/")
        page.close()
        assert not errors
        assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in urls)


def test_the_notebook_that_the_tutorial_names_is_there():
    assert json.loads((DOCS / "own_vectors.ipynb").read_text("utf-8"))["cells"]
