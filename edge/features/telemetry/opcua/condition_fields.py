"""The members of conditions: a table of their paths, types and values, for events, nodes and history alike."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from asyncua import ua
from msgspec import Struct

from edge.features.telemetry.model.rule import LimitLevel
from edge.features.telemetry.opcua.condition_view import ConditionView
from edge.ports.alarm import ActiveState
from edge.uaserver.namespaces import Namespace
from edge.uaserver.own_types import instant

_I: Final = ua.ObjectIds
T: Final = ua.VariantType
LONGEST_NAME: Final = 500
"""Characters of a ConditionName (a name has at most 512: OPC 10000-3, 8.3)."""

_NUMBERS: Final = (int, float)
_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "HighHigh": _I.ExclusiveLimitStateMachineType_HighHigh,
        "High": _I.ExclusiveLimitStateMachineType_High,
        "Low": _I.ExclusiveLimitStateMachineType_Low,
        "LowLow": _I.ExclusiveLimitStateMachineType_LowLow,
    }
)
_SHELVED: Final[Mapping[str, int]] = MappingProxyType(
    {
        "Unshelved": _I.ShelvedStateMachineType_Unshelved,
        "Timed Shelved": _I.ShelvedStateMachineType_TimedShelved,
        "One Shot Shelved": _I.ShelvedStateMachineType_OneShotShelved,
    }
)


class ConditionMember(Struct, frozen=True):
    """A variable of a condition: its path, the type of its value, its variable type, and its value in a view."""

    path: str
    kind: ua.VariantType
    value: Callable[[ConditionView], Any]
    data_type: int
    variable_type: int = _I.PropertyType


class ConditionFields(Mapping[str, ua.Variant]):
    """The fields of the event about a condition by path; each is made when a filter selects it."""

    def __init__(self, view: ConditionView) -> None:
        self._view = view
        self._members = member_table(view.kind.type_id)

    def __getitem__(self, path: str) -> ua.Variant:
        return variant_of(self._members[path], self._view)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def variant_of(member: ConditionMember, view: ConditionView) -> ua.Variant:
    """Return the value of a member."""
    value = member.value(view)
    return value if isinstance(value, ua.Variant) else ua.Variant(value, T.Null if value is None else member.kind)


def fields_of_conditions() -> frozenset[str]:
    """Return the paths of the fields of all types of conditions."""
    return frozenset(member.path for kind in _OF_TYPE for member in member_table(kind).values())


@lru_cache(maxsize=32)
def member_table(type_id: int) -> Mapping[str, ConditionMember]:
    """Return the members of conditions of a type by path."""
    members = (*_EVENT, *_CONDITION, *_STATES, *_SHELVING, *_OF_TYPE.get(type_id, ()))
    return MappingProxyType({condition_member.path: condition_member for condition_member in members})


def name_of(view: ConditionView) -> str:
    """Return the ConditionName: the rule and its subject."""
    return f"{view.alarm.rule}: {view.alarm.subject}"[:LONGEST_NAME]


def level_of(view: ConditionView) -> str | None:
    """Return the limit that an active alarm has reached: of its severity, the nearest to its value."""
    limits, alarm = view.kind.limits, view.alarm
    if not view.is_active or alarm.active is ActiveState.LATCHED:
        return None
    if limits is None:
        return "High"
    levels = {"HighHigh": limits.high_high, "High": limits.high, "Low": limits.low, "LowLow": limits.low_low}
    limit_levels = {name: limit_level for name, limit_level in levels.items() if limit_level is not None}
    meant = {
        name: limit_level
        for name, limit_level in limit_levels.items()
        if limit_level.severity in {None, alarm.severity}
    } or limit_levels

    def distance(level: LimitLevel) -> float:
        return abs(alarm.value - level.at) if isinstance(alarm.value, _NUMBERS) else 0.0

    return min(meant, key=lambda name: distance(meant[name]), default=None)


def _property(path: str, kind: ua.VariantType, value: Callable[[ConditionView], Any], data_type: int = 0) -> Any:
    return ConditionMember(path, kind, value, data_type or kind.value)


def _time(view: ConditionView, name: str) -> ua.Variant:
    return instant(view.state.times.get(name, view.alarm.raised_at or view.alarm.changed_at))


def _limit(name: str) -> Callable[[ConditionView], Any]:
    def value(view: ConditionView) -> float | None:
        level: LimitLevel | None = getattr(view.kind.limits, name, None)
        return None if level is None else level.at

    return value


def _two_states(
    name: str, texts: tuple[str, str], is_true: Callable[[ConditionView], bool], at: Callable[[ConditionView], Any]
) -> Iterator[ConditionMember]:
    """Yield the members of a variable with two states; `texts` are those of true and false."""

    def text(view: ConditionView) -> ua.LocalizedText:
        return ua.LocalizedText(texts[not is_true(view)], "en")

    yield ConditionMember(name, T.LocalizedText, text, _I.LocalizedText, _I.TwoStateVariableType)
    yield _property(f"{name}/Id", T.Boolean, is_true)
    yield _property(f"{name}/EffectiveDisplayName", T.LocalizedText, text)
    yield _property(f"{name}/TransitionTime", T.DateTime, at, _I.UtcTime)


def _noted(
    name: str, kind: ua.VariantType, value: Callable[[ConditionView], Any], at: Callable[[ConditionView], Any]
) -> Iterator[ConditionMember]:
    """Yield the members of a variable whose value has an instant."""
    yield ConditionMember(name, kind, value, kind.value, _I.ConditionVariableType)
    yield _property(f"{name}/SourceTimestamp", T.DateTime, at, _I.UtcTime)


def _machine_state(
    name: str, text: Callable[[ConditionView], str | None], states: Mapping[str, int]
) -> Iterator[ConditionMember]:
    def shown(view: ConditionView) -> Any:
        current = text(view)
        return None if current is None else ua.LocalizedText(current, "en")

    def identifier(view: ConditionView) -> Any:
        current = text(view)
        return None if current is None else ua.NodeId(states[current])

    yield ConditionMember(f"{name}/CurrentState", T.LocalizedText, shown, _I.LocalizedText, _I.FiniteStateVariableType)
    yield _property(f"{name}/CurrentState/Id", T.NodeId, identifier)


def _shelving_text(view: ConditionView) -> str:
    shelving = view.alarm.shelving
    if shelving is None:
        return "Unshelved"
    return "One Shot Shelved" if shelving.one_shot else "Timed Shelved"


def _unshelve_ms(view: ConditionView) -> float:
    shelving = view.alarm.shelving
    if shelving is None:
        return 0.0
    return float(0xFFFFFFFF) if shelving.until is None else float(max(0, shelving.until - _now_ms()))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _class_name(view: ConditionView) -> ua.LocalizedText:
    return ua.LocalizedText(ua.ObjectIdNames[view.kind.class_id].removesuffix("Type"), "en")


def _branch_id(view: ConditionView) -> ua.NodeId:
    return (
        ua.NodeId() if view.branch is None else ua.NodeId(f"{view.alarm.id}@{view.branch.raised_at}", Namespace.ALARMS)
    )


def _active_since(view: ConditionView) -> ua.Variant:
    raised = view.branch or view.alarm
    return instant(raised.raised_at if view.is_active else raised.cleared_at)


def _quality(view: ConditionView) -> ua.StatusCode:
    is_missing = view.kind.is_stale and view.is_active
    return ua.StatusCode(ua.StatusCodes.UncertainNoCommunicationLastUsableValue if is_missing else ua.StatusCodes.Good)


def _severity(view: ConditionView) -> int:
    return min(max((view.branch or view.alarm).severity, 1), 1000)


_EVENT: Final[tuple[ConditionMember, ...]] = (
    _property("EventId", T.ByteString, lambda v: v.event_id),
    _property("EventType", T.NodeId, lambda v: ua.NodeId(v.kind.type_id)),
    _property("SourceNode", T.NodeId, lambda v: v.place.source),
    _property("SourceName", T.String, lambda v: v.place.source_name),
    _property("Time", T.DateTime, lambda v: instant(v.alarm.changed_at), _I.UtcTime),
    _property("ReceiveTime", T.DateTime, lambda _: instant(_now_ms()), _I.UtcTime),
    _property("Message", T.LocalizedText, lambda v: v.message),
    _property("Severity", T.UInt16, _severity),
)
_CONDITION: Final[tuple[ConditionMember, ...]] = (
    _property("ConditionClassId", T.NodeId, lambda v: ua.NodeId(v.kind.class_id)),
    _property("ConditionClassName", T.LocalizedText, _class_name),
    _property("ConditionName", T.String, name_of),
    _property("BranchId", T.NodeId, _branch_id),
    _property("Retain", T.Boolean, lambda v: v.is_retained),
    _property("ClientUserId", T.String, lambda v: v.alarm.by),
    *_noted("Quality", T.StatusCode, _quality, lambda v: instant(v.alarm.changed_at)),
    *_noted("LastSeverity", T.UInt16, lambda v: v.state.last_severity, lambda v: _time(v, "severity")),
    *_noted(
        "Comment",
        T.LocalizedText,
        lambda v: ua.LocalizedText(v.alarm.comment, "en"),
        lambda v: _time(v, "comment"),
    ),
    _property("InputNode", T.NodeId, lambda v: v.place.input_node or ua.NodeId()),
    _property(
        "SuppressedOrShelved", T.Boolean, lambda v: bool(v.alarm.suppressed or v.alarm.shelving or v.alarm.disabled)
    ),
)
_STATES: Final[tuple[ConditionMember, ...]] = (
    *_two_states(
        "EnabledState", ("Enabled", "Disabled"), lambda v: not v.alarm.disabled, lambda v: _time(v, "enabled")
    ),
    *_two_states("ActiveState", ("Active", "Inactive"), lambda v: v.is_active, _active_since),
    *_two_states(
        "AckedState", ("Acknowledged", "Unacknowledged"), lambda v: v.is_acknowledged, lambda v: _time(v, "acked")
    ),
    *_two_states(
        "ConfirmedState", ("Confirmed", "Unconfirmed"), lambda v: v.is_confirmed, lambda v: _time(v, "confirmed")
    ),
    *_two_states(
        "SuppressedState",
        ("Suppressed", "Unsuppressed"),
        lambda v: v.alarm.suppressed,
        lambda v: _time(v, "suppressed"),
    ),
    *_two_states(
        "LatchedState",
        ("Latched", "Unlatched"),
        lambda v: v.alarm.active is ActiveState.LATCHED,
        lambda v: instant(v.alarm.cleared_at),
    ),
)
_SHELVING: Final[tuple[ConditionMember, ...]] = (
    *_machine_state("ShelvingState", _shelving_text, _SHELVED),
    _property("ShelvingState/UnshelveTime", T.Double, _unshelve_ms, _I.Duration),
)
_LIMITS: Final[tuple[ConditionMember, ...]] = (
    *(
        _property(name, T.Double, _limit(member))
        for name, member in (
            ("HighHighLimit", "high_high"),
            ("HighLimit", "high"),
            ("LowLimit", "low"),
            ("LowLowLimit", "low_low"),
        )
    ),
    *_machine_state("LimitState", level_of, _LEVELS),
)
_NORMAL: Final = (_property("NormalState", T.NodeId, lambda _: ua.NodeId()),)
_OF_TYPE: Final[Mapping[int, Iterable[ConditionMember]]] = MappingProxyType(
    {
        _I.ExclusiveLimitAlarmType: _LIMITS,
        _I.ExclusiveRateOfChangeAlarmType: _LIMITS,
        _I.OffNormalAlarmType: _NORMAL,
        _I.SystemOffNormalAlarmType: _NORMAL,
        _I.DiscrepancyAlarmType: (
            _property("TargetValueNode", T.NodeId, lambda _: ua.NodeId()),
            _property("ExpectedTime", T.Double, lambda _: 0.0, _I.Duration),
        ),
    }
)
