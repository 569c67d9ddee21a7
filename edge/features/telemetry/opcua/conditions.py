"""The conditions of all alarms: a part of the address space, and what their subscribers are notified of.

<machine> or Gateway / Alarms / <rule: subject> / AckedState, ActiveState, ShelvingState, ...
"""

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from asyncua import ua
from asyncua.server.address_space import NodeData

from edge.features.telemetry.opcua.condition_fields import shape_of
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
from edge.opcua.server_core import ServerCore
from edge.store.kept_alarms import AlarmChange
from edge.uaserver.condition_nodes import member_id
from edge.uaserver.condition_objects import ConditionObjects

MAX_NORMAL: Final = 1_000
"""Conditions of normal alarms that are shown; those that changed first are removed first."""

_FOLDER: Final = "Alarms"
_SUBSCRIBE: Final = 1 << ua.EventNotifier.SubscribeToEvents | 1 << ua.EventNotifier.HistoryRead


class Conditions:
    """The conditions by the id of their alarm, in the order of their first appearance."""

    def __init__(self, core: ServerCore, max_normal: int = MAX_NORMAL) -> None:
        self._objects = ConditionObjects(core, _FOLDER, "The alarms.")
        self._max_normal = max_normal
        self._normal: dict[str, None] = {}
        self.tags: TagNodes | None = None
        """The tags, in the same namespace."""
        self._followed = asyncio.Event()
        """Set after each change, and replaced."""

    def __len__(self) -> int:
        return len(self._objects)

    def add_source(self, name: str, node_id: ua.NodeId) -> ConditionPlace:
        """Add the folder of alarms to a machine or the gateway, and events to it; return the place."""
        return ConditionPlace(node_id, name, self._objects.add_source(name, node_id, _SUBSCRIBE))

    def view_of(self, alarm_id: str) -> ConditionView | None:
        """Return the view of a condition; None for an unknown one."""
        view: ConditionView | None = self._objects.view_of(alarm_id)
        return view

    def ids(self) -> list[str]:
        """Return the ids of the alarms of all conditions."""
        return self._objects.ids()

    def put(self, state: FollowedAlarm, place: ConditionPlace, kind: ConditionKind) -> ConditionView:
        """Add a condition or replace its state; another rule of the same name changes its type, a job its place."""
        alarm_id, kind = state.alarm.id, _shared(kind)
        before = self.view_of(alarm_id)
        view = ConditionView(state, kind, place, before.condition_id if before else member_id(alarm_id, ""))
        self._objects.put(alarm_id, view, shape_of(kind), place.folder)
        self._bound(alarm_id, is_normal=not state.alarm.is_retained)
        return view

    async def follow(self, change: AlarmChange, place: ConditionPlace, kind: ConditionKind) -> None:
        """Show a change of an alarm, and publish its events and the values that have subscribers."""
        before = self.view_of(change.alarm.id)
        after = self.put(follow_change(before.state if before else None, change), place, kind)

        def events() -> list[EventRecord]:
            return [self.event_of(view) for view in changed_views(before, after, change.kind)]

        await self._objects.publish(place.source, events)
        await self._objects.notify(change.alarm.id)
        self._followed.set()
        self._followed = asyncio.Event()

    async def wait_for(self, alarm_id: str, changed_at: int) -> None:
        """Wait until the condition shows a change of an instant, or a later one."""
        while (view := self.view_of(alarm_id)) is not None and view.alarm.changed_at < changed_at:
            await self._followed.wait()

    def event_of(self, view: ConditionView) -> EventRecord:
        """Return the event with the state of a condition."""
        return self._objects.event_of(view.alarm.id, view, shape_of(view.kind))

    def retained(self, condition: str, notifier: ua.NodeId | None) -> Sequence[EventRecord]:
        """Return the events of the current branches of a condition and itself, as far as clients must show them."""
        view = self.view_of(condition)
        if view is None or (notifier is not None and notifier not in view.place.notifiers):
            return []
        return [self.event_of(branch) for branch in (*view.branches(), view) if branch.is_retained]

    def clear(self) -> None:
        """Remove all conditions: the store has lost what they show."""
        for alarm_id in self.ids():
            self._hide(alarm_id)

    def node(self, node_id: ua.NodeId) -> NodeData:
        """Return a node; create the node of a condition. Raises KeyError when there is none."""
        if self.tags is not None and isinstance(node_id.Identifier, str) and is_of_tags(node_id):
            return self.tags.node(node_id)
        return self._objects.node(node_id)

    def _bound(self, alarm_id: str, *, is_normal: bool) -> None:
        """Keep at most so many conditions of normal alarms."""
        self._normal.pop(alarm_id, None)
        if is_normal:
            self._normal[alarm_id] = None
            if len(self._normal) > self._max_normal:
                self._hide(next(iter(self._normal)))

    def _hide(self, alarm_id: str) -> None:
        self._objects.remove(alarm_id)
        self._normal.pop(alarm_id, None)


@lru_cache(maxsize=1_000)
def _shared(kind: ConditionKind) -> ConditionKind:
    """Return the one object that stands for all equal kinds."""
    return kind
