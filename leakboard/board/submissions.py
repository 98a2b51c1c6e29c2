"""Write and read submissions: results that other people computed and sent to a leaderboard.

A submission is a folder with these files:

- ``suite.yaml``;
- ``records.jsonl.gz`` in the published format;
- ``submission.json``: where the numbers come from, and which plugins computed them;
- the plugins: files under ``plugins/``, or packages with their versions in ``requirements.txt``.

``verify`` writes two files next to the folder ``NAME``, for the cells that were computed again and agree:

- ``NAME.verified.json``: the cells, and the checksums of the submission's files;
- ``NAME.verified.jsonl.gz``: the records as they were computed again. Pages show these, not those that were sent.

No file inside a submission can mark it as verified.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import re
import time
import tokenize
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from leakboard.board.run_meta import describe
from leakboard.errors import RequestError, one_line
from leakboard.execution.provenance import environment
from leakboard.pipeline.records import PUBLISHED, SUBMISSIONS, Entry, Record, pack, read_entries
from leakboard.pipeline.runner import Run
from leakboard.store import file_checksum, write_file
from leakboard.suite.files import FileName
from leakboard.suite.plan import Job
from leakboard.suite.registry import Registry
from leakboard.suite.suites import Suite

SUITE, SUBMITTED, REQUIREMENTS = "suite.yaml", "submission.json", "requirements.txt"
NAME, FILE_OF_PLUGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*"), re.compile(r"plugins/[A-Za-z0-9_]+\.py")
PLAIN_STRING = re.compile("[rR]?['\"]")
"""How a string begins that is neither an f-string nor bytes."""
MAX_LINE = 200
"""Largest length of a line of a submitted plugin (characters)."""
PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")


def submit(run: Run, registry: Registry, folder: Path) -> list[Path]:
    """Write the chosen cells of a finished run into a folder, to be sent to a leaderboard; return its files.

    Raises:
        RequestError: cells have no result, a plugin declares no revision, or the folder has an odd name or other files.
        StorageError: the folder cannot be written.
    """
    if left := len(run.unfinished):
        raise RequestError(f"{run.suite.name}: {left} of {len(run.jobs)} cells have no result; `run` computes them")
    require_revisions(run.suite, run.jobs)
    require_name(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / SUBMITTED).is_file():
        raise RequestError(f"--submit {folder}: it holds files that are no submission; name a new folder")
    files, packages = _plugins(run.jobs, registry)
    results = [result for job in run.jobs if (result := run.results.find(job))]
    costs = [cost for result in results for cost in result.costs]
    content = describe(run.suite, run.jobs, [result.record for result in results], costs)
    content |= {"plugins": {**{name: f"plugins/{path.name}" for name, path in files.items()}, **packages}}
    written: dict[str, str | bytes] = {
        SUITE: run.suite.path.read_text("utf-8"),
        PUBLISHED: pack(((result.record, result.costs) for result in results), "record"),
        SUBMITTED: json.dumps(content, indent=1, sort_keys=True) + "\n",
        **{f"plugins/{path.name}": path.read_text("utf-8") for path in files.values()},
    }
    if packages:
        written[REQUIREMENTS] = "".join(f"{package}\n" for package in sorted(set(packages.values())))
    replaced = {REQUIREMENTS, *_plugin_files(folder)} - written.keys()
    for name, text in written.items():
        write_file(folder / name, text)
    for name in replaced:
        (folder / name).unlink(missing_ok=True)
    forget_verified(folder)
    return [folder / name for name in written]


def own_data(jobs: Iterable[Job]) -> list[str]:
    """Return the labels of datasets and victims that read a user's own files: no submission has these."""
    jobs = list(jobs)
    choices = [choice for job in jobs for choice in (job.cell.source.corpus, job.cell.source.other, job.cell.victim)]
    return sorted({c.label for c in choices if c and any(isinstance(v, FileName) for v in vars(c.plugin).values())})


