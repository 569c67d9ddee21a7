"""The conditions of OPC 10000-9 that an alarm makes: its current state, and a branch for each unanswered raise.

Pure. An EventId holds the alarm, the raise and the position of the change: it is the same on every instance of a store
and after a restart, and a method finds its raise without a memory of events.
"""

import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from asyncua import ua
from msgspec import Struct
from msgspec.structs import replace

from edge.features.telemetry.model.rule import (
    AlarmLimits,
    BaselineRule,
    ControlChartRule,
    ExpressionRule,
    LimitLevel,
    LimitRule,
    OccursRule,
    RateRule,
    Rule,
    StaleRule,
)
from edge.model.localized_text import localized
from edge.opcua.access import LOCALES
from edge.ports.alarm import ID_LENGTH, AckState, ActiveState, Alarm, AlarmChangeKind, EarlierRaise
from edge.ports.sample_value import GATEWAY_TAGS
from edge.store.kept_alarms import AlarmChange
from edge.uaserver.events import notifiers_of
from edge.uaserver.namespaces import Namespace

_I: Final = ua.ObjectIds
_EVENT_ID: Final = struct.Struct(">8sqQI")
_GATEWAY: Final = "gateway."
_CHANGES: Final = AlarmChangeKind
_NOTED: Final[Mapping[AlarmChangeKind, tuple[str, ...]]] = MappingProxyType(
    {
        _CHANGES.RAISED: ("acked", "confirmed", "severity"),
        _CHANGES.ESCALATED: ("acked", "severity"),
        _CHANGES.EASED: ("severity",),
        _CHANGES.ACKNOWLEDGED: ("acked", "comment"),
        _CHANGES.CONFIRMED: ("confirmed", "comment"),
        _CHANGES.COMMENTED: ("comment",),
        _CHANGES.RESET: ("comment",),
        _CHANGES.SHELVED: ("shelved", "comment"),
        _CHANGES.UNSHELVED: ("shelved", "comment"),
        _CHANGES.SUPPRESSED: ("suppressed",),
        _CHANGES.UNSUPPRESSED: ("suppressed",),
        _CHANGES.DISABLED: ("enabled", "comment"),
        _CHANGES.ENABLED: ("enabled", "comment"),
    }
)
"""By the kind of a change: the states that it changes, whose instants are shown."""


class FollowedAlarm(Struct, frozen=True, gc=False):
    """An alarm with what only its changes show: the severity before, and the instants of its states."""

    alarm: Alarm
    position: str = "0-0"
    announced: str = "0-0"
    """The position of the last raise or escalation: an older event does not acknowledge it."""
    last_severity: int = 0
    times: Mapping[str, int] = {}


def follow_change(before: FollowedAlarm | None, change: AlarmChange) -> FollowedAlarm:
    """Return the condition after a change of its alarm."""
    alarm, kind = change.alarm, change.kind
    followed_alarm = before or FollowedAlarm(alarm)
    has_other_severity = alarm.severity != followed_alarm.alarm.severity
    return FollowedAlarm(
        alarm=alarm,
        position=change.position,
        announced=change.position if kind in {_CHANGES.RAISED, _CHANGES.ESCALATED} else followed_alarm.announced,
        last_severity=followed_alarm.alarm.severity if has_other_severity else followed_alarm.last_severity,
        times={**followed_alarm.times, **dict.fromkeys(_NOTED.get(kind, ()), alarm.changed_at)},
    )


class ConditionPlace(Struct, frozen=True):
    """Where a condition is: its source, and the variable of its tag if there is one."""

    source: ua.NodeId
    source_name: str
    folder: str
    input_node: ua.NodeId | None = None

    @property
    def notifiers(self) -> tuple[ua.NodeId, ...]:
        """The nodes that have its events."""
        return notifiers_of(self.source)


class ConditionKind(Struct, frozen=True):
    """The type of a condition, its class, and the limits of a limit alarm."""

    type_id: int = _I.AlarmConditionType
    class_id: int = _I.ProcessConditionClassType
    limits: AlarmLimits | None = None
    is_stale: bool = False
    """Whether it means that samples are missing."""


