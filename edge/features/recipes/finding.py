"""A finding of the check of recipes: what is wrong where, what to do, and a script that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from edge.foundation.text import Text


class FindingLevel(StrEnum):
    """How serious a finding is: a fault is not released."""

    FAULT = "fault"
    WARNING = "warning"
    INFORMATION = "information"


class FindingKind(StrEnum):
    """The kinds of findings."""

    DEAD_END = "dead-end"
    LOCK_KEPT = "lock-kept"
    NO_COMMAND = "no-command"
    NEVER_CLEARS = "never-clears"
    NEVER_REACHED = "never-reached"
    WORK_CUT_OFF = "work-cut-off"
    FAILURE_SWALLOWED = "failure-swallowed"
    NOT_EXHAUSTIVE = "not-exhaustive"
    UNKNOWN_MEMBER = "unknown-member"
    UNKNOWN_TYPE = "unknown-type"
    ENDLESS_LOOP = "endless-loop"
    NO_TIME_LIMIT = "no-time-limit"


LEVELS: Final[Mapping[FindingKind, FindingLevel]] = {
    FindingKind.DEAD_END: FindingLevel.FAULT,
    FindingKind.LOCK_KEPT: FindingLevel.FAULT,
    FindingKind.NO_COMMAND: FindingLevel.FAULT,
    FindingKind.NEVER_CLEARS: FindingLevel.WARNING,
    FindingKind.NEVER_REACHED: FindingLevel.WARNING,
    FindingKind.WORK_CUT_OFF: FindingLevel.WARNING,
    FindingKind.FAILURE_SWALLOWED: FindingLevel.WARNING,
    FindingKind.NOT_EXHAUSTIVE: FindingLevel.INFORMATION,
    FindingKind.UNKNOWN_MEMBER: FindingLevel.INFORMATION,
    FindingKind.UNKNOWN_TYPE: FindingLevel.INFORMATION,
    FindingKind.ENDLESS_LOOP: FindingLevel.INFORMATION,
    FindingKind.NO_TIME_LIMIT: FindingLevel.INFORMATION,
}


class ElementType(StrEnum):
    """The lists of a recipe, in the singular."""

    STEP = "step"
    TRANSITION = "transition"
    ACTION = "action"


class RecipeElement(Struct, frozen=True):
    """An element of a recipe; `number` is its place in its list, counted from 0."""

    type: ElementType
    name: str
    number: int


class RecipeFinding(Struct, frozen=True, kw_only=True):
    """A finding; `script` is one of `edge simulate` that shows it, None where nothing can."""

    kind: FindingKind
    level: FindingLevel
    element: RecipeElement
    message: Text
    remedy: Text
    script: Mapping[str, Any] | None = None


def finding(
    kind: FindingKind, element: RecipeElement, message: Text, remedy: Text, script: Mapping[str, Any] | None = None
) -> RecipeFinding:
    """Return a finding at the level of its kind."""
    return RecipeFinding(kind=kind, level=LEVELS[kind], element=element, message=message, remedy=remedy, script=script)
