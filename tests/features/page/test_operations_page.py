"""The tables of the page *HTTP API* have every operation with its role, and every kind of refusal with its status."""

import re
from collections.abc import Iterator
from pathlib import Path

from edge.features.page.operations import OPERATIONS
from edge.features.page.problems import STATUSES

PAGE = (Path(__file__).parents[3] / "docs/reference/http-api.md").read_text(encoding="utf-8")


def _rows(first: str) -> Iterator[list[str]]:
    for line in PAGE.splitlines():
        if line.startswith(first):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def _nameless(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path.partition("?")[0])


def _paths(cell: str) -> Iterator[str]:
    """Yield the paths of a cell: later ones may stand for the last part of the first one."""
    first, *others = map(_nameless, re.findall(r"`([^`]+)`", cell))
    folder = first.rpartition("/")[0]
    yield first
    for path in others:
        match path[0]:
            case "…":
                yield first + path[1:]
            case "/":
                yield from (path, folder + path)
            case _:
                yield f"{folder}/{path}"


def test_table_of_the_http_api_has_every_operation_with_its_role() -> None:
    documented = {
        (method, path): role
        for paths, methods, role, *_ in _rows("| `/")
        for path in _paths(paths)
        for method in methods.split(", ")
    }
    missing = [
        f"{api_operation.method} {api_operation.path} {api_operation.role.name.lower()}"
        for api_operation in OPERATIONS
        if api_operation.role.name.lower()
        not in documented.get((api_operation.method, _nameless(api_operation.path)), "")
    ]
    assert missing == []


def test_table_of_the_http_api_has_every_kind_of_refusal_with_its_status() -> None:
    documented = {
        (kind, int(status))
        for statuses, kinds, *_ in (row for row in _rows("| ") if row[0][:3].isdigit())
        for status in statuses.split(", ")
        for kind in re.findall(r"`([a-z_]+)`", kinds)
    }
    assert set(STATUSES.items()) - documented == set()