def plugins_of(folder: Path) -> dict[str, str]:
    """Return the plugins of a submission by name, as ``victims/mine``: files relative to it, and packages.

    Raises:
        RequestError: the submission lacks its suite, or its description is missing or damaged.
    """
    if not (folder / SUITE).is_file():
        raise RequestError(f"{folder / SUITE}: no such file; a submission has one")
    try:
        plugins = dict(json.loads((folder / SUBMITTED).read_text("utf-8"))["plugins"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        plugins = {"": None}
    if not all(isinstance(plugin, str) for plugin in plugins.values()):
        raise RequestError(f"{folder / SUBMITTED}: missing or damaged; `publish --submit` writes it")
    return plugins


def _plugin_files(folder: Path) -> set[str]:
    """Return the plugin files of the submission in a folder, relative to it; none if there is no intact submission."""
    with suppress(RequestError):
        return {f"plugins/{Path(name).name}" for name in plugins_of(folder).values() if name.startswith("plugins/")}
    return set()


def require_revisions(suite: Suite, jobs: Iterable[Job]) -> None:
    """Refuse results of a plugin without a revision: they could not be told from results of its later code.

    Raises:
        RequestError: a plugin declares no revision.
    """
    if undeclared := sorted({name for job in jobs for name in job.undeclared}):
        kind = undeclared[0].partition("/")[0][:-1]
        raise RequestError(
            f"{suite.name}: {undeclared[0]} declares no revision, so its results cannot be published; "
            f"write @{kind}(revision=1) above its class and run it"
        )


def _plugins(jobs: Iterable[Job], registry: Registry) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the plugins from outside LeakBoard: files by kind and name, and packages as ``name==version``."""
    files: dict[str, Path] = {}
    packages: dict[str, str] = {}
    for name in sorted({name for job in jobs for name in job.code}):
        kind, _, stem = name.partition("/")
        listing = registry.find(kind, stem, name)
        if not listing.module:
            files[name] = Path(listing.origin)
        elif listing.attribute:
            (point,) = importlib.metadata.entry_points(group=f"leakboard.{kind}", name=stem)
            assert point.dist, "an entry point that was found is some package's"
            packages[name] = f"{point.dist.name}=={point.dist.version}"
    return files, packages


def is_submission(home: Path) -> bool:
    """Return whether a folder of published records is a submission, even one that lacks a file."""
    home = home.resolve()
    in_a_board = home.parent.name == SUBMISSIONS and (home.parents[1] / PUBLISHED).is_file()
    return in_a_board or (home / SUBMITTED).is_file()


def record_verified(home: Path, entries: Iterable[Entry], differences: Mapping[str, float]) -> list[Path]:
    """Write the cells of a submission that were computed again and agree, together with earlier ones.

    Args:
        home: the submission.
        entries: the records with their costs, as they were computed again.
        differences: the largest difference of a metric, by the identity of a cell.
    """
    earlier = _verified(home)
    kept = [(record, costs) for record, costs in _verified_entries(home) if record.key in earlier]
    done = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "commit": environment()["commit"]}
    cells = {key: {**done, "largest_difference": value} for key, value in differences.items()}
    packed = {record.key: (record, costs) for record, costs in (*kept, *entries)}
    content = {"files": _contents(home), "cells": {**{key: earlier[key] for key in earlier if key in packed}, **cells}}
    paths = verified_files(home)
    write_file(paths[1], pack(packed.values()))
    write_file(paths[0], json.dumps(content, indent=1, sort_keys=True) + "\n")
    return paths


def verified_files(home: Path) -> list[Path]:
    """Return the files with the verified cells of a submission and with their records, next to its folder."""
    home = home.resolve()
    return [home.with_name(f"{home.name}.verified.{ending}") for ending in ("json", "jsonl.gz")]


def forget_verified(home: Path) -> None:
    """Remove the verifications of a submission: a cell differs, or its records are new."""
    for path in verified_files(home):
        path.unlink(missing_ok=True)


def verified_records(home: Path) -> dict[str, Record]:
    """Return the records of a submission's verified cells by identity, as they were computed again.

    There are none if they belong to other records, plugins or another suite.

    Raises:
        RequestError: a record's form is wrong.
    """
    cells = _verified(home)
    return {record.key: record for record, _ in _verified_entries(home) if record.key in cells}


def _verified_entries(home: Path) -> list[Entry]:
    return read_entries(verified_files(home)[1])


def _verified(home: Path) -> dict[str, Any]:
    """Return the verified cells of a submission; none if they belong to other records, plugins or another suite."""
    try:
        content = json.loads(verified_files(home)[0].read_text("utf-8"))
        is_current = content["files"] == _contents(home)
        return dict(content["cells"]) if is_current else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def board_of(home: Path) -> Path:
    """Return the folder of the leaderboard that a submission lies in; the submission's own, if it lies in none."""
    home = home.resolve()
    return home.parents[1] if home.parent.name == SUBMISSIONS else home


def first_verified(home: Path) -> str:
    """Return the date of the first verified cell of a submission, as 2026-01-31; ``~`` sorts after all dates."""
    return min((cell["date"] for cell in _verified(home).values()), default="~")


def require_name(home: Path) -> None:
    """Refuse a name that could be that of another submission's verified records, or is hard to type.

    Raises:
        RequestError: the name has other characters than letters, digits, - and _.
    """
    if not NAME.fullmatch(home.resolve().name):
        raise RequestError(f"{home}: no name of a submission; allowed: letters, digits, - and _")


def require_own_files(home: Path) -> None:
    """Refuse files that `submit` does not write: plugins could read them.

    Raises:
        RequestError: there is one, or the submission's name is odd.
    """
    require_name(home)
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        is_known = name in (SUITE, PUBLISHED, SUBMITTED, REQUIREMENTS) or FILE_OF_PLUGIN.fullmatch(name)
        if path.is_symlink() or not ((is_known and path.is_file()) or (name == "plugins" and path.is_dir())):
            raise RequestError(
                f"{path}: no file of a submission; allowed: {SUITE}, {PUBLISHED}, {SUBMITTED}, {REQUIREMENTS} and "
                "plugins/NAME.py, no links"
            )
        if path.suffix == ".py":
            _require_plain(path)
    packages = {place for place in plugins_of(home).values() if PACKAGE.fullmatch(place)}
    given = {*(home / REQUIREMENTS).read_text("utf-8").splitlines()} if (home / REQUIREMENTS).is_file() else set()
    if wrong := sorted(given ^ packages):
        allowed = f"one line for each package in {SUBMITTED}, as 'name==version', and no other"
        raise RequestError(f"{home / REQUIREMENTS}: {wrong[0]!r}; allowed: {allowed}")


def _require_plain(path: Path) -> None:
    """Refuse a plugin's file that may show other code than Python runs.

    Reasons are another encoding, invisible characters, long lines, and characters beyond ASCII in names: many look like
    others. An f-string may have names, so it is plain ASCII, too.

    Raises:
        RequestError: the message names the character and its line.
    """
    content = path.read_bytes()
    try:
        encoding, text = tokenize.detect_encoding(io.BytesIO(content).readline)[0], content.decode("utf-8")
    except (SyntaxError, UnicodeDecodeError):
        encoding, text = "another encoding", ""
    if encoding != "utf-8":
        raise RequestError(f"{path}: {encoding}; allowed: UTF-8, and no declaration of another encoding")
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if hidden := next((c for c in line if c != "\t" and _is_hidden(c)), None):
            raise RequestError(f"{path}: line {number}: the invisible character {hidden!a}; allowed: visible ones")
        if len(line) > MAX_LINE:  # a reader may not see its end
            raise RequestError(f"{path}: line {number}: {len(line)} characters; allowed: {MAX_LINE}")
    for token in _tokens(path, text):
        is_shown = token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and PLAIN_STRING.match(token.string)
        )
        if not token.string.isascii() and not is_shown:
            place = f"{path}: line {token.start[0]}: {token.string!a}"
            raise RequestError(f"{place}; allowed: characters beyond ASCII in comments and plain strings alone")


def _is_hidden(character: str) -> bool:
    is_blank = character in "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    is_variation_selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return is_blank or is_variation_selector or unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")


def _tokens(path: Path, text: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError) as error:
        raise RequestError(f"{path}: no Python ({one_line(error)})") from None


def _contents(home: Path) -> dict[str, str]:
    """Return the checksum of each file of a submission."""
    files = sorted(path for path in home.rglob("*") if path.is_file())
    return {path.relative_to(home).as_posix(): file_checksum(path) for path in files}


def submissions(home: Path) -> list[Path]:
    """Return the submissions to the leaderboard in a folder, by name."""
    return sorted(path for path in (home / SUBMISSIONS).glob("*") if path.is_dir())
