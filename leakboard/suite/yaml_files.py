"""Read a YAML 1.2 file as plain data; an error is one line with the fault and its line number."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from leakboard.errors import RequestError, one_line

_FLOAT = "tag:yaml.org,2002:float"
_MERGE = "tag:yaml.org,2002:merge"
MAX_BYTES = 500_000
"""Largest size of a file: the largest suite that comes with LeakBoard has some thousands of bytes."""
MAX_ENTRIES = 100_000
"""Largest number of entries that aliases may expand to: nested aliases fill any memory within a few lines."""
_POINT_FIRST = re.compile(r"[-+]?\.\d+[eE]\d+$")
"""Floats of YAML 1.2, such as ``.5e1``, that ruamel.yaml takes for text."""


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file: mappings, lists, text, numbers, truth values, dates, None.

    Raises:
        RequestError: the file cannot be read, is not UTF-8 or not one YAML document; or it has a tag of another type, a
            number that is too large, a key that is given twice, or a part that holds itself.
    """
    reader = YAML(typ="safe", pure=True)
    reader.Composer, reader.Constructor = _Composer, _Constructor
    for first in "-+.":
        reader.resolver.versioned_resolver[first].append((_FLOAT, _POINT_FIRST))
    if path.is_file() and (size := path.stat().st_size) > MAX_BYTES:
        raise RequestError(f"{path}: {size:,} bytes; allowed: {MAX_BYTES:,}")
    try:
        return reader.load(path.read_text("utf-8"))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise RequestError(
            f"{path}: not readable YAML: line {mark.line + 1}: {error.problem or error.context}"
        ) from None
    except Exception as error:  # not UTF-8, nested too deep, or a value such as an impossible date or `!!int x`
        raise RequestError(f"{path}: not readable YAML: {one_line(error)}") from None


class _Composer(Composer):
    def return_alias(self, node: Node) -> Node:
        """Refuse an alias inside the part that it names, which is not complete yet, and aliases that expand too far."""
        if node.end_mark is None:
            raise MarkedYAMLError(problem=f"&{node.anchor} holds itself", problem_mark=node.start_mark)
        known, total = vars(self).setdefault("sizes", ({}, [0]))
        total[0] += _size(node, known)
        if total[0] > MAX_ENTRIES:
            raise MarkedYAMLError(
                problem=f"the aliases up to &{node.anchor} stand for {total[0]:,} entries; allowed: {MAX_ENTRIES:,}",
                problem_mark=node.start_mark,
            )
        return node


def _size(node: Node, known: dict[int, int]) -> int:
    """Return the number of entries of a part of a file with its aliases written out; ``known`` keeps it by part."""
    if not isinstance(node, CollectionNode):
        return 1
    if id(node) not in known:
        held = [part for entry in node.value for part in (entry if isinstance(entry, tuple) else (entry,))]
        known[id(node)] = 1 + sum(_size(part, known) for part in held)
    return known[id(node)]


class _Constructor(SafeConstructor):
    def flatten_mapping(self, node: MappingNode) -> None:
        """Merge, but refuse a key that is given twice, which ruamel.yaml overlooks next to a merge."""
        if node.merge is None:  # not merged before
            keys = set()
            for key, _ in node.value:
                if isinstance(key, ScalarNode) and key.tag != _MERGE:
                    value = self.construct_object(key)
                    if value in keys:
                        raise MarkedYAMLError(problem=f"{key.value!r} is given twice", problem_mark=key.start_mark)
                    keys.add(value)
        super().flatten_mapping(node)

    def construct_yaml_float(self, node: ScalarNode) -> float:
        """Refuse a number too large for a float, which would silently become infinite."""
        number = super().construct_yaml_float(node)
        if math.isinf(number) and not node.value.lower().endswith(".inf"):
            raise MarkedYAMLError(problem=f"{node.value} is too large a number", problem_mark=node.start_mark)
        return number


_Constructor.add_default_constructor("float")
