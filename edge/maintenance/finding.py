"""What an examination found: how it is, and what to do where it is not well."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Level(StrEnum):
    """How well something is."""

    OK = "ok"
    WARNING = "warning"
    FAILING = "failing"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at; `advice` tells a person what to do unless it is well."""

    subject: str
    level: Level
    found: str
    advice: str = ""


def ok(subject: str, found: str) -> Finding:
    """Say that something is as it should be."""
    return Finding(subject, Level.OK, found)


def warning(subject: str, found: str, advice: str) -> Finding:
    """Say that something works, and will not for ever or not for everybody."""
    return Finding(subject, Level.WARNING, found, advice)


def failing(subject: str, found: str, advice: str) -> Finding:
    """Say that something does not work."""
    return Finding(subject, Level.FAILING, found, advice)


def worst(findings: Iterable[Finding]) -> Level:
    """Give the worst level of all; of nothing it is ok."""
    order = list(Level)
    return max((each.level for each in findings), key=order.index, default=Level.OK)
