"""An alarm as it is stored and travels: a condition with a life cycle (ISA-18.2, OPC 10000-9)."""

import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from edge.model.instant import Instant, rfc3339
from edge.model.isa95 import Payload
from edge.model.json_value import LONGEST_TEXT, short_value

ID_LENGTH: Final = 16
LONGEST_SHELVING_S: Final = 366 * 86_400
"""The longest time that an alarm is silent for, in seconds."""
_MOST_FIGURES: Final = 20


class ActiveState(StrEnum):
    """Whether the condition holds; a latched one has ended and stays active until its reset (ISA-18.2)."""

    INACTIVE = "inactive"
    ACTIVE = "active"
    LATCHED = "latched"


class AckState(StrEnum):
    """The acknowledgement by a person (OPC 10000-9, AckedState and ConfirmedState)."""

    UNACKNOWLEDGED = "unacknowledged"
    ACKNOWLEDGED = "acknowledged"
    CONFIRMED = "confirmed"


class AlarmState(StrEnum):
    """The states of ISA-18.2, figure 3."""

    NORMAL = "normal"
    UNACKNOWLEDGED = "unacknowledged"
    ACKNOWLEDGED = "acknowledged"
    RETURNED_UNACKNOWLEDGED = "returned, unacknowledged"
    LATCHED_UNACKNOWLEDGED = "latched, unacknowledged"
    LATCHED_ACKNOWLEDGED = "latched, acknowledged"
    SHELVED = "shelved"
    SUPPRESSED = "suppressed"
    OUT_OF_SERVICE = "out of service"


class AlarmChangeKind(StrEnum):
    """The kind of a change of an alarm."""

    RAISED = "raised"
    ESCALATED = "escalated"
    EASED = "eased"
    CLEARED = "cleared"
    ACKNOWLEDGED = "acknowledged"
    CONFIRMED = "confirmed"
    COMMENTED = "commented"
    RESET = "reset"
    SHELVED = "shelved"
    UNSHELVED = "unshelved"
    SUPPRESSED = "suppressed"
    UNSUPPRESSED = "unsuppressed"
    DISABLED = "disabled"
    ENABLED = "enabled"


_CHANGES_WITHOUT_PERSON: Final = frozenset(
    {
        AlarmChangeKind.RAISED,
        AlarmChangeKind.ESCALATED,
        AlarmChangeKind.EASED,
        AlarmChangeKind.CLEARED,
        AlarmChangeKind.SUPPRESSED,
        AlarmChangeKind.UNSUPPRESSED,
    }
)


class Shelving(msgspec.Struct, frozen=True, kw_only=True):
    """A silence as data: author, comment and end; a one-shot shelving ends when the condition ends."""

    by: str
    at: int
    comment: str = ""
    until: int | None = None
    one_shot: bool = False


