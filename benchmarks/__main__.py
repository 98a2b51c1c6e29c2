"""Run a benchmark: ``python benchmarks`` lists them all, ``python benchmarks NAME --help`` shows the options of one."""

import ast
import importlib
import sys
from collections.abc import Sequence

import typer
from _leakboard import FOLDER

NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


def summary(name: str) -> str:
    """Return the first line of a benchmark's docstring, without importing it."""
    text = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))) or ""
    return text.partition("\n")[0]


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark that the first argument names, or list them all."""
    name, *options = arguments or [""]
    if name in NAMES:
        module = importlib.import_module(name)
        app = typer.Typer(add_completion=False)
        app.command(help=module.__doc__)(module.main)
        app(options, prog_name=f"python benchmarks {name}")
    if name not in ("", "--help"):
        sys.exit(f"{name!r} is not a benchmark; there are: {', '.join(NAMES)}")
    print("python benchmarks NAME [options]\n")
    for known in NAMES:
        print(f"  {known:20} {summary(known)}")


if __name__ == "__main__":
    main(sys.argv[1:])
