"""The methods of conditions (OPC 10000-9, 5.5 to 5.8): they apply the same requests as the MES and `edge alarms`."""

import asyncio
import contextlib
import math
from collections.abc import Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol

import structlog
from asyncua import ua
from asyncua.server.address_space import AddressSpace

from edge.features.telemetry.opcua.condition_nodes import method_name
from edge.features.telemetry.opcua.condition_refresh import ConditionRefresher
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
from edge.opcua.server_session import ServerSession
from edge.ports.alarm import Alarm, AlarmNotice
from edge.uaserver import method_roles
from edge.uaserver.namespaces import Namespace

logger = structlog.get_logger(__name__)

_I: Final = ua.ObjectIds
_S: Final = ua.StatusCodes
T: Final = ua.VariantType
LONGEST_COMMENT: Final = 1_000
LONGEST_SHELVING_MS: Final = 366 * 86_400_000
_SHOWN_WITHIN_S: Final = 1.0
"""The longest time that a method waits for the conditions to show its effect; after it the answer is sent anyway."""

_EVENT: Final = (T.ByteString, T.LocalizedText)
_COMMENT: Final = (T.LocalizedText,)
_SIGNATURES: Final[Mapping[str, tuple[ua.VariantType, ...]]] = MappingProxyType(
    {
        "Enable": (),
        "Disable": (),
        "AddComment": _EVENT,
        "Acknowledge": _EVENT,
        "Confirm": _EVENT,
        "Reset": (),
        "Reset2": _COMMENT,
        "TimedShelve": (T.Double,),
        "TimedShelve2": (T.Double, T.LocalizedText),
        "OneShotShelve": (),
        "OneShotShelve2": _COMMENT,
        "Unshelve": (),
        "Unshelve2": _COMMENT,
        "ConditionRefresh": (T.UInt32,),
        "ConditionRefresh2": (T.UInt32, T.UInt32),
    }
)
_METHODS: Final[Mapping[ua.NodeId, str]] = MappingProxyType(
    {
        ua.NodeId(item): method_name(item)
        for item in (
            _I.ConditionType_Enable,
            _I.ConditionType_Disable,
            _I.ConditionType_AddComment,
            _I.ConditionType_ConditionRefresh,
            _I.ConditionType_ConditionRefresh2,
            _I.AcknowledgeableConditionType_Acknowledge,
            _I.AcknowledgeableConditionType_Confirm,
            _I.AlarmConditionType_Reset,
            _I.AlarmConditionType_Reset2,
            *(
                getattr(_I, f"{owner}_{name}")
                for owner in ("ShelvedStateMachineType", "AlarmConditionType_ShelvingState")
                for name in (
                    "TimedShelve",
                    "TimedShelve2",
                    "OneShotShelve",
                    "OneShotShelve2",
                    "Unshelve",
                    "Unshelve2",
                )
            ),
        )
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
    """The Call service for conditions and for ConditionRefresh."""

    def __init__(
        self,
        aspace: AddressSpace,
        conditions: Conditions,
        refresher: ConditionRefresher,
        request: AlarmRequests,
        clock: Clock,
    ) -> None:
        self._aspace = aspace
        self._conditions = conditions
        self._refresher = refresher
        self._request = request
        self._clock = clock

    def serves(self, request: ua.CallMethodRequest) -> bool:
        """Return whether the call is for a condition."""
        return request.ObjectId.NamespaceIndex == Namespace.ALARMS or request.MethodId in _METHODS

    async def call(self, request: ua.CallMethodRequest, session: ServerSession) -> ua.CallMethodResult:
        """Perform a method; its effect reaches the clients as an event."""
        # The requests of one connection follow one another without a pause: let all other tasks run in between.
        await asyncio.sleep(0)
        name = _METHODS.get(request.MethodId)
        if name is None:
            return _result(_S.BadMethodInvalid)
        if not method_roles.may_call(CALLER.get().role, name):
            return _result(_S.BadUserAccessDenied)
        arguments = _read_arguments(_SIGNATURES[name], request.InputArguments or ())
        if isinstance(arguments, ua.CallMethodResult):
            return arguments
        if name.startswith("ConditionRefresh"):
            return _result(self._refresher.start(session, *arguments))
        view = self._target(request.ObjectId)
        if view is None:
            # A condition is an instance: its methods are not those of the type nodes (OPC 10000-9, 5.7.3).
            return _result(_S.BadNodeIdInvalid if request.ObjectId in self._aspace else _S.BadNodeIdUnknown)
        return _result(await self._perform(view, name, arguments))

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
            if math.isnan(length) or not 1 <= length <= LONGEST_SHELVING_MS:
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


def _read_arguments(
    signature: Sequence[ua.VariantType], given: Sequence[ua.Variant]
) -> list[Any] | ua.CallMethodResult:
    """Read the arguments; return the Bad result for invalid ones."""
    if len(given) != len(signature):
        return _result(_S.BadArgumentsMissing if len(given) < len(signature) else _S.BadTooManyArguments)
    read, verdicts = [], []
    for kind, argument in zip(signature, given, strict=True):
        value = argument.Value
        is_null = argument.VariantType is T.Null and kind is T.LocalizedText
        if not is_null and (argument.VariantType is not kind or argument.is_array):
            verdicts.append(_S.BadTypeMismatch)
            continue
        text = (value.Text or "") if isinstance(value, ua.LocalizedText) else ""
        verdicts.append(_S.BadOutOfRange if len(text) > LONGEST_COMMENT else _S.Good)
        read.append(text if kind is T.LocalizedText else value)
    if not any(verdicts):
        return read
    return ua.CallMethodResult(
        StatusCode=ua.StatusCode(_S.BadInvalidArgument),
        InputArgumentResults=[ua.StatusCode(verdict) for verdict in verdicts],
    )


def _result(status: int) -> ua.CallMethodResult:
    return ua.CallMethodResult(StatusCode=ua.StatusCode(status))
