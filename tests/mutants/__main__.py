"""Mutation test: break one line of the engine at a time, and count how often the tests of its room notice.

    python tests/mutants [--count 200] [--only ROOM] [--seed 0] [--jobs 2] [--fresh]

Mutants are made in copies of the checkout. Results are appended to ``runs/mutants/results.jsonl``, and an interrupted
run goes on. A killed mutant stays killed while its module is the same; a survivor is tried again after any change.
``accepted.txt`` lists survivors that no test can kill, with the reason; they do not count as killed.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

from draw import CHECKOUT, Mutant, digest, draw

SESSION = CHECKOUT / "runs" / "mutants"
ACCEPTED = Path(__file__).with_name("accepted.txt")
SHARE = 0.85
"""Least share of mutants that the tests kill."""
SLOWER, SPARE = 4, 60
"""A test, or all of them, may take this many times as long as without the mutant, and these seconds more."""

TESTS = {
    "threats": ["tests/threats"],
    "pipeline": ["tests/pipeline"],
    "execution": ["tests/execution"],
    "metrics": ["tests/metrics"],
    "privacy": ["tests/privacy"],
}
"""The tests that each room's mutants are run against: its own."""


def copy_checkout(folder: Path) -> str:
    """Copy the files that git does not ignore, and return a hash of the Python files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    names = [name for name in sorted(filter(None, listed.split("\0"))) if (CHECKOUT / name).is_file()]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, folder / name)
    return digest(*((name, (folder / name).read_bytes()) for name in names if name.endswith(".py")))


async def run_tests(folder: Path, files: list[str], limits: tuple[float, float], report: Path | None = None) -> bool:
    """Return whether a copy's tests pass within their seconds, each and all of them, and write a report of them."""
    usual = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    a_test, all_tests = limits
    limit = ["-o", f"faulthandler_timeout={a_test}", "-o", "faulthandler_exit_on_timeout=true"]
    reports = [f"--junitxml={report}", "-o", "junit_family=xunit1"] if report else []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *usual, *limit, *reports, *files),
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "LEAKBOARD_DATA"}
        | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=None if report else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return await asyncio.wait_for(process.wait(), all_tests) == 0
    except TimeoutError:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def run_clean(folder: Path, room: str, version: str) -> dict[str, list[float]]:
    """Run a room's tests without a mutant, unless that was done before, and return each test's seconds by file."""
    known = SESSION / f"{room}-{version[:16]}.json"
    if not known.exists():
        paths = [path for name in TESTS[room] for path in (folder / name, *(folder / name).rglob("*.py"))]
        files = [path.relative_to(folder).as_posix() for path in paths if path.is_file() and path.stem[:5] == "test_"]
        print(f"{room}: {len(files)} files of tests without a mutant", flush=True)
        measured = folder / "times.xml"
        if not await run_tests(folder, files, (3600, 7200), measured):
            sys.exit(f"the tests of {room} fail without a mutant: {' '.join(files)}")
        times: dict[str, list[float]] = {}
        for case in ElementTree.parse(measured).iter("testcase"):
            times.setdefault(case.attrib["file"], []).append(float(case.attrib["time"]))
        known.write_text(json.dumps(times))
    return json.loads(known.read_text())


def ordered(folder: Path, clean: dict[str, list[float]], mutant: Mutant) -> list[str]:
    """Return a room's files of tests, those that name the mutant's module first and then the fastest first."""
    package, _, module = mutant.path.removesuffix(".py").replace("/", ".").rpartition(".")
    name = re.compile(rf"{re.escape(package)}(\.| import .*\b){module}\b")
    return sorted(clean, key=lambda file: (not name.search((folder / file).read_text()), sum(clean[file])))


async def try_all(mutants: list[Mutant], jobs: int) -> dict[str, bool]:
    """Return of every mutant, by identity, whether the tests killed it."""
    results = SESSION / "results.jsonl"
    killed: dict[str, bool] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as root:
        folders = [Path(root) / str(job) for job in range(jobs)]
        version = [copy_checkout(folder) for folder in folders][-1]
        for row in map(json.loads, results.read_text().splitlines() if results.exists() else []):
            if row["killed"] or row["version"] == version:
                killed[row["mutant"]] = row["killed"]
        waiting = [mutant for mutant in mutants if mutant.identity not in killed]
        clean = {room: await run_clean(folders[0], room, version) for room in sorted({m.room for m in waiting})}
        to_try = len(waiting)

        async def work(folder: Path) -> None:
            while waiting:
                mutant, start = waiting.pop(0), time.monotonic()
                file, room = folder / mutant.path, clean[mutant.room]
                source = file.read_text()
                file.write_text(mutant.code)
                slowest, total = max(map(max, room.values())), sum(map(sum, room.values()))
                limits = SLOWER * slowest + SPARE, SLOWER * total + SPARE
                passed = await run_tests(folder, ordered(folder, room, mutant), limits)
                file.write_text(source)
                killed[mutant.identity] = not passed
                with results.open("a") as lines:
                    row = {"mutant": mutant.identity, "killed": not passed, "version": version}
                    lines.write(json.dumps(row | {"path": mutant.path, "added": mutant.added}) + "\n")
                outcome = "SURVIVED" if passed else "killed"
                done, seconds = to_try - len(waiting), time.monotonic() - start
                print(f"{done}/{to_try} {outcome} {mutant.path}:{mutant.line} ({seconds:.0f} s)", flush=True)

        await asyncio.gather(*map(work, folders))
    return killed


def accepted() -> dict[tuple[str, str], str]:
    """Return the reason of every accepted survivor by its file and its mutated line."""
    paragraphs = ACCEPTED.read_text().split("\n\n")[1:]
    rows = [paragraph.strip().split("\n", 2) for paragraph in paragraphs if paragraph.strip()]
    return {(path, line.strip()): " ".join(reason.split()) for path, line, reason in rows}


def report(mutants: list[Mutant], killed: dict[str, bool]) -> float:
    """Print every survivor, and what is killed by room, and return the share that is killed."""
    reasons = accepted()
    for mutant in mutants:
        if not killed[mutant.identity]:
            print(f"\n{mutant.path}:{mutant.line}\n  - {mutant.removed}\n  + {mutant.added}")
            if reason := reasons.get((mutant.path, mutant.added or mutant.removed)):
                print(f"  accepted: {reason}")
    print()
    for room in TESTS:
        here = [killed[mutant.identity] for mutant in mutants if mutant.room == room]
        if here:
            print(f"{room:10} {sum(here)} of {len(here)} killed ({sum(here) / len(here):.0%})")
    share = sum(killed[mutant.identity] for mutant in mutants) / len(mutants)
    print(f"{'all':10} {share:.1%} killed, at least {SHARE:.0%} wanted")
    return share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="mutants to draw")
    parser.add_argument("--only", choices=TESTS, help="the one room to draw from")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at once")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    options = parser.parse_args()
    if options.fresh:
        shutil.rmtree(SESSION, ignore_errors=True)
    SESSION.mkdir(parents=True, exist_ok=True)
    mutants = draw([options.only] if options.only else list(TESTS), options.count, options.seed)
    sys.exit(report(mutants, asyncio.run(try_all(mutants, options.jobs))) < SHARE)


if __name__ == "__main__":
    main()
