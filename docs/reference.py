"""Writes the reference pages while MkDocs builds the site: from the code, so that they cannot say what is not there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import leakboard
import leakboard.site
from leakboard.board import schema
from leakboard.board.table_layouts import TABLES
from leakboard.cli.commands import app
from leakboard.cli.listing import what_meets
from leakboard.metrics.entries import METRICS
from leakboard.site.licences import licences
from leakboard.site.sections import markdown_table
from leakboard.suite.options import describe
from leakboard.suite.registry import Registry
from leakboard.suite.suite_file import ENTRY_KEYS, SuiteFile
from leakboard.threats.threat import known_threats

PICTURE = Path(leakboard.site.__file__).parent / "templates" / "threat_model.svg"
PICTURE_IN_CHECKOUT = "../leakboard/site/templates/threat_model.svg"
"""How `docs/threat_model.md` names the picture, so that it is also shown in a checkout."""
FUNCTIONS = ("evaluate", "compare", "audit", "run", "open_board", "boards")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the picture that the site and the README show too."""
    files.append(File.generated(config, PICTURE.name, abs_src_path=str(PICTURE)))
    for name, write in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=write()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page's text with the picture's name in the site."""
    return markdown.replace(PICTURE_IN_CHECKOUT, PICTURE.name)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; bars and breaks in cells do not end them."""
    return markdown_table(head, [[" ".join(c.replace("|", "&#124;").split()) for c in line] for line in rows])


def code(text: str) -> str:
    """Return text as Markdown code, in which a bar stays a bar; nothing where there is no text."""
    return "<br>".join(f"<code>{escaped(line)}</code>" for line in text.splitlines())


def escaped(text: str) -> str:
    """Return text whose signs mean themselves in Markdown and HTML."""
    for sign, entity in {"&": "&amp;", "<": "&lt;", ">": "&gt;", "*": "&#42;", "_": "&#95;", "`": "&#96;"}.items():
        text = text.replace(sign, entity)
    return text


def prose(text: str) -> str:
    """Return a docstring's paragraphs as Markdown: double backticks are code."""
    return inspect.cleandoc(text).replace("``", "`").replace("<", "&lt;")


def options(cls: type) -> str:
    """Return the table of a class of options."""
    described = describe(cls)
    rows = [[code(o.name), escaped(o.allowed), code(o.default), prose(o.text)] for o in described]
    return table(["option", "allowed", "default", "meaning"], rows) if rows else "It has no options."


def suites() -> str:
    """Return the page of what a suite's YAML may say."""
    keys = options(SuiteFile).replace("| option |", "| key |", 1)
    entries = table(["key", "meaning"], [[code(name), text] for name, text in ENTRY_KEYS.items()])
    return (
        "# A suite's keys\n\nA suite is a YAML file, or a mapping in Python. An unknown key is refused.\n\n"
        f"{keys}\n\n## Keys of an entry\n\nAn entry is a plugin's name, or the name with the plugin's "
        "options: `plugin: {option: value}`. These keys are for every plugin of the kind:\n\n"
        f"{entries}\n\nFile names in a suite are relative to the suite's own folder.\n"
    )


def columns() -> str:
    """Return the page of the columns of every file."""
    parts = [
        "# Columns of the tables\n\nShares and scores lie in [0, 1]; an advantage may be below 0. "
        "An empty field means: not applicable."
    ]
    for file, layout in TABLES.items():
        if file.endswith(".csv"):
            rows = [[code(column.name), column.meaning] for column in schema.columns(file, known_threats())]
            parts.append(f"## {file}\n\n{layout.meaning}\n\n{table(['column', 'meaning'], rows)}")
    return "\n\n".join(parts) + "\n"


def metrics() -> str:
    """Return the page of what is measured."""
    rows = table(["metric", "meaning"], [[code(name), entry.meaning] for name, entry in METRICS.items()])
    intro = "`cells.csv` has one row a cell and metric. [How answers are scored](../scoring.md) says more."
    return f"# Metrics\n\n{intro}\n\n{rows}\n"


def plugins(kind: str) -> str:
    """Return the page of all plugins of a kind, with their options."""
    registry = Registry([])
    parts = [f"# {kind.capitalize()}\n\n`python run_benchmark.py list {kind}` says which of them can be used here."]
    for listing in registry.listings(kind):
        cls = registry.load(kind, listing.name)
        meets = "" if kind == "datasets" else f"*It {what_meets(registry, kind, listing.name)}.*\n\n"
        text = prose(inspect.getdoc(inspect.getmodule(cls)) or "")
        parts.append(f"## {listing.name}\n\n{text}\n\n{meets}{options(cls)}")
    return "\n\n".join(parts) + "\n"


