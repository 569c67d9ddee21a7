"""Finds English fragments that stand as values inside a text: a reader of another language would get them as they are.

A value is followed to the constants that it may be: through names, branches, joined strings, functions that return a
string, and the arguments of the functions whose parameters are values. What has the form of an identifier, such as
`max_message_bytes`, `ETX` or `GetResultById`, or of a command, is the same in each language.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.architecture.sources import modules, nodes, syntax
from tests.architecture.texts import (
    TEXT,
    Module,
    arguments_of,
    assigned,
    constants_of,
    dotted,
    module_of,
    nodes_of,
    signatures,
)

IDENTIFIERS: Final = frozenset(
    (
        *("h", "min", "ms", "s"),
        *("true", "false", "debug", "info", "warning", "error", "critical", "single", "batch"),
        *("Ended", "Completed", "escalated", "acknowledged", "cleared"),
        *(
            "any",
            "always",
            "in",
            "input",
            "store",
            "identifiers",
            "job",
            "time",
            "doctor",
            "code",
            "publish",
            "heartbeat",
            "Redis",
            "boards",
            "value",
            "steps",
            "actions",
            "transitions",
            "mqtt",
            "mqtts",
            "Valkey",
            "appendonlydir",
            "mosquitto",
        ),
    )
)
"""Words that are the same in each language: units, literals and settings, states, names of objects and commands."""
_WORD: Final = re.compile(r"(?<![\w./:=@-])[A-Za-z]?[a-z]+(?![\w./:=@-])")
_DEEPEST: Final = 6

_Names = Mapping[str, list[ast.expr]]


class Fragment(NamedTuple):
    """A constant with English words that may become the value of a text."""

    path: Path
    line: int
    constant: str


def fragments() -> list[Fragment]:
    """Return every fragment of the source, in the order of files and lines."""
    found = set()
    parameters = _value_parameters()
    for path in modules():
        module = module_of(path)
        for call, names in _calls(module.tree, {}):
            values = [keyword.value for keyword in call.keywords] if _states_text(module, call) else []
            called = _called(module, call)
            values += [value for name, value in arguments_of(call, _signature(called)) if (called, name) in parameters]
            found |= {
                Fragment(path, call.lineno, constant)
                for value in values
                for constant in _constants(module, value, names)
                if has_english_word(constant)
            }
    return sorted(found)


def has_english_word(constant: str) -> bool:
    """Return whether a constant has a word that is not an identifier by its form."""
    return any(
        word not in IDENTIFIERS for word in _WORD.findall(re.sub(r"\{[^}]*\}|^edge( [a-z-]+)+$", " 0 ", constant))
    )


def _states_text(module: Module, call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id=name), attr="of"):
            return module.meaning(name) == TEXT
        case _:
            return False


def _called(module: Module, call: ast.Call) -> tuple[str, str]:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return module.meaning(name)
        case _:
            return "", ""


@cache
def _functions() -> Mapping[tuple[str, str], tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return functions and methods by module and name; the `__init__` of a class by the name of the class."""
    found = {}
    for path in modules():
        classes = (node for node in nodes(path) if isinstance(node, ast.ClassDef))
        for scope in (syntax(path), *classes):
            class_name = scope.name if isinstance(scope, ast.ClassDef) else ""
            for node in ast.iter_child_nodes(scope):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    name = class_name if class_name and node.name == "__init__" else node.name
                    found[dotted(path), name] = path, node
    return found


def _signature(function: tuple[str, str]) -> tuple[str, ...]:
    if function not in _functions():
        return ()
    arguments = _functions()[function][1].args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return tuple(argument.arg for argument in every if argument.arg not in {"self", "cls"})


def _value_parameters() -> frozenset[tuple[tuple[str, str], str]]:
    """Return the parameters that are values of a text in their function."""
    found = set()
    for function, (path, node) in _functions().items():
        module = module_of(path)
        for call, _ in _calls(node, {}) if "Text" in module.imports else ():
            if _states_text(module, call):
                names = {
                    name.id
                    for keyword in call.keywords
                    for name in ast.walk(keyword.value)
                    if isinstance(name, ast.Name)
                }
                found |= {(function, name) for name in names & set(_signature(function))}
    return frozenset(found)


def _calls(scope: ast.AST, outer: _Names) -> Iterator[tuple[ast.Call, _Names]]:
    """Yield each call with the values of the names around it."""
    names = outer
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        names = {**outer, **assigned(scope.body)}
    for node in nodes_of(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _calls(node, names)
        elif isinstance(node, ast.Call):
            yield node, names


def _constants(module: Module, value: ast.expr, names: _Names, depth: int = 0) -> Iterator[str]:
    """Yield the constants that an expression may be, or that are part of it."""
    if depth > _DEEPEST:
        return
    match value:
        case ast.Constant(value=str(constant)):
            yield constant
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
            inner = [part.value for part in parts if isinstance(part, ast.FormattedValue)]
            yield from _constants_of_all(module, inner, names, depth)
        case ast.IfExp(body=body, orelse=other):
            yield from _constants_of_all(module, [body, other], names, depth)
        case ast.BinOp(left=left, right=right):
            yield from _constants_of_all(module, [left, right], names, depth)
        case ast.BoolOp(values=members) | ast.Tuple(elts=members) | ast.List(elts=members) | ast.Dict(values=members):
            yield from _constants_of_all(module, members, names, depth)
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[joined]):
            yield from _constants(module, joined, names, depth)
        case (
            ast.GeneratorExp(elt=inner) | ast.ListComp(elt=inner) | ast.Await(value=inner) | ast.Subscript(value=inner)
        ):
            yield from _constants(module, inner, names, depth)
        case ast.Name(id=name):
            yield from _constants_of_name(module, name, names, depth)
        case ast.Call():
            yield from _returned(module, value, depth)
        case _:
            pass


