"""Publishes events to the monitored items of several nodes, and every change of a job's state as an event.

The latter are of ISA95JobOrderStatusEventType (OPC 10031-4, 6.2.8).
"""

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

import structlog
from asyncua import ua
from asyncua.server.internal_server import InternalServer

from edge.foundation.text import Text
from edge.model.isa95 import JobStatusEvent
from edge.model.job_state import STATE_TEXTS, JobState
from edge.opcua.access import reading_in
from edge.opcua.answer_encoding import encode_event
from edge.opcua.event_filter import EventRecord, matches, select_fields
from edge.opcua.monitored_items import MonitoredItem, MonitoredItems
from edge.opcua.server_core import ServerCore
from edge.opcua.subscriptions import ClientSubscription
from edge.opcua.time_slices import Pacer
from edge.uaserver.encoding import extension_object
from edge.uaserver.namespaces import Namespace

logger = structlog.get_logger(__name__)

SERVER = ua.NodeId(ua.ObjectIds.Server)
HAS_NOTIFIER = ua.NodeId(ua.ObjectIds.HasNotifier)
MACHINES = ua.NodeId(1001, Namespace.MACHINERY)
"""The folder of all machines; its node set makes it a notifier: it has the events of all of them."""


def notifiers_of(source: ua.NodeId) -> tuple[ua.NodeId, ...]:
    """Return the nodes that have the events of a source: the source and what is above it."""
    is_of_machine = source.NamespaceIndex == Namespace.MACHINES
    return (source, MACHINES, SERVER) if is_of_machine else (source, SERVER)


class EventPublisher:
    """Notifies the monitored items of events of all subscriptions, in short slices."""

    def __init__(self, core: ServerCore) -> None:
        self._subscriptions = core.subscriptions

    def has_listeners(self, notifiers: Sequence[ua.NodeId]) -> bool:
        """Return whether a client monitors one of these nodes."""
        return any(True for _ in self._listeners(notifiers))

    async def publish(self, events: Iterable[EventRecord], notifiers: Sequence[ua.NodeId]) -> None:
        """Publish events to the monitored items of these nodes; texts are in the language of their session."""
        pacer = Pacer()
        listeners = list(self._listeners(notifiers))
        for event in events if listeners else ():
            for subscription, item in listeners:
                with reading_in(subscription.session.locales):
                    await send_event(subscription.items, item, event)
                await pacer.step()

    def _listeners(self, notifiers: Sequence[ua.NodeId]) -> Iterator[tuple[ClientSubscription, MonitoredItem]]:
        for subscription in self._subscriptions:
            for notifier in notifiers:
                yield from ((subscription, item) for item in subscription.items.of_events(notifier))


async def send_event(
    items: MonitoredItems, item: MonitoredItem, event: EventRecord, *, bypasses_filter: bool = False
) -> None:
    """Queue an event for a monitored item whose filter passes it."""
    try:
        if bypasses_filter or matches(item.filter.WhereClause, event):
            fields = select_fields(event, item.filter.SelectClauses)
            await items.notify(item, encode_event(item.client_handle, fields))
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - a filter that cannot be evaluated must not affect the others
        logger.error("OPC UA event failed", monitored_item=item.monitored_item_id, reason=repr(error))


def lineage(iserver: InternalServer, type_id: ua.NodeId) -> tuple[ua.NodeId, ...]:
    """Return a type and all its supertypes, itself first."""
    found = [type_id]
    has_subtype = ua.NodeId(ua.ObjectIds.HasSubtype)
    while True:
        above = [
            reference.NodeId
            for reference in iserver.aspace[found[-1]].references
            if reference.ReferenceTypeId == has_subtype and not reference.IsForward
        ]
        if not above:
            return tuple(found)
        found.append(above[0])


T = ua.VariantType

EVENT_FIELDS = tuple(
    (0, name)
    for name in ("EventId", "EventType", "SourceNode", "SourceName", "Time", "ReceiveTime", "Message", "Severity")
)
JOB_FIELDS = tuple((int(Namespace.ISA95), name) for name in ("JobOrder", "JobState", "JobResponse"))
"""The fields of every event, and those of a job: namespace index and name."""