def commands() -> str:
    """Return the page of the command line, as its own help has it."""
    parts = [
        "# Commands\n\nIn a checkout: `python run_benchmark.py COMMAND`; where the package is installed, also "
        "`leakboard COMMAND` and `python -m leakboard COMMAND`. Without a command the demo leaderboard is computed; "
        "`--version` tells the version.\n\n"
        + table(
            ["exit status", "meaning"],
            [
                ["0", "all cells are done"],
                ["1", "some cells failed; the others are kept. `check`: a rule is broken. `verify`: a cell differs"],
                ["2", "the request is wrong; one line says where, and what is allowed"],
                [
                    "3",
                    "`run` with `--at-most` or `--at-least`: a row breaks a limit, or own vectors seem not to belong "
                    "to their rows",
                ],
                ["130", "the command was interrupted; finished cells are kept"],
            ],
        )
    ]
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        if command.hidden:
            continue
        rows = []
        for parameter in command.params:
            is_option = parameter.opts[0].startswith("-")
            default = "" if parameter.default in (None, "") or parameter.default is False else parameter.default
            title = ", ".join(parameter.opts) if is_option else str(parameter.name).upper()
            default = "required" if parameter.required else code(str(default() if callable(default) else default))
            rows.append([code(title), default, escaped(getattr(parameter, "help", "") or "")])
        parts.append(f"## {name}\n\n{command.help}\n\n{table(['argument or option', 'default', 'meaning'], rows)}")
    return "\n\n".join(parts) + "\n"


def python() -> str:
    """Return the page of the Python functions."""
    from leakboard.api.mechanisms import Audit
    from leakboard.api.report import Report

    parts = ["# Python\n\nEverything is imported when it is first asked for; `import leakboard` costs nothing."]
    for name in FUNCTIONS:
        function = getattr(leakboard, name)
        parts.append(f"## leakboard.{name}\n\n{signature(name, function)}\n\n{docstring(function)}")
    for cls in (Report, Audit):
        members = [(n, m) for n, m in vars(cls).items() if not n.startswith("_") and inspect.getdoc(member(m))]
        documented = [(n, m) for n, m in members if n not in cls.__annotations__]
        rows = [[code(n), prose((inspect.getdoc(member(m)) or "").split("\n")[0])] for n, m in documented]
        parts.append(f"## {cls.__name__}\n\n{docstring(cls)}\n\n{table(['member', 'what it is'], rows)}")
    return "\n\n".join(parts) + "\n"


def dependencies() -> str:
    """Return the page of licences."""
    needed = licences()
    head = ["package", "version here", "licence", "named by LeakBoard"]
    rows = [[code(p.package), code(p.version), escaped(p.licence), "yes" if p.direct else ""] for p in needed]
    parts = [
        "# Licences of dependencies",
        f"LeakBoard has the Apache License 2.0. It needs {len(needed)} packages. Each is installed from a registry, "
        "and none is copied or modified. The table says what these packages themselves say, in the installation that "
        "made this page.",
        table(head, rows),
        "Extras such as `ray` or `stores` need further packages. A torch with CUDA also needs NVIDIA's libraries.",
    ]
    return "\n\n".join(parts) + "\n"


def member(found: Any) -> Any:
    """Return the function behind a property."""
    return getattr(found, "fget", None) or getattr(found, "func", None) or found


def signature(name: str, function: Callable[..., Any]) -> str:
    """Return a function's signature as a block of code, an argument a line."""
    shown = inspect.signature(function)
    parameters = list(shown.parameters.values())
    lines = [f"    {parameter}," for parameter in parameters]
    keyword_only = [place for place, parameter in enumerate(parameters) if parameter.kind is parameter.KEYWORD_ONLY]
    if keyword_only:
        lines.insert(keyword_only[0], "    *,")
    body = "\n".join(["", *lines, ""]) if lines else ""
    return f"```py\n{name}({body}) -> {shown.return_annotation}\n```"


def docstring(found: Any) -> str:
    """Return a docstring as Markdown: its arguments and errors as lists."""
    lines = []
    for line in prose(inspect.getdoc(found) or "").splitlines():
        text = line.strip()
        if text in ("Args:", "Raises:"):
            lines += ["", f"**{text}**", ""]
        elif line.startswith("        "):
            lines[-1] += f" {text}"
        elif line.startswith("    "):
            name, _, rest = text.partition(":")
            lines.append(f"- `{name}`:{rest}")
        else:
            lines.append(text)
    return "\n".join(lines)


PAGES: Mapping[str, Callable[[], str]] = {
    "python": python,
    "commands": commands,
    "suites": suites,
    "columns": columns,
    "metrics": metrics,
    "datasets": lambda: plugins("datasets"),
    "victims": lambda: plugins("victims"),
    "attacks": lambda: plugins("attacks"),
    "licences": dependencies,
}
"""The generated pages, by the names of their files."""