def _constants_of_all(module: Module, values: list[ast.expr], names: _Names, depth: int) -> Iterator[str]:
    for value in values:
        yield from _constants(module, value, names, depth)


def _constants_of_name(module: Module, name: str, names: _Names, depth: int) -> Iterator[str]:
    if name in names:
        values, names = names[name], {other: values for other, values in names.items() if other != name}
    elif name in module.imports:
        values, names = constants_of(module.imports[name][0]).get(module.imports[name][1], []), {}
    else:
        values, names = module.constants.get(name, []), {}
    yield from _constants_of_all(module, values, names, depth + 1)


def _returned(module: Module, call: ast.Call, depth: int) -> Iterator[str]:
    """Yield the constants that a function returns that returns a string."""
    found = _functions().get(_called(module, call))
    if found is None or found[1].returns is None or not _is_string(found[1].returns):
        return
    path, function = found
    for node in nodes_of(function):
        if isinstance(node, ast.Return) and node.value:
            yield from _constants(module_of(path), node.value, assigned(function.body), depth + 1)


def _is_string(annotation: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "str" for node in ast.walk(annotation))


def untranslated() -> list[Fragment]:
    """Return the f-strings with English words that stand in the place of a text: no catalogue can have their ids."""
    found = set()
    places = _text_places()
    for path in modules():
        module = module_of(path)
        for value, names in _stated_values(module, places):
            found |= {
                Fragment(path, value.lineno, constant)
                for constant in _templates(module, value, names)
                if has_english_word(constant)
            }
    return sorted(found)


_Places = Mapping[tuple[str, str], frozenset[str]]


def _text_places() -> _Places:
    """Return the parameters that are a `Text`, and those that a function hands on as one."""
    places = {called: signature.texts for called, signature in signatures().items()}
    handed = {
        (function, value.id, called, name)
        for function, (path, node) in _functions().items()
        for call, _ in _calls(node, {})
        for called in (_called(module_of(path), call),)
        for name, value in arguments_of(call, _parameters_of(called))
        if isinstance(value, ast.Name) and value.id in _signature(function)
    }
    while further := {
        (function, own)
        for function, own, called, name in handed
        if name in places.get(called, ()) and own not in places.get(function, ())
    }:
        for function, own in further:
            places[function] = places.get(function, frozenset()) | {own}
    return places


def _parameters_of(called: tuple[str, str]) -> tuple[str, ...]:
    signature = signatures().get(called)
    return signature.parameters if signature else _signature(called)


def _stated_values(module: Module, places: _Places) -> Iterator[tuple[ast.expr, _Names]]:
    """Yield what stands in the place of a text: arguments, and what functions return and yield."""
    for call, names in _calls(module.tree, {}):
        called = _called(module, call)
        if called == TEXT and call.args:
            yield call.args[0], names
        yield from (
            (value, names)
            for name, value in arguments_of(call, _parameters_of(called))
            if name in places.get(called, ())
        )
        if isinstance(call.func, ast.Attribute) and call.func.attr == "append" and _listed(call) in _lists(module):
            yield call.args[0], names
    for function in nodes(module.path):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and module.is_text(function.returns):
            names = assigned(function.body)
            yield from (
                (node.value, names)
                for node in nodes_of(function)
                if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value
            )


def _listed(call: ast.Call) -> str:
    """Return the name of the list to which a call appends, of an attribute its last name."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
        case _:
            return ""


@cache
def _lists(module: Module) -> frozenset[str]:
    """Return the names in a module that are annotated as lists of texts."""
    annotated = {node.arg: node.annotation for node in nodes(module.path) if isinstance(node, ast.arg)}
    annotated |= {
        node.target.id if isinstance(node.target, ast.Name) else getattr(node.target, "attr", ""): node.annotation
        for node in nodes(module.path)
        if isinstance(node, ast.AnnAssign)
    }
    return frozenset(name for name, annotation in annotated.items() if module.is_text(annotation))


def _templates(module: Module, value: ast.expr, names: _Names, depth: int = 0) -> Iterator[str]:
    """Yield the f-strings that an expression may be, with `{}` for each value."""
    if depth > _DEEPEST:
        return
    inner: list[ast.expr] = []
    match value:
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
        case ast.IfExp(body=body, orelse=other):
            inner = [body, other]
        case ast.BoolOp(values=members) | ast.Tuple(elts=members) | ast.List(elts=members):
            inner = members
        case ast.BinOp(left=left, right=right):
            inner = [left, right]
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element) | ast.Starred(value=element):
            inner = [element]
        case ast.Name(id=name) if name in names:
            inner, names = names[name], {other: values for other, values in names.items() if other != name}
        case ast.Call():
            function = _functions().get(_called(module, value))
            if function and function[1].returns is not None and _is_string(function[1].returns):
                for node in nodes_of(function[1]):
                    if isinstance(node, ast.Return | ast.Yield) and node.value:
                        yield from _templates(module_of(function[0]), node.value, assigned(function[1].body), depth + 1)
        case _:
            pass
    for item in inner:
        yield from _templates(module, item, names, depth + 1)
