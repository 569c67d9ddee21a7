"""Defines findings of examinations: level, text and advice."""

from collections.abc import AsyncIterator, Iterable
from enum import StrEnum

import msgspec

from edge.foundation.text import ENGLISH, Text, stated_in


class Level(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILING = "failing"


class HealthFinding(msgspec.Struct, frozen=True):
    """The result of one check; `advice` is the next action for a person unless the level is ok."""

    subject: str | Text
    level: Level
    found: str | Text
    advice: str | Text = ""


class PublicHealthFinding(msgspec.Struct, frozen=True):
    """A finding as `--json` and the HTTP API state it."""

    subject: str
    level: Level
    found: str
    advice: str


def public_form(finding: HealthFinding, language: str = ENGLISH) -> PublicHealthFinding:
    """Return the public form of a finding, in a language."""
    return PublicHealthFinding(
        subject=stated_in(finding.subject, language),
        level=finding.level,
        found=stated_in(finding.found, language),
        advice=stated_in(finding.advice, language),
    )


def ok(subject: str | Text, found: str | Text) -> HealthFinding:
    """Return a finding without a fault."""
    return HealthFinding(subject, Level.OK, found)


def warning(subject: str | Text, found: str | Text, advice: str | Text) -> HealthFinding:
    """Return a finding that needs attention but does not stop the gateway."""
    return HealthFinding(subject, Level.WARNING, found, advice)


def failing(subject: str | Text, found: str | Text, advice: str | Text) -> HealthFinding:
    """Return a finding of a fault."""
    return HealthFinding(subject, Level.FAILING, found, advice)


def worst(findings: Iterable[HealthFinding]) -> Level:
    """Return the worst level; ok without findings."""
    order = list(Level)
    return max((finding.level for finding in findings), key=order.index, default=Level.OK)


Examination = tuple[str | Text, AsyncIterator[HealthFinding]]
"""A subject, and what is found about it."""
