"""The conditions of all alarms: a part of the address space, and what their subscribers are notified of.

    <machine> or Gateway / Alarms / <rule: subject> / AckedState, ActiveState, ShelvingState, ...

A condition costs its alarm and one reference: its nodes are created when a client asks for them, and kept only while a
monitored item watches them. NodeIds depend on the id of the alarm and the store only.
"""

import asyncio
from functools import lru_cache
from typing import Any, Final

from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData
from asyncua.server.internal_server import InternalServer
from msgspec import Struct, field
from msgspec.structs import replace

from edge.features.telemetry.opcua.condition_fields import ConditionFields
from edge.features.telemetry.opcua.condition_nodes import FOLDER, condition_node, folder_node, member_id, references_to
from edge.features.telemetry.opcua.condition_view import (
    ConditionKind,
    ConditionPlace,
    ConditionView,
    FollowedAlarm,
    changed_views,
    follow_change,
)
from edge.features.telemetry.opcua.tag_nodes import TagNodes, is_of_tags
from edge.opcua.event_filter import EventRecord
from edge.sfc.identifiers import quote
from edge.store.kept_alarms import AlarmChange
from edge.uaserver.events import SERVER, EventPublisher, lineage
from edge.uaserver.live_list import notify_all
from edge.uaserver.namespaces import Namespace
from edge.uaserver.node_parts import compute_namespace, reference_to

MAX_NORMAL: Final = 1_000
"""Conditions of normal alarms that are shown; those that changed first are removed first."""

_GONE: Final = ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadNodeIdUnknown))
_HAS_NOTIFIER: Final = ua.NodeId(ua.ObjectIds.HasNotifier)
_SUBSCRIBE: Final = 1 << ua.EventNotifier.SubscribeToEvents | 1 << ua.EventNotifier.HistoryRead


class _ValueCallbacks(dict[int, Any]):
    """The callbacks of one value; its node is kept while there is one."""

    def __init__(self, watched: dict[ua.NodeId, NodeData], node: NodeData) -> None:
        super().__init__()
        self._watched = watched
        self._node = node

    def __setitem__(self, handle: int, callback: Any) -> None:
        self._watched[self._node.nodeid] = self._node
        super().__setitem__(handle, callback)

    def __delitem__(self, handle: int) -> None:
        super().__delitem__(handle)
        self._release()

    def pop(self, handle: int, *default: Any) -> Any:
        found = super().pop(handle, *default)
        self._release()
        return found

    def _release(self) -> None:
        if not self:
            self._watched.pop(self._node.nodeid, None)


class _Condition(Struct):
    """A condition: its view, its references, and its nodes that are watched."""

    view: ConditionView
    in_folder: ua.ReferenceDescription | None = None
    """The reference of its folder to it."""
    in_source: ua.ReferenceDescription | None = None
    """The reference of its source to it."""
    watched: dict[ua.NodeId, NodeData] = field(default_factory=dict)


