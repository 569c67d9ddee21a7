"""What of asyncua the product extends, replaces and reaches into; docs/explanation/asyncua.md says why.

Classes with asyncua's among their bases, private names that they use or override, private names of other objects, and
functions that are patched. The names are found in the source: a list by hand would forget one.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
_PRIVATE = re.compile(r"_[a-z]\w*")


@cache
def extended() -> dict[str, type]:
    """Return the classes of the product that extend one of asyncua, by module and name."""
    classes: dict[str, type] = {}
    for path in sorted(ROOT.glob("edge/**/*.py")):
        source = path.read_text()
        if "asyncua" not in source and "edge.opcua" not in source:
            continue
        names = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef) and node.bases]
        if names:
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            loaded = importlib.import_module(module)
            found = {name: getattr(loaded, name, None) for name in names}
            classes |= {
                f"{module}.{name}": value for name, value in found.items() if isinstance(value, type) and _bases(value)
            }
    return classes


def _bases(value: type) -> list[type]:
    return [base for base in value.__mro__[1:] if base.__module__.startswith("asyncua")]


def private_names() -> set[str]:
    """Return the private names of asyncua as CLASS.NAME, or NAME alone where the class of the object is not known."""
    return {name for value in extended().values() for name in _of_class(value)} | set(_of_others())


def _of_class(value: type) -> Iterator[str]:
    tree = ast.parse(dedent(inspect.getsource(value)))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_own(node.value)}
    used |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for name in filter(_PRIVATE.fullmatch, used):
        for base in _bases(value):
            if re.search(rf"\b(self|cls)\.{name}\b|def {name}\b|^    {name}\b", inspect.getsource(base), re.MULTILINE):
                yield f"{base.__name__}.{name}"
                break


def _is_own(value: ast.expr) -> bool:
    match value:
        case ast.Name("self" | "cls") | ast.Call(ast.Name("super")):
            return True
        case _:
            return False


def _of_others() -> Iterator[str]:
    """Yield the private names of objects that are not of the class that uses them."""
    for path in ROOT.glob("edge/**/*.py"):
        if "asyncua" in (source := path.read_text()):
            for line in source.splitlines():
                if "SLF001" in line:
                    yield from re.findall(r"(?<!self)\.(_[a-z]\w*)", line)


def patched() -> set[str]:
    """Return the functions of asyncua's modules that are replaced."""
    assigned: set[str] = set()
    for path in ROOT.glob("edge/**/*.py"):
        source = path.read_text()
        if "asyncua" in source:
            for node in ast.walk(ast.parse(source)):
                match node:
                    case ast.Assign([ast.Attribute(ast.Name(owner), name)], ast.Name(value)) if value.startswith(
                        "_"
                    ) and owner in {"ua_binary", "Buffer", "ua"}:
                        assigned.add(f"{owner}.{name}")
                    case _:
                        pass
    return assigned
