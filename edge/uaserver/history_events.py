"""Reads the history of alarm events from the changes of alarms that the store keeps."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.ua.ua_binary import struct_to_binary

from edge.instant import milliseconds_of
from edge.opcua.event_filter import matches, select_fields
from edge.opcua.monitored_items import event_filter_status
from edge.opcua.request_checks import check_filter
from edge.opcua.time_slices import Turn
from edge.store import alarms
from edge.store.alarms import AlarmChange
from edge.store.client import Store
from edge.uaserver.condition_nodes import member_id
from edge.uaserver.condition_view import ConditionKind, ConditionPlace, ConditionView, follow_change
from edge.uaserver.conditions import Conditions
from edge.uaserver.event_publisher import SERVER
from edge.uaserver.history_parts import HistoryPart

_S: Final = ua.StatusCodes
EVENTS_PER_NODE: Final = 1_000
_CHANGES_PER_READ: Final = 200
_LAST: Final = (1 << 63) - 1
_ENCODING: Final = ua.NodeId(ua.ObjectIds.HistoryEvent_Encoding_DefaultBinary)


@dataclass(frozen=True, slots=True)
class EventRange:
    """The events of a node from `start` to before `end`, backwards when `end` is the earlier one; None is open."""

    node_id: ua.NodeId
    start: int | None
    end: int | None
    limit: int
    filter: ua.EventFilter
    after: str = ""
    """The position of the last change that was read."""

    @property
    def is_backward(self) -> bool:
        """Return whether the newest event comes first."""
        return self.start is None or (self.end is not None and self.end < self.start)


class EventHistory:
    """The events of conditions at the Server object, the machines and the gateway."""

    def __init__(self, store: Store, conditions: Conditions, places: Mapping[str, ConditionPlace], own: str) -> None:
        self._store = store
        self._conditions = conditions
        self._other = places[own]
        self._notifiers = {SERVER, *(each.source for each in places.values())}

    def start(self, node_id: ua.NodeId, details: Any) -> EventRange | int:
        """Return what is to be read of a node, or the status that refuses it."""
        if node_id not in self._notifiers:
            return int(_S.BadHistoryOperationUnsupported)
        start, end = milliseconds_of(details.StartTime), milliseconds_of(details.EndTime)
        if (start is None) + (end is None) + (not details.NumValuesPerNode) > 1:
            return int(_S.BadHistoryOperationInvalid)
        try:
            check_filter(details.Filter)
        except ServiceError:
            return int(_S.BadEventFilterInvalid)
        status = event_filter_status(details.Filter)
        if status.is_bad():
            return int(status.value)
        return EventRange(node_id, start, end, details.NumValuesPerNode, details.Filter)

    async def read(self, rest: EventRange, left: int, turn: Turn) -> HistoryPart:
        """Read the next events. Raises Unavailable."""
        size = min(rest.limit or EVENTS_PER_NODE, EVENTS_PER_NODE, left)
        found: list[bytes] = []
        after, has_more = rest.after, True
        while has_more and len(found) < size:
            changes = await self._changes(rest, after, turn)
            has_more = len(changes) == _CHANGES_PER_READ
            for change in changes:
                after = change.position
                if (encoded := self._event(rest, change)) is not None:
                    found.append(encoded)
                await turn.step()
                if len(found) == size:
                    has_more = has_more or change is not changes[-1]
                    break
        body = len(found).to_bytes(4, "little") + b"".join(found)
        events = ua.ExtensionObject(TypeId=_ENCODING, Body=body)
        return HistoryPart((), len(found), replace(rest, after=after) if has_more else None, events=events)

    async def _changes(self, rest: EventRange, after: str, turn: Turn) -> list[AlarmChange]:
        if rest.is_backward:
            newest = rest.start if rest.start is not None else rest.end
            oldest = rest.end if rest.start is not None else None
            bounds = (
                f"({after}" if after else str(_LAST if newest is None else newest),
                str(oldest + 1 if oldest is not None else 0),
            )
        else:
            last = _LAST if rest.end is None else max(0, rest.end - (rest.end != rest.start))
            bounds = (f"({after}" if after else str(rest.start or 0), str(last))
        turn.end()
        try:
            return await alarms.between(self._store, *bounds, _CHANGES_PER_READ, is_backward=rest.is_backward)
        finally:
            await turn.begin()

    def _event(self, rest: EventRange, change: AlarmChange) -> bytes | None:
        """Return the selected fields of a change; None when the node or the where clause leaves it out."""
        known = self._conditions.view_of(change.alarm.id)
        place, kind = (known.place, known.kind) if known else (self._other, ConditionKind())
        if rest.node_id not in {SERVER, place.source}:
            return None
        view = ConditionView(follow_change(None, change), kind, place, member_id(change.alarm.id, ""))
        event = self._conditions.event_of(view)
        if not matches(rest.filter.WhereClause, event):
            return None
        return struct_to_binary(ua.HistoryEventFieldList(EventFields=select_fields(event, rest.filter.SelectClauses)))
