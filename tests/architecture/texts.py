"""Finds the ids of texts for people in the source, and the catalogues with their translations.

An id is a constant that stands where the source declares a `Text`: the first argument of `Text.of` and `Text`, an
argument for a parameter or field of type `Text`, and what a function of this type returns.

`python -m tests.architecture.texts fr` prints the ids that a catalogue does not have, as lines to be filled in.
"""

import ast
import string
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.architecture.sources import ROOT, modules, nodes, syntax

CATALOGUES = Path("edge/texts")
TEXT = ("edge.foundation.text", "Text")
META = ("msgspec", "Meta")


class Origin(NamedTuple):
    """A place in the source that states an id; `values` are the names of its values, None for a text without any."""

    id: str
    path: Path
    line: int
    values: frozenset[str] | None

    @property
    def room(self) -> Path:
        """Return the folder that the catalogue names above the id: a room, or a feature."""
        return Path(*self.path.parts[: 3 if self.path.parts[1] == "features" else 2])


class Signature(NamedTuple):
    """The parameters of a function or class in their order, and those of type `Text`."""

    parameters: tuple[str, ...]
    texts: frozenset[str]


def names_in(text: str) -> frozenset[str]:
    """Return the names of the places of a text with values."""
    return frozenset(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


@cache
def catalogue(language: str) -> Mapping[str, Mapping[str, str]]:
    """Read a catalogue."""
    return tomllib.loads((ROOT / CATALOGUES / f"{language}.toml").read_text(encoding="utf-8"))


@cache
def languages() -> tuple[str, ...]:
    """Return the languages that have a catalogue."""
    return tuple(sorted(path.stem for path in (ROOT / CATALOGUES).glob("*.toml")))


@cache
def origins() -> tuple[Origin, ...]:
    """Return every place in the source that states an id, in the order of files and lines."""
    return tuple(
        origin for path in modules() for origin in sorted(set(module_of(path).origins()), key=lambda o: o.line)
    )


class Module:
    """The syntax of a module with the meaning of its names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = syntax(path)
        self.imports = dict(_imports(path))
        self.constants = assigned(self.tree.body)
        self.supers = dict(_supers(path))

    def origins(self) -> Iterator[Origin]:
        """Yield the ids that the module states."""
        yield from self._in_scope(self.tree, {})

    def _in_scope(self, scope: ast.AST, outer: Mapping[str, list[ast.expr]]) -> Iterator[Origin]:
        """Yield the ids of a module or function; `outer` are the values of the names around it."""
        names, returned = outer, None
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            names, returned = {**outer, **assigned(scope.body)}, scope.returns
        for node in nodes_of(scope):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._in_scope(node, names)
            elif isinstance(node, ast.Call):
                yield from self._of_call(node, names)
            elif isinstance(node, ast.Return | ast.Yield | ast.AnnAssign):
                annotation = node.annotation if isinstance(node, ast.AnnAssign) else returned
                yield from self._of_values(node.value if self.is_text(annotation) else None, names)

    def _of_call(self, call: ast.Call, names: Mapping[str, list[ast.expr]]) -> Iterator[Origin]:
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr="of") if self.meaning(name) == TEXT:
                values = frozenset(keyword.arg for keyword in call.keywords if keyword.arg)
                for text, line in self._constants_in(call.args[0], names):
                    yield Origin(text, self.path, line, values)
            case ast.Attribute(attr="__init__") if signature := signatures().get(
                self.meaning(self.supers.get(call, ""))
            ):
                yield from self._of_arguments(call, signature, names)
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                if self.meaning(name) == TEXT:
                    yield from self._of_values(call.args[0], names)
                elif signature := signatures().get(self.meaning(name)):
                    yield from self._of_arguments(call, signature, names)
                elif self.meaning(name) == META:
                    yield from self._of_values(expectation(call), names)
            case _:
                pass

    def _of_arguments(
        self, call: ast.Call, signature: Signature, names: Mapping[str, list[ast.expr]]
    ) -> Iterator[Origin]:
        for parameter, argument in arguments_of(call, signature.parameters):
            if parameter in signature.texts:
                yield from self._of_values(argument, names)

    def _of_values(self, value: ast.expr | None, names: Mapping[str, list[ast.expr]]) -> Iterator[Origin]:
        for text, line in self._constants_in(value, names):
            if text:
                yield Origin(text, self.path, line, None)

    def _constants_in(self, value: ast.expr | None, names: Mapping[str, list[ast.expr]]) -> Iterator[tuple[str, int]]:
        """Yield the texts that an expression may be, with their lines: of a name, of both branches, of a list."""
        match value:
            case ast.Constant(value=str(text), lineno=line):
                yield text, line
            case ast.IfExp(body=body, orelse=other):
                yield from self._constants_in(body, names)
                yield from self._constants_in(other, names)
            case (
                ast.Tuple(elts=members) | ast.List(elts=members) | ast.BoolOp(values=members) | ast.Dict(values=members)
            ):
                for member in members:
                    yield from self._constants_in(member, names)
            case ast.Name(id=name) if name in names:
                inner = {other: values for other, values in names.items() if other != name}
                for assigned in names[name]:
                    yield from self._constants_in(assigned, inner)
            case ast.Name(id=name) if name in self.constants:
                for assigned in self.constants[name]:
                    yield from self._constants_in(assigned, {name: []})
            case ast.Name(id=name) if name in self.imports:
                module, original = self.imports[name]
                for assigned in constants_of(module).get(original, []):
                    yield from self._constants_in(assigned, {name: []})
            case _:
                pass

    def is_text(self, annotation: ast.expr | None) -> bool:
        """Return whether an annotation names `Text` of the foundation."""
        return annotation is not None and any(
            isinstance(node, ast.Name) and self.meaning(node.id) == TEXT for node in ast.walk(annotation)
        )

    def meaning(self, name: str) -> tuple[str, str]:
        """Return the module and the name there of a name."""
        return self.imports.get(name, (dotted(self.path), name))


@cache
def signatures() -> Mapping[tuple[str, str], Signature]:
    """Return what takes a `Text`, by module and name: functions, classes, and the classes that inherit from these."""
    found: dict[tuple[str, str], Signature] = {}
    bases: dict[tuple[str, str], tuple[str, str]] = {}
    for path in modules():
        module = module_of(path)
        for node in nodes(module.path):
            key = (dotted(path), getattr(node, "name", ""))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "__init__":
                _add(found, key, module, _parameters(node))
            elif isinstance(node, ast.ClassDef):
                _add(found, key, module, _fields(node))
                for base in node.bases:
                    if isinstance(base, ast.Name) and key not in found:
                        bases[key] = module.meaning(base.id)
    while inherited := {key: found[base] for key, base in bases.items() if base in found and key not in found}:
        found.update(inherited)
    return found


def _add(
    found: dict[tuple[str, str], Signature],
    key: tuple[str, str],
    module: Module,
    parameters: Mapping[str, ast.expr | None],
) -> None:
    texts = frozenset(name for name, annotation in parameters.items() if module.is_text(annotation))
    if texts:
        found[key] = Signature(tuple(parameters), texts)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Mapping[str, ast.expr | None]:
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return {argument.arg: argument.annotation for argument in arguments if argument.arg not in {"self", "cls"}}


def _fields(class_: ast.ClassDef) -> Mapping[str, ast.expr | None]:
    """Return the parameters of a class: those of its `__init__`, or the fields of a struct."""
    for node in class_.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return _parameters(node)
    return {
        node.target.id: node.annotation
        for node in class_.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def arguments_of(call: ast.Call, parameters: Sequence[str]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the arguments of a call with the names of their parameters."""
    yield from zip(parameters, call.args, strict=False)
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)


