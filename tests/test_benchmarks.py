"""Every benchmark can be listed and loaded; what they measure is not tested."""

import runpy
import sys
from pathlib import Path

import pytest

import leakboard

FOLDER = Path(__file__).parents[1] / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


@pytest.fixture(scope="module")
def command():
    """The function behind ``python benchmarks``; afterwards LeakBoard has no plugins of the benchmarks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FOLDER), *sys.path])
        patch.setattr(leakboard, "__path__", [*leakboard.__path__])
        yield runpy.run_path(str(FOLDER / "__main__.py"), run_name="benchmarks")["main"]


def test_without_a_name_all_benchmarks_are_listed(command, capsys):
    command([])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert [line.split()[0] for line in lines] == NAMES
    assert all(line.endswith(".") for line in lines)


def test_an_unknown_name_is_refused_with_the_known_ones(command):
    with pytest.raises(SystemExit, match="'cake' is not a benchmark; there are: attack_strength, "):
        command(["cake"])


@pytest.mark.parametrize("name", NAMES)
def test_its_options_are_shown(name, command, capsys):
    try:
        with pytest.raises(SystemExit) as end:
            command([name, "--help"])
    except ModuleNotFoundError as error:
        if error.name != "opacus":  # no other test needs this package
            raise
        pytest.skip("opacus is not installed")
    assert end.value.code == 0
    assert f"python benchmarks {name}" in capsys.readouterr().out


def test_no_benchmark_hides_a_module_of_python():
    assert not {path.stem for path in FOLDER.glob("*.py")} & sys.stdlib_module_names
