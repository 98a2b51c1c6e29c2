"""Importing victims and attacks waits for no library that takes seconds: what a fit needs is imported by the fit."""

import json
import subprocess
import sys

import pytest

from leakboard.cli.new import write_plugin
from leakboard.suite.registry import Registry

HEAVY = (
    *("datasets", "dp_accounting", "faiss", "gensim", "numba", "pandas"),
    *("safetensors", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"),
    *("sklearn", "tokenizers", "torch", "transformers"),
)
PLUGINS = [
    f"leakboard.{kind}.{listing.name}" for kind in ("attacks", "victims") for listing in Registry().listings(kind)
]
TRAINING = "leakboard.models.training"
"""No plugin: what trains networks, and so imports torch."""

IMPORT_ALL = """
import importlib, json, pathlib, sys
from leakboard.suite.registry import load_file
heavy, plugins = json.loads(sys.argv[1])
found = {}
for plugin in plugins:
    before = set(sys.modules)
    load_file(pathlib.Path(plugin)) if plugin.endswith(".py") else importlib.import_module(plugin)
    found[plugin] = sorted(set(heavy) & (set(sys.modules) - before))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the files of the attack and the victim that `new` writes."""
    folder = tmp_path_factory.mktemp("written")
    return [str(write_plugin(kind, f"written_{kind}", folder)[0]) for kind in ("attack", "victim")]


@pytest.fixture(scope="module")
def imported(written):
    """Return which heavy libraries came with each module, all of them imported in turn by one fresh process."""
    asked = json.dumps([HEAVY, [*PLUGINS, *written, TRAINING]])
    command = [sys.executable, "-c", IMPORT_ALL, asked]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_imports_nothing_heavy(imported, plugin):
    assert imported[plugin] == []


def test_what_new_writes_imports_nothing_heavy(imported, written):
    assert [imported[file] for file in written] == [[], []]


def test_a_heavy_library_is_seen(imported):
    assert "torch" in imported[TRAINING]
