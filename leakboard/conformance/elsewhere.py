"""The same questions in another process: what plugins make of their examples there, and what importing them does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import leakboard
from leakboard.errors import one_line
from leakboard.suite.registry import Registry

IN_A_PLACE = {"os.mkdir", "os.putenv", "os.unsetenv", "socket.connect", "socket.getaddrinfo"}


@dataclass(frozen=True)
class Answer:
    """What a plugin made of its example: a digest and a few numbers of it, or why it made nothing."""

    digest: str
    numbers: Mapping[str, Any]
    failure: str = ""


def ask_answers(
    registry: Registry, names: Sequence[str], folder: Path, surroundings: Mapping[str, str]
) -> dict[str, Answer]:
    """Return what each plugin makes of its example in another process.

    Args:
        registry: where the plugins are.
        names: as in ``victims/lsa``.
        folder: for the files that examples read.
        surroundings: environment variables of that process.

    Raises:
        RuntimeError: the process ended early.
    """
    folder.mkdir(parents=True, exist_ok=True)
    answers = _ask(registry, {"answers": list(names), "folder": str(folder)}, folder, surroundings)
    return {name: Answer(**answer) for name, answer in answers.items()}


def ask_imports(
    registry: Registry, names: Sequence[str], home: Path, surroundings: Mapping[str, str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Import plugins in turn in another process, in an empty home: return what each did, and the files that are left.

    Raises:
        RuntimeError: the process ended early.
    """
    home.mkdir(parents=True)
    own = {name: str(home) for name in ("HOME", "TMPDIR")} | {"XDG_CACHE_HOME": str(home / ".cache")}
    done = _ask(registry, {"imports": list(names)}, home, {**surroundings, **own})
    return done, sorted(path.name for path in home.rglob("*"))


def _ask(registry: Registry, question: dict[str, Any], folder: Path, surroundings: Mapping[str, str]) -> Any:
    question |= {"files": [str(path.resolve()) for path in registry.files]}
    roots = [str(Path(leakboard.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    usual = {"PYTHONPATH": os.pathsep.join(filter(None, roots)), "PYTHONHASHSEED": "77", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", __name__, json.dumps(question)],
        cwd=folder,
        env={**os.environ, **surroundings, **usual},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the other process ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def answers(registry: Registry, names: Sequence[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Return digest and numbers of every plugin's answer, or why it has none."""
    from leakboard.conformance.values import digest, summary
    from leakboard.conformance.watched import Sides

    sides, result = Sides(registry, folder), {}
    for name in names:
        try:
            made = _answer(registry, name, folder, sides)
            result[name] = {"digest": digest(made), "numbers": summary(made)}
        except (Exception, SystemExit) as error:  # told by the plugin's own checks
            result[name] = {"digest": "", "numbers": {}, "failure": one_line(error)}
    return result


def _answer(registry: Registry, name: str, folder: Path, sides: Any) -> Any:
    """Return what a plugin makes of its example."""
    import numpy as np
    import torch

    from leakboard.conformance import stand_ins as texts
    from leakboard.conformance import values
    from leakboard.conformance import watched as attacking

    kind, _, stem = name.partition("/")
    plugin = attacking.example(registry, kind, stem, folder)
    if kind == "datasets":
        return values.content(plugin.load())
    torch.manual_seed(12345)  # whatever came before must not matter
    np.random.seed(12345)
    if kind == "victims":
        tried = texts.corpus_for(plugin)
        return texts.published(plugin, plugin.fit(tried.only("train", "dev"), 0), tried)
    return attacking.answers(*attacking.attacked(plugin, sides(plugin)))


def imports(registry: Registry, names: Sequence[str]) -> dict[str, list[str]]:
    """Import every plugin in turn and note every file written, folder made, socket used and variable set.

    What a library does while it is itself imported is the library's, not the plugin's.
    """
    seen: list[str] = []
    home, own = Path.home(), ""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        act = ""
        if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            path = Path(os.fsdecode(args[0]) if isinstance(args[0], bytes) else str(args[0]))
            if path != Path(os.devnull) and home not in path.parents:  # what stays at home is found there
                act = f"writes {path}"
        elif event in IN_A_PLACE:
            act = f"{event} {args[0]!r}"
        if act and not _of_a_library(sys._getframe(1), own):
            seen.append(act)

    sys.addaudithook(hook)
    result = {}
    for name in names:
        seen.clear()
        kind, _, stem = name.partition("/")
        module = registry.find(kind, stem, "imports").module
        own = module.partition(".")[0] or f"leakboard_plugin_{kind}_{stem}"
        try:
            registry.load(kind, stem)
        except (Exception, SystemExit) as error:  # told by the plugin's own checks
            seen.append(one_line(error))
        result[name] = list(seen)
    return result


def _of_a_library(frame: FrameType | None, own: str) -> bool:
    """Return whether what is innermost imported in these frames is neither LeakBoard's nor the plugin's own package."""
    while frame and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    package = str(frame.f_globals.get("__name__")).partition(".")[0] if frame else "__main__"
    return package not in ("leakboard", "__main__", own)


if __name__ == "__main__":
    question = json.loads(sys.argv[1])
    found = Registry([Path(file) for file in question["files"]])
    if "imports" in question:
        print(json.dumps(imports(found, question["imports"])))
    else:
        print(json.dumps(answers(found, question["answers"], Path(question["folder"]))))
