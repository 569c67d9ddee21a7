"""Publishes every change of a job's state: events of ISA95JobOrderStatusEventType (OPC 10031-4, 6.2.8).

This module replaces the event publishing of asyncua, which has three limits. It notifies the subscribers of one node
only, not of the nodes above it (github.com/FreeOpcUa/opcua-asyncio/issues/105). Its OfType ignores subtypes. It encodes
only structures for which it has generated a class.
"""

import logging
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import structlog
from asyncua import ua
from asyncua.server.internal_server import InternalServer
from asyncua.server.monitored_item_service import MonitoredItemData, WhereClauseEvaluator

from edge.model.isa95 import JobStatusEvent
from edge.model.job_state import JobState
from edge.opcua.monitored_items import MonitoredItems
from edge.opcua.time_slices import Pacer
from edge.uaserver.encoding import extension_object

logger = structlog.get_logger(__name__)

T = ua.VariantType

_SERVER = ua.NodeId(ua.ObjectIds.Server)
_HAS_SUBTYPE = ua.NodeId(ua.ObjectIds.HasSubtype)
_SEVERITIES: Mapping[int, int] = MappingProxyType({JobState.INTERRUPTED: 400, JobState.ABORTED: 700})
_NORMAL_SEVERITY = 100
"""Severity of a state (OPC 10000-5, 6.4.2): 1 to 333 is low, to 666 medium, to 1000 high."""

_NULL = ua.Variant()

_filter_logger = logging.getLogger("asyncua.events")


class EventNotification:
    """One event: the values of its fields by browse path, its type and all supertypes."""

    def __init__(self, types: tuple[ua.NodeId, ...], fields: Mapping[str, ua.Variant]) -> None:
        self.types = types
        self._fields = fields

    @property
    def EventType(self) -> ua.NodeId:  # noqa: N802 - asyncua's where clauses read this name
        """The type of the event."""
        return self.types[0]

    def __getattr__(self, name: str) -> Any:
        """Return the value of a field for a where clause; None for an unknown field."""
        held = self._fields.get(name)
        return None if held is None else held.Value

    def select(self, clauses: Iterable[ua.SimpleAttributeOperand]) -> list[ua.Variant]:
        """Return the selected fields; an unknown field is null (OPC 10000-4, 7.22.3)."""
        return [self._fields.get(_path(clause), _NULL) for clause in clauses]


def _path(clause: ua.SimpleAttributeOperand) -> str:
    return (
        clause.BrowsePath[0].Name if len(clause.BrowsePath) == 1 else "/".join(each.Name for each in clause.BrowsePath)
    )


class _Where(WhereClauseEvaluator):
    """The where clauses of asyncua with an OfType that includes subtypes."""

    def _eval_el(self, index: int, event: EventNotification) -> Any:
        element = self.elements[index]
        if element.FilterOperator == ua.FilterOperator.OfType:
            return self._eval_op(element.FilterOperands[0], event) in event.types
        return super()._eval_el(index, event)


class JobEventPublisher:
    """The event publisher of one machine; it notifies the monitored items of JobOrderResults and the Server object."""

    def __init__(self, iserver: InternalServer, source: ua.NodeId, source_name: str, event_type: ua.NodeId) -> None:
        self._subscriptions = iserver.subscription_service
        self._aspace = iserver.aspace
        self._notifiers = (source, _SERVER)
        self._types = tuple(_lineage(iserver, event_type))
        self._fields = {
            "EventType": ua.Variant(event_type, T.NodeId),
            "SourceNode": ua.Variant(source, T.NodeId),
            "SourceName": ua.Variant(source_name, T.String),
        }

    async def publish_event(self, status_event: JobStatusEvent, at: datetime) -> None:
        """Publish a change of state that happened at an instant."""
        listeners = [
            (items, item)
            for subscription in tuple(self._subscriptions.subscriptions.values())
            for items in (subscription.monitored_item_srv,)
            for notifier in self._notifiers
            for item in _monitoring(items, notifier)
        ]
        if listeners:
            event = EventNotification(self._types, self._fields | _fields_of(status_event, at))
            pacer = Pacer()
            for items, item in listeners:
                await self._notify(items, item, event)
                await pacer.step()

    async def _notify(self, items: MonitoredItems, item: MonitoredItemData, event: EventNotification) -> None:
        try:
            if _Where(_filter_logger, self._aspace, item.filter.WhereClause).eval(event):
                fields = ua.EventFieldList(item.client_handle, event.select(item.filter.SelectClauses))
                await items.notify(item, fields)
        except Exception as error:  # noqa: BLE001 - a filter that asyncua cannot evaluate must not affect the others
            logger.error("OPC UA event failed", monitored_item=item.monitored_item_id, reason=repr(error))  # noqa: TRY400 - a traceback is slow


def _monitoring(items: MonitoredItems, notifier: ua.NodeId) -> list[MonitoredItemData]:
    # asyncua has no public list of the monitored items of a node.
    found = [items._monitored_items.get(each) for each in items._monitored_events.get(notifier, ())]  # noqa: SLF001
    return [item for item in found if item is not None and item.mode is not ua.MonitoringMode.Disabled]


def _fields_of(status_event: JobStatusEvent, at: datetime) -> dict[str, ua.Variant]:
    states = [extension_object(state) for state in status_event.job_state]
    text = f"{status_event.job_order.job_order_id}: {status_event.job_state[0].state_text.text}"
    response = (
        ua.ExtensionObject() if status_event.job_response is None else extension_object(status_event.job_response)
    )
    severity = _SEVERITIES.get(status_event.job_state[0].state_number or 0, _NORMAL_SEVERITY)
    return {
        "Severity": ua.Variant(severity, T.UInt16),
        "EventId": ua.Variant(uuid.uuid4().bytes, T.ByteString),
        "Time": ua.Variant(at, T.DateTime),
        "ReceiveTime": ua.Variant(datetime.now(UTC), T.DateTime),
        "Message": ua.Variant(ua.LocalizedText(text, "en"), T.LocalizedText),
        "JobOrder": ua.Variant(extension_object(status_event.job_order), T.ExtensionObject),
        "JobState": ua.Variant(states, T.ExtensionObject, is_array=True),
        "JobResponse": ua.Variant(response, T.ExtensionObject),
    }


def _lineage(iserver: InternalServer, type_id: ua.NodeId) -> Iterable[ua.NodeId]:
    yield type_id
    for reference in iserver.aspace[type_id].references:
        if reference.ReferenceTypeId == _HAS_SUBTYPE and not reference.IsForward:
            yield from _lineage(iserver, reference.NodeId)
