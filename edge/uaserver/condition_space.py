"""What the conditions of all features share at a server: their namespace, their methods, and ConditionRefresh.

    await new.conditions.add(alarms_uri(store_id), ConditionSource(states, methods, call))

OPC 10000-9, 5.5: a client subscribes to events, refreshes, and calls methods of the conditions that it has seen.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Protocol

import structlog
from asyncua import Server, ua
from asyncua.server.address_space import NodeData
from msgspec import Struct

import edge
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.opcua.access import CALLER, reading_in
from edge.opcua.event_filter import EventRecord
from edge.opcua.limits import NOTIFICATIONS_PER_MESSAGE
from edge.opcua.monitored_items import MonitoredItem
from edge.opcua.server_core import ServerCore
from edge.opcua.server_session import ServerSession
from edge.opcua.subscriptions import ClientSubscription
from edge.uaserver import method_roles, nodesets
from edge.uaserver.condition_nodes import method_name
from edge.uaserver.declarations import Declarations
from edge.uaserver.events import SERVER, lineage, send_event
from edge.uaserver.namespaces import Namespace
from edge.uaserver.node_parts import compute_namespace
from edge.uaserver.server_object import build_date
from edge.uaserver.space import add_namespace_metadata

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
LONGEST_COMMENT: Final = 1_000


class ArgumentKind(Struct, frozen=True):
    """The type of an input argument of a method of conditions; a LocalizedText may be null, and is read as its text."""

    kind: ua.VariantType
    is_array: bool = False


COMMENT: Final = (ArgumentKind(T.LocalizedText),)
EVENT_AND_COMMENT: Final = (ArgumentKind(T.ByteString), *COMMENT)


class ConditionStates(Protocol):
    """The conditions of a feature."""

    def ids(self) -> list[str]:
        """Return the ids of the conditions, the oldest first."""

    def retained(self, condition: str, notifier: ua.NodeId | None) -> Sequence[EventRecord]:
        """Return the events of what clients must show: of a node, or of every one."""

    def node(self, node_id: ua.NodeId) -> NodeData:
        """Return the node of a condition, or of a folder. Raises KeyError for those of others."""


class ConditionSource(Struct, frozen=True):
    """The conditions of a feature with their methods.

    `call` takes the object, the name of the method and the arguments; it returns None for an object of others.
    """

    states: ConditionStates
    methods: Mapping[ua.NodeId, Sequence[ArgumentKind]]
    call: Callable[[ua.NodeId, str, Sequence[Any]], Awaitable[ua.CallMethodResult | None]]


class ConditionRefresher:
    """Runs the refreshes of all subscriptions, one at a time for each, as work of their sessions."""

    def __init__(self, core: ServerCore, sources: Sequence[ConditionSource], tasks: TaskGroup) -> None:
        self._core = core
        self._sources = sources
        self._tasks = tasks
        self._running: set[int] = set()

    def start(self, session: ServerSession, subscription_id: int, item_id: int | None = None) -> int:
        """Start a refresh of a subscription, or of one of its monitored items; return the status of the call."""
        subscription = self._core.subscriptions.get(subscription_id)
        if subscription is None or subscription.session is not session:
            return int(_S.BadSubscriptionIdInvalid)
        found = subscription.items.of_events()
        if item_id is not None:
            found = [value for value in found if value.monitored_item_id == item_id]
            if not found:
                return int(_S.BadMonitoredItemIdInvalid)
        if subscription_id in self._running:
            return int(_S.BadRefreshInProgress)
        self._running.add(subscription_id)
        self._tasks.create_task(self._run(session, subscription, found), name="opcua condition refresh")
        return int(_S.Good)

    async def require_refresh(self) -> None:
        """Request every client to refresh: conditions may have changed without events."""
        event = self._event(_I.RefreshRequiredEventType)
        for subscription in self._core.subscriptions:
            await self._send_all(subscription, subscription.items.of_events(), event)

    async def _run(
        self, session: ServerSession, subscription: ClientSubscription, found: Sequence[MonitoredItem]
    ) -> None:
        try:
            await self._send_all(subscription, found, self._event(_I.RefreshStartEventType))
            for item in found:
                await self._send_conditions(session, subscription, item)
            await self._send_all(subscription, found, self._event(_I.RefreshEndEventType))
        except Exception as error:  # noqa: BLE001 - the refresh of one client must not end the server
            logger.error("condition refresh failed", reason=repr(error))
        finally:
            self._running.discard(subscription.id)

    @staticmethod
    async def _send_all(subscription: ClientSubscription, found: Sequence[MonitoredItem], event: EventRecord) -> None:
        with reading_in(subscription.session.locales):
            for item in found:
                await send_event(subscription.items, item, event, bypasses_filter=True)

    async def _send_conditions(
        self, session: ServerSession, subscription: ClientSubscription, item: MonitoredItem
    ) -> None:
        node_id = item.read_value_id.NodeId
        is_of_server = node_id == SERVER
        waiting = [(source.states, condition) for source in self._sources for condition in source.states.ids()][::-1]
        waits = _WAITS
        while waiting and not subscription.is_closed:
            if not subscription.has_room(item, _QUEUED) and waits:
                waits -= 1
                await asyncio.sleep(_FULL_QUEUE_S)
                continue
            # As work of the session: a client that refreshes all the time delays no other client.
            async with self._core.turns.work(session.account) as turn:
                while waiting and (subscription.has_room(item, _QUEUED) or not waits):
                    states, condition = waiting.pop()
                    with reading_in(session.locales):
                        for event in states.retained(condition, None if is_of_server else node_id):
                            await send_event(subscription.items, item, event)
                    await turn.step()

    def _event(self, type_id: int) -> EventRecord:
        now = datetime.now(UTC)
        fields: dict[str, Any] = {
            "EventId": ua.Variant(uuid.uuid4().bytes, T.ByteString),
            "EventType": ua.Variant(ua.NodeId(type_id), T.NodeId),
            "SourceNode": ua.Variant(SERVER, T.NodeId),
            "SourceName": ua.Variant("Server", T.String),
            "Time": ua.Variant(now, T.DateTime),
            "ReceiveTime": ua.Variant(now, T.DateTime),
            "Severity": ua.Variant(_SEVERITY, T.UInt16),
        }
        return EventRecord(lineage(self._core, ua.NodeId(type_id)), fields, message=_MESSAGES[type_id])


_MESSAGES: Final = {
    _I.RefreshStartEventType: Text.of("the refresh of conditions begins"),
    _I.RefreshEndEventType: Text.of("the refresh of conditions is complete"),
    _I.RefreshRequiredEventType: Text.of("conditions may have changed without events: refresh them"),
}


_REFRESHES: Final[Mapping[ua.NodeId, tuple[ArgumentKind, ...]]] = MappingProxyType(
    {
        ua.NodeId(_I.ConditionType_ConditionRefresh): (ArgumentKind(T.UInt32),),
        ua.NodeId(_I.ConditionType_ConditionRefresh2): (ArgumentKind(T.UInt32), ArgumentKind(T.UInt32)),
    }
)


class ConditionSpace:
    """The conditions of a server: a computed namespace, and the Call service for their methods."""

    def __init__(self, server: Server, declared: Declarations, tasks: TaskGroup) -> None:
        self._server = server
        self._core: ServerCore = server.iserver
        self._declared = declared
        self._sources: list[ConditionSource] = []
        self.refresher = ConditionRefresher(self._core, self._sources, tasks)

    async def add(self, uri: str, source: ConditionSource) -> None:
        """Add the conditions of a feature; the first one adds their namespace, which has this URI."""
        if not self._sources:
            await nodesets.register(self._server, Namespace.ALARMS, uri)
            built = build_date()
            add_namespace_metadata(self._core, self._declared, uri, edge.__version__, built, is_static=False)
            compute_namespace(self._core.aspace, Namespace.ALARMS, self._node)
            self._core.method_extensions.append(self)
        self._sources.append(source)

    def _node(self, node_id: ua.NodeId) -> NodeData:
        for source in self._sources:
            try:
                return source.states.node(node_id)
            except KeyError:
                continue
        raise KeyError(node_id)

    def serves(self, request: ua.CallMethodRequest) -> bool:
        """Return whether the call is for a condition."""
        return request.ObjectId.NamespaceIndex == Namespace.ALARMS or self._signature(request.MethodId) is not None

    async def call(self, request: ua.CallMethodRequest, session: ServerSession) -> ua.CallMethodResult:
        """Perform a method; its effect reaches the clients as an event."""
        # The requests of one connection follow one another without a pause: let all other tasks run in between.
        await asyncio.sleep(0)
        signature = self._signature(request.MethodId)
        if signature is None:
            return condition_result(_S.BadMethodInvalid)
        name = method_name(request.MethodId)
        if not method_roles.may_call(CALLER.get().role, name):
            return condition_result(_S.BadUserAccessDenied)
        arguments = _read_arguments(signature, request.InputArguments or ())
        if isinstance(arguments, ua.CallMethodResult):
            return arguments
        if request.MethodId in _REFRESHES:
            return condition_result(self.refresher.start(session, *arguments))
        for source in self._sources:
            if request.MethodId in source.methods:
                result = await source.call(request.ObjectId, name, arguments)
                if result is not None:
                    return result
        # A condition is an instance: its methods are not those of the type nodes (OPC 10000-9, 5.7.3).
        return condition_result(_S.BadNodeIdInvalid if request.ObjectId in self._core.aspace else _S.BadNodeIdUnknown)

    def _signature(self, method: ua.NodeId) -> Sequence[ArgumentKind] | None:
        every = (_REFRESHES, *(source.methods for source in self._sources))
        return next((methods[method] for methods in every if method in methods), None)


def _read_arguments(signature: Sequence[ArgumentKind], given: Sequence[ua.Variant]) -> list[Any] | ua.CallMethodResult:
    """Read the arguments; return the Bad result for invalid ones."""
    if len(given) != len(signature):
        return condition_result(_S.BadArgumentsMissing if len(given) < len(signature) else _S.BadTooManyArguments)
    read, verdicts = [], []
    for wanted, argument in zip(signature, given, strict=True):
        value = argument.Value
        is_null = argument.VariantType is T.Null and wanted.kind is T.LocalizedText
        if not is_null and (argument.VariantType is not wanted.kind or argument.is_array is not wanted.is_array):
            verdicts.append(_S.BadTypeMismatch)
            continue
        text = (value.Text or "") if isinstance(value, ua.LocalizedText) else ""
        verdicts.append(_S.BadOutOfRange if len(text) > LONGEST_COMMENT else _S.Good)
        read.append(text if wanted.kind is T.LocalizedText else value)
    if not any(verdicts):
        return read
    return ua.CallMethodResult(
        StatusCode=ua.StatusCode(_S.BadInvalidArgument),
        InputArgumentResults=[ua.StatusCode(verdict) for verdict in verdicts],
    )


def condition_result(status: int) -> ua.CallMethodResult:
    """Return the result of a method without output arguments."""
    return ua.CallMethodResult(StatusCode=ua.StatusCode(status))
