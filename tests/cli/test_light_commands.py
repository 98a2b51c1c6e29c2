"""Test that commands that compute nothing import no slow library."""

import os
import subprocess
import sys

import pytest

COMPUTING = (
    *("datasets", "dp_accounting", "faiss", "gensim", "joblib", "nltk", "numba", "pandas", "pyarrow"),
    *("scipy.linalg", "scipy.sparse", "scipy.special", "scipy.stats", "sklearn", "tokenizers", "torch", "transformers"),
)
"""Libraries of victims, attacks and metrics."""
FETCHING = ("huggingface_hub.file_download", "pooch", "requests")
SHOWING = ("jinja2", "plotly")
ANYTHING = ("leakboard.data.downloads", "leakboard.suite.registry", "numpy", "ruamel")
"""Modules that help texts do not need."""
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
    """Return the output of a command and the modules it imported, with an empty cache of the Hugging Face hub."""
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HF_HUB_CACHE": str(hub)},
    )
    assert process.returncode == 0, process.stderr
    output, _, modules = process.stdout.partition("modules:")
    return output, set(modules.split())


@pytest.mark.parametrize(
    ("command", "unwanted"),
    [
        ("--help", (*LIGHT, *ANYTHING)),
        ("run --help", (*LIGHT, *ANYTHING)),
        pytest.param("list", LIGHT, marks=pytest.mark.slow),
        pytest.param("list suites", LIGHT, marks=pytest.mark.slow),
        pytest.param("show victim dpnr", LIGHT, marks=pytest.mark.slow),
        pytest.param("show attack dp_audit", LIGHT, marks=pytest.mark.slow),
        ("show dataset dw", LIGHT),
        pytest.param("run dpnr --dry-run", LIGHT, marks=pytest.mark.slow),
        pytest.param("stale", LIGHT, marks=pytest.mark.slow),
    ],
)
def test_a_command_imports_only_modules_it_needs(command, unwanted, tmp_path):
    output, modules = called(command.split(), tmp_path)
    assert len(output.splitlines()) > 5
    assert "leakboard.cli.commands" in modules
    assert sorted(modules.intersection(unwanted)) == []


def test_imports_that_a_command_needs_are_seen(tmp_path):
    assert {"numpy", "ruamel", "leakboard.victims.lstm"} <= called(["list"], tmp_path)[1]
