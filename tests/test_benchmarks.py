"""The scripts of ``benchmarks/`` find what they import; what they measure is not tested."""

import runpy
from pathlib import Path

import pytest

import leakboard

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_imports(path, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(leakboard, "__path__", [*leakboard.__path__])
    try:
        runpy.run_path(str(path), run_name="benchmark")
    except ModuleNotFoundError as error:
        if error.name != "opacus":  # whose packages no other test needs
            raise
        pytest.skip("opacus is not installed")
