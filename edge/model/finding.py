"""Defines findings of examinations: level, text and advice."""

from collections.abc import AsyncIterator, Iterable
from enum import StrEnum

import msgspec


class Level(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILING = "failing"


class HealthFinding(msgspec.Struct, frozen=True):
    """The result of one check; `advice` is the next action for a person unless the level is ok."""

    subject: str
    level: Level
    found: str
    advice: str = ""


def ok(subject: str, found: str) -> HealthFinding:
    """Return a finding without a fault."""
    return HealthFinding(subject, Level.OK, found)


def warning(subject: str, found: str, advice: str) -> HealthFinding:
    """Return a finding that needs attention but does not stop the gateway."""
    return HealthFinding(subject, Level.WARNING, found, advice)


def failing(subject: str, found: str, advice: str) -> HealthFinding:
    """Return a finding of a fault."""
    return HealthFinding(subject, Level.FAILING, found, advice)


def worst(findings: Iterable[HealthFinding]) -> Level:
    """Return the worst level; ok without findings."""
    order = list(Level)
    return max((finding.level for finding in findings), key=order.index, default=Level.OK)


Examination = tuple[str, AsyncIterator[HealthFinding]]
"""A subject, and what is found about it."""
