"""The commands that write pages: a site of published suites, and a page of a run."""


def test_report_saves_a_page_of_the_run(copied, command_line, tmp_path):
    path = tmp_path / "page.html"
    code, out, _ = command_line(*copied.arguments("report", "--html", path))
    assert code == 0
    assert out.splitlines()[-1] == str(path)
    text = path.read_text("utf-8")
    assert "hashed(noise=0.05)" in text
    assert "http://" not in text.split("application/gzip")[0]
    assert path.stat().st_size < 3 * 2**20


def test_site_writes_the_suites_that_are_named(command_line, tmp_path):
    code, out, _ = command_line("site", "word_recovery", "--out", str(tmp_path))
    assert code == 0
    assert out.strip().endswith(f"open {tmp_path / 'index.html'}")
    assert [path.name for path in (tmp_path / "boards").iterdir()] == ["word_recovery"]


def test_a_suite_without_published_records_is_one_line(command_line, bench, tmp_path):
    code, _, err = command_line("site", str(bench.suite()), "--out", str(tmp_path))
    assert code == 2
    assert "no published records" in err
    assert len(err.strip().splitlines()) == 1
