"""Alarms as the MES reads them, and the arguments of its methods."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from edge.model.isa95 import Payload
from edge.ports.alarm import Alarm, AlarmChangeKind, EarlierRaise, Shelving

ALARM_METHODS: Final = ("Acknowledge", "Confirm", "AddComment", "Reset", "Shelve", "Unshelve", "Disable", "Enable")


class AlarmNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an alarm with the alarm right after it; instants are milliseconds since the epoch."""

    change: AlarmChangeKind
    alarm_id: str
    rule: str
    subject: str
    state: str
    active: bool
    acknowledged: bool
    confirmed: bool
    severity: int
    message: Mapping[str, str]
    value: Any
    job: str | None
    count: int
    raised_at: int | None
    cleared_at: int | None
    changed_at: int
    by: str
    comment: str
    shelving: Shelving | None
    suppressed: bool
    disabled: bool
    earlier: tuple[EarlierRaise, ...]

    @classmethod
    def of(cls, alarm: Alarm, change: AlarmChangeKind) -> "AlarmNotice":
        """Return the notice of a change."""
        return cls(
            change=change,
            alarm_id=alarm.id,
            rule=alarm.rule,
            subject=alarm.subject,
            state=alarm.state.value,
            active=alarm.active != "inactive",
            acknowledged=alarm.acknowledgement != "unacknowledged",
            confirmed=alarm.acknowledgement == "confirmed",
            severity=alarm.severity,
            message=alarm.message,
            value=alarm.value,
            job=alarm.job,
            count=alarm.count,
            raised_at=alarm.raised_at,
            cleared_at=alarm.cleared_at,
            changed_at=alarm.changed_at,
            by=alarm.by,
            comment=alarm.comment,
            shelving=alarm.shelving,
            suppressed=alarm.suppressed,
            disabled=alarm.disabled,
            earlier=alarm.earlier,
        )


class AlarmCall(Payload, frozen=True, kw_only=True):
    """The arguments of the methods of an alarm; `seconds` are those of Shelve: without, until the condition ends."""

    alarm_id: str
    by: str
    comment: str = ""
    seconds: float | None = None
