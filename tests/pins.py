"""Compare results with pins: a few numbers of every plugin's example, and of every scorer on fixed answers.

They find changed results under an unchanged revision.

- Numbers may differ by 1e-3 of their root mean square: on another processor or with another library, sums differ in
  the last bits.
- Counts must be equal, and so must strings. The strings of attacks may differ, since the last bit may decide which word
  is the best; their total length must stay within `TEXT_TOLERANCE`.
- Strings are kept as digests: texts of a corpus are not committed.

`make pins` writes the file anew; entries that agree stay as they are.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from leakboard.conformance.values import summary

__all__ = ["summary"]

FILE = Path(__file__).parent / "pins.json"
TOLERANCE = 1e-3
TEXT_TOLERANCE = 0.02
IS_WRITING = os.environ.get("LEAKBOARD_PINS") == "write"


def agree(pinned, new, written=False):
    """Return whether a summary is the pinned one, within the tolerance; ``written``: its strings are an attack's."""
    return pinned.keys() == new.keys() and all(_agree(name, pinned[name], new[name], written) for name in pinned)


def _agree(name, pinned, new, written):
    if name == "strings":
        near = pinned[0] == new[0] and abs(pinned[1] - new[1]) <= TEXT_TOLERANCE * pinned[1]
        return near if written else pinned == new
    tolerance = TOLERANCE * max(abs(pinned[2]), abs(new[2]))
    return pinned[0] == new[0] and all(abs(a - b) <= tolerance for a, b in zip(pinned[1:], new[1:], strict=True))


def read():
    return json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}


def complaint(name, revision, summary, where="its revision"):
    """Return in one line what to do about a changed result; empty if it is the same, or if pins are written."""
    pinned = read().get(name)
    same = pinned is not None and agree(pinned["numbers"], summary, name.startswith("attacks/"))
    if IS_WRITING:
        if pinned and not same and pinned["revision"] == revision:
            print(f"{name}: pinned anew under the same revision {revision}")
        _write(read() | {name: {"revision": revision, "numbers": pinned["numbers"] if same else summary}})
        return ""
    if pinned is None:
        return f"{name} has no pins: run `make pins`"
    if not same and pinned["revision"] == revision:
        return f"the results of {name} changed: raise {where}, then run `make pins`"
    return "" if same and pinned["revision"] == revision else f"the revision of {name} is another: run `make pins`"


def complaint_about_defaults(name, revision, defaults):
    """Return in one line what to do about changed defaults: identities leave them out, so results would be mixed up."""
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
    """Return pinned names that are not in ``names``; when pins are written, remove them and return none."""
    left = set(read()) - set(names)
    if IS_WRITING:
        _write({name: entry for name, entry in read().items() if name not in left})
        return set()
    return left


def _write(entries):
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(entries.items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