_SEVERITIES: Mapping[int, int] = MappingProxyType({JobState.INTERRUPTED: 400, JobState.ABORTED: 700})
_WITH_HISTORY = 1 << ua.EventNotifier.SubscribeToEvents | 1 << ua.EventNotifier.HistoryRead
_EVENTS = uuid.UUID("5a3b9c52-6f0e-4f8b-9d1c-3c1f6d2f7a10")
"""The namespace of the EventIds."""
_NORMAL_SEVERITY = 100
"""Severity of a state (OPC 10000-5, 6.4.2): 1 to 333 is low, to 666 medium, to 1000 high."""


class JobEventPublisher:
    """The event publisher of one machine; it notifies those who monitor JobOrderResults, or what is above it."""

    def __init__(
        self, iserver: ServerCore, source: ua.NodeId, machine: ua.NodeId, source_name: str, event_type: ua.NodeId
    ) -> None:
        self._iserver = iserver
        self._publisher = EventPublisher(iserver)
        self._with_history = (source, machine, SERVER)
        self._notifiers = (*self._with_history, MACHINES)
        self._name = source_name
        self._types = lineage(iserver, event_type)
        self._fields = {
            "EventType": ua.Variant(event_type, T.NodeId),
            "SourceNode": ua.Variant(source, T.NodeId),
            "SourceName": ua.Variant(source_name, T.String),
        }

    def has_listeners(self) -> bool:
        """Return whether a client monitors these events."""
        return self._publisher.has_listeners(self._notifiers)

    async def publish_event(self, status_event: JobStatusEvent, at: datetime) -> None:
        """Publish a change of state that happened at an instant."""
        if self.has_listeners():
            await self._publisher.publish((self.record(status_event, at, datetime.now(UTC)),), self._notifiers)

    def record(self, status_event: JobStatusEvent, at: datetime, received: datetime) -> EventRecord:
        """Return the event of a change of state; its EventId is the same whenever it is read."""
        fields = self._fields | _fields_of(status_event, at, received, self._name)
        return EventRecord(self._types, fields, message=_message_of(status_event))

    def enable_history(self) -> ua.NodeId:
        """Mark the events of JobOrderResults, the machine and the Server object as readable; return JobOrderResults."""
        for value in self._with_history:
            notifier = self._iserver.aspace[value].attributes[ua.AttributeIds.EventNotifier]
            notifier.value = ua.DataValue(ua.Variant(_WITH_HISTORY, T.Byte))
        return self._with_history[0]

    def is_notifier(self, node_id: ua.NodeId) -> bool:
        """Return whether the past events are those of a node."""
        return node_id in self._with_history


def _message_of(status_event: JobStatusEvent) -> Text:
    state = status_event.job_state[0]
    shown = STATE_TEXTS[JobState(state.state_number)]
    return Text.of("{job}: {state}", job=status_event.job_order.job_order_id, state=shown)


def _fields_of(
    status_event: JobStatusEvent, at: datetime, received: datetime, source_name: str
) -> dict[str, ua.Variant]:
    states = [extension_object(state) for state in status_event.job_state]
    response = (
        ua.ExtensionObject() if status_event.job_response is None else extension_object(status_event.job_response)
    )
    numbers = "/".join(str(state.state_number) for state in status_event.job_state)
    identity = f"{source_name}/{status_event.job_order.job_order_id}/{numbers}/{at.isoformat()}"
    severity = _SEVERITIES.get(status_event.job_state[0].state_number or 0, _NORMAL_SEVERITY)
    return {
        "Severity": ua.Variant(severity, T.UInt16),
        "EventId": ua.Variant(uuid.uuid5(_EVENTS, identity).bytes, T.ByteString),
        "Time": ua.Variant(at, T.DateTime),
        "ReceiveTime": ua.Variant(received, T.DateTime),
        "JobOrder": ua.Variant(extension_object(status_event.job_order), T.ExtensionObject),
        "JobState": ua.Variant(states, T.ExtensionObject, is_array=True),
        "JobResponse": ua.Variant(response, T.ExtensionObject),
    }
