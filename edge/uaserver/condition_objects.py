"""The conditions of a feature in the address space, and what their subscribers are notified of.

    <machine> or Gateway / <folder> / <condition> / EnabledState, Retain, ...

A condition costs its view and two references: its nodes are created when a client asks for them, and kept only while a
monitored item watches them. NodeIds depend on the id of the condition only.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData
from msgspec import Struct, field

from edge.opcua.event_filter import EventRecord
from edge.opcua.server_core import ServerCore
from edge.sfc.identifiers import quote
from edge.uaserver.condition_members import ConditionFields, ConditionShape
from edge.uaserver.condition_nodes import condition_node, folder_node, member_id, references_to
from edge.uaserver.events import SERVER, EventPublisher, lineage, notifiers_of
from edge.uaserver.live_list import notify_all
from edge.uaserver.namespaces import Namespace
from edge.uaserver.node_parts import reference_to

_GONE: Final = ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadNodeIdUnknown))
_HAS_NOTIFIER: Final = ua.NodeId(ua.ObjectIds.HasNotifier)


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
    """A condition: its view, its type, its folder, its references, and its nodes that are watched."""

    view: Any
    shape: ConditionShape
    folder: str
    references: Sequence[ua.ReferenceDescription] = ()
    """Those of its folder and of its source to it."""
    watched: dict[ua.NodeId, NodeData] = field(default_factory=dict)


class ConditionObjects:
    """The conditions of a feature by their ids, in the order of their first appearance.

    A view is a `ConditionBase` of `edge.uaserver.condition_members`.
    """

    def __init__(self, core: ServerCore, folder: str, description: str) -> None:
        """Show them in a folder of this name below each source."""
        self._core = core
        self._aspace: AddressSpace = core.aspace
        self._publisher = EventPublisher(core)
        self._folder = folder
        self._description = description
        self._conditions: dict[str, _Condition] = {}
        self._folders: dict[str, tuple[NodeData, NodeData]] = {}
        self._types: dict[ua.NodeId, tuple[ua.NodeId, ...]] = {}
        self._gone: list[AttributeValue] = []
        """Values of removed conditions whose subscribers are not notified yet."""

    def __len__(self) -> int:
        return len(self._conditions)

    def add_source(self, name: str, node_id: ua.NodeId, notifier: int) -> str:
        """Add the folder to a machine or the gateway, and events to it, as bits of EventNotifier; return its id."""
        source = self._aspace[node_id]
        held = source.attributes[ua.AttributeIds.EventNotifier]
        held.value = ua.DataValue(ua.Variant(held.value.Value.Value | notifier, ua.VariantType.Byte))
        if not any(reference.ReferenceTypeId == _HAS_NOTIFIER for reference in source.references):  # as a machine has
            server = self._aspace[SERVER]
            for here, there, is_forward in ((server, source, True), (source, server, False)):
                here.references.append(reference_to(there, _HAS_NOTIFIER, is_forward=is_forward))
        folder = f"{self._folder}/{quote(name)}"
        node = folder_node(ua.NodeId(folder, Namespace.ALARMS), source, self._folder, self._description)
        self._folders[folder] = (node, source)
        return folder

    def view_of(self, condition: str) -> Any:
        """Return the view of a condition; None for an unknown one."""
        found = self._conditions.get(condition)
        return found.view if found else None

    def ids(self) -> list[str]:
        """Return the ids of all conditions."""
        return list(self._conditions)

    def put(self, condition: str, view: Any, shape: ConditionShape, folder: str) -> None:
        """Add a condition, or replace its view; its type and its folder may be others than before."""
        found = self._conditions.get(condition)
        if found is None:
            found = self._conditions[condition] = _Condition(view, shape, folder)
        elif found.shape is shape and found.folder == folder:
            found.view = view
            return
        else:
            self._forget_references(found)
            found.view, found.shape, found.folder = view, shape, folder
        found.references = references_to(condition, view, shape)
        for node, reference in zip(self._folders[folder], found.references, strict=True):
            node.references.append(reference)

    def remove(self, condition: str) -> None:
        """Remove a condition; the subscribers of its values are notified with `notify`."""
        found = self._conditions.pop(condition)
        self._forget_references(found)
        self._gone += [node.attributes[ua.AttributeIds.Value] for node in found.watched.values()]

    async def publish(self, source: ua.NodeId, events: Callable[[], Sequence[EventRecord]]) -> None:
        """Publish events of a source; they are not made without a listener."""
        notifiers = notifiers_of(source)
        if self._publisher.has_listeners(notifiers):
            await self._publisher.publish(events(), notifiers)

    async def notify(self, condition: str) -> None:
        """Publish the values of a condition, and the end of removed ones, to those who monitor them."""
        if found := self._conditions.get(condition):
            for node in tuple(found.watched.values()):
                held = node.attributes[ua.AttributeIds.Value]
                await notify_all(held.datachange_callbacks, held.value_callback(node.nodeid, ua.AttributeIds.Value))
        gone, self._gone = self._gone, []
        for held in gone:
            await notify_all(held.datachange_callbacks, _GONE)

    def event_of(self, condition: str, view: Any, shape: ConditionShape) -> EventRecord:
        """Return the event with the state of a condition."""
        if shape.type_id not in self._types:
            self._types[shape.type_id] = lineage(self._core, shape.type_id)
        return EventRecord(self._types[shape.type_id], ConditionFields(shape.members, view), member_id(condition, ""))

    def node(self, node_id: ua.NodeId) -> NodeData:
        """Return a folder; create the node of a condition. Raises KeyError when there is none."""
        identifier = node_id.Identifier
        if not isinstance(identifier, str):
            raise KeyError(node_id)
        if identifier in self._folders:
            return self._folders[identifier][0]
        condition = self._conditions[identifier.partition("/")[0]]
        if (watched := condition.watched.get(node_id)) is not None:
            return watched
        node = condition_node(node_id, condition.shape, lambda: condition.view, *self._folders[condition.folder])
        value: AttributeValue | None = node.attributes.get(ua.AttributeIds.Value)
        if value is not None:
            value.datachange_callbacks = _ValueCallbacks(condition.watched, node)
        return node

    def _forget_references(self, condition: _Condition) -> None:
        for node, reference in zip(self._folders[condition.folder], condition.references, strict=True):
            at = next((at for at, value in enumerate(node.references) if value is reference), None)
            if at is not None:
                del node.references[at]