class ConditionView(Struct, frozen=True):
    """A condition as clients see it, or one of its branches."""

    state: FollowedAlarm
    kind: ConditionKind
    place: ConditionPlace
    condition_id: ua.NodeId
    branch: EarlierRaise | None = None
    is_over: bool = False
    """Whether the branch has been answered: it is sent for the last time."""

    @property
    def alarm(self) -> Alarm:
        """Return the alarm."""
        return self.state.alarm

    @property
    def event_id(self) -> bytes:
        """Return the id of the event with this state."""
        raised_at = self.branch.raised_at if self.branch else self.alarm.raised_at or 0
        return encode_event_id(self.alarm.id, raised_at, self.state.position)

    @property
    def type_id(self) -> ua.NodeId:
        """Return the type of the condition."""
        return ua.NodeId(self.kind.type_id)

    @property
    def class_id(self) -> int:
        """Return the class of the condition."""
        return self.kind.class_id

    @property
    def name(self) -> str:
        """Return the ConditionName: the rule and its subject."""
        return f"{self.alarm.rule}: {self.alarm.subject}"

    @property
    def source(self) -> ua.NodeId:
        """Return the machine, or the gateway."""
        return self.place.source

    @property
    def source_name(self) -> str:
        """Return the name of the source."""
        return self.place.source_name

    @property
    def branch_id(self) -> ua.NodeId:
        """Return the id of the branch; null for the condition itself."""
        if self.branch is None:
            return ua.NodeId()
        return ua.NodeId(f"{self.alarm.id}@{self.branch.raised_at}", Namespace.ALARMS)

    @property
    def severity(self) -> int:
        """Return the severity of the alarm, or of the raise."""
        return min(max((self.branch or self.alarm).severity, 1), 1000)

    @property
    def changed_at(self) -> int:
        """Return when the alarm changed last."""
        return self.alarm.changed_at

    @property
    def is_enabled(self) -> bool:
        """Return whether the alarm is in service."""
        return not self.alarm.disabled

    @property
    def by(self) -> str:
        """Return the person who changed it last."""
        return self.alarm.by

    @property
    def comment(self) -> str:
        """Return the last comment."""
        return self.alarm.comment

    @property
    def quality(self) -> ua.StatusCode:
        """Return the quality of the samples."""
        is_missing = self.kind.is_stale and self.is_active
        return ua.StatusCode(
            ua.StatusCodes.UncertainNoCommunicationLastUsableValue if is_missing else ua.StatusCodes.Good
        )

    @property
    def last_severity(self) -> int:
        """Return the severity before."""
        return self.state.last_severity

    def instant_of(self, state: str) -> int:
        """Return when one of the states changed."""
        return self.state.times.get(state, self.alarm.raised_at or self.alarm.changed_at)

    @property
    def is_active(self) -> bool:
        """Return whether the condition holds, or waits for its reset."""
        return self.branch is None and self.alarm.active is not ActiveState.INACTIVE

    @property
    def is_acknowledged(self) -> bool:
        """Return whether a person has acknowledged it."""
        if self.branch:
            return self.branch.acknowledged or self.is_over
        return self.alarm.acknowledgement is not AckState.UNACKNOWLEDGED

    @property
    def is_confirmed(self) -> bool:
        """Return whether it needs no confirmation, or has it."""
        if not self.alarm.confirm and self.alarm.acknowledgement is not AckState.ACKNOWLEDGED:
            return True
        return self.is_over if self.branch else self.alarm.acknowledgement is AckState.CONFIRMED

    @property
    def is_retained(self) -> bool:
        """Return whether clients must show it (OPC 10000-9, 5.5.2: Retain)."""
        if self.alarm.disabled:
            return False
        return not self.is_over if self.branch else self.is_active or not (self.is_acknowledged and self.is_confirmed)

    @property
    def message(self) -> ua.LocalizedText:
        """Return its text in the language of the session, else in English or the first one; without any its rule."""
        texts = (self.branch or self.alarm).message
        chosen = localized(dict(texts) or self.alarm.rule, LOCALES.get())
        return ua.LocalizedText(chosen.text, chosen.locale or None)

    def branches(self) -> Iterator["ConditionView"]:
        """Yield its branches."""
        return (replace(self, branch=earlier_raise) for earlier_raise in self.alarm.earlier)


