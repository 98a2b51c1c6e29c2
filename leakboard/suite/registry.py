"""Find plugins without importing them, and load one.

The folders are the registry: every module of ``leakboard.datasets``, ``leakboard.victims`` and ``leakboard.attacks``
without a leading underscore is a plugin with its file's name. Entry points in groups of the same names and single files
(``--plugin``) join them.
"""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import leakboard
from leakboard.errors import RequestError, failure_line, nearest, one_line
from leakboard.suite.code import file_of, imported

FOLDERS = ("datasets", "victims", "attacks")


@dataclass(frozen=True)
class Listing:
    """A plugin as it is known without importing it."""

    kind: str
    name: str
    origin: str
    """The file, or the entry point's value."""
    summary: str
    problem: str = ""
    """Why it cannot be loaded; empty where it can."""
    module: str = ""
    """The module to import; empty for a single file."""
    attribute: str = ""
    """The class, where an entry point names it."""
    has_availability: bool = False
    """Whether the class has a method ``availability``."""


class Registry:
    """All plugins: of folders, entry points and single files, and classes of this process.

    Raises:
        RequestError: a ``--plugin`` file does not exist, or two plugins of a kind have one name.
    """

    def __init__(self, files: Sequence[Path] = ()):
        self.files = tuple(Path(file) for file in files)
        self._listings: dict[tuple[str, str], Listing] = {}
        self._classes: dict[tuple[str, str], Any] = {}
        self.local: list[type] = []
        """Classes of this process that no folder, entry point or file has; worker processes cannot import them."""
        for listing in self._find():
            first = self._listings.setdefault((listing.kind, listing.name), listing)
            if first is not listing and Path(first.origin).resolve() != Path(listing.origin).resolve():
                raise RequestError(
                    f"two plugins in {listing.kind} are named {listing.name!r}: {first.origin} and {listing.origin}"
                )

    def _find(self) -> Iterable[Listing]:
        points = importlib.metadata.entry_points()  # reads a file of every installed package
        for kind in FOLDERS:
            for folder in _folders(kind):
                for path in sorted(folder.glob("*.py")):
                    if not path.stem.startswith("_"):
                        yield _examine(path, kind, module=f"leakboard.{kind}.{path.stem}")
            for point in sorted(points.select(group=f"leakboard.{kind}")):
                yield _examine_entry_point(point, kind)
        for path in self.files:
            if not path.is_file():
                raise RequestError(f"--plugin {path}: no such file")
            if path.suffix != ".py":
                raise RequestError(f"--plugin {path}: allowed: a Python file, .py")
            listing = _examine(path, "")
            # The kind of a broken file is unknown: every kind lists it with the reason.
            yield from [listing] if listing.kind else (replace(listing, kind=kind) for kind in FOLDERS)

    def listings(self, kind: str) -> list[Listing]:
        """Return the plugins of a kind, sorted by name; nothing is imported."""
        return sorted((item for item in self._listings.values() if item.kind == kind), key=lambda item: item.name)

    def find(self, kind: str, name: str, location: str) -> Listing:
        """Return a plugin's listing.

        Raises:
            RequestError: no plugin of that kind has this name; the message offers the nearest.
        """
        try:
            return self._listings[kind, name]
        except KeyError:
            names = [item.name for item in self.listings(kind)]
            raise RequestError(
                f"{location}: no {kind[:-1]} is named {name!r} (there are: {', '.join(names)}){nearest(name, names)}"
            ) from None

    def name_of(self, cls: Any, location: str) -> str:
        """Return the name of a plugin's class; a class that no listing has joins the registry.

        Its name is that of the class, in lower case with underscores: ``MyAttack`` is ``my_attack``.

        Raises:
            RequestError: another plugin of its kind has this name.
        """
        kind = cls.__leakboard_kind__
        for listing in self.listings(kind):
            if self._classes.get((kind, listing.name)) is cls or _declares(listing, cls):
                return listing.name
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()
        origin = f"{cls.__module__}.{cls.__qualname__}"
        if known := self._listings.get((kind, name)):
            raise RequestError(
                f"{location}: the class {origin} is named {name!r}, but {known.origin} has this name already; "
                "rename the class"
            )
        self._listings[kind, name] = Listing(kind, name, origin, "")
        self._classes[kind, name] = cls
        self.local.append(cls)
        return name

    def load(self, kind: str, name: str, location: str = "request") -> Any:
        """Import a plugin, once, and return its class.

        Raises:
            RequestError: there is no such plugin.
            BrokenPlugin: it cannot be imported, or declares no plugin class.
        """
        listing = self.find(kind, name, location)
        if (kind, name) in self._classes:
            return self._classes[kind, name]
        if listing.problem:
            raise BrokenPlugin(_broken(listing, listing.problem))
        try:
            module = importlib.import_module(listing.module) if listing.module else _import_file(listing)
        except (Exception, SystemExit) as error:
            raise BrokenPlugin(_broken(listing, failure_line(error, listing.origin))) from error
        self._classes[kind, name] = _plugin_class(module, listing)
        return self._classes[kind, name]

    def load_whole(self, kind: str, name: str, location: str = "request") -> Any:
        """Return a plugin's class as `load` does, after checking that it has every member that its kind needs.

        Raises:
            RequestError: there is no such plugin.
            BrokenPlugin: it cannot be imported, or its class lacks a part; the message names file and line.
        """
        from leakboard.suite.form import complaint, line_of

        cls = self.load(kind, name, location)
        if reason := complaint(cls, kind):
            raise BrokenPlugin(_broken(self.find(kind, name, location), f"{reason} ({line_of(cls)})"))
        return cls

    def availability(self, listing: Listing) -> str:
        """Return in one line whether a plugin can be used; only a plugin with `availability` is imported."""
        if listing.problem or not listing.has_availability:
            return f"broken: {listing.problem}" if listing.problem else "ready"
        try:
            return str(self.load(listing.kind, listing.name).availability())
        except Exception as error:
            return f"broken: {one_line(error)}"