class Conditions:
    """The conditions by the id of their alarm, in the order of their first appearance."""

    def __init__(self, iserver: InternalServer, max_normal: int = MAX_NORMAL) -> None:
        self.publisher = EventPublisher(iserver)
        self._iserver = iserver
        self._aspace: AddressSpace = iserver.aspace
        self._max_normal = max_normal
        self._conditions: dict[str, _Condition] = {}
        self._normal: dict[str, None] = {}
        self._folders: dict[str, tuple[NodeData, NodeData]] = {}
        self._types: dict[int, tuple[ua.NodeId, ...]] = {}
        self.tags: TagNodes | None = None
        """The tags, in the same namespace."""
        self._gone: list[AttributeValue] = []
        """Values of removed conditions whose subscribers are not notified yet."""
        self._followed = asyncio.Event()
        """Set after each change, and replaced."""
        compute_namespace(iserver.aspace, Namespace.ALARMS, self.node)

    def __len__(self) -> int:
        return len(self._conditions)

    def add_source(self, name: str, node_id: ua.NodeId) -> ConditionPlace:
        """Add the folder of alarms to a machine or the gateway, and events to it; return the place."""
        source = self._aspace[node_id]
        notifier = source.attributes[ua.AttributeIds.EventNotifier]
        notifier.value = ua.DataValue(ua.Variant(notifier.value.Value.Value | _SUBSCRIBE, ua.VariantType.Byte))
        if not any(reference.ReferenceTypeId == _HAS_NOTIFIER for reference in source.references):  # as a machine has
            server = self._aspace[SERVER]
            for here, there, is_forward in ((server, source, True), (source, server, False)):
                here.references.append(reference_to(there, _HAS_NOTIFIER, is_forward=is_forward))
        folder = f"{FOLDER}/{quote(name)}"
        self._folders[folder] = (folder_node(ua.NodeId(folder, Namespace.ALARMS), source), source)
        return ConditionPlace(node_id, name, folder)

    def view_of(self, alarm_id: str) -> ConditionView | None:
        """Return the view of a condition; None for an unknown one."""
        condition = self._conditions.get(alarm_id)
        return condition.view if condition else None

    def ids(self) -> list[str]:
        """Return the ids of the alarms of all conditions."""
        return list(self._conditions)

    def put(self, state: FollowedAlarm, place: ConditionPlace, kind: ConditionKind) -> ConditionView:
        """Add a condition or replace its state; a condition that is known keeps its type and its place."""
        alarm = state.alarm
        kind = _shared(kind)
        condition = self._conditions.get(alarm.id)
        if condition is None:
            view = ConditionView(state, kind, place, member_id(alarm.id, ""))
            condition = self._conditions[alarm.id] = _Condition(view)
            self._refer_to(condition)
        elif (condition.view.kind.type_id, condition.view.place.folder) != (kind.type_id, place.folder):
            # Another rule of the same name, or a job on another machine.
            self._forget_references(condition)
            condition.view = replace(condition.view, state=state, kind=kind, place=place)
            self._refer_to(condition)
        else:
            condition.view = replace(condition.view, state=state, kind=kind, place=place)
        self._bound(alarm.id, is_normal=not alarm.is_retained)
        return condition.view

    async def follow(self, change: AlarmChange, place: ConditionPlace, kind: ConditionKind) -> None:
        """Show a change of an alarm, and publish its events and the values that have subscribers."""
        before = self.view_of(change.alarm.id)
        after = self.put(follow_change(before.state if before else None, change), place, kind)
        if self.publisher.has_listeners(after.place.notifiers):
            events = [self.event_of(view) for view in changed_views(before, after, change.kind)]
            await self.publisher.publish(events, after.place.notifiers)
        if condition := self._conditions.get(change.alarm.id):
            for node in tuple(condition.watched.values()):
                held = node.attributes[ua.AttributeIds.Value]
                await notify_all(held.datachange_callbacks, held.value_callback(node.nodeid, ua.AttributeIds.Value))
        gone, self._gone = self._gone, []
        for held in gone:
            await notify_all(held.datachange_callbacks, _GONE)
        self._followed.set()
        self._followed = asyncio.Event()

    async def wait_for(self, alarm_id: str, changed_at: int) -> None:
        """Wait until the condition shows a change of an instant, or a later one."""
        while (view := self.view_of(alarm_id)) is not None and view.alarm.changed_at < changed_at:
            await self._followed.wait()

    def event_of(self, view: ConditionView) -> EventRecord:
        """Return the event with the state of a condition."""
        return EventRecord(self._lineage(view.kind.type_id), ConditionFields(view), view.condition_id)

    def clear(self) -> None:
        """Remove all conditions: the store has lost what they show."""
        for alarm_id in tuple(self._conditions):
            self._hide(alarm_id)

    def node(self, node_id: ua.NodeId) -> NodeData:
        """Return a node; create the node of a condition. Raises KeyError when there is none."""
        identifier = node_id.Identifier
        if identifier in self._folders:
            return self._folders[identifier][0]
        if not isinstance(identifier, str):
            raise KeyError(node_id)
        if self.tags is not None and is_of_tags(node_id):
            return self.tags.node(node_id)
        alarm_id, _, path = identifier.partition("/")
        condition = self._conditions[alarm_id]
        if (kept := condition.watched.get(node_id)) is not None:
            return kept
        folder, source = self._folders[condition.view.place.folder]
        node = condition_node(node_id, path, lambda: condition.view, folder, source)
        value: AttributeValue | None = node.attributes.get(ua.AttributeIds.Value)
        if value is not None:
            value.datachange_callbacks = _ValueCallbacks(condition.watched, node)
        return node

    def _lineage(self, type_id: int) -> tuple[ua.NodeId, ...]:
        if type_id not in self._types:
            self._types[type_id] = lineage(self._iserver, ua.NodeId(type_id))
        return self._types[type_id]

    def _refer_to(self, condition: _Condition) -> None:
        folder, source = self._folders[condition.view.place.folder]
        condition.in_folder, condition.in_source = references_to(condition.view)
        folder.references.append(condition.in_folder)
        source.references.append(condition.in_source)

    def _forget_references(self, condition: _Condition) -> None:
        nodes = self._folders[condition.view.place.folder]
        for node, reference in zip(nodes, (condition.in_folder, condition.in_source), strict=True):
            at = next((at for at, value in enumerate(node.references) if value is reference), None)
            if at is not None:
                del node.references[at]

    def _bound(self, alarm_id: str, *, is_normal: bool) -> None:
        """Keep at most so many conditions of normal alarms."""
        self._normal.pop(alarm_id, None)
        if is_normal:
            self._normal[alarm_id] = None
            if len(self._normal) > self._max_normal:
                self._hide(next(iter(self._normal)))

    def _hide(self, alarm_id: str) -> None:
        condition = self._conditions.pop(alarm_id)
        self._normal.pop(alarm_id, None)
        self._forget_references(condition)
        self._gone += [node.attributes[ua.AttributeIds.Value] for node in condition.watched.values()]


@lru_cache(maxsize=1_000)
def _shared(kind: ConditionKind) -> ConditionKind:
    """Return the one object that stands for all equal kinds."""
    return kind
