"""Load the browser's libraries from installed packages: Plotly for charts, DataTables for tables."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

NAMES = ("plotly.min.js", "datatables.js")


@cache
def library(name: str) -> str:
    """Return the source of one of ``NAMES``, a classic script: browsers load no modules from disk."""
    return {"plotly.min.js": _plotly, "datatables.js": _datatables}[name]()


def packed(text: str) -> Markup:
    """Return a text as gzip in base64, for a page in one file; the same bytes each time."""
    return Markup(base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode())  # noqa: S704 (letters alone)


def own(name: str) -> str:
    """Return a file of this package, ``site.css`` or ``site.js``."""
    return (files("leakboard.site") / "static" / name).read_text("utf-8")


def _plotly() -> str:
    return (_package("plotly") / "package_data" / "plotly.min.js").read_text("utf-8")


def _datatables() -> str:
    """Return the DataTables module of itables, as a classic script that sets ``DataTable``."""
    source = (_package("itables") / "html" / "dt_bundle.js").read_text("utf-8")
    exported = list(re.finditer(r"export\s*\{[^{}]*\b([\w$]+) as default\b[^{}]*\}", source))[-1]
    body = f"{source[: exported.start()]};globalThis.DataTable={exported[1]};{source[exported.end() :]}"
    return f"(() => {{{body}\n}})();\n"


def _package(name: str) -> Path:
    """Return the folder of an installed package without importing it."""
    spec = importlib.util.find_spec(name)
    assert spec, f"{name} is a dependency"
    assert spec.origin, f"{name} is a package"
    return Path(spec.origin).parent
