"""A feature can be removed: its folder and its row go, and with them the features that use it."""

import ast
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from edge.app.features import FEATURES, features
from tests.architecture.sources import ROOT, modules, syntax


@cache
def imports() -> dict[str, set[str]]:
    """Return what each module of the product imports, also within functions and for types."""
    found: dict[str, set[str]] = {}
    for path in modules():
        names = found[".".join(path.with_suffix("").parts)] = set()
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    return found


def feature_of(module: str) -> str:
    parts = module.split(".")
    return parts[2] if parts[:2] == ["edge", "features"] and len(parts) > 2 else ""


def with_users(feature: str) -> set[str]:
    """Return a feature and those that use it, directly or through others."""
    gone = {feature}
    while True:
        users = {
            feature_of(module) for module, names in imports().items() if any(feature_of(name) in gone for name in names)
        }
        if users - gone - {""} == set():
            return gone
        gone |= users - {""}


def users_in_the_core(gone: set[str]) -> set[str]:
    return {
        module
        for module, names in imports().items()
        if not feature_of(module) and any(feature_of(name) in gone for name in names)
    }


REMOVABLE = [name for name in FEATURES if not users_in_the_core(with_users(name))]


def test_features_that_the_core_does_not_use_are_many() -> None:
    assert {"lamps", "readers", "vision", "joining"} <= set(REMOVABLE)


def test_station_files_and_page_stay_without_the_features_that_add_to_them() -> None:
    assert not {"station_files", "page"} & (with_users("telemetry") | with_users("flows") | with_users("traces"))


@pytest.mark.parametrize("name", REMOVABLE)
def test_command_and_imports_are_whole_without_a_feature(tmp_path: Path, name: str) -> None:
    gone = with_users(name)
    shutil.copytree(ROOT / "edge", tmp_path / "edge", ignore=shutil.ignore_patterns("__pycache__"))
    table = tmp_path / "edge" / "app" / "features.py"
    rows = table.read_text(encoding="utf-8")
    for text in gone:
        shutil.rmtree(tmp_path / "edge" / "features" / text)
        assert f'    "{text}",\n' in rows
        rows = rows.replace(f'    "{text}",\n', "")
    table.write_text(rows, encoding="utf-8")
    left = [word for word in imports() if feature_of(word) not in gone and not word.endswith("__main__")]
    code = f"import importlib\nfor each in {left!r}:\n    importlib.import_module(each.removesuffix('.__init__'))\n"
    code += "from edge.cli import main\nmain(['--help'])"
    environment = {"PYTHONPATH": str(tmp_path)}
    call = [sys.executable, "-P", "-c", code]
    shown = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    nouns = {noun for feature in features() if feature.name in gone for noun in feature.commands}
    assert {noun for noun in nouns if re.search(rf"^  {noun} ", shown.stdout, re.MULTILINE)} == set()