class EarlierRaise(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A raise before the last one without an acknowledgement, or without a confirmation where one is needed."""

    raised_at: int
    cleared_at: int | None = None
    severity: int = 0
    message: Mapping[str, str] = {}
    value: Any = None
    acknowledged: bool = False


class Alarm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An alarm of a rule for a subject; instants are milliseconds since the epoch.

    `severity` is that of the condition, after its end the last one. `count` is the number of raises since the alarm was
    normal; `earlier` are those of them that wait for a person, without the last one. `by` and `comment` are those of
    the last person who acted on it.
    """

    id: str
    rule: str
    subject: str
    active: ActiveState = ActiveState.INACTIVE
    acknowledgement: AckState = AckState.CONFIRMED
    severity: int = 0
    changed_at: int = 0
    raised_at: int | None = None
    cleared_at: int | None = None
    count: int = 0
    message: Mapping[str, str] = {}
    value: Any = None
    job: str | None = None
    latch: bool = False
    confirm: bool = False
    by: str = ""
    comment: str = ""
    shelving: Shelving | None = None
    suppressed: bool = False
    disabled: bool = False
    earlier: tuple[EarlierRaise, ...] = ()

    @property
    def is_normal(self) -> bool:
        """Return whether the condition has ended and no acknowledgement is pending."""
        is_answered = self.acknowledgement is AckState.CONFIRMED and not self.earlier
        return self.active is ActiveState.INACTIVE and is_answered

    @property
    def is_retained(self) -> bool:
        """Return whether the alarm must be kept: it is not normal, or silenced."""
        return not self.is_normal or self.shelving is not None or self.suppressed or self.disabled

    @property
    def state(self) -> AlarmState:
        """Return the state of ISA-18.2."""
        if self.disabled:
            return AlarmState.OUT_OF_SERVICE
        if self.suppressed:
            return AlarmState.SUPPRESSED
        if self.shelving is not None:
            return AlarmState.SHELVED
        waits = self.acknowledgement is AckState.UNACKNOWLEDGED
        return _STATES[self.active, waits or (self.active is ActiveState.INACTIVE and bool(self.earlier))]


_STATES: Final[dict[tuple[ActiveState, bool], AlarmState]] = {
    (ActiveState.INACTIVE, False): AlarmState.NORMAL,
    (ActiveState.INACTIVE, True): AlarmState.RETURNED_UNACKNOWLEDGED,
    (ActiveState.ACTIVE, False): AlarmState.ACKNOWLEDGED,
    (ActiveState.ACTIVE, True): AlarmState.UNACKNOWLEDGED,
    (ActiveState.LATCHED, False): AlarmState.LATCHED_ACKNOWLEDGED,
    (ActiveState.LATCHED, True): AlarmState.LATCHED_UNACKNOWLEDGED,
}
"""By the active state, and whether the alarm is unacknowledged."""


class AlarmCause(msgspec.Struct, frozen=True):
    """Why an alarm is raised that no rule raises: an id as that of a rule, the subject, and the value behind it.

    `severity` is from 1 to 1000; the message may name `{rule}`, `{subject}` and `{value}`, empty takes the usual one.
    """

    rule: str
    subject: str
    severity: int
    message: str = ""
    value: Any = None


def alarm_id(rule: str, subject: str) -> str:
    """Return the id of the alarm of a rule for a subject: the same after every restart."""
    return hashlib.sha256(f"{rule}\0{subject}".encode(errors="backslashreplace")).hexdigest()[:ID_LENGTH]


ALARM_METHODS: Final = ("Acknowledge", "Confirm", "AddComment", "Reset", "Shelve", "Unshelve", "Disable", "Enable")


class PublicRaise(msgspec.Struct, frozen=True, kw_only=True):
    """A raise before the last one that a person has not answered; `message` as in PublicAlarm."""

    raised_at: Instant
    cleared_at: Instant | None
    severity: int
    message: str
    acknowledged: bool


class PublicAlarm(msgspec.Struct, frozen=True, kw_only=True):
    """An alarm as `--json`, the HTTP API and the alarm events state it.

    `state` is that of ISA-18.2, `severity` from 1 to 1000. `message` is in the language of the caller, in English for
    `--json` and events; `messages` has all languages. `value` is that of the sample or the figures of the rule, at most
    20 of 200 characters. `count` is the number of raises since the alarm was normal; `earlier` are those of them that
    wait for a person, without the last one. `by` and `comment` are those of the last person who acted on it.

    Example: {"id": "9b19b5ebb04f8c73", "rule": "oven-hot", "subject": "sensors.oven", "state": "unacknowledged",
     "active": true, "acknowledgement": "unacknowledged", "needs_acknowledge": true, "severity": 800,
     "message": "oven has 96 °C", "messages": {"en": "oven has 96 °C"}, "value": 96, "job": null, "count": 1,
     "raised_at": "2026-11-26T16:42:05.385Z", "cleared_at": null, "changed_at": "2026-11-26T16:42:05.385Z", "by": "",
     "comment": "", "shelved": false, "shelved_until": null, "suppressed": false, "disabled": false, "earlier": []}
    """

    id: str
    rule: str
    subject: str
    state: str
    active: bool
    acknowledgement: AckState
    needs_acknowledge: bool
    severity: int
    message: str
    messages: Mapping[str, str]
    value: Any
    job: str | None
    count: int
    raised_at: Instant | None
    cleared_at: Instant | None
    changed_at: Instant
    by: str
    comment: str
    shelved: bool
    shelved_until: Instant | None
    suppressed: bool
    disabled: bool
    earlier: tuple[PublicRaise, ...]


class PublicAlarmChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an alarm with the alarm right after it.

    `by` is the person who made it; empty for a change that rules or the maintenance mode made.

    Example: {"kind": "raised", "at": "2026-11-26T16:42:05.385Z", "by": "", "alarm": "…"}
    """

    kind: AlarmChangeKind
    at: Instant
    by: str
    alarm: PublicAlarm


def public_alarm(alarm: Alarm, languages: Sequence[str] = ()) -> PublicAlarm:
    """Return the public form of an alarm, with its message in the first of these languages that it has."""
    shelving = alarm.shelving
    return PublicAlarm(
        id=alarm.id,
        rule=alarm.rule,
        subject=alarm.subject,
        state=alarm.state.value,
        active=alarm.active is not ActiveState.INACTIVE,
        acknowledgement=alarm.acknowledgement,
        needs_acknowledge=alarm.acknowledgement is AckState.UNACKNOWLEDGED or bool(alarm.earlier),
        severity=alarm.severity,
        message=_message_in(alarm.message, languages),
        messages=alarm.message,
        value=_figures(alarm.value),
        job=alarm.job,
        count=alarm.count,
        raised_at=rfc3339(alarm.raised_at),
        cleared_at=rfc3339(alarm.cleared_at),
        changed_at=rfc3339(alarm.changed_at),
        by=alarm.by,
        comment=alarm.comment,
        shelved=shelving is not None,
        shelved_until=rfc3339(shelving.until) if shelving else None,
        suppressed=alarm.suppressed,
        disabled=alarm.disabled,
        earlier=tuple(_public_raise(earlier_raise, languages) for earlier_raise in alarm.earlier),
    )


def public_alarm_change(alarm: Alarm, kind: AlarmChangeKind, languages: Sequence[str] = ()) -> PublicAlarmChange:
    """Return the public form of a change after which an alarm is like this; languages as of `public_alarm`."""
    by = "" if kind in _CHANGES_WITHOUT_PERSON else alarm.by
    return PublicAlarmChange(kind=kind, at=rfc3339(alarm.changed_at), by=by, alarm=public_alarm(alarm, languages))


def _public_raise(earlier: EarlierRaise, languages: Sequence[str]) -> PublicRaise:
    return PublicRaise(
        raised_at=rfc3339(earlier.raised_at),
        cleared_at=rfc3339(earlier.cleared_at),
        severity=earlier.severity,
        message=_message_in(earlier.message, languages),
        acknowledged=earlier.acknowledged,
    )


def _message_in(texts: Mapping[str, str], languages: Sequence[str]) -> str:
    """Return a text in the first language that it has; in English or any other without one of them."""
    for language in (*languages, "en"):
        for tag in (language, language.partition("-")[0]):
            if tag in texts:
                return texts[tag]
    return next(iter(texts.values()), "")


def _figures(value: Any) -> Any:
    """Return the value of an alarm: the figures of a rule that computes several stay apart."""
    if isinstance(value, Mapping) and len(value) <= _MOST_FIGURES:
        return {str(name)[:LONGEST_TEXT]: short_value(item) for name, item in value.items()}
    return short_value(value)


class AlarmNotice(msgspec.Struct, frozen=True, kw_only=True):
    """The alarm after a call of a method, and the data of an alarm event of version 1; instants in milliseconds.

    Example: {"change": "raised", "alarm_id": "9b19b5ebb04f8c73", "rule": "oven-hot", "subject": "sensors.oven",
     "state": "unacknowledged", "active": true, "acknowledged": false, "confirmed": true, "severity": 800,
     "message": {"en": "oven has 96 °C"}, "value": 96, "job": null, "count": 1, "raised_at": 1795711325385,
     "cleared_at": null, "changed_at": 1795711325385, "by": "", "comment": "", "shelving": null, "suppressed": false,
     "disabled": false, "earlier": []}
    """

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
    """The arguments of the methods of an alarm; `seconds` are those of Shelve: without, until the condition ends.

    Example: {"AlarmID": "9b19b5ebb04f8c73", "By": "anna", "Comment": "cooling checked"}
    Example: {"AlarmID": "9b19b5ebb04f8c73", "By": "anna", "Seconds": 1800}
    """

    alarm_id: str
    by: str
    comment: str = ""
    seconds: Annotated[float, Meta(le=LONGEST_SHELVING_S)] | None = None
