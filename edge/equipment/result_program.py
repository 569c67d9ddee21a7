"""The programs that a command names, and those that a result names."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

Program: TypeAlias = Mapping[str, frozenset[str]]
"""Names of what is carried out, by kind: `{"parameter_set": {"3"}}`."""

NO_PROGRAM: Program = MappingProxyType({})


def fits(commanded: Program, reported: Program) -> bool:
    """Return whether a reported program can be the commanded one: they share a name of each kind that both state."""
    return all(commanded[kind] & reported[kind] for kind in commanded.keys() & reported.keys())


def difference(commanded: Program, reported: Program) -> str:
    """Return in which programs a result differs from what was commanded."""
    kinds = [text for text in commanded.keys() & reported.keys() if not commanded[text] & reported[text]]
    named = ((text, ", ".join(sorted(reported[text])), ", ".join(sorted(commanded[text]))) for text in sorted(kinds))
    return "; ".join(f"{kind.replace('_', ' ')} {found} instead of {wanted}" for kind, found, wanted in named)
