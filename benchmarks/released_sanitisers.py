"""Run released sanitisers as they are installed, and count how often they publish a word with a known probability.

Give the Python of an environment for each package. A count agrees if it has a probability of at least 1e-4 under the
exact law of LeakBoard's reading of the code. Without an environment, only the exact probabilities are printed.
"""

import subprocess
import tempfile
from pathlib import Path

from _released_cases import CASES, Case
from scipy.stats import binomtest

FOLDER = Path(__file__).resolve().parent
SMALLEST = 1e-4
"""Least probability of a count, or of one further from its expectation, that agrees."""


def counts(python: Path, case: Case, runs: int) -> list[int]:
    """Return how often the package replaces each of the two inputs by the case's output."""
    inputs = (case.likelier, case.other)
    if case.processes is not None:
        each = [[replaced(python, case, [word])[0] for _ in range(case.processes)] for word in inputs]
    else:
        published = replaced(python, case, [word for word in inputs for _ in range(runs)])
        each = [published[:runs], published[runs:]]
    return [part.count(case.output) for part in each]


def replaced(python: Path, case: Case, words: list[str]) -> list[str]:
    """Replace words by the package, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "words.txt"
        space = case.space
        rows = (" ".join([name, *map(str, row)]) for name, row in zip(space.words, space.vectors.tolist(), strict=True))
        table.write_text("".join(f"{row}\n" for row in rows), "utf-8")
        command = [str(python), str(FOLDER / "_released_program.py"), *case.program, str(table), *case.options]
        lines = "".join(f"{word}\n" for word in words)
        done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, cwd=folder, check=True)
    published = done.stdout.splitlines()
    assert len(published) == len(words), f"{case.package} printed {len(published)} lines for {len(words)}"
    return published


def agrees(times: int, runs: int, chance: float) -> bool:
    """Decide whether a count is likely enough under a probability; an impossible word must never come out."""
    chance = min(chance, 1.0)
    return bool(binomtest(times, runs, chance).pvalue >= SMALLEST)


def main(
    mldp_text: Path | None = None, pypantera: Path | None = None, dp_diffractor: Path | None = None, runs: int = 20_000
) -> None:
    """Print a row for each witness."""
    environments = {"mldp-text": mldp_text, "pypantera": pypantera, "dp-diffractor": dp_diffractor}
    differing = 0
    for case in CASES:
        python = environments[case.program[0]] if case.program else None
        counted = ""
        if python is not None:
            of = runs if case.processes is None else case.processes
            times = counts(python, case, runs)
            differing += not all(map(agrees, times, (of, of), case.chances))
            counted = f"{times[0]:,}, {times[1]:,}" + (f" of {of}" if of != runs else "")
        print(case.row(counted), flush=True)
    print(f"{differing} rows differ from the exact law")
