"""Publishes events to the monitored items of several nodes.

This module replaces the event publishing of asyncua, which notifies the subscribers of one node only, not of the nodes
above it (github.com/FreeOpcUa/opcua-asyncio/issues/105).
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

import structlog
from asyncua import ua
from asyncua.server.internal_server import InternalServer
from asyncua.server.monitored_item_service import MonitoredItemData

from edge.opcua.encoded_event import encode_event
from edge.opcua.event_filter import EventRecord, matches, select_fields
from edge.opcua.monitored_items import MonitoredItems
from edge.opcua.time_slices import Pacer

logger = structlog.get_logger(__name__)

SERVER = ua.NodeId(ua.ObjectIds.Server)


class EventPublisher:
    """Notifies the monitored items of events of all subscriptions, in short slices."""

    def __init__(self, iserver: InternalServer) -> None:
        self._subscriptions = iserver.subscription_service

    def has_listeners(self, notifiers: Sequence[ua.NodeId]) -> bool:
        """Return whether a client monitors one of these nodes."""
        return any(True for _ in self._listeners(notifiers))

    async def publish(self, events: Iterable[EventRecord], notifiers: Sequence[ua.NodeId]) -> None:
        """Publish events to the monitored items of these nodes."""
        pacer = Pacer()
        listeners = list(self._listeners(notifiers))
        for event in events if listeners else ():
            for items, item in listeners:
                await send_event(items, item, event)
                await pacer.step()

    def _listeners(self, notifiers: Sequence[ua.NodeId]) -> Iterator[tuple[MonitoredItems, MonitoredItemData]]:
        for subscription in tuple(self._subscriptions.subscriptions.values()):
            items = subscription.monitored_item_srv
            for notifier in notifiers:
                yield from ((items, item) for item in monitoring(items, notifier))


async def send_event(
    items: MonitoredItems, item: MonitoredItemData, event: EventRecord, *, bypasses_filter: bool = False
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


def monitoring(items: MonitoredItems, notifier: ua.NodeId | None = None) -> list[MonitoredItemData]:
    """Return the enabled monitored items of the events of a node, or of every node."""
    # asyncua has no public list of the monitored items of a node.
    of_events = items._monitored_events  # noqa: SLF001
    ids = (
        of_events.get(notifier, ())
        if notifier is not None
        else [identifier for ids in of_events.values() for identifier in ids]
    )
    found = [items._monitored_items.get(identifier) for identifier in ids]  # noqa: SLF001
    return [item for item in found if item is not None and item.mode is not ua.MonitoringMode.Disabled]


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
