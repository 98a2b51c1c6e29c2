"""Identify plugins by their code, without comments, docstrings and layout.

A plugin with a revision is identified by the revision, and the digest of its file is only provenance. A plugin without
one is identified by the code of its file and of its package's modules (`package_digest`), imported directly or not.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import site
import sys
import sysconfig
import uuid
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, get_origin


def revision(plugin: type) -> int | None:
    """Return the revision that a plugin's class declares, or None.

    A class of a notebook or of ``__main__`` has none: its author edits and runs it in one go.
    """
    if plugin.__module__ == "__main__" or file_of(plugin) is None:
        return None
    declared: int | None = getattr(plugin, "__leakboard_revision__", None)
    return declared


def is_foreign(plugin: type) -> bool:
    """Return whether a plugin is in another package than LeakBoard, or in a single file."""
    return not plugin.__module__.startswith("leakboard.")


def file_digest(plugin: type) -> str:
    """Return 16 hexadecimal digits of the digest of a plugin's file; empty where it has none."""
    path = file_of(plugin)
    return hashlib.sha256(_parsed(path)[0].encode()).hexdigest()[:16] if path else ""


def package_digest(plugin: type) -> str:
    """Return the SHA-256 of the code of a plugin's file and of the modules of its package that it imports.

    The package of a plugin in LeakBoard is its folder, without the engine. A plugin in a script or a single file has
    the modules in the file's folder, and all others that are neither installed nor Python's own. A class in a notebook
    or in a function can use values that no file has: its digest is new at each call, so that no old result is taken
    over. Values that a script's functions and classes name, such as a loop's variable, are part of the digest.

    Raises:
        SyntaxError, ValueError, OSError: a module cannot be read.
    """
    first = file_of(plugin)
    if first is None or "<locals>" in plugin.__qualname__:
        return uuid.uuid4().hex
    values = _values_of_names(first) if plugin.__module__ == "__main__" else []
    names = plugin.__module__.split(".")
    package = ".".join(names[: 2 if names[0] == "leakboard" else 1])
    is_single = not hasattr(sys.modules.get(package), "__path__")
    code: dict[Path, str] = {}
    waiting = [first]
    while waiting:
        path = waiting.pop()
        if path not in code:
            code[path], tree = _parsed(path)
            waiting += _relative(tree, path)
            waiting += _own_modules(tree, first.parent) if is_single else _absolute(tree, package)
    return hashlib.sha256("\n".join([*sorted(code.values()), *values]).encode()).hexdigest()


def file_of(plugin: type) -> Path | None:
    """Return the file that defines a class; None in a notebook or at a prompt."""
    name = getattr(sys.modules.get(plugin.__module__), "__file__", None)
    if name and plugin.__module__ == "__main__":  # a prompt may have redefined a class of the script
        functions = (f for name, f in vars(plugin).items() if inspect.isfunction(f) and not name.startswith("__"))
        if any(Path(f.__code__.co_filename).resolve() != Path(name).resolve() for f in functions):
            return None
    return Path(name) if name else None


def _values_of_names(script: Path) -> list[str]:
    """Return the values of the variables that the script assigns, and that its functions and classes name.

    A value other than a number, a text, a type or a tuple of these is new at each call.
    """
    main, tree = vars(sys.modules["__main__"]), _parsed(script)[1]
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    inner = (node for node in ast.walk(tree) if isinstance(node, definitions))
    named = {name.id for node in inner for name in ast.walk(node) if isinstance(name, ast.Name)}
    assigned = {name.id for name in ast.walk(tree) if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load)}
    values = {name: main[name] for name in sorted(named & assigned & main.keys())}
    return [f"{name} = {value!r}" if _is_plain(value) else uuid.uuid4().hex for name, value in values.items()]


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    is_type = isinstance(value, type) or get_origin(value) is not None
    return is_type or value is None or isinstance(value, bool | int | float | str)


def _relative(tree: ast.Module, path: Path) -> Iterable[Path]:
    """Yield the files that ``from . import x`` and ``from .x import y`` name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            yield from _modules(base, *(base / alias.name for alias in node.names))


def _own_modules(tree: ast.Module, folder: Path) -> Iterable[Path]:
    """Yield the files of the imported modules that are in a folder, or elsewhere but not installed."""
    for name in imported(ast.walk(tree)):
        if name.partition(".")[0] != "leakboard":
            file = getattr(sys.modules.get(name), "__file__", None)
            candidates = [*_modules(folder.joinpath(*name.split("."))), *([Path(file)] if file else [])]
            yield from (path for path in candidates if path.suffix == ".py" and not _is_installed(path))


def _is_installed(path: Path) -> bool:
    folders = {*site.getsitepackages(), *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))}
    return any(path.is_relative_to(folder) for folder in folders)


def _absolute(tree: ast.Module, package: str) -> Iterable[Path]:
    """Yield the files of the modules of a package that are imported by their full names."""
    roots = [Path(root) for root in getattr(sys.modules.get(package), "__path__", ())]
    for name in imported(ast.walk(tree)):
        if name == package or name.startswith(f"{package}."):
            inside = name.split(".")[len(package.split(".")) :]
            yield from _modules(*(root.joinpath(*inside) for root in roots))


def _modules(*bases: Path) -> Iterable[Path]:
    for base in bases:
        yield from filter(Path.is_file, (base.with_suffix(".py"), base / "__init__.py"))


def imported(nodes: Iterable[ast.AST]) -> Iterable[str]:
    """Yield the full names in import statements, of modules and of their members."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _parsed(path: Path) -> tuple[str, ast.Module]:
    status = path.stat()
    return _parsed_once(path, status.st_mtime_ns, status.st_size)


@cache
def _parsed_once(path: Path, modified: int, size: int) -> tuple[str, ast.Module]:
    tree = ast.parse(path.read_bytes())
    return repr(_bare(tree)), tree


def _bare(node: Any) -> Any:
    """Return a syntax tree as nested tuples, without docstrings and empty fields: versions of Python differ there."""
    if isinstance(node, list):
        return tuple(_bare(item) for item in node if not _is_string(item))
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, _bare(value)) for name, value in ast.iter_fields(node) if name not in ("kind", "type_ignores"))
    return (type(node).__name__, *((name, value) for name, value in fields if value is not None and value != ()))


def _is_string(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
