"""The tests from outside know the product by its pages only, and the list of promises is complete."""

import ast
from pathlib import Path

from tests.architecture.sources import ROOT, modules, nodes
from tests.outside.promises import PAGE, load_promises, outside_tests, page, pages_without_promises

OUTSIDE = [path for path in modules("tests") if path.parts[1] == "outside"]


DRIVERS = {
    "tests.features.archive.postgres",
    "tests.features.page.chromium",
    "tests.free_ports",
    "tests.opcua_client",
}
"""Free ports, and how programs of others are started and called: these files import nothing of the product."""


def imports_of(path: Path) -> set[str]:
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_tests_from_outside_do_not_import_the_product() -> None:
    assert OUTSIDE
    for path in OUTSIDE:
        ours = {name for name in imports_of(path) if name.split(".")[0] in {"edge", "tests"}}
        ours -= DRIVERS
        assert {name for name in ours if not name.startswith("tests.outside")} == set(), path


def test_every_promise_names_a_page_and_a_test_or_a_reason() -> None:
    promises = load_promises()
    assert len({promise.id for promise in promises}) == len(promises)
    for item in promises:
        assert (ROOT / item.page).is_file(), item
        assert bool(item.checks) != bool(item.unchecked), item
        assert set(item.checks) <= outside_tests(), item


def test_every_test_from_outside_checks_a_promise() -> None:
    named = {check for promise in load_promises() for check in promise.checks}
    assert outside_tests() - named == set(), "add it to tests/outside/promises.toml, then run make promises"


def test_every_page_for_users_is_in_the_list_of_promises() -> None:
    listed = {promise.page for promise in load_promises()} | set(pages_without_promises())
    folders = ("reference", "explanation", "how-to")
    pages = {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / "docs" / folder).glob("*.md")}
    assert pages - {str(PAGE)} - listed == set(), "add it to tests/outside/promises.toml, then run make promises"
    assert listed - pages - {str(PAGE)} == set(), "remove it from tests/outside/promises.toml"


def test_the_page_of_promises_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(), "run make promises"
