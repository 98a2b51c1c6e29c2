"""File names in a suite are relative to its folder, and identities have them as written."""

import shutil
from pathlib import Path

import pytest

from leakboard.datasets.table import Table
from leakboard.pipeline.runner import open_run
from leakboard.suite.files import FileName, relative_to
from leakboard.suite.options import label
from leakboard.suite.registry import Registry
from leakboard.suite.suites import load_suite

CSV = "text,label,colour\n" + "".join(
    f"row {i} of a table,{('no', 'yes')[i % 3 > 0]},{('red', 'blue')[i % 2]}\n" for i in range(60)
)


@pytest.mark.parametrize(
    ("written", "located"),
    [
        ("a.csv", "/suite/a.csv"),
        ("/data/a.csv", "/data/a.csv"),
        ("qdrant:data/store#rows", "qdrant:/suite/data/store#rows"),
        ("chroma:a#b/store#rows", "chroma:/suite/a#b/store#rows"),
        ("lancedb:/data/store#rows", "lancedb:/data/store#rows"),
        ("qdrant:http://localhost:6333#rows", "qdrant:http://localhost:6333#rows"),
        ("pgvector:postgresql://bob@db/x#rows", "pgvector:postgresql://bob@db/x#rows"),
    ],
)
def test_names_are_relative_unless_they_are_absolute_or_addresses(written, located):
    with relative_to(Path("/suite")):
        table = Table(path=written)
    assert table.path.located == located
    assert table.path == written
    assert label("table", table) == f"table(path={written})"


def test_without_a_suite_names_are_relative_to_the_working_folder():
    assert Table(path="a.csv").path.located == "a.csv"
    assert type(Table(path="a.csv", dev="b.csv").dev) is FileName


def test_a_suite_finds_the_files_in_its_folder_from_anywhere(bench, command_line, tmp_path, monkeypatch):
    """Every stage finds them; a suite that is moved with its files keeps its results."""
    (bench.folder / "mine.csv").write_text(CSV)
    bench.suite(datasets=[{"table": {"path": "mine.csv", "label": "label", "secrets": ["colour"]}}])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, out, err = command_line(*bench.arguments("run"))
    assert code == 0, out + err
    registry = Registry(bench.files)

    def keys(path):
        suite = load_suite(path, registry)
        return [job.key for job in open_run(suite, suite.cells(), bench.out, registry, reuse=True).jobs]

    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("tiny.yaml", "mine.csv"):
        shutil.copy(bench.folder / name, moved)
    assert keys(moved / "tiny.yaml") == keys(bench.folder / "tiny.yaml")
