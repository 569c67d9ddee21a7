"""Make a copy of the project without a feature: its folder, its row, and the tests that use it."""

import ast
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.architecture.sources import ROOT, modules, project_files, syntax


@cache
def imports(folder: str = "edge") -> dict[str, set[str]]:
    """Return what each module imports, also within functions and for types."""
    found: dict[str, set[str]] = {}
    for path in modules(folder):
        names = found[".".join(path.with_suffix("").parts)] = set()
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    return found


def feature_of(module: str) -> str:
    """Return the feature to which a module of the product belongs; "" for one of the core."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["edge", "features"] and len(parts) > 2 else ""


def with_users(feature: str) -> set[str]:
    """Return a feature and those that import it, directly or through others."""
    gone = {feature}
    while True:
        users = {
            feature_of(module) for module, names in imports().items() if any(feature_of(name) in gone for name in names)
        }
        if users - gone - {""} == set():
            return gone
        gone |= users - {""}


def users_in_the_core(gone: set[str]) -> set[str]:
    """Return the modules of the core that import one of these features."""
    return {
        module
        for module, names in imports().items()
        if not feature_of(module) and any(feature_of(name) in gone for name in names)
    }


def remove_rows(table: Path, gone: set[str]) -> None:
    """Remove the rows of features from `edge/app/features.py` of a copy."""
    rows = table.read_text(encoding="utf-8")
    for name in gone:
        assert f'    "{name}",\n' in rows
        rows = rows.replace(f'    "{name}",\n', "")
    table.write_text(rows, encoding="utf-8")


def write_copy(folder: Path, feature: str) -> None:
    """Write the project without a feature into an empty folder, as a checkout of Git."""
    gone = with_users(feature)
    roots = tuple(f"{package}.features.{name}" for name in gone for package in ("edge", "tests"))
    tests = imports("tests")
    lost = {module for module in tests if _is_within(module, roots)}
    while more := {module for module, names in tests.items() if module not in lost and _uses(names, roots, lost)}:
        lost |= more
    for path in project_files():
        module = ".".join(path.with_suffix("").parts)
        if module not in lost and not _is_within(module, roots):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, folder / path)
    remove_rows(folder / "edge" / "app" / "features.py", gone)
    for arguments in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


def _is_within(module: str, roots: tuple[str, ...]) -> bool:
    return any(module == root or module.startswith(f"{root}.") for root in roots)


def _uses(names: set[str], roots: tuple[str, ...], lost: set[str]) -> bool:
    return any(name in lost or _is_within(name, roots) for name in names)
