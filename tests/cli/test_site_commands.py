"""Test the commands that write pages: a site of published suites, and a page of a run."""


def test_report_saves_a_page_of_the_run(copied, output_of, tmp_path):
    path = tmp_path / "page.html"
    out = output_of(*copied.arguments("report", "--html", path))
    assert out.splitlines()[-1] == str(path)
    text = path.read_text("utf-8")
    assert "hashed(noise=0.05)" in text
    assert "http://" not in text.split("application/gzip")[0]
    assert path.stat().st_size < 3 * 2**20


def test_site_writes_the_named_suites(output_of, tmp_path):
    out = output_of("site", "word_recovery", "--out", str(tmp_path))
    assert out.strip().endswith(f"open {tmp_path / 'index.html'}")
    assert [path.name for path in (tmp_path / "boards").iterdir()] == ["word_recovery"]


def test_a_suite_without_published_records_is_refused(refusal, bench, tmp_path):
    assert "no published records" in refusal("site", str(bench.suite()), "--out", str(tmp_path))
