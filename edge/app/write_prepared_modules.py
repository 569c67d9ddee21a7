"""Writes the prepared modules of a gateway during the installation: `python -m edge.app.write_prepared_modules`.

It imports what a gateway can import, as `edge run` does, and writes it into one file.
"""

import contextlib
import gc
import importlib.util
import marshal
import os
import pkgutil
import re
import sys
import zlib
from collections.abc import Iterable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import click

import edge
from edge.files import replace_atomically, sync
from edge.prepared_modules import HEADER, MAGIC, Patterns, PreparedModule, pattern_compiler, prepared_modules_path
from edge.stand_ins import import_paho, import_structlog

_UNUSED = ("edge.__main__", "edge.app.write_prepared_modules", "edge.cli", "edge.sim", "edge.web")
"""What a gateway does not import; the station page is a process of its own."""


_NODE_NUMBERS = "asyncua.ua.object_ids"
_NODE_NUMBERS_SOURCE = """
ObjectIds = type("ObjectIds", (), dict(zip({names}, {numbers})))
ObjectIdNames = {{number: name for name, number in vars(ObjectIds).items() if not name.startswith("__")}}
"""
"""Defines 14,800 names at once; asyncua assigns each of them twice, which takes a twentieth of the start."""


def import_all() -> None:
    """Import every module of a gateway, first those of each start; without those of missing optional packages."""
    import_structlog()
    import_paho()
    importlib.import_module("edge.app.lifecycle")
    importlib.import_module("edge.opcua.generated_structures").import_asyncua()
    for module in pkgutil.walk_packages(edge.__path__, "edge."):
        if not module.name.startswith(_UNUSED):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def compiled_patterns() -> Patterns:
    """Return the compiled form of the regular expressions that are in the cache of `re`."""
    engine = pattern_compiler._sre  # noqa: SLF001 - Python has no public form of a compiled expression
    recorder = ModuleType("_sre")

    def parts_of(pattern: str | bytes | None, flags: int, code: list[int], *groups: Any) -> tuple[Any, ...]:
        # A file cannot contain the named numbers of the code.
        return pattern, int(flags), [*map(int, code)], *groups

    recorder.__dict__.update(vars(engine), compile=parts_of)
    pattern_compiler._sre = recorder  # noqa: SLF001 - the compiler passes its result to nothing else; restored below
    try:
        # Nor the number that stands for no flags from Python 3.13 on.
        expressions = [(pattern, int(flags)) for _kind, pattern, flags in [*vars(re)["_cache"]]]
        return {(pattern, flags): pattern_compiler.compile(pattern, flags) for pattern, flags in expressions}
    finally:
        pattern_compiler._sre = engine  # noqa: SLF001 - restores what was replaced above


def write(path: Path, names: Iterable[str]) -> int:
    """Write the named modules, in this order, and return their number; the file is replaced atomically.

    Modules outside of packages and those without a source file are left out.
    """
    entries: dict[str, PreparedModule] = {}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_atomically(path, 0o644) as file:
        file.seek(HEADER.size)
        for name in names:
            loader = getattr(getattr(sys.modules.get(name), "__spec__", None), "loader", None)
            if not isinstance(loader, SourceFileLoader) or "." not in name:
                continue
            source = os.path.abspath(loader.path)  # noqa: PTH100 - as the import system does it
            status = Path(source).stat()
            code = marshal.dumps(_code_of(sys.modules[name], source))
            bytecode = importlib.util.cache_from_source(source)
            place = file.tell(), len(code), zlib.crc32(code)
            entries[name] = PreparedModule(source, status.st_size, status.st_mtime_ns, bytecode, *place)
            file.write(code)
        index_at = file.tell()
        modules = {name: tuple(entry) for name, entry in entries.items()}
        index = marshal.dumps((modules, sys.version, compiled_patterns()))
        file.write(index)
        length = file.tell()
        file.seek(0)
        file.write(HEADER.pack(MAGIC, zlib.crc32(index), index_at, length))
        sync(file)
    return len(entries)


def _code_of(module: ModuleType, source: str) -> CodeType | None:
    """Return the code of a module; for the node numbers of asyncua a shorter one that defines the same."""
    if module.__name__ == _NODE_NUMBERS:
        contents = _node_numbers(vars(module))
        names, numbers = contents["ObjectIds"].keys(), contents["ObjectIds"].values()
        code = compile(_NODE_NUMBERS_SOURCE.format(names=(*names,), numbers=(*numbers,)), source, "exec")
        made: dict[str, Any] = {"__name__": module.__name__}
        exec(code, made)  # noqa: S102 - it is made of the names and numbers of this module
        if _node_numbers(made) == contents:
            return code
    return SourceFileLoader(module.__name__, source).get_code(module.__name__)


def _node_numbers(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the module of the node numbers contains, with the numbers of its class in place of the class."""
    public = {name: each for name, each in contents.items() if not name.startswith("__")}
    numbers = {name: each for name, each in vars(public["ObjectIds"]).items() if not name.startswith("__")}
    return public | {"ObjectIds": numbers}


@click.command()
@click.option("--file", type=click.Path(path_type=Path), default=prepared_modules_path)
def main(file: Path) -> None:
    """Write the modules of a gateway into the file that `edge run` reads."""
    import_all()
    click.echo(f"wrote {file} with {write(file, [*sys.modules])} modules")


if __name__ == "__main__":
    gc.disable()  # all modules live until the end
    main()
