"""Commands that compute nothing import no slow library: people wait for them."""

import os
import subprocess
import sys

import pytest

COMPUTING = (
    *("datasets", "dp_accounting", "faiss", "gensim", "joblib", "nltk", "numba", "pandas", "pyarrow"),
    *("scipy.linalg", "scipy.sparse", "scipy.special", "scipy.stats", "sklearn", "tokenizers", "torch", "transformers"),
)
"""Libraries that victims, attacks and metrics compute with."""
FETCHING = ("huggingface_hub.file_download", "pooch", "requests")
SHOWING = ("jinja2", "plotly")
ANYTHING = ("leakboard.data.downloads", "leakboard.suite.registry", "numpy", "ruamel")
"""Modules that only working commands need."""
LIGHT = (*COMPUTING, *FETCHING, *SHOWING)

SCRIPT = """
import sys
from leakboard.cli.commands import main
sys.argv = ["run_benchmark.py", *sys.argv[1:]]
try:
    main()
finally:
    print("modules:", *sys.modules)
"""


def called(command, hub):
    """Return a command's output and the modules that it imports, with an empty cache of the hub."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HF_HUB_CACHE": str(hub)},
    )
    assert done.returncode == 0, done.stderr
    shown, _, modules = done.stdout.partition("modules:")
    return shown, set(modules.split())


@pytest.mark.parametrize(
    ("command", "unwanted"),
    [
        ("--help", (*LIGHT, *ANYTHING)),
        ("run --help", (*LIGHT, *ANYTHING)),
        ("list", LIGHT),
        ("list suites", LIGHT),
        ("show victim dpnr", LIGHT),
        ("show attack dp_audit", LIGHT),
        ("show dataset dw", LIGHT),
        ("run dpnr --dry-run", LIGHT),
        ("stale", LIGHT),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_need(command, unwanted, tmp_path):
    shown, modules = called(command.split(), tmp_path)
    assert len(shown.splitlines()) > 5
    assert "leakboard.cli.commands" in modules
    assert sorted(modules.intersection(unwanted)) == []


def test_a_library_is_seen_where_a_command_needs_it(tmp_path):
    assert {"numpy", "ruamel", "leakboard.victims.lstm"} <= called(["list"], tmp_path)[1]
