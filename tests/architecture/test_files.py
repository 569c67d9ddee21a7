"""A module has one purpose, a bounded size, and a test module."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, functions, modules, syntax, text

LINES_OF_A_FILE = 600
LINES_OF_A_FUNCTION = 60
"""Without its docstring. About 40 is what we aim at; a `match` over every case may need more."""

TESTED_ELSEWHERE = {
    "edge/__main__.py": ("tests/cli/test_main.py", "it is started as a program"),
    "edge/app/feature.py": ("tests/app/test_features.py", "declarations are listed"),
    "edge/app/documents.py": ("tests/features/station_files/test_documents.py", "station files hold documents"),
    "edge/features/admin/operations.py": ("tests/app/test_operations.py", "a gateway executes them"),
    "edge/features/station_files/operations.py": ("tests/app/test_operations.py", "a gateway executes them"),
    "edge/uaserver/condition_nodes.py": (
        "tests/features/telemetry/opcua/test_condition_nodes.py",
        "the nodes are those of alarms",
    ),
    "edge/uaserver/condition_objects.py": ("tests/features/telemetry/opcua/test_conditions.py", "they are of alarms"),
    "edge/uaserver/condition_space.py": (
        "tests/features/telemetry/opcua/test_condition_methods_refresh.py",
        "the conditions of a refresh are those of alarms",
    ),
    "edge/uaserver/condition_members.py": (
        "tests/features/telemetry/opcua/test_condition_fields.py",
        "the members are those of alarms and prompts",
    ),
    "edge/foundation/metric.py": ("tests/app/test_metrics.py", "they are on the page of metrics"),
    "edge/features/telemetry/service.py": ("tests/features/telemetry/test_parts.py", "a gateway opens telemetry"),
    "edge/app/parts.py": ("tests/app/test_wiring.py", "the parts are built by `open_gateway`"),
    "edge/links/file_transfer.py": ("tests/equipment/test_result_file.py", "a file is that of a result"),
    "edge/access/audit_reading.py": ("tests/cli/test_audit.py", "the command prints what it finds"),
    "edge/access/user_changes.py": ("tests/cli/test_users.py", "the commands change users by it"),
    "edge/station/public_letter.py": ("tests/cli/test_dead_letters.py", "the command prints it"),
    "edge/features/admin/administration.py": ("tests/features/admin/test_page.py", "the pages work with it"),
    "edge/app/http_probe.py": ("tests/features/page/test_checks.py", "the page and the metrics are examined by it"),
    "edge/access/web_audit.py": ("tests/features/page/test_api.py", "the records are those of requests"),
    "edge/features/page/gateway_models.py": (
        "tests/features/page/test_gateway_operations.py",
        "the data are answers of operations",
    ),
    "edge/features/page/models.py": ("tests/features/page/test_operations.py", "the instants are those of answers"),
    "edge/features/page/job_views.py": (
        "tests/features/page/test_operations.py",
        "the views are answers of operations",
    ),
    "edge/features/page/problems.py": ("tests/features/page/test_api.py", "the problems are answers of the API"),
    "edge/features/page/recipe_models.py": (
        "tests/features/page/test_recipe_operations.py",
        "the data are answers of operations",
    ),
    "edge/cli/__init__.py": ("tests/cli/test_main.py", "a package cannot be named in a test file's name"),
    "edge/features/sparkplug/feature.py": ("tests/features/sparkplug/test_service.py", "a gateway opens it"),
    "edge/app/component.py": ("tests/app/test_wiring.py", "the state is that of a whole gateway"),
    "edge/features/archive/service.py": ("tests/outside/test_archive.py", "a gateway opens it"),
    "edge/features/fleet/service.py": ("tests/outside/test_fleet.py", "it starts processes of the product"),
    "edge/features/fleet/cli/keys.py": ("tests/features/fleet/cli/test_fleet.py", "it is a part of the commands"),
    "edge/features/fleet/cli/send.py": ("tests/features/fleet/test_receipt.py", "it needs components that answer"),
    "edge/features/fleet/signing_keys.py": ("tests/features/fleet/test_signature.py", "signatures need keys"),
    "edge/features/fleet/store.py": (
        "tests/features/fleet/test_command_service.py",
        "its documents are commands and results",
    ),
    "edge/store/components.py": ("tests/access/test_components.py", "its documents are the list of components"),
    "edge/store/logins.py": ("tests/access/test_sessions.py", "its documents are the list of sessions"),
    "edge/features/opcua_extras/opcua.py": ("tests/app/test_opcua.py", "it needs a whole gateway"),
    "edge/uaserver/parts.py": ("tests/uaserver/test_server.py", "they are added to a server"),
    **{
        f"edge/features/{feature}/action_types.py": (
            "tests/equipment/test_action_types.py",
            "every kind declares alike",
        )
        for feature in ("joining", "lamps", "openprotocol", "prompts", "readers", "vision")
    },
}
"""Module -> the test that covers it and why that is not the one of its name."""

LINES_OF_A_SHORT_FILE = 40
REASONS_OF_SHORT_FILES = {
    "**/__init__.py": "the sentence of a folder, for the page of rooms",
    "edge/features/*/feature.py": "a declaration imports nothing of its feature",
    "edge/features/*/keys.py": "a feature has its keys in Redis in this file",
    "edge/features/*/settings.py": "settings are read by every command, which imports no more of the feature",
    "edge/features/*/checks.py": "only `edge doctor` imports it",
    "edge/features/flows/nodes/*.py": "one file for each node kind",
    "edge/features/flows/ports/*.py": "what it imports is loaded only where a flow may use it",
    "edge/features/*/cli/*.py": "a command is imported when it is called",
    "edge/__main__.py": "`python -m edge`",
    "edge/cli/schemas.py": "it imports the models of every feature, and no other command does",
    "edge/features/*/action_types.py": "only the editor of recipes imports it",
    "edge/features/telemetry/sources/device_carriers.py": "a value that the sources of two protocols share",
    "edge/model/certificate.py": "the public form of one object",
    "edge/features/archive/withdrawal.py": "a gateway without an archive imports nothing else of it",
    "edge/model/recipe_name.py": "a value that store, station, page and OPC UA share",
    "edge/model/job_identifier.py": "a value that station and archive share",
}
"""Files of fewer lines, by patterns -> why each is a file of its own."""

NO_MIRROR = {"ansible", "architecture", "bench", "chaos", "integration", "outside", "sentinel", "system"}
"""Folders of tests that look at several modules at once."""


def has_logic(path: Path) -> bool:
    """Return whether a module holds a function with a body: the `...` of a protocol is none."""
    return any(
        not isinstance(statement, ast.Pass)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for function in functions(path)
        for statement in function.body
    )


@cache
def _tests_in(folder: Path) -> tuple[Path, ...]:
    return tuple(test for test in modules("tests") if test.parent == folder)


def mirrors_of(path: Path) -> list[Path]:
    """Return the tests at a module's side: `test_<name>.py`, and `test_<name>_<aspect>.py` for one aspect."""
    names = (f"test_{path.stem}", f"test_{path.stem}_")
    paths = _tests_in(Path("tests", *path.parts[1:-1]))
    return [test for test in paths if test.stem == names[0] or test.stem.startswith(names[1])]


