"""Draws mutants: modules of the engine in which one line does something else.

Lines are drawn by a hash of the seed and of the line itself, so that an edit elsewhere leaves the draw as it is. Of a
line one mutation is drawn: of those of mutmut, and of one of our own that drops a call (``texts.only("train")`` becomes
``texts``), because what keeps a secret from an attacker is often a call. Docstrings, type annotations, assertions,
decorators, messages of exceptions, log lines and strings with a space in them stay as they are. So do assignments,
which mutmut would set to None: every test that runs the line would notice.
"""

import ast
import difflib
import hashlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_assignment

CHECKOUT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Mutant:
    """A module of one room with one line changed."""

    room: str
    path: str
    line: int
    code: str
    removed: str
    added: str

    @property
    def identity(self) -> str:
        """A hash of the mutated module."""
        return digest(self.path, self.code)


def digest(*parts: object) -> str:
    """Return a hash of the parts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def draw(rooms: list[str], count: int, seed: int) -> list[Mutant]:
    """Return mutants of as many lines of the rooms."""
    files = [(room, file) for room in rooms for file in (CHECKOUT / "leakboard" / room).rglob("*.py")]
    lines = sorted((line for room, file in files for line in _lines(room, file, seed)), key=itemgetter(0))
    made = list(islice((mutant for _, make in lines if (mutant := make())), count))
    print(f"{len(made)} mutants of {len(lines)} lines", flush=True)
    return made


class Mutations(cst.CSTVisitor):
    """Collects the nodes of a module that have mutations, by line."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, imported: set[str]) -> None:
        super().__init__()
        self.imported = imported
        self.found: dict[int, list[tuple[cst.CSTNode, list[cst.CSTNode]]]] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _protects_nothing(node):
            return False
        if mutations := list(self._mutate(node)):
            line = self.get_metadata(PositionProvider, node).start.line
            self.found.setdefault(line, []).append((node, mutations))
        return True

    def _mutate(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Name) and node.func.value in ("len", "isinstance"):
                return  # nothing but a crash comes of len(None)
            if isinstance(node.func, cst.Attribute) and not self._is_imported(node.func.value):
                yield _in_brackets(node.func.value)
            if node.args and not node.args[0].keyword and not node.args[0].star:
                yield _in_brackets(node.args[0].value)
        for kind, operator in mutation_operators:
            if isinstance(node, kind) and operator is not operator_assignment:
                yield from operator(node)

    def _is_imported(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value in self.imported


def _protects_nothing(node: cst.CSTNode) -> bool:
    match node:
        case cst.Annotation() | cst.Assert() | cst.Decorator() | cst.Import() | cst.ImportFrom() | cst.Raise():
            return True
        case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
            return True
        case cst.Expr(value=cst.Call(func=cst.Name(value="log_progress"))):
            return True
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name(value="logger" | "logging" | "warnings")))):
            return True
        case cst.If(test=cst.Name(value="TYPE_CHECKING")):
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name == "__all__" or re.fullmatch("[A-Z]+[a-z]+[A-Za-z]*", name) is not None  # or an alias of a type
        case cst.SimpleString(value=text):
            return " " in text
        case cst.FormattedString(parts=parts):
            return any(isinstance(part, cst.FormattedStringText) and " " in part.value for part in parts)
    return False


def _in_brackets(node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, cst.Name | cst.Attribute | cst.Subscript | cst.Call) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _lines(room: str, file: Path, seed: int) -> Iterator[tuple[str, Callable[[], Mutant | None]]]:
    """Yield of every line that has a mutation the hash that it is drawn by, and what makes its mutant."""
    source, path = file.read_text(), file.relative_to(CHECKOUT).as_posix()
    texts, tree = source.splitlines(), ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    visitor = Mutations({alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names})
    wrapper = MetadataWrapper(cst.parse_module(source))
    wrapper.visit(visitor)

    def make(line: int, drawn_by: str) -> Mutant | None:
        generator = random.Random(drawn_by)
        for node, mutations in generator.sample(visitor.found[line], len(visitor.found[line])):
            for mutated in generator.sample(mutations, len(mutations)):
                code = cst.ensure_type(wrapper.module.deep_replace(node, mutated), cst.Module).code
                if _is_another_program(code, tree):
                    diff = list(difflib.unified_diff(texts, code.splitlines(), lineterm="", n=0))[2:]
                    removed, added = (" ".join(t[1:].strip() for t in diff if t[0] == sign) for sign in "-+")
                    return Mutant(room, path, line, code, removed, added)
        return None

    for line in visitor.found:
        text = texts[line - 1]
        drawn_by = digest(seed, path, text, texts[:line].count(text))
        yield drawn_by, partial(make, line, drawn_by)


def _is_another_program(code: str, tree: ast.Module) -> bool:
    try:
        compile(code, "mutant", "exec")
    except SyntaxError:
        return False
    return ast.dump(ast.parse(code)) != ast.dump(tree)