class BrokenPlugin(Exception):
    """A plugin that cannot be loaded; only the cells that ask for it fail."""


def load_file(path: Path) -> Any:
    """Import the plugin of one file, in any folder, and return its class.

    Raises:
        BrokenPlugin: it cannot be imported, or does not declare one plugin class.
    """
    listing = _examine(path, "")
    if listing.problem:
        raise BrokenPlugin(f"{path}: {listing.problem}")
    return _plugin_class(_import_file(listing), listing)


def _declares(listing: Listing, cls: type) -> bool:
    """Return whether a class is the plugin of a listing; a file may have been imported under another name."""
    if listing.module:
        return cls.__module__ == listing.module and listing.attribute in ("", cls.__name__)
    file = file_of(cls)
    return file is not None and file.resolve() == Path(listing.origin).resolve()


def _folders(kind: str) -> list[Path]:
    return [Path(root) / kind for root in leakboard.__path__ if (Path(root) / kind).is_dir()]


def _examine(path: Path, kind: str, module: str = "") -> Listing:
    try:
        state = path.stat()
        tree = _parsed(path, state.st_mtime_ns, state.st_size)
    except (SyntaxError, ValueError, OSError) as error:
        return Listing(kind, path.stem, str(path), "", one_line(error), module)
    summary = (ast.get_docstring(tree) or "").partition("\n")[0]
    declared = _declared(tree)
    kinds, problem = [declared_kind for declared_kind, _ in declared], ""
    if len(kinds) != 1 or (kind and kinds != [kind]):
        expected = kind or " or ".join(FOLDERS)
        declares = f"declares {len(kinds)} plugin classes ({', '.join(kinds) or 'none'})"
        problem = f"{declares}; allowed is exactly one, of {expected}"
    elif missing := _missing_imports(tree):
        problem = f"needs {', '.join(missing)}, not installed"
        if any((path.parent / f"{name}.py").is_file() for name in missing):
            problem += f"; a module next to the plugin is found with PYTHONPATH={path.parent}"
    members = [member for _, node in declared for member in node.body if isinstance(member, ast.FunctionDef)]
    has_availability = any(member.name == "availability" for member in members)
    kind = kind or "".join(kinds[:1])
    return Listing(kind, path.stem, str(path), summary, problem, module, has_availability=has_availability)


@lru_cache(maxsize=256)
def _parsed(path: Path, changed: int, size: int) -> ast.Module:
    return ast.parse(path.read_bytes())


def _declared(tree: ast.Module) -> list[tuple[str, ast.ClassDef]]:
    """Return the plugin classes of a file, each with its kind, by their decorators."""
    names = {kind[:-1]: kind for kind in FOLDERS}
    declared = []
    for node in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for decorator in (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list):
            name = getattr(decorator, "id", None) or getattr(decorator, "attr", None)  # of `attack` or `options.attack`
            declared += [(names[name], node)] if name in names else []
    return declared


def _missing_imports(tree: ast.Module) -> list[str]:
    packages = {name.partition(".")[0] for name in imported(tree.body)}
    return sorted(name for name in packages if name not in sys.modules and importlib.util.find_spec(name) is None)


def _examine_entry_point(point: importlib.metadata.EntryPoint, kind: str) -> Listing:
    module, _, attribute = point.value.partition(":")
    package = module.partition(".")[0]
    problem = "" if importlib.util.find_spec(package) else f"package {package} is not installed"
    if not attribute:
        problem = f"entry point {point.value!r} names no class (package.module:Class)"
    summary = f"from {point.dist.name if point.dist else package}"
    return Listing(kind, point.name, point.value, summary, problem, module, attribute)


class _FreshLoader(importlib.machinery.SourceFileLoader):
    """Compiles the source each time, and writes no ``__pycache__``.

    Python takes bytecode for current if the source's size and second of change are the same: `revision=2` written
    right after `revision=1` would not count.
    """

    def path_stats(self, path: str) -> Any:
        """Raise OSError: without the source's time there is no bytecode."""
        raise OSError(path)


def _import_file(listing: Listing) -> ModuleType:
    name = f"leakboard_plugin_{listing.kind}_{listing.name}"
    loader = _FreshLoader(name, str(Path(listing.origin).resolve()))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _broken(listing: Listing, reason: str) -> str:
    return f"{listing.kind[:-1]} {listing.name!r} ({listing.origin}) is broken: {reason}"


def _plugin_class(module: ModuleType, listing: Listing) -> Any:
    for name, value in vars(module).items():
        is_local = isinstance(value, type) and value.__module__ == module.__name__
        is_declared = name == listing.attribute if listing.attribute else is_local
        if is_declared and getattr(value, "__leakboard_kind__", None) == listing.kind:
            return value
    raise BrokenPlugin(_broken(listing, "no such plugin class"))
