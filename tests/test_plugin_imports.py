"""Importing victims and attacks waits for no library that takes seconds: what a fit needs is imported by the fit."""

import json
import subprocess
import sys

import pytest

from leakboard.suite.registry import Registry

HEAVY = (
    *("datasets", "dp_accounting", "faiss", "gensim", "numba", "pandas"),
    *("safetensors", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"),
    *("sklearn", "tokenizers", "torch", "transformers"),
)
PLUGINS = [f"{kind}.{listing.name}" for kind in ("attacks", "victims") for listing in Registry().listings(kind)]
TRAINING = "models.training"
"""No plugin: what trains networks, and so imports torch."""

IMPORT_ALL = """
import importlib, json, sys
heavy, modules = json.loads(sys.argv[1])
found = {}
for module in modules:
    before = set(sys.modules)
    importlib.import_module(f"leakboard.{module}")
    found[module] = sorted(set(heavy) & (set(sys.modules) - before))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def imported():
    """Return which heavy libraries came with each module, all of them imported in turn by one fresh process."""
    asked = json.dumps([HEAVY, [*PLUGINS, TRAINING]])
    command = [sys.executable, "-c", IMPORT_ALL, asked]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_imports_nothing_heavy(imported, plugin):
    assert imported[plugin] == []


def test_a_heavy_library_is_seen(imported):
    assert "torch" in imported[TRAINING]
