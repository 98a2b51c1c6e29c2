"""Pins: a few numbers of what every plugin makes of its example, and every scorer of fixed answers.

They tell who changed results and forgot to raise a revision. Numbers are compared with a tolerance of 1e-3 of their
root mean square, so that another processor or library, whose sums differ in the last bits, passes. Counts are compared
exactly, and so are strings, but for those that attacks write: the best word may be another by the last bit, and only
their length must stay within `WRITTEN`. Strings are kept as digests: texts of a corpus are not committed. `make pins`
writes the file anew; what agrees stays as it is.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from leakboard.conformance.values import summary

__all__ = ["summary"]

FILE = Path(__file__).parent / "pins.json"
TOLERANCE = 1e-3
WRITTEN = 0.02
IS_WRITING = os.environ.get("LEAKBOARD_PINS") == "write"


def agree(pinned, found, written=False):
    """Return whether a summary is the pinned one, but for the tolerance; ``written``: its strings are an attack's."""
    return pinned.keys() == found.keys() and all(_agree(name, pinned[name], found[name], written) for name in pinned)


def _agree(name, pinned, found, written):
    if name == "strings":
        near = pinned[0] == found[0] and abs(pinned[1] - found[1]) <= WRITTEN * pinned[1]
        return near if written else pinned == found
    scale = max(abs(pinned[2]), abs(found[2]))
    return pinned[0] == found[0] and all(
        abs(a - b) <= TOLERANCE * scale for a, b in zip(pinned[1:], found[1:], strict=True)
    )


def read():
    return json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}


def complaint(name, revision, found, where="its revision"):
    """Return what to do about changed results in one line, or an empty string; when pins are written, nothing."""
    pinned = read().get(name)
    same = pinned is not None and agree(pinned["numbers"], found, name.startswith("attacks/"))
    if IS_WRITING:
        if pinned and not same and pinned["revision"] == revision:
            print(f"{name}: pinned anew under the same revision {revision}")
        _write(read() | {name: {"revision": revision, "numbers": pinned["numbers"] if same else found}})
        return ""
    if pinned is None:
        return f"{name} has no pins: run `make pins`"
    if not same and pinned["revision"] == revision:
        return f"the results of {name} changed: raise {where}, then run `make pins`"
    return "" if same and pinned["revision"] == revision else f"the revision of {name} is another: run `make pins`"


def complaint_about_defaults(name, revision, defaults):
    """Return what to do about changed defaults: they are not in identities, so results under them would be mixed up."""
    pinned = read().get(f"defaults/{name}")
    if IS_WRITING:
        _write(read() | {f"defaults/{name}": {"revision": revision, "defaults": defaults}})
        return ""
    if pinned is None:
        return f"the defaults of {name} have no pins: run `make pins`"
    kept = pinned["defaults"].keys() & defaults.keys()
    if (changed := sorted(o for o in kept if pinned["defaults"][o] != defaults[o])) and pinned["revision"] == revision:
        return f"the default of {name}.{changed[0]} changed: raise its revision, then run `make pins`"
    same = pinned["defaults"] == defaults and pinned["revision"] == revision
    return "" if same else f"the options or the revision of {name} are others: run `make pins`"


def forget(names):
    """Remove the pins of what is gone, when pins are written; return the names that are left over."""
    left = set(read()) - set(names)
    if IS_WRITING:
        _write({name: entry for name, entry in read().items() if name not in left})
        return set()
    return left


def _write(entries):
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(entries.items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
