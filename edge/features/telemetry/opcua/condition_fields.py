"""The members of conditions of alarms: those of every condition, and those of the types of alarms."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from asyncua import ua

from edge.features.telemetry.model.rule import AlarmLimits, LimitLevel
from edge.features.telemetry.opcua.condition_view import ConditionKind, ConditionView
from edge.foundation.text import Text
from edge.opcua.access import session_text
from edge.ports.alarm import ActiveState
from edge.uaserver.condition_members import (
    BASE_MEMBERS,
    ConditionMember,
    ConditionShape,
    T,
    property_member,
    table_of,
    two_states,
)
from edge.uaserver.own_types import instant

_I: Final = ua.ObjectIds

_OBJECTS: Final[Mapping[str, int]] = MappingProxyType(
    {"ShelvingState": _I.ShelvedStateMachineType, "LimitState": _I.ExclusiveLimitStateMachineType}
)
_METHODS_OF_OBJECTS: Final[Mapping[str, tuple[ua.NodeId, ...]]] = MappingProxyType(
    {
        "": (
            ua.NodeId(_I.ConditionType_Enable),
            ua.NodeId(_I.ConditionType_Disable),
            ua.NodeId(_I.ConditionType_AddComment),
            ua.NodeId(_I.AcknowledgeableConditionType_Acknowledge),
            ua.NodeId(_I.AcknowledgeableConditionType_Confirm),
            ua.NodeId(_I.AlarmConditionType_Reset),
            ua.NodeId(_I.AlarmConditionType_Reset2),
        ),
        "ShelvingState": (
            ua.NodeId(_I.ShelvedStateMachineType_TimedShelve),
            ua.NodeId(_I.ShelvedStateMachineType_TimedShelve2),
            ua.NodeId(_I.ShelvedStateMachineType_Unshelve),
            ua.NodeId(_I.ShelvedStateMachineType_Unshelve2),
            ua.NodeId(_I.ShelvedStateMachineType_OneShotShelve),
            ua.NodeId(_I.ShelvedStateMachineType_OneShotShelve2),
        ),
    }
)
"""By the path of an object: its methods. All conditions share the method nodes of the types."""
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
_MACHINE_TEXTS: Final[Mapping[str, Text]] = MappingProxyType(
    {
        text.id: text
        for text in (
            *(Text.of("HighHigh"), Text.of("High"), Text.of("Low"), Text.of("LowLow")),
            *(Text.of("Unshelved"), Text.of("Timed Shelved"), Text.of("One Shot Shelved")),
        )
    }
)


def fields_of_conditions() -> frozenset[str]:
    """Return the paths of the fields of all types of conditions."""
    return frozenset(path for kind in _OF_TYPE for path in _shape(kind, frozenset()).members)


def shape_of(kind: ConditionKind) -> ConditionShape:
    """Return what conditions of a kind consist of; a limit that its rule does not have is absent."""
    limits = kind.limits or AlarmLimits()
    return _shape(kind.type_id, frozenset(path for path, name in _LIMIT_NAMES.items() if not getattr(limits, name)))


@lru_cache(maxsize=64)
def _shape(type_id: int, absent: frozenset[str]) -> ConditionShape:
    of_type = (member for member in _OF_TYPE.get(type_id, ()) if member.path not in absent)
    members = table_of((*BASE_MEMBERS, *_ALARM, *of_type))
    objects = {path: kind for path, kind in _OBJECTS.items() if f"{path}/CurrentState" in members}
    return ConditionShape(ua.NodeId(type_id), members, objects, _METHODS_OF_OBJECTS)


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


def _limit(name: str) -> Callable[[ConditionView], Any]:
    def value(view: ConditionView) -> float | None:
        level: LimitLevel | None = getattr(view.kind.limits, name, None)
        return None if level is None else level.at

    return value


def _states(name: str, texts: tuple[Text, Text], is_true: Callable[[ConditionView], bool], state: str) -> Any:
    return two_states(name, texts, is_true, lambda view: instant(view.instant_of(state)))


def _machine_state(
    name: str, text: Callable[[ConditionView], str | None], states: Mapping[str, int]
) -> Iterator[ConditionMember]:
    def shown(view: ConditionView) -> Any:
        current = text(view)
        return None if current is None else session_text(_MACHINE_TEXTS[current])

    def identifier(view: ConditionView) -> Any:
        current = text(view)
        return None if current is None else ua.NodeId(states[current])

    yield ConditionMember(f"{name}/CurrentState", T.LocalizedText, shown, _I.LocalizedText, _I.FiniteStateVariableType)
    yield property_member(f"{name}/CurrentState/Id", T.NodeId, identifier)


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


def _active_since(view: ConditionView) -> ua.Variant:
    raised = view.branch or view.alarm
    return instant(raised.raised_at if view.is_active else raised.cleared_at)


def _latched_since(view: ConditionView) -> ua.Variant:
    """Return since when the alarm is latched; else since when it is active or cleared, as it is not latched since."""
    is_raised = view.is_active and view.alarm.active is not ActiveState.LATCHED
    return instant(view.alarm.raised_at if is_raised else view.alarm.cleared_at)


_ALARM: Final[tuple[ConditionMember, ...]] = (
    property_member("InputNode", T.NodeId, lambda v: v.place.input_node or ua.NodeId()),
    property_member(
        "SuppressedOrShelved", T.Boolean, lambda v: bool(v.alarm.suppressed or v.alarm.shelving or v.alarm.disabled)
    ),
    *two_states("ActiveState", (Text.of("Active"), Text.of("Inactive")), lambda v: v.is_active, _active_since),
    *_states("AckedState", (Text.of("Acknowledged"), Text.of("Unacknowledged")), lambda v: v.is_acknowledged, "acked"),
    *_states("ConfirmedState", (Text.of("Confirmed"), Text.of("Unconfirmed")), lambda v: v.is_confirmed, "confirmed"),
    *_states(
        "SuppressedState", (Text.of("Suppressed"), Text.of("Unsuppressed")), lambda v: v.alarm.suppressed, "suppressed"
    ),
    *two_states(
        "LatchedState",
        (Text.of("Latched"), Text.of("Unlatched")),
        lambda v: v.alarm.active is ActiveState.LATCHED,
        _latched_since,
    ),
    *_machine_state("ShelvingState", _shelving_text, _SHELVED),
    property_member("ShelvingState/UnshelveTime", T.Double, _unshelve_ms, _I.Duration),
)
_LIMIT_NAMES: Final = MappingProxyType(
    {"HighHighLimit": "high_high", "HighLimit": "high", "LowLimit": "low", "LowLowLimit": "low_low"}
)
_LIMITS: Final[tuple[ConditionMember, ...]] = (
    *(property_member(path, T.Double, _limit(name)) for path, name in _LIMIT_NAMES.items()),
    *_machine_state("LimitState", level_of, _LEVELS),
)
_NORMAL: Final = (property_member("NormalState", T.NodeId, lambda _: ua.NodeId()),)
_OF_TYPE: Final[Mapping[int, Iterable[ConditionMember]]] = MappingProxyType(
    {
        _I.ExclusiveLimitAlarmType: _LIMITS,
        _I.ExclusiveRateOfChangeAlarmType: _LIMITS,
        _I.OffNormalAlarmType: _NORMAL,
        _I.SystemOffNormalAlarmType: _NORMAL,
        _I.DiscrepancyAlarmType: (
            property_member("TargetValueNode", T.NodeId, lambda _: ua.NodeId()),
            property_member("ExpectedTime", T.Double, lambda _: 0.0, _I.Duration),
        ),
    }
)