def kind_of(rule: Rule | None, alarm: Alarm) -> ConditionKind:
    """Return the type of the condition of an alarm; a rule that is gone leaves the general one."""
    is_own = is_of_gateway(alarm)
    general = _I.SystemConditionClassType if is_own else _I.ProcessConditionClassType
    match rule:
        case LimitRule(limits=limits):
            return ConditionKind(_I.ExclusiveLimitAlarmType, general, limits)
        case RateRule(per_second=most):
            return ConditionKind(_I.ExclusiveRateOfChangeAlarmType, general, AlarmLimits(high=LimitLevel(most)))
        case BaselineRule() | ControlChartRule():
            return ConditionKind(_I.DiscrepancyAlarmType, _I.StatisticalConditionClassType)
        case StaleRule():
            return ConditionKind(_I.OffNormalAlarmType, general, is_stale=True)
        case None:
            return ConditionKind(_I.SystemOffNormalAlarmType if is_own else _I.AlarmConditionType, general)
        case _:
            return ConditionKind(_I.SystemOffNormalAlarmType if is_own else _I.OffNormalAlarmType, general)


def tag_of_alarm(rule: Rule | None, alarm: Alarm) -> str | None:
    """Return the tag that an alarm is about: its subject, also with a process, job or carrier, is named by it."""
    if rule is None or isinstance(rule, ExpressionRule | OccursRule):
        return None
    if "*" not in rule.tag:
        return rule.tag
    if rule.subject == "tool":
        return None
    is_named = rule.subject == "tag" and not alarm.subject.startswith(GATEWAY_TAGS)
    return alarm.subject if is_named else alarm.subject.partition("[")[0]


def is_of_gateway(alarm: Alarm) -> bool:
    """Return whether an alarm is about the gateway itself, not about a machine."""
    return alarm.subject.startswith(_GATEWAY) or alarm.subject == "gateway"


def changed_views(before: ConditionView | None, after: ConditionView, kind: AlarmChangeKind) -> list[ConditionView]:
    """Return what clients must be sent after a change: branches first, then the condition itself."""
    alarm = after.alarm
    if alarm.disabled and kind is not AlarmChangeKind.DISABLED:
        return []
    known = before.alarm if before else None
    kept = {earlier_raise.raised_at: earlier_raise for earlier_raise in alarm.earlier}
    had = {earlier_raise.raised_at: earlier_raise for earlier_raise in known.earlier} if known else {}
    has_switched = kind in {AlarmChangeKind.DISABLED, AlarmChangeKind.ENABLED}
    views = [
        replace(after, branch=earlier_raise)
        for raised_at, earlier_raise in kept.items()
        if has_switched or kind is AlarmChangeKind.COMMENTED or had.get(raised_at) != earlier_raise
    ]
    views += [
        replace(after, branch=earlier_raise, is_over=True)
        for raised_at, earlier_raise in had.items()
        if raised_at not in kept
    ]
    is_of_branch = (
        kind in {AlarmChangeKind.ACKNOWLEDGED, AlarmChangeKind.CONFIRMED}
        and known is not None
        and known.acknowledgement is alarm.acknowledgement
    )
    return views if is_of_branch and views else [*views, after]


def encode_event_id(alarm_id: str, raised_at: int, position: str) -> bytes:
    """Return the EventId of a state of an alarm."""
    milliseconds, _, number = position.partition("-")
    digest = bytes.fromhex(alarm_id) if len(alarm_id) == ID_LENGTH else alarm_id.encode()[:8]
    return _EVENT_ID.pack(digest, raised_at, int(milliseconds), int(number or 0) & 0xFFFFFFFF)


def raise_of(state: FollowedAlarm, event_id: Any) -> int | None:
    """Return the instant of the raise that an EventId names; None for one that the alarm does not know."""
    alarm = state.alarm
    if not isinstance(event_id, bytes) or len(event_id) != _EVENT_ID.size:
        return None
    _, raised_at, milliseconds, number = _EVENT_ID.unpack(event_id)
    if event_id[:8] != encode_event_id(alarm.id, 0, "0-0")[:8]:
        return None
    if raised_at == (alarm.raised_at or 0):
        announced, _, sequence = state.announced.partition("-")
        return raised_at if (milliseconds, number) >= (int(announced), int(sequence or 0)) else None
    return raised_at if any(earlier_raise.raised_at == raised_at for earlier_raise in alarm.earlier) else None
