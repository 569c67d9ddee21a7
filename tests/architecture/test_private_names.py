"""docs/explanation/asyncua.md names whatever of asyncua the product extends, and tests that exist."""

import re

from tests.architecture.private_names import ROOT, extended, patched, private_names

PAGE = (ROOT / "docs/explanation/asyncua.md").read_text()
MOST_PRIVATE_NAMES = 12
MOST_PATCHED = 2


def test_page_names_every_class_that_extends_asyncua() -> None:
    assert {name for name in extended() if f"`{name.removeprefix('edge.')}`" not in PAGE} == set()


def test_page_names_every_private_name_of_asyncua() -> None:
    assert {name for name in private_names() if f"`{name}`" not in PAGE} == set()


def test_page_names_every_patched_function() -> None:
    assert {name for name in patched() if f"`{name}`" not in PAGE} == set()


def test_private_names_and_patched_functions_stay_few() -> None:
    assert len(private_names()) <= MOST_PRIVATE_NAMES
    assert len(patched()) <= MOST_PATCHED


def test_page_names_tests_that_exist() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(?:\w+::)?(\w+)`", PAGE)
    assert named
    missing = [name for path, name in named if not re.search(rf"def {name}\b", (ROOT / path).read_text())]
    assert missing == []
