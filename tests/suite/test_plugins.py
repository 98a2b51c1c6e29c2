"""The registry lists plugins without importing them, and a broken plugin affects only itself."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import leakboard
from leakboard.cli.check import chosen_plugins
from leakboard.errors import RequestError
from leakboard.suite.registry import FOLDERS, BrokenPlugin, Registry, load_file

CHECKOUT = Path(__file__).resolve().parents[2]

PLUGIN = '''"""A victim in a file.

More about it.
"""

from leakboard.suite.options import victim


@victim
class Mine:
    publishes = ("documents",)
'''


def run(code):
    """Run Python in the checkout, as ``python run_benchmark.py`` does."""
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def single(tmp_path):
    """Write a plugin file and return its path."""

    def write(content, name="mine.py"):
        path = tmp_path / name
        path.write_text(content)
        return path

    return write


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Add a folder that holds plugin folders to the package, as a checkout does."""
    monkeypatch.setattr(leakboard, "__path__", [*leakboard.__path__, str(tmp_path / "tree")])

    def write(kind, name, content):
        path = tmp_path / "tree" / kind / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    yield write
    for name in [name for name in sys.modules if name.startswith("leakboard.victims.tried_")]:
        del sys.modules[name]


def test_plugin_folders_are_no_packages():
    for kind in FOLDERS:
        assert not (CHECKOUT / kind / "__init__.py").exists()


def test_datasets_is_hugging_faces_from_the_checkout():
    assert run("import datasets; print(hasattr(datasets, 'DatasetDict'))") == "True\n"


def test_listing_imports_no_plugin_and_nothing_heavy():
    modules = run(
        "import sys; from leakboard.suite.registry import *; r = Registry()\n"
        "print([r.listings(kind) for kind in FOLDERS] and ' '.join(sys.modules))"
    ).split()
    heavy = {"torch", "transformers", "datasets", "gensim", "pandas", "sklearn", "faiss", "numpy"}
    assert not heavy & set(modules)
    folders = tuple(f"leakboard.{kind}" for kind in FOLDERS)
    assert [name for name in modules if name.startswith(folders)] == []


def test_the_folder_is_the_registry():
    registry = Registry()
    for kind in FOLDERS:
        stems = {path.stem for path in (CHECKOUT / kind).glob("*.py") if not path.stem.startswith("_")}
        names = [item.name for item in registry.listings(kind)]
        assert names == sorted(names)
        assert stems <= set(names)  # installed packages may add more
    table = registry.find("datasets", "table", "x")
    assert table.summary.startswith("Your own data: any CSV")
    assert registry.load("datasets", "table").__name__ == "Table"


def test_an_unknown_name_offers_the_nearest():
    message = r"suite: no dataset is named 'tabel' \(there are: .*\); did you mean 'table'"
    with pytest.raises(RequestError, match=message):
        Registry().find("datasets", "tabel", "suite")


@pytest.mark.parametrize("arguments", ["", "()", "(revision=2)"])
def test_a_single_file_joins(single, arguments):
    path = single(PLUGIN.replace("@victim\n", f"@victim{arguments}\n"))
    registry = Registry([path])
    listing = registry.find("victims", "mine", "x")
    assert (listing.summary, listing.problem) == ("A victim in a file.", "")
    for cls in (registry.load("victims", "mine"), load_file(path)):
        assert (cls.__name__, cls.publishes) == ("Mine", ("documents",))


def test_a_broken_single_file_gives_its_reason_for_every_kind(single):
    with pytest.raises(BrokenPlugin, match=r"broken\.py: declares 0 plugin classes"):
        load_file(single("x = 1\n", "broken.py"))
    registry = Registry([single("def f(:\n")])
    for kind in FOLDERS:
        with pytest.raises(BrokenPlugin, match="SyntaxError"):
            registry.load(kind, "mine")


def test_a_single_file_that_is_not_there(tmp_path):
    with pytest.raises(RequestError, match=r"--plugin .*none.py: no such file"):
        Registry([tmp_path / "none.py"])


BROKEN = {
    "syntax": ("def f(:\n", "SyntaxError: "),
    "nul": ("\0", "SyntaxError: "),
    "dependency": (PLUGIN + "\n\nimport surely_not_installed.part\n", "needs surely_not_installed, not installed"),
    "no class": ("x = 1\n", "declares 0 plugin classes (none); allowed is exactly one, of victims"),
    "another kind": (
        PLUGIN.replace("victim", "attack"),
        "declares 1 plugin classes (attacks); allowed is exactly one, of victims",
    ),
    "two classes": (PLUGIN + "\n\n@victim\nclass Second:\n    pass\n", "declares 2 plugin classes (victims, victims)"),
}


