"""Measures branch coverage of the rooms that have a floor, while their tests run; a trace of every test is too slow.

A plugin of pytest: with PYTEST_PLUGINS=tests.branch_coverage each process of pytest-xdist loads it before any
conftest.py, and leaves a file `build/coverage.*` for `coverage combine`.
"""

import os
import pkgutil
from collections.abc import Generator
from importlib import import_module
from pathlib import Path

import pytest
from coverage import Coverage

ROOMS = ("sfc", "station", "store")

_TESTS = Path(__file__).parent
_FOLDERS = tuple(_TESTS / room for room in ROOMS)

_coverage = Coverage(source_pkgs=[f"edge.{room}" for room in ROOMS], data_suffix=True)
# Where few tests run, a room may not be imported.
_coverage.set_option("run:disable_warnings", ["module-not-imported"])


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Trace the import of the rooms, which is the same in each process, in one: before conftest.py imports them."""
    distributes = getattr(early_config.known_args_namespace, "numprocesses", None)
    if os.environ.get("PYTEST_XDIST_WORKER", "" if distributes else "gw0") != "gw0":
        return
    _coverage.start()
    for room in ROOMS:
        package = import_module(f"edge.{room}")
        for row in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(row.name)
    _coverage.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Trace a test of a room, with its fixtures; the many examples of a property take long and hardly add a branch."""
    is_of_room = any(folder in item.path.parents for folder in _FOLDERS)
    if not is_of_room or any(item.get_closest_marker(text) for text in ("untraced", "hypothesis")):
        return (yield)
    _coverage.start()
    try:
        return (yield)
    finally:
        _coverage.stop()


def pytest_unconfigure() -> None:
    """Write what was measured."""
    _coverage.stop()
    _coverage.save()