@pytest.mark.parametrize("folder", ["edge", "tests"])
def test_no_file_exceeds_the_length_limit(folder: str) -> None:
    sizes = {str(path): len(text(path).splitlines()) for path in modules(folder)}
    assert {path: size for path, size in sizes.items() if size > LINES_OF_A_FILE} == {}


def test_each_short_file_has_its_reason() -> None:
    short = [path for path in modules() if len(text(path).splitlines()) < LINES_OF_A_SHORT_FILE]
    matches = {path: [pattern for pattern in REASONS_OF_SHORT_FILES if path.match(pattern)] for path in short}
    assert [str(path) for path, patterns in matches.items() if not patterns] == []


@pytest.mark.parametrize("pattern", REASONS_OF_SHORT_FILES)
def test_pattern_of_short_files_matches_one(pattern: str) -> None:
    assert any(path.match(pattern) and len(text(path).splitlines()) < LINES_OF_A_SHORT_FILE for path in modules())


@pytest.mark.parametrize("folder", ["edge", "tests"])
def test_no_function_exceeds_the_length_limit(folder: str) -> None:
    long = {}
    for path in modules(folder):
        for function in functions(path):
            first = function.body[bool(ast.get_docstring(function)) and len(function.body) > 1]
            length = (function.end_lineno or 0) - first.lineno + 1
            if length > LINES_OF_A_FUNCTION:
                long[f"{path}:{function.lineno} {function.name}"] = length
    assert long == {}


def test_docstring_of_every_module_begins_with_one_sentence() -> None:
    faulty = []
    for path in modules():
        summary, _, rest = (ast.get_docstring(syntax(path)) or "").partition("\n")
        if not summary.endswith(".") or ". " in summary or (rest and not rest.startswith("\n")):
            faulty.append(f"{path}: {summary!r}")
    assert faulty == []


def test_every_module_with_logic_has_a_test_module() -> None:
    alone = [
        str(path)
        for path in modules()
        if has_logic(path) and not mirrors_of(path) and str(path) not in TESTED_ELSEWHERE
    ]
    assert alone == []


def test_every_test_module_belongs_to_a_module() -> None:
    mirrored = {test for path in modules() for test in mirrors_of(path)}
    elsewhere = {Path(test) for test, _ in TESTED_ELSEWHERE.values()}
    strays = [
        str(test)
        for test in modules("tests")
        if test.name.startswith("test_")
        and test.parts[1] not in NO_MIRROR
        and test not in mirrored
        and test not in elsewhere
    ]
    assert strays == []


@pytest.mark.parametrize("module", TESTED_ELSEWHERE)
def test_module_tested_elsewhere_and_its_test_exist(module: str) -> None:
    test, _ = TESTED_ELSEWHERE[module]
    assert (ROOT / module).is_file()
    assert (ROOT / test).is_file()


def test_no_folder_or_module_has_a_generic_name() -> None:
    drawers = {"base", "common", "core", "helpers", "manager", "managers", "misc", "util", "utils"}
    assert [str(path) for path in modules() if drawers & {path.stem, *path.parts}] == []


def test_page_for_developers_lists_every_make_target() -> None:
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    page = (ROOT / "docs" / "how-to" / "develop.md").read_text(encoding="utf-8")
    assert [target for target in targets if target != "help" and f"| `make {target}` |" not in page] == []
