"""Patterns of tags and occurrences: `*` matches any characters, dots included; nothing else is special."""

import re
from collections.abc import Iterable
from functools import lru_cache

WILDCARD = "*"


def has_wildcard(pattern: str) -> bool:
    """Return whether a pattern may match more than one name."""
    return WILDCARD in pattern


def matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern."""
    return name == pattern if WILDCARD not in pattern else _compiled(pattern).fullmatch(name) is not None


def matches_any(patterns: Iterable[str], name: str) -> bool:
    """Return whether a name matches one of several patterns."""
    return any(matches(pattern, name) for pattern in patterns)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Adjacent wildcards mean one; atomic groups keep a pattern of many wildcards from backtracking for ever.
    parts = [re.escape(part) for part in re.split(r"\*+", pattern)]
    middle = "".join(f"(?>.*?{part})" for part in parts[1:-1])
    return re.compile(f"{parts[0]}{middle}.*{parts[-1]}", re.DOTALL)
