"""Write plugin instances in a suite's mapping as YAML has them: by name, with options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leakboard.errors import RequestError
from leakboard.suite import options
from leakboard.suite.files import FileName
from leakboard.suite.registry import Registry


def as_entries(content: Any, registry: Registry, location: str) -> Any:
    """Return a suite's content with an entry (name, or name with options) instead of every plugin instance.

    An instance of an installed plugin gives the same entry as its name. A class that the registry does not have joins
    it under the class's name in lower case with underscores (`Registry.name_of`).

    Raises:
        RequestError: a class is given instead of an instance, or two classes have one name.
    """
    if isinstance(content, Mapping):
        return {
            key: as_entries(value, registry, f"{location}: {key}" if location == "suite" else f"{location}.{key}")
            for key, value in content.items()
        }
    if isinstance(content, list):
        return [as_entries(value, registry, f"{location}[{i}]") for i, value in enumerate(content)]
    if not hasattr(content, "__leakboard_kind__"):
        return content
    if isinstance(content, type):
        name = content.__name__
        raise RequestError(f"{location}: {name} is a class; allowed: an instance of it, as in {name}()")
    name, named = registry.name_of(type(content), location), options.named(content)
    files = {key: value for key in named if isinstance(value := getattr(content, key), FileName)}
    return {name: named | files} if named else name