def test_a_module_next_to_a_plugin_is_named_with_the_folder_that_python_needs(tmp_path):
    (tmp_path / "surely_not_installed.py").write_text("")
    (tmp_path / "mine.py").write_text(PLUGIN + "\n\nimport surely_not_installed\n")
    with pytest.raises(BrokenPlugin, match=f"next to the plugin is found with PYTHONPATH={tmp_path}$"):
        Registry([tmp_path / "mine.py"]).load("victims", "mine")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_listed_with_the_reason_and_affects_only_itself(tree, name):
    content, reason = BROKEN[name]
    tree("victims", "tried_broken.py", content)
    tree("victims", "tried_good.py", PLUGIN)
    registry = Registry()
    assert reason in registry.find("victims", "tried_broken", "x").problem
    with pytest.raises(BrokenPlugin, match=r"victim 'tried_broken' \(.*tried_broken.py\) is broken: ") as caught:
        registry.load("victims", "tried_broken")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert registry.find("victims", "tried_good", "x").problem == ""
    assert registry.load("victims", "tried_good").__name__ == "Mine"


def test_a_plugin_that_fails_as_it_is_imported(single):
    registry = Registry([single(PLUGIN + "\n\nraise OSError('no disk')\n")])
    assert registry.find("victims", "mine", "x").problem == ""
    with pytest.raises(BrokenPlugin, match=r"is broken: OSError: no disk \(mine.py:14\)$"):
        registry.load("victims", "mine")


def test_two_plugins_of_one_name_are_refused_and_both_named(single, tree):
    inside, outside = tree("victims", "mine.py", PLUGIN), single(PLUGIN)
    with pytest.raises(RequestError, match="two plugins in victims are named 'mine'") as caught:
        Registry([outside])
    assert str(inside) in str(caught.value)
    assert str(outside) in str(caught.value)


def test_a_plugin_may_be_named_by_its_own_file(tree, monkeypatch):
    inside = tree("victims", "mine.py", PLUGIN)
    monkeypatch.chdir(inside.parent)
    registry = Registry([Path("mine.py")])
    assert [item.origin for item in chosen_plugins(registry, "", "")] == [str(inside)]


def test_helpers_are_no_plugins(tree):
    tree("victims", "_helper.py", "x = 1\n")
    assert "_helper" not in {item.name for item in Registry().listings("victims")}


@pytest.fixture
def entry_points(monkeypatch, tmp_path):
    """Install a package ``elsewhere`` with a victim, and return a function that declares entry points."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "__init__.py").write_text("")
    (tmp_path / "elsewhere" / "code.py").write_text(PLUGIN + "\n\nNUMBER = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(**values):
        points = [importlib.metadata.EntryPoint(name, value, "leakboard.victims") for name, value in values.items()]
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda: importlib.metadata.EntryPoints(points))

    yield install
    for name in [name for name in sys.modules if name.partition(".")[0] == "elsewhere"]:
        del sys.modules[name]


def test_entry_points_join_without_being_imported(entry_points):
    entry_points(theirs="elsewhere.code:Mine")
    registry = Registry()
    assert registry.find("victims", "theirs", "x").summary == "from elsewhere"
    assert "elsewhere.code" not in sys.modules
    assert registry.load("victims", "theirs").__name__ == "Mine"


@pytest.mark.parametrize("revision", ["0", "True", "'1'"])
def test_a_revision_is_a_whole_number_from_one_on(single, revision):
    path = single(PLUGIN.replace("@victim\n", f"@victim(revision={revision})\n"))
    with pytest.raises(BrokenPlugin, match=r"TypeError: revision=.* is not allowed: a whole number from 1 on"):
        Registry([path]).load("victims", "mine")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("not_installed_at_all.code:Mine", "package not_installed_at_all is not installed"),
        ("elsewhere.code", "entry point 'elsewhere.code' names no class"),
        ("elsewhere.code:Other", "no such plugin class"),
        ("elsewhere.code:NUMBER", "no such plugin class"),
        ("elsewhere.gone:Mine", "ModuleNotFoundError"),
    ],
)
def test_a_broken_entry_point_affects_only_itself(entry_points, value, reason):
    entry_points(bad=value, good="elsewhere.code:Mine")
    registry = Registry()
    with pytest.raises(BrokenPlugin, match=reason):
        registry.load("victims", "bad")
    assert registry.load("victims", "good").__name__ == "Mine"


def test_every_package_is_in_the_wheel():
    listed = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    packages = {".".join(path.parent.relative_to(CHECKOUT).parts) for path in CHECKOUT.glob("leakboard/**/__init__.py")}
    packages |= {f"leakboard.{kind}" for kind in (*FOLDERS, "leaderboards")}
    for kind in FOLDERS:
        packages |= {f"leakboard.{kind}.{path.parent.name}" for path in CHECKOUT.glob(f"{kind}/_*/__init__.py")}
    assert set(listed) == packages
