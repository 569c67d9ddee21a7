"""The prepared modules: one file with the place and the code of each module that a gateway imports.

For each of seven hundred modules, Python otherwise searches directories and opens and reads a file of bytecode; from
an SD card each of these is a random read. As with Python's own bytecode, an entry is used only while its source has
the recorded size and time of change; a module without such an entry is imported as usual. So is every module outside
of a package, since a directory earlier in `sys.path` may contain another one.

Code is used only with its checksum: Python ends at once, or executes something else, where a byte of it is damaged,
and would do so at each start. The sources still serve.

The file also contains what Python compiles of the regular expressions of these modules: parsing them takes a
twentieth of the start. This form is only valid for one version of Python.

The entries execute code: the file is written during the installation, next to the bytecode of this package, and
`use_prepared_modules` ignores a file that other users can write.
"""

import contextlib
import importlib.util
import marshal
import os
import re
import struct
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple, TypeAlias

MAGIC = b"microdcs-edge modules 3\n" + importlib.util.MAGIC_NUMBER
HEADER = struct.Struct(f"<{len(MAGIC)}sIQQ")
"""Magic, checksum of the index, position of the index, length of the file."""
_OTHERS_MAY_WRITE = 0o022


class PreparedModule(NamedTuple):
    """A module: its source with size and time of change, its bytecode file, position and checksum of its code."""

    source: str
    size: int
    mtime_ns: int
    bytecode: str
    start: int
    length: int
    checksum: int


class _PreparedLoader(SourceFileLoader):
    """Loads a module with its code from the file; its source is unchanged."""

    def __init__(self, fullname: str, entry: PreparedModule, descriptor: int) -> None:
        super().__init__(fullname, entry.source)
        self._entry = entry
        self._descriptor = descriptor

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code from the file; when the file is damaged there, the code as Python reads it."""
        with contextlib.suppress(OSError):
            code = os.pread(self._descriptor, self._entry.length, self._entry.start)
            if zlib.crc32(code) == self._entry.checksum:
                return marshal.loads(code)  # type: ignore[no-any-return]  # noqa: S302 - see the module
        return super().get_code(fullname)


class _PreparedFinder:
    """Finds the modules of the file; the file stays open, as loaders can be asked for code at any time."""

    def __init__(self, descriptor: int, entries: Mapping[str, tuple[str, int, int, str, int, int, int]]) -> None:
        self._descriptor = descriptor
        self._entries = entries

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the place of an unchanged module of a package; None leaves the search to Python."""
        found = self._entries.get(fullname)
        if found is None or path is None:
            return None
        entry = PreparedModule(*found)
        folder, _, name = entry.source.rpartition("/")
        is_package = name == "__init__.py"
        if [*path] != [folder.rpartition("/")[0] if is_package else folder]:
            return None
        try:
            status = os.stat(entry.source)  # noqa: PTH116 - pathlib takes three times as long
        except OSError:
            return None
        if status.st_size != entry.size or status.st_mtime_ns != entry.mtime_ns:
            return None
        loader = _PreparedLoader(fullname, entry, self._descriptor)
        spec = ModuleSpec(fullname, loader, origin=entry.source, is_package=is_package)
        if is_package:
            spec.submodule_search_locations = [folder]
        spec.has_location = True
        spec.cached = entry.bytecode
        return spec


CompiledPattern: TypeAlias = tuple[str | bytes | None, int, list[int], int, dict[str, int], tuple[str | None, ...]]
"""The arguments from which Python makes a Pattern."""
Patterns: TypeAlias = dict[tuple[str | bytes, int], CompiledPattern]
"""The compiled regular expressions, by expression and flags."""
pattern_compiler: Any = importlib.import_module("re._compiler")


def _use_patterns(patterns: Patterns) -> None:
    """Use the compiled expressions from now on; others are compiled as usual."""
    compile_usually: Callable[[Any, int], re.Pattern[Any]] = pattern_compiler.compile
    engine = pattern_compiler._sre  # noqa: SLF001 - Python has no public form of a compiled expression

    def compile_prepared(pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        compiled = patterns.pop((pattern, flags), None) if isinstance(pattern, str | bytes) else None
        return engine.compile(*compiled) if compiled else compile_usually(pattern, flags)

    pattern_compiler.compile = compile_prepared


def prepared_modules_path() -> Path:
    """Return the path of the file for this Python, next to the bytecode of this package."""
    return Path(importlib.util.cache_from_source(__file__)).with_suffix(".modules")


def _is_trusted(status: os.stat_result) -> bool:
    return not status.st_mode & _OTHERS_MAY_WRITE and status.st_uid in {0, os.geteuid()}


def use_prepared_modules(path: Path) -> bool:
    """Import modules from the file from now on; False when it is missing, damaged, or not for this Python."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    with contextlib.suppress(OSError, struct.error):
        status = os.fstat(descriptor)
        magic, checksum, index_at, length = HEADER.unpack(os.pread(descriptor, HEADER.size, 0))
        if magic == MAGIC and length == status.st_size and _is_trusted(status):
            index = os.pread(descriptor, length - index_at, index_at)
            if zlib.crc32(index) == checksum:
                entries, python, patterns = marshal.loads(index)  # noqa: S302 - see the module
                sys.meta_path.insert(0, _PreparedFinder(descriptor, entries))
                if python == sys.version:
                    _use_patterns(patterns)
                return True
    os.close(descriptor)
    return False
