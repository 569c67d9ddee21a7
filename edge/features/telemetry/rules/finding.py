"""The findings of rules: what a rule reports of a subject at an instant."""

from enum import StrEnum
from typing import Any

from msgspec import Struct


class FindingEvent(StrEnum):
    """How the finding of a rule for a subject changes."""

    RAISED = "raised"
    ESCALATED = "escalated"
    EASED = "eased"
    CLEARED = "cleared"


class Finding(Struct, frozen=True):
    """A change of the finding of a rule for a subject; a cleared one has the severity that it had before."""

    at: int
    rule: str
    subject: str
    event: FindingEvent
    severity: int

    def as_json(self) -> dict[str, Any]:
        """Return the finding as a line of `edge rules test --json`."""
        return {
            "at": self.at,
            "rule": self.rule,
            "subject": self.subject,
            "event": self.event.value,
            "severity": self.severity,
        }
