"""The methods of conditions (OPC 10000-9, 5.5 to 5.8): they apply the same requests as the MES and `edge alarms`."""

import asyncio
import contextlib
import math
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Protocol

import structlog
from asyncua import ua
from asyncua.server.address_space import AddressSpace
from asyncua.server.monitored_item_service import MonitoredItemData

from edge.features.telemetry.opcua.condition_nodes import method_name
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
from edge.foundation.task_group import TaskGroup
from edge.opcua.access import CALLER
from edge.opcua.event_filter import EventRecord
from edge.opcua.limits import NOTIFICATIONS_PER_MESSAGE
from edge.opcua.monitored_items import MonitoredItems
from edge.opcua.server_core import ServerCore
from edge.opcua.server_session import ServerSession
from edge.ports.alarm import Alarm, AlarmNotice
from edge.uaserver import method_roles
from edge.uaserver.events import SERVER, lineage, monitoring, send_event
from edge.uaserver.namespaces import Namespace

logger = structlog.get_logger(__name__)

_I: Final = ua.ObjectIds
_S: Final = ua.StatusCodes
T: Final = ua.VariantType
_FULL_QUEUE_S: Final = 0.02
_WAITS: Final = 1_500
"""Waits for room in the queue of one monitored item: half a minute; then its queue overflows and says so."""
_QUEUED: Final = NOTIFICATIONS_PER_MESSAGE
"""Events of a refresh that wait at once: the memory of many refreshes stays small."""
_SEVERITY: Final = 1


class ConditionRefresher:
    """Runs the refreshes of all subscriptions, one at a time for each, as work of their sessions."""

    def __init__(self, core: ServerCore, conditions: Conditions, tasks: TaskGroup) -> None:
        self._core = core
        self._conditions = conditions
        self._tasks = tasks
        self._running: set[int] = set()
        self._types = {value: lineage(core, ua.NodeId(value)) for value in _MESSAGES}

    def start(self, session: ServerSession, subscription_id: int, item_id: int | None = None) -> int:
        """Start a refresh of a subscription, or of one of its monitored items; return the status of the call."""
        subscription = self._core.subscription_service.subscriptions.get(subscription_id)
        if subscription is None or subscription.session_id != session.session_id:
            return int(_S.BadSubscriptionIdInvalid)
        items: MonitoredItems = subscription.monitored_item_srv
        found = monitoring(items)
        if item_id is not None:
            found = [value for value in found if value.monitored_item_id == item_id]
            if not found:
                return int(_S.BadMonitoredItemIdInvalid)
        if subscription_id in self._running:
            return int(_S.BadRefreshInProgress)
        self._running.add(subscription_id)
        self._tasks.create_task(self._run(session, subscription_id, items, found), name="opcua condition refresh")
        return int(_S.Good)

    async def require_refresh(self) -> None:
        """Request every client to refresh: conditions may have changed without events."""
        event = self._event(_I.RefreshRequiredEventType)
        for subscription in tuple(self._core.subscription_service.subscriptions.values()):
            items = subscription.monitored_item_srv
            for item in monitoring(items):
                await send_event(items, item, event, bypasses_filter=True)

    async def _run(
        self, session: ServerSession, subscription_id: int, items: MonitoredItems, found: Sequence[MonitoredItemData]
    ) -> None:
        try:
            await self._send_all(found, items, self._event(_I.RefreshStartEventType))
            for item in found:
                await self._send_conditions(session, lambda: self._is_open(subscription_id), items, item)
            await self._send_all(found, items, self._event(_I.RefreshEndEventType))
        except Exception as error:  # noqa: BLE001 - the refresh of one client must not end the server
            logger.error("condition refresh failed", reason=repr(error))
        finally:
            self._running.discard(subscription_id)

    def _is_open(self, subscription_id: int) -> bool:
        return subscription_id in self._core.subscription_service.subscriptions

    @staticmethod
    async def _send_all(found: Sequence[MonitoredItemData], items: MonitoredItems, event: EventRecord) -> None:
        for item in found:
            await send_event(items, item, event, bypasses_filter=True)

    async def _send_conditions(
        self, session: ServerSession, is_open: Callable[[], bool], items: MonitoredItems, item: MonitoredItemData
    ) -> None:
        node_id = item.read_value_id.NodeId
        is_of_server = node_id == SERVER
        waiting = self._conditions.ids()[::-1]
        waits = _WAITS
        while waiting and is_open():
            if not items.has_room(item, _QUEUED) and waits:
                waits -= 1
                await asyncio.sleep(_FULL_QUEUE_S)
                continue
            # As work of the session: a client that refreshes all the time delays no other client.
            async with self._core.turns.work(session.account) as turn:
                while waiting and (items.has_room(item, _QUEUED) or not waits):
                    for view in self._retained(waiting.pop(), None if is_of_server else node_id):
                        await send_event(items, item, self._conditions.event_of(view))
                    await turn.step()

    def _retained(self, alarm_id: str, source: ua.NodeId | None) -> list[ConditionView]:
        """Return the current branches of a condition and itself, as far as clients must show them."""
        view = self._conditions.view_of(alarm_id)
        if view is None or (source is not None and source not in view.place.notifiers):
            return []
        return [branch for branch in (*view.branches(), view) if branch.is_retained]

    def _event(self, type_id: int) -> EventRecord:
        now = datetime.now(UTC)
        fields: dict[str, Any] = {
            "EventId": ua.Variant(uuid.uuid4().bytes, T.ByteString),
            "EventType": ua.Variant(ua.NodeId(type_id), T.NodeId),
            "SourceNode": ua.Variant(SERVER, T.NodeId),
            "SourceName": ua.Variant("Server", T.String),
            "Time": ua.Variant(now, T.DateTime),
            "ReceiveTime": ua.Variant(now, T.DateTime),
            "Message": ua.Variant(ua.LocalizedText(_MESSAGES[type_id], "en"), T.LocalizedText),
            "Severity": ua.Variant(_SEVERITY, T.UInt16),
        }
        return EventRecord(self._types[type_id], fields)


_MESSAGES: Final = {
    _I.RefreshStartEventType: "the refresh of conditions begins",
    _I.RefreshEndEventType: "the refresh of conditions is complete",
    _I.RefreshRequiredEventType: "conditions may have changed without events: refresh them",
}


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
