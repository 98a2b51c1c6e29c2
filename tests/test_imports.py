"""Importing is cheap: a dataset, and what reads suites and data, imports no heavy library before it is used."""

import json
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
HEAVY = ("torch", "transformers", "datasets", "sklearn", "scipy", "pandas", "nltk", "gensim")
SCRIPT = f"""
import importlib, json, sys
seen, brought = set(), {{}}
for name in sys.argv[1:]:
    importlib.import_module(name)
    new = set({HEAVY!r}) & set(sys.modules) - seen
    seen |= new
    if new:
        brought[name] = sorted(new)
print(json.dumps(brought))
"""


def brought(modules, *path):
    """Return the heavy libraries that each module is the first to import, in a fresh process."""
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = {[str(CHECKOUT), *map(str, path)]!r}\n{SCRIPT}"]
    done = subprocess.run([*command, *modules], capture_output=True, text=True, check=True, cwd=CHECKOUT / "tests")
    return json.loads(done.stdout)


def test_datasets_and_what_reads_them_import_nothing_heavy():
    paths = [path.relative_to(CHECKOUT) for path in sorted((CHECKOUT / "datasets").rglob("*.py"))]
    datasets = [".".join(["leakboard", *path.with_suffix("").parts]) for path in paths]
    rooms = [
        f"leakboard.{room}.{path.stem}"
        for room in ("data", "suite")
        for path in sorted((CHECKOUT / "leakboard" / room).glob("*.py"))
    ]
    assert len(datasets) > 20
    assert not brought(["leakboard.interfaces", "leakboard.store", *rooms, *datasets])


def test_a_heavy_import_would_be_seen(tmp_path):
    (tmp_path / "careless.py").write_text("import pandas\n")
    (tmp_path / "careful.py").write_text("def load():\n    import scipy\n")
    assert brought(["careful", "careless", "json"], tmp_path) == {"careless": ["pandas"]}
