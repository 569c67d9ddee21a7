"""Modules come from the prepared file only while it and their sources are unchanged; each test has its own process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WRITE = """
import importlib, sys
from pathlib import Path
from edge.app.write_prepared_modules import write
import package.part, package.below.part
assert write(Path(sys.argv[1]), [*sys.modules]) > 3
"""
USE = """
import json, sys
from pathlib import Path
from edge.prepared_modules import use_prepared_modules
used = use_prepared_modules(Path(sys.argv[1]))
import package.part, package.below.part
modules = [package, package.below, package.part, package.below.part]
prepared = [type(each.__spec__.loader).__name__ == "_PreparedLoader" for each in modules]
"""
RESULT = "print(json.dumps([used, prepared, package.part.value()]))"
INSIDE = [False, True, True, True]
"""A module outside of a package is found by Python."""
USUAL = [False, False, False, False]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "package" / "below").mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "part.py").write_text('"""A part."""\n\n\ndef value() -> int:\n    return 7\n')
    (tmp_path / "package" / "below" / "__init__.py").write_text("from . import part\n")
    (tmp_path / "package" / "below" / "part.py").write_text("def fail():\n    raise ValueError('of its own')\n")
    (tmp_path / "package" / "below" / "text").write_text("some text")
    run(WRITE, tmp_path)
    return tmp_path


def run(code: str, folder: Path, *options: str) -> str:
    command = [sys.executable, *options, "-c", code, str(folder / "start.modules")]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(folder)}
    ).stdout


def result(folder: Path) -> Any:
    return json.loads(run(USE + RESULT, folder))


def test_modules_of_packages_come_from_the_file(folder: Path) -> None:
    assert result(folder) == [True, INSIDE, 7]


def test_changed_source_is_imported_as_usual(folder: Path) -> None:
    source = folder / "package" / "part.py"
    source.write_text(source.read_text().replace("7", "18"))
    assert result(folder) == [True, [False, True, False, True], 18]


def test_source_of_the_same_size_with_another_time_is_imported_as_usual(folder: Path) -> None:
    source = folder / "package" / "part.py"
    changed = source.stat().st_mtime_ns + 2_000_000_000
    source.write_text(source.read_text().replace("7", "8"))
    os.utime(source, ns=(changed, changed))
    assert result(folder) == [True, [False, True, False, True], 8]


def test_removed_source_is_missing(folder: Path) -> None:
    (folder / "package" / "part.py").unlink()
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(USE, folder)
    assert "ModuleNotFoundError: No module named 'package.part'" in caught.value.stderr


def test_moved_directory_is_imported_as_usual(folder: Path) -> None:
    moved = folder / "elsewhere"
    moved.mkdir()
    for each in ("package", "start.modules"):
        (folder / each).rename(moved / each)
    assert result(moved) == [True, USUAL, 7]


def test_package_earlier_in_the_path_is_not_hidden(folder: Path) -> None:
    (folder / "earlier" / "package" / "below").mkdir(parents=True)
    for each in ("__init__.py", "below/__init__.py", "below/part.py"):
        (folder / "earlier" / "package" / each).touch()
    (folder / "earlier" / "package" / "part.py").write_text("def value(): return 9\n")
    code = f"import sys\nsys.path.insert(0, {str(folder / 'earlier')!r})\n{USE}{RESULT}"
    assert json.loads(run(code, folder)) == [True, USUAL, 9]


def test_missing_file_is_done_without(folder: Path) -> None:
    (folder / "start.modules").unlink()
    assert result(folder) == [False, USUAL, 7]


@pytest.mark.parametrize("kept", [0, 20, 200, -1])
def test_truncated_file_is_ignored(folder: Path, kept: int) -> None:
    file = folder / "start.modules"
    file.write_bytes(file.read_bytes()[:kept])
    assert result(folder) == [False, USUAL, 7]


@pytest.mark.parametrize("at", [3, 25, 30, -40], ids=["magic", "Python", "checksum", "index"])
def test_file_with_a_changed_byte_in_header_or_index_is_ignored(folder: Path, at: int) -> None:
    file = folder / "start.modules"
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(content)
    assert result(folder) == [False, USUAL, 7]


@pytest.mark.parametrize("part", ["type", "constant"])
def test_module_whose_code_is_damaged_is_read_as_usual(folder: Path, part: str) -> None:
    file = folder / "start.modules"
    content = file.read_bytes()
    text = content.index(b"A part.")
    # The first byte of a module is its type; Python accepts any letter of a constant.
    at = text if part == "constant" else content.rindex(b"\xe3", 0, text)
    file.write_bytes(content[:at] + b"?" + content[at + 1 :])
    code = USE + "print(json.dumps([used, prepared, package.part.__doc__]))"
    assert json.loads(run(code, folder)) == [True, INSIDE, "A part."]


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_file_that_others_may_write_is_ignored(folder: Path, mode: int) -> None:
    (folder / "start.modules").chmod(mode)
    assert result(folder) == [False, USUAL, 7]


def test_directory_without_write_permission_serves(folder: Path) -> None:
    for each in (folder / "start.modules", *folder.rglob("*.py")):
        each.chmod(0o444)
    for each in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        each.chmod(0o555)
    try:
        assert result(folder) == [True, INSIDE, 7]
    finally:
        for each in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            each.chmod(0o755)


ATTRIBUTES = """
import importlib.resources, inspect, traceback
try:
    package.below.part.fail()
