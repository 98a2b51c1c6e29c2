"""Ask another process for the results of plugins' examples, and for the side effects of importing the plugins.

The first functions run in the process that checks. The others run in the other process, which this module starts as
a program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import leakboard
from leakboard.errors import one_line
from leakboard.suite.registry import Registry

SIDE_EFFECTS = {"os.mkdir", "os.putenv", "os.unsetenv", "socket.connect", "socket.getaddrinfo"}
"""Audit events of Python that importing a plugin must not raise."""


@dataclass(frozen=True)
class Answer:
    """The result of a plugin's example: a digest and a summary, or the reason why there is no result."""

    digest: str = ""
    numbers: Mapping[str, Any] | None = None
    failure: str = ""


def ask_answers(
    registry: Registry, names: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> dict[str, Answer]:
    """Return the result of each plugin's example in another process.

    Args:
        registry: finds the plugins.
        names: names of plugins, such as ``victims/lsa``.
        folder: folder for the files that examples read.
        environment: variables of the other process.

    Raises:
        RuntimeError: the process ended early.
    """
    folder.mkdir(parents=True, exist_ok=True)
    result = _ask(registry, {"answers": list(names), "folder": str(folder)}, folder, environment)
    return {name: Answer(**answer) for name, answer in result.items()}


def ask_imports(
    registry: Registry, names: Sequence[str], home: Path, environment: Mapping[str, str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Import plugins in turn in another process with an empty home; return their side effects, and new files.

    Raises:
        RuntimeError: the process ended early.
    """
    home.mkdir(parents=True)
    folders = {name: str(home) for name in ("HOME", "TMPDIR")} | {"XDG_CACHE_HOME": str(home / ".cache")}
    result = _ask(registry, {"imports": list(names)}, home, {**environment, **folders})
    return result, sorted(path.name for path in home.rglob("*"))


def _ask(registry: Registry, question: dict[str, Any], folder: Path, environment: Mapping[str, str]) -> Any:
    question |= {"files": [str(path.resolve()) for path in registry.files]}
    roots = [str(Path(leakboard.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    fixed = {"PYTHONPATH": os.pathsep.join(filter(None, roots)), "PYTHONHASHSEED": "77", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", __name__, json.dumps(question)],
        cwd=folder,
        env={**os.environ, **environment, **fixed},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the other process ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def answers(registry: Registry, names: Sequence[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Return the fields of every plugin's `Answer`, in the process that runs this function."""
    from leakboard.conformance.values import digest, summary
    from leakboard.conformance.watched import VictimSides

    sides, result = VictimSides(registry, folder), {}
    for name in names:
        try:
            value = _example_result(registry, name, folder, sides)
            result[name] = {"digest": digest(value), "numbers": summary(value)}
        except (Exception, SystemExit) as error:  # reported by the check that needs the answer
            result[name] = {"failure": one_line(error)}
    return result


def _example_result(registry: Registry, name: str, folder: Path, sides: Any) -> Any:
    """Return the corpus of a dataset's example, the publications of a victim's, or the answers of an attack's."""
    import numpy as np
    import torch

    from leakboard.conformance import stand_ins, values, watched

    kind, _, stem = name.partition("/")
    plugin = watched.example(registry, kind, stem, folder)
    if kind == "datasets":
        return values.content(plugin.load())
    torch.manual_seed(12345)  # results must not depend on these seeds
    np.random.seed(12345)
    with suppress(Exception, SystemExit):  # what another fit leaves behind must not change this one
        _fit_on_something_else(plugin, kind, sides)
    if kind == "victims":
        corpus = stand_ins.corpus_for(plugin)
        return stand_ins.published(plugin, plugin.fit(corpus.only("train", "dev"), 0), corpus)
    return watched.answers(*watched.run_watched(plugin, sides(plugin)))


def _fit_on_something_else(plugin: Any, kind: str, sides: Any) -> None:
    """Fit a victim on half of the texts with another seed, or an attack on other secrets."""
    from leakboard.conformance import stand_ins, watched

    if kind == "attacks":
        watched.run_watched(plugin, watched.with_other_secrets(sides(plugin), "train"))
        return
    corpus = stand_ins.corpus_for(plugin).only("train", "dev")
    plugin.fit(corpus.with_rows("train", range(0, len(corpus.splits["train"]), 2)), 1)


def imports(registry: Registry, names: Sequence[str]) -> dict[str, list[str]]:
    """Import every plugin in turn; return the files written, folders made, sockets used and variables set by each.

    If a library has side effects while it is imported, these are not the plugin's, and are left out.
    """
    effects: list[str] = []
    home, package = Path.home(), ""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        effect = ""
        if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            path = Path(os.fsdecode(args[0]) if isinstance(args[0], bytes) else str(args[0]))
            if path != Path(os.devnull) and home not in path.parents:  # `ask_imports` finds files in the home
                effect = f"writes {path}"
        elif event in SIDE_EFFECTS:
            effect = f"{event} {args[0]!r}"
        if effect and not _is_in_library(sys._getframe(1), package):
            effects.append(effect)

    sys.addaudithook(hook)
    result = {}
    for name in names:
        effects.clear()
        kind, _, stem = name.partition("/")
        module = registry.find(kind, stem, "imports").module
        package = module.partition(".")[0] or f"leakboard_plugin_{kind}_{stem}"
        try:
            registry.load(kind, stem)
        except (Exception, SystemExit) as error:  # reported by the check of the import
            effects.append(one_line(error))
        result[name] = list(effects)
    return result


def _is_in_library(frame: FrameType | None, package: str) -> bool:
    """Return whether the innermost module that is being imported is neither LeakBoard's nor in the plugin's package."""
    while frame and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    innermost = str(frame.f_globals.get("__name__")).partition(".")[0] if frame else "__main__"
    return innermost not in ("leakboard", "__main__", package)


if __name__ == "__main__":
    question = json.loads(sys.argv[1])
    registry = Registry([Path(file) for file in question["files"]])
    if "imports" in question:
        print(json.dumps(imports(registry, question["imports"])))
    else:
        print(json.dumps(answers(registry, question["answers"], Path(question["folder"]))))
