"""Write a working plugin and its test, to fill in (``new``)."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from leakboard.errors import RequestError, nearest
from leakboard.store import write_file
from leakboard.suite.names import KINDS
from leakboard.suite.registry import Registry


def write_plugin(kind: str, name: str, folder: Path) -> list[Path]:
    """Write ``<kind>s/<name>.py`` and ``tests/test_<name>.py`` into a checkout and return their paths.

    Raises:
        RequestError: the kind is unknown, the name cannot be a module, or a plugin or file of that name exists.
    """
    if kind not in KINDS:
        raise RequestError(f"new: {kind!r} is not one of {', '.join(KINDS)}{nearest(kind, KINDS)}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise RequestError(
            f"new: {name!r} is not allowed: lower-case letters, digits and underscores, a letter first, no keyword"
        )
    if name in [listing.name for listing in Registry().listings(f"{kind}s")]:
        raise RequestError(f"new: the {kind} {name!r} exists already")
    targets = {folder / f"{kind}s" / f"{name}.py": kind, folder / "tests" / f"test_{name}.py": f"test_{kind}"}
    if existing := [str(path) for path in targets if path.exists()]:
        raise RequestError(f"new: {', '.join(existing)} exists already")
    words = name.split("_")
    values = {"name": name, "Class": "".join(map(str.capitalize, words)), "Title": " ".join(words).capitalize()}
    for path, template in targets.items():
        text = files("leakboard.cli").joinpath("templates", f"{template}.py.txt").read_text("utf-8")
        write_file(path, Template(text).substitute(values))
    return list(targets)
