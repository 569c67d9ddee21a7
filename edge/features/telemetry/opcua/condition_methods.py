"""The methods of conditions (OPC 10000-9, 5.5 to 5.8): they apply the same requests as the MES and `edge alarms`."""

import asyncio
import contextlib
import math
from collections.abc import Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol

import structlog
from asyncua import ua

from edge.features.telemetry.opcua.condition_view import ConditionView, raise_of
from edge.features.telemetry.opcua.conditions import Conditions
from edge.features.telemetry.rules.alarm import (
    Acknowledge,
    AddComment,
    AlarmEvent,
    Confirm,
    Disable,
    Enable,
    Reset,
    Shelve,
    Unshelve,
)
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import Clock
from edge.opcua.access import CALLER
from edge.ports.alarm import LONGEST_SHELVING_S, Alarm, AlarmNotice
from edge.uaserver.condition_space import (
    COMMENT,
    EVENT_AND_COMMENT,
    ArgumentKind,
    ConditionSource,
    condition_result,
)
from edge.uaserver.namespaces import Namespace

logger = structlog.get_logger(__name__)

_I: Final = ua.ObjectIds
_S: Final = ua.StatusCodes
T: Final = ua.VariantType

_SHOWN_WITHIN_S: Final = 1.0
"""The longest time that a method waits for the conditions to show its effect; after it the answer is sent anyway."""

_TIME: Final = ArgumentKind(T.Double)
_SIGNATURES: Final[Mapping[str, tuple[ArgumentKind, ...]]] = MappingProxyType(
    {
        "TimedShelve": (_TIME,),
        "TimedShelve2": (_TIME, *COMMENT),
        "OneShotShelve": (),
        "OneShotShelve2": COMMENT,
        "Unshelve": (),
        "Unshelve2": COMMENT,
    }
)
_METHODS: Final[Mapping[ua.NodeId, tuple[ArgumentKind, ...]]] = MappingProxyType(
    {
        ua.NodeId(_I.ConditionType_Enable): (),
        ua.NodeId(_I.ConditionType_Disable): (),
        ua.NodeId(_I.ConditionType_AddComment): EVENT_AND_COMMENT,
        ua.NodeId(_I.AcknowledgeableConditionType_Acknowledge): EVENT_AND_COMMENT,
        ua.NodeId(_I.AcknowledgeableConditionType_Confirm): EVENT_AND_COMMENT,
        ua.NodeId(_I.AlarmConditionType_Reset): (),
        ua.NodeId(_I.AlarmConditionType_Reset2): COMMENT,
        **{
            ua.NodeId(getattr(_I, f"{owner}_{name}")): signature
            for owner in ("ShelvedStateMachineType", "AlarmConditionType_ShelvingState")
            for name, signature in _SIGNATURES.items()
        },
    }
)
_REFUSALS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "Acknowledge": _S.BadConditionBranchAlreadyAcked,
        "Enable": _S.BadConditionAlreadyEnabled,
        "Disable": _S.BadConditionAlreadyDisabled,
        "Unshelve": _S.BadConditionNotShelved,
    }
)
"""By the method without its `2`: the status when the state does not allow it; else BadInvalidState."""


class AlarmRequests(Protocol):
    """The service that applies the request of a person to an alarm (edge.features.telemetry.alarm_requests)."""

    def __call__(self, alarm_id: str, event: AlarmEvent, normal: Alarm | None) -> Coroutine[Any, Any, AlarmNotice]:
        """Apply a request. Raises Refused and Unavailable."""


class ConditionMethods:
    """The methods of the conditions of alarms."""

    def __init__(self, conditions: Conditions, request: AlarmRequests, clock: Clock) -> None:
        self._conditions = conditions
        self._request = request
        self._clock = clock

    @property
    def source(self) -> ConditionSource:
        """The conditions of alarms with these methods."""
        return ConditionSource(self._conditions, _METHODS, self._call)

    async def _call(self, object_id: ua.NodeId, name: str, arguments: Sequence[Any]) -> ua.CallMethodResult | None:
        view = self._target(object_id)
        return None if view is None else condition_result(await self._perform(view, name, arguments))

    def _target(self, object_id: ua.NodeId) -> ConditionView | None:
        """Return the condition of an object: the condition itself, or its ShelvingState."""
        if object_id.NamespaceIndex != Namespace.ALARMS or not isinstance(object_id.Identifier, str):
            return None
        alarm_id, _, path = object_id.Identifier.partition("/")
        return self._conditions.view_of(alarm_id) if path in {"", "ShelvingState"} else None

    async def _perform(self, view: ConditionView, name: str, arguments: Sequence[Any]) -> int:
        if view.alarm.disabled and name not in {"Enable", "Disable"}:
            return _S.BadConditionDisabled
        asked = _decide(view, name.removesuffix("2"), arguments, CALLER.get().name or "anonymous", self._clock())
        if isinstance(asked, int):
            return asked
        try:
            # A normal alarm is not in the store.
            normal = None if view.alarm.is_retained else view.alarm
            notice = await self._request(view.alarm.id, asked, normal)
        except Refused as refused:
            if refused.kind == "unknown_alarm":
                return _S.BadNodeIdUnknown
            return _REFUSALS.get(name.removesuffix("2"), _S.BadInvalidState)
        except Unavailable as error:
            logger.warning("OPC UA method unavailable", method=name, reason=error.message)
            return _S.BadResourceUnavailable
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SHOWN_WITHIN_S):
                await self._conditions.wait_for(view.alarm.id, notice.changed_at)
        return _S.Good


def _decide(view: ConditionView, name: str, arguments: Sequence[Any], by: str, now: int) -> AlarmEvent | int:
    """Return the request to the alarm, or the status that refuses it."""
    comment = arguments[-1] if arguments and isinstance(arguments[-1], str) else ""
    shelving = view.alarm.shelving
    match name:
        case "Acknowledge" | "Confirm" | "AddComment":
            raised_at = raise_of(view.state, arguments[0])
            if raised_at is None:
                return _S.BadEventIdUnknown
            return _answer(view, name, raised_at, by, comment)
        case "Enable":
            return Enable(by)
        case "Disable":
            return Disable(by)
        case "Reset":
            return Reset(by, comment)
        case "Unshelve":
            return Unshelve(by, comment)
        case "OneShotShelve" if shelving is not None and shelving.one_shot:
            return _S.BadConditionAlreadyShelved
        case "OneShotShelve":
            return Shelve(by, comment)
        case _:
            length = arguments[0]
            if math.isnan(length) or not 1 <= length <= LONGEST_SHELVING_S * 1000:
                return _S.BadShelvingTimeOutOfRange
            return Shelve(by, comment, now + round(length))


def _answer(view: ConditionView, name: str, raised_at: int, by: str, comment: str) -> AlarmEvent | int:
    branch = next(
        (
            condition_view
            for condition_view in view.branches()
            if condition_view.branch and condition_view.branch.raised_at == raised_at
        ),
        view,
    )
    if name == "Acknowledge":
        # The alarm of old data may have no instant: it has one raise.
        return Acknowledge(by, comment, raised_at or None)
    if name == "AddComment":
        return AddComment(by, comment)
    if branch.is_confirmed:
        return _S.BadConditionBranchAlreadyConfirmed
    return Confirm(by, comment, raised_at or None) if branch.is_acknowledged else _S.BadInvalidState