def expectation(call: ast.Call) -> ast.expr | None:
    """Return what the `Meta` of a key says that is expected of its value: it stands in faults of the settings."""
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "expected":
                    return value
    return None


def _supers(path: Path) -> Iterator[tuple[ast.AST, str]]:
    """Yield the calls of `super().__init__`, each with the name of the base class."""
    for class_ in nodes(path):
        if isinstance(class_, ast.ClassDef) and class_.bases and isinstance(class_.bases[0], ast.Name):
            yield from ((node, class_.bases[0].id) for node in ast.walk(class_) if isinstance(node, ast.Call))


def nodes_of(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a scope; of an inner function only itself."""
    below = list(ast.iter_child_nodes(scope))[::-1]
    while below:
        node = below.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            below.extend(list(ast.iter_child_nodes(node))[::-1])


def assigned(body: list[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Return the values that names get in a body."""
    found: dict[str, list[ast.expr]] = {}
    for statement in body:
        inner = () if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) else nodes_of(statement)
        for node in (statement, *inner):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value):
                    found.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    found.setdefault(name, []).append(value)
                case ast.NamedExpr(target=ast.Name(id=name), value=value):
                    found.setdefault(name, []).append(value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                    for target, value in zip(targets, values, strict=False):
                        if isinstance(target, ast.Name):
                            found.setdefault(target.id, []).append(value)
                case _:
                    pass
    return found


@cache
def module_of(path: Path) -> Module:
    """Return a module, read once for all rules."""
    return Module(path)


@cache
def constants_of(module: str) -> Mapping[str, list[ast.expr]]:
    """Return the values that names get in a module; none for one that is not ours."""
    path = Path(*module.split(".")).with_suffix(".py")
    return assigned(syntax(path).body) if path in modules() else {}


def _imports(path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, (node.module, alias.name)


def dotted(path: Path) -> str:
    """Return the name of a module."""
    return ".".join(path.with_suffix("").parts)


def missing(language: str) -> str:
    """Return the ids that a catalogue does not have, as lines of its table `[texts]` to be filled in."""
    stated = catalogue(language).get("texts", {}) if language in languages() else {}
    first = {origin.id: origin for origin in reversed(origins())}
    absent = sorted((origin for text, origin in first.items() if text not in stated), key=lambda origin: origin[1:3])
    lines: list[str] = []
    for room, grouped in groupby(absent, key=lambda origin: origin.room):
        lines += [f"# {room}", *(f'{quoted(origin.id)} = ""' for origin in grouped)]
    return "\n".join(lines)


def quoted(text: str) -> str:
    """Return a text as a basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


if __name__ == "__main__":
    sys.stdout.write(f"{missing(sys.argv[1])}\n")
