"""Writes docs/reference/promises.md from promises.toml: what is promised, and which test checks it from outside.

`python -m tests.outside.promises` writes the page; `make check` fails when it is out of date or incomplete.
"""

import ast
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = Path("docs/reference/promises.md")
SOURCE = Path("tests/outside/promises.toml")
_INTRODUCTION = """\
# Promises

What the product promises to its users, on which page, and the test that checks it from outside: with real brokers,
stores and gateways, and with clients of other vendors, through the network, files and commands only (`make outside`).
A promise without such a test names the reason. Written from `tests/outside/promises.toml` by `make promises`.

"""


@dataclass(frozen=True)
class Promise:
    """One promise: where it is made, and what checks it; `unchecked` is the reason why nothing does."""

    id: str
    text: str
    page: str
    checks: tuple[str, ...] = ()
    unchecked: str = ""


def load_promises() -> list[Promise]:
    """Read promises.toml."""
    document = tomllib.loads((ROOT / SOURCE).read_text(encoding="utf-8"))
    return [Promise(**{**value, "checks": tuple(value.get("checks", ()))}) for value in document["promise"]]


def pages_without_promises() -> list[str]:
    """Return the pages that are listed as promising nothing."""
    document = tomllib.loads((ROOT / SOURCE).read_text(encoding="utf-8"))
    return list(document["pages_without_promises"])


@cache
def outside_tests() -> frozenset[str]:
    """Return every test of this folder as `file::function`."""
    found = set()
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        found |= {f"{path.name}::{name}" for name in functions if name.startswith("test_")}
    return frozenset(found)


def page() -> str:
    """Return the page as it must be."""
    promises = load_promises()
    checked = sum(1 for promise in promises if promise.checks)
    lines = [_INTRODUCTION, f"{checked} of {len(promises)} promises are checked from outside.\n\n"]
    for name in sorted({promise.page for promise in promises}):
        link = Path("..") / Path(name).relative_to("docs")
        lines.append(f"## [{link.name}]({link})\n\n| id | promise | checked by |\n|---|---|---|\n")
        lines += [
            f"| {promise.id} | {promise.text} | {_checks(promise)} |\n" for promise in promises if promise.page == name
        ]
        lines.append("\n")
    return "".join(lines).rstrip("\n") + "\n"


def _checks(promise: Promise) -> str:
    tests = [f"`{check}`" for check in promise.checks]
    return "<br>".join(tests) if tests else f"not checked: {promise.unchecked}"


if __name__ == "__main__":
    (ROOT / PAGE).write_text(page(), encoding="utf-8")
