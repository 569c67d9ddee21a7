"""ConditionRefresh: sends the retained conditions to one subscription, between two events (OPC 10000-9, 5.5.7)."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from asyncua import ua
from asyncua.server.monitored_item_service import MonitoredItemData

from edge.features.telemetry.opcua.condition_view import ConditionView
from edge.features.telemetry.opcua.conditions import Conditions
from edge.foundation.task_group import TaskGroup
from edge.opcua.event_filter import EventRecord
from edge.opcua.limits import NOTIFICATIONS_PER_MESSAGE
from edge.opcua.monitored_items import MonitoredItems
from edge.opcua.server_core import ServerCore
from edge.opcua.server_session import ServerSession
from edge.uaserver.event_publisher import SERVER, lineage, monitoring, send_event

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
            async with self._core.turns.work(session.budget) as turn:
                while waiting and (items.has_room(item, _QUEUED) or not waits):
                    for view in self._retained(waiting.pop(), None if is_of_server else node_id):
                        await send_event(items, item, self._conditions.event_of(view))
                    await turn.step()

    def _retained(self, alarm_id: str, source: ua.NodeId | None) -> list[ConditionView]:
        """Return the current branches of a condition and itself, as far as clients must show them."""
        view = self._conditions.view_of(alarm_id)
        if view is None or (source is not None and view.place.source != source):
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
