"""A feature can be removed: its folder and its row go, and with them the features that use it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edge.app.features import FEATURES, features
from edge.config import MqttSettings, RedisSettings
from edge.model.isa95 import ReturnStatus
from tests.app.running import edge_run, opcua_in, settings_of, written
from tests.architecture.sources import ROOT
from tests.conftest import WaitUntil
from tests.integration.plant import PUSHING, SCOPE, opened_plant, order
from tests.removal import feature_of, imports, remove_rows, users_in_the_core, with_users, write_copy

REMOVABLE = [name for name in FEATURES if not users_in_the_core(with_users(name))]


def test_features_that_the_core_does_not_use_are_many() -> None:
    assert {"lamps", "readers", "vision", "joining"} <= set(REMOVABLE)


def test_station_files_and_page_stay_without_the_features_that_add_to_them() -> None:
    assert not {"station_files", "page"} & (with_users("telemetry") | with_users("flows") | with_users("traces"))


@pytest.mark.parametrize("name", REMOVABLE)
def test_command_and_imports_are_whole_without_a_feature(tmp_path: Path, name: str) -> None:
    gone = with_users(name)
    shutil.copytree(ROOT / "edge", tmp_path / "edge", ignore=shutil.ignore_patterns("__pycache__"))
    for feature in gone:
        shutil.rmtree(tmp_path / "edge" / "features" / feature)
    remove_rows(tmp_path / "edge" / "app" / "features.py", gone)
    left = [word for word in imports() if feature_of(word) not in gone and not word.endswith("__main__")]
    code = f"import importlib\nfor module in {left!r}:\n    importlib.import_module(module.removesuffix('.__init__'))\n"
    code += "from edge.cli import main\nmain(['--help'])"
    environment = {"PYTHONPATH": str(tmp_path)}
    call = [sys.executable, "-P", "-c", code]
    shown = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    nouns = {noun for feature in features() if feature.name in gone for noun in feature.commands}
    assert {noun for noun in nouns if re.search(rf"^  {noun} ", shown.stdout, re.MULTILINE)} == set()


LEFT_OUT = {
    "test_documented_commands.py": "pages by hand have commands of the feature",
    "test_language.py::test_pages_name_files_that_exist": "pages by hand name its files",
    "test_language.py::test_clean_paths_exist": "its list of folders is by hand",
    "test_layout.py::test_files_that_make_and_ci_name_exist": "targets of make name its tests",
    "test_store.py::test_reference_page_lists_exactly_the_store_keys": "the page by hand lists its keys",
    "test_quoted_messages.py": "pages by hand quote its messages",
    "test_files.py::test_every_module_with_logic_has_a_test_module": "tests that use the feature are gone",
    "test_files.py::test_module_tested_elsewhere_and_its_test_exist": "its rows are by hand",
    "test_files.py::test_pattern_of_short_files_matches_one": "its rows are by hand",
}
"""Tests that look at pages and tables by hand -> what whoever removes a feature edits there."""


def steps() -> list[list[str]]:
    """Return the commands of `make check`, apart from the tests that are left out."""
    tools = Path(sys.executable).parent
    left_out = [f"--deselect=tests/architecture/{test}" for test in LEFT_OUT]
    return [
        [str(tools / "ruff"), "check"],
        [str(tools / "ruff"), "format", "--check"],
        [str(tools / "mypy")],
        [str(tools / "lint-imports")],
        [sys.executable, "-m", "pytest", "-q", "tests/architecture", *left_out],
    ]


def test_steps_are_those_of_make_check() -> None:
    (recipe,) = re.findall(r"^check: setup .*\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    called = [" ".join([Path(command[0]).name, *command[1:]]) for command in steps()]
    expected = [line.removeprefix("\t@$(BIN)/") for line in recipe.splitlines()]
    assert [command.split(" --deselect")[0] for command in called] == expected


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", FEATURES)
def test_project_without_a_feature_is_green(tmp_path: Path, name: str) -> None:
    write_copy(tmp_path, name)
    for command in steps():
        checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout[-5000:] + checked.stderr[-2000:]


@pytest.mark.long
@pytest.mark.parametrize("name", FEATURES)
async def test_gateway_without_a_feature_runs_a_job(
    tmp_path: Path, name: str, mqtt: MqttSettings, redis: RedisSettings, unique: str, wait_until: WaitUntil
) -> None:
    write_copy(copy := tmp_path / "copy", name)
    settings = written(settings_of(redis, mqtt, unique, opcua_in(tmp_path)), tmp_path)
    of_the_copy = {"PYTHONPATH": str(copy), "PYTHONSAFEPATH": "1"}
    async with opened_plant(mqtt, unique) as plant, edge_run("--settings", settings, **of_the_copy) as gateway:
        await gateway.until("ready")
        await plant.configure(PUSHING)
        await plant.wrench.release()
        assert (await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))).status is ReturnStatus.NO_ERROR
        await wait_until(plant.heard.ended)
        await gateway.stop()
