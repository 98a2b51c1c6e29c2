"""Parse labels of victims and attacks, ``name(option=value, ...)``, to name curves over an option."""

from __future__ import annotations


def parse(label: str) -> tuple[str, dict[str, str]]:
    """Return the name and the options of a label; a label of another form is a name without options."""
    name, bracket, inner = label.partition("(")
    if not bracket or not inner.endswith(")"):
        return label, {}
    options: dict[str, str] = {}
    depth, start = 0, 0
    for i, letter in enumerate(inner):
        depth += (letter in "([{") - (letter in ")]}")
        if (letter == "," and depth == 0) or depth < 0:
            key, equals, value = inner[start:i].strip().partition("=")
            if not equals:
                return label, {}
            options[key] = value
            start = i + 1
    return name, options


def number(label: str, option: str) -> float | None:
    """Return the value of an option as a number; None if it is missing or not a number."""
    try:
        return float(parse(label)[1][option])
    except (KeyError, ValueError):
        return None


def without(label: str, *names: str) -> str:
    """Return a label without some of its options."""
    name, options = parse(label)
    return _joined(name, {key: value for key, value in options.items() if key not in names})


def _joined(name: str, options: dict[str, str]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in options.items())})" if options else name.strip()