except ValueError:
    trace = traceback.format_exc()
spec = package.below.__spec__
print(json.dumps([
    [each.__name__, each.__file__, each.__cached__, each.__package__, getattr(each, "__path__", None)]
    for each in modules
] + [
    trace, inspect.getsource(package.part), importlib.resources.files("package.below").joinpath("text").read_text(),
    [spec.name, spec.origin, spec.cached, spec.has_location, spec.parent, spec.submodule_search_locations],
    package.part.__spec__.loader.is_package("package.part"), spec.loader.is_package("package.below"),
    package.part.__spec__.loader.get_source("package.part"), package.part.value.__code__.co_filename,
    importlib.reload(package.part).value(),
]))
"""


def test_prepared_modules_look_as_imported_ones(folder: Path) -> None:
    prepared = run(USE + "assert prepared[1]\n" + ATTRIBUTES, folder)
    (folder / "start.modules").unlink()
    usual = run(USE + "assert not prepared[1]\n" + ATTRIBUTES, folder)
    assert json.loads(prepared) == json.loads(usual)


PATTERNS = r"""
import re, sys
from pathlib import Path
used = [(r"(?P<letter>[a-zà-ü])(\d+)(?(2)x|y)", re.IGNORECASE), (rb"\A[^\x00-\x1f]{2,}?z", 0), ("(?x) a  b # c", 0)]
"""
COMPILED = """
usual = re._compiler._code
def parse(pattern, flags):
    parsed.append(flags)
    return usual(pattern, flags)
parsed = []
re._compiler._code = parse
found = [re.compile(*each) for each in used]
print([repr(each) for each in found], [each.groupindex for each in found], [each.groups for each in found])
print(found[0].sub(r"<\\g<letter>\\2>", "É12xb7x"), found[1].search(b"abz"), found[2].flags)
print(found[0] == re.compile(*used[0]))
print(len(parsed), re.compile("an(other)").groups, file=sys.stderr)
"""


def patterns(folder: Path, start: str) -> tuple[str, str]:
    command = [sys.executable, "-c", PATTERNS + start + COMPILED, str(folder / "start.modules")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout, done.stderr


USE_PATTERNS = """
from edge.prepared_modules import use_prepared_modules
assert use_prepared_modules(Path(sys.argv[1]))
"""
WRITE_PATTERNS = """
from edge.app.write_prepared_modules import write
for each in used:
    re.compile(*each)
write(Path(sys.argv[1]), [])
re.purge()
"""


def test_prepared_regular_expressions_are_those_that_python_compiles(tmp_path: Path) -> None:
    usual, parsed = patterns(tmp_path, WRITE_PATTERNS)
    assert parsed == "3 1\n"
    assert patterns(tmp_path, USE_PATTERNS) == (usual, "0 1\n")


def test_regular_expressions_of_another_python_are_compiled_as_usual(tmp_path: Path) -> None:
    usual, _ = patterns(
        tmp_path, f"version = sys.version; sys.version = 'another'\n{WRITE_PATTERNS}sys.version = version\n"
    )
    assert patterns(tmp_path, USE_PATTERNS) == (usual, "3 1\n")


def test_optimised_python_has_a_file_of_its_own(folder: Path) -> None:
    code = "from edge.prepared_modules import prepared_modules_path as path; print(path().name)"
    tag = sys.implementation.cache_tag
    assert run(code, folder).strip() == f"prepared_modules.{tag}.modules"
    assert run(code, folder, "-O").strip() == f"prepared_modules.{tag}.opt-1.modules"
