"""The page lists each assertion of Sparkplug once, and names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "sparkplug.md"
_ROW = re.compile(r"^\| (`[a-z].*?`) \| (.*) \|$", re.MULTILINE)


def rows() -> list[tuple[list[str], str]]:
    """Return ids and tests of the rows of the table."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## Assertions of the specification") :]
    return [(re.findall(r"`([^`]+)`", ids), tests) for ids, tests in _ROW.findall(table)]


def test_each_assertion_is_listed_once() -> None:
    ids = [text for found, _ in rows() for text in found]
    assert len(ids) > 150
    assert sorted(ids) == sorted(set(ids))


def test_named_tests_exist() -> None:
    missing = []
    for _, tests in rows():
        for file, name in re.findall(r"`([\w/]+\.py)::(\w+)`", tests):
            path = ROOT / file if "/" in file else ROOT / "tests" / "features" / "sparkplug" / file
            if not re.search(rf"^(?:async )?def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
                missing.append(f"{file}::{name}")
    assert missing == []
