"""Patterns of tags."""

import time

import pytest

from edge.ports.tag_pattern import has_wildcard, matches, matches_any


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "axb", False),
        ("*", "", True),
        ("*", "a.b\nc", True),
        ("a*", "a", True),
        ("a*c", "a.b.c", True),
        ("a*c", "a.b.cd", False),
        ("*.temp", "wrench.temp", True),
        ("*.temp", "wrench.temperature", False),
        ("a**b", "a.b", True),
        ("a*b*c", "aXbYbZc", True),
        ("*b*b*", "ab", False),
        ("[a-z]", "b", False),
        ("a?", "ab", False),
    ],
)
def test_pattern_matches_names(pattern: str, name: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert matches(pattern, name) is expected


def test_only_the_asterisk_is_special() -> None:
    assert has_wildcard("a.*")
    assert not has_wildcard("a.?[b]")


def test_pattern_of_many_wildcards_is_fast() -> None:
    begin = time.perf_counter()
    assert not matches("*a" * 30 + "*b", "a" * 2000)
    assert time.perf_counter() - begin < 20


def test_tag_matches_if_one_of_several_patterns_matches() -> None:
    assert matches_any(("a.*", "*.b"), "x.b")
    assert not matches_any(("a.*", "*.b"), "x.c")
    assert not matches_any((), "x")
