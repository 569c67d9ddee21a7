"""Publishes the state of the gateway, its store and its equipment.

    Objects / Gateway / Status, StoreMemoryUsed, StoreMemoryLimit, StoreNearlyFull
                      / Equipment / <name> / Kind, Connected, ConnectionSince, ConnectionFault, ConnectionReason,
                                             LastSeen, CommandsOutstanding, CommandsAnswered, CommandsFailed,
                                             MessagesIgnored, MessagesRefused, LastError, Problem, OutcomesUnknown,
                                             ResultsLate, StopsDeclined, StopsOpen, ReleaseStops()

The nodes exist from the start, in the namespace of the server itself. Their NodeIds are paths of browse names.
"""

from collections.abc import Iterator, Mapping, Sequence

from asyncua import ua
from asyncua.server.internal_server import InternalServer

from edge.store.server_check import NEARLY_FULL
from edge.uaserver.chart_types import RETURN_STATUS
from edge.uaserver.enumerations import Enumeration, add_enumeration
from edge.uaserver.live_list import write_value
from edge.uaserver.method_roles import RELEASE_METHOD
from edge.uaserver.methods import Target
from edge.uaserver.namespaces import Namespace
from edge.uaserver.node_parts import HAS_COMPONENT
from edge.uaserver.own_types import (
    MANDATORY,
    PLACEHOLDER,
    T,
    VariableSpec,
    add_modelling_rules,
    add_nodes,
    argument,
    base,
    instant,
    member_rules,
    method_items,
    object_item,
    object_type,
    text,
    type_node,
    unit_items,
    variable_item,
)
from edge.uaserver.view import GatewayView

GATEWAY_NAME = "Gateway"
"""The browse name of the object."""

GATEWAY_TYPE = type_node("GatewayType")
EQUIPMENT_TYPE = type_node("EquipmentType")
_RELEASE_OF_TYPE = type_node("EquipmentType", RELEASE_METHOD)

_OBJECTS = ua.NodeId(ua.ObjectIds.ObjectsFolder)
_ORGANIZES = ua.NodeId(ua.ObjectIds.Organizes)
_FOLDER_TYPE = ua.NodeId(ua.ObjectIds.FolderType)
_NOTHING_YET = ua.StatusCodes.BadWaitingForInitialData


def _flag(value: bool | None) -> ua.Variant:  # noqa: FBT001 - the value itself
    return ua.Variant() if value is None else ua.Variant(value, T.Boolean)


def _count(value: int) -> ua.Variant:
    return ua.Variant(value, T.UInt32)


def _bytes(value: int) -> ua.Variant:
    return ua.Variant(value, T.UInt64)


GATEWAY = (
    VariableSpec("Status", base(T.String), "The state of the gateway: faults first.", lambda p: text(p.status)),
    VariableSpec(
        "StoreMemoryUsed", base(T.UInt64), "Bytes that the store takes.", lambda p: _bytes(p.memory_used), unit="AD"
    ),
    VariableSpec(
        "StoreMemoryLimit",
        base(T.UInt64),
        "Bytes it may take; 0: no limit.",
        lambda p: _bytes(p.memory_limit),
        unit="AD",
    ),
    VariableSpec(
        "StoreNearlyFull",
        base(T.Boolean),
        f"Whether {NEARLY_FULL:.0%} of them are taken.",
        lambda p: _flag(p.is_nearly_full),
    ),
)
_EQUIPMENT = (
    VariableSpec(
        "Connected", base(T.Boolean), "Whether it is there; bad until it says so.", lambda p: _flag(p.connected)
    ),
    VariableSpec(
        "ConnectionSince",
        base(T.DateTime),
        "Since when it is connected, or not; null where that is not known.",
        lambda p: instant(p.connection.since),
    ),
    VariableSpec(
        "ConnectionFault",
        base(T.String),
        "The kind of reason why it is not connected, such as `refused` or `declined`; empty while it is.",
        lambda p: text(p.connection.fault),
    ),
    VariableSpec(
        "ConnectionReason",
        base(T.String),
        "Why it is not connected, in words; empty while it is.",
        lambda p: text(str(p.connection.reason)),
    ),
    VariableSpec(
        "LastSeen",
        base(T.DateTime),
        "When it last sent something, connected or disconnected.",
        lambda p: instant(p.last_seen),
    ),
    VariableSpec(
        "CommandsOutstanding", base(T.UInt32), "Commands that wait for an answer.", lambda p: _count(p.outstanding)
    ),
    VariableSpec("CommandsAnswered", base(T.UInt32), "Answers since the start.", lambda p: _count(p.answered)),
    VariableSpec("CommandsFailed", base(T.UInt32), "Answers that report a failure.", lambda p: _count(p.failed)),
    VariableSpec(
        "MessagesIgnored",
        base(T.UInt32),
        "Answers and events that no command or step waited for.",
        lambda p: _count(p.ignored),
    ),
    VariableSpec("MessagesRefused", base(T.UInt32), "Messages that could not be taken.", lambda p: _count(p.refused)),
    VariableSpec(
        "LastError", base(T.String), "The latest of these failures, in words.", lambda p: text(str(p.last_error))
    ),
    VariableSpec(
        "Problem", base(T.String), "Why it cannot work although it is connected.", lambda p: text(str(p.problem))
    ),
    VariableSpec(
        "OutcomesUnknown", base(T.UInt32), "Commands whose outcome could not be found.", lambda p: _count(p.unknown)
    ),
    VariableSpec("ResultsLate", base(T.UInt32), "Results that no command waited for.", lambda p: _count(p.late)),
    VariableSpec(
        "StopsDeclined",
        base(T.UInt32),
        "Stops and resets that it declined.",
        lambda p: _count(p.declined_stops),
    ),
    VariableSpec(
        "StopsOpen",
        base(T.UInt32),
        "Stops, resets and releases that it has not confirmed: the tool may still be active.",
        lambda p: _count(p.safing),
    ),
)
_RELEASE_ARGUMENTS = (
    argument("Command", base(T.String), "The id of one command; empty for all of the equipment."),
    argument("Reason", base(T.String), "How the tool was made safe; it is kept with the job."),
)
_RELEASE = "Release the stops that the equipment has not confirmed, when its tool was made safe by hand."


def kind_of_equipment(kinds: Mapping[str, int]) -> Enumeration:
    """Return the type of kinds; their numbers have gaps where a feature is absent."""
    description = "The kind of a piece of equipment: its protocol."
    return Enumeration("EquipmentKind", description, tuple(kinds), tuple(kinds.values()))


def equipment_members(kind: Enumeration) -> tuple[VariableSpec, ...]:
    """Return the variables of a piece of equipment."""
    return (VariableSpec("Kind", kind.data_type, "Protocol.", lambda p: kind.variant(p.kind)), *_EQUIPMENT)


class GatewayObject:
    """The object Gateway; a value is written, and its subscribers are notified, only when it has changed."""

    def __init__(self, iserver: InternalServer, equipment: Sequence[str], kinds: Mapping[str, int]) -> None:
        """Add the object with this equipment; `kinds` are the numbers of all kinds by their names."""
        kind = kind_of_equipment(kinds)
        self._members = equipment_members(kind)
        add_enumeration(iserver.aspace, kind)
        add_nodes(iserver, _types(self._members))
        add_modelling_rules(iserver, _rules(self._members))
        add_nodes(iserver, _instances(equipment, self._members))
        self._aspace = iserver.aspace
        self.node_id = _node("Gateway")
        parts = [((), GATEWAY), *((("Equipment", name), self._members) for name in equipment)]
        for path, members in parts:
            for member in members:
                held = self._aspace[_node("Gateway", *path, member.name)].attributes[ua.AttributeIds.Value]
                held.value = ua.DataValue(ua.Variant(), StatusCode=ua.StatusCode(_NOTHING_YET))
        self._shown: dict[ua.NodeId, ua.Variant] = {}
        self._parts: dict[tuple[str, ...], object] = {}
        """The gateway and each equipment as they were shown last, by their path."""
        self.targets = {_node("Gateway", "Equipment", name): _target(name) for name in equipment}
        """The objects with methods: the equipment."""

    async def show(self, view: GatewayView) -> None:
        """Write the changed values of the gateway and its equipment."""
        await self._show((), GATEWAY, view)
        for name, health in view.equipment.items():
            await self._show(("Equipment", name), self._members, health)

    async def _show(self, path: tuple[str, ...], members: Sequence[VariableSpec], part: object) -> None:
        if self._parts.get(path) == part:
            return
        for member in members:
            node_id, value = _node("Gateway", *path, member.name), member.value(part)
            if self._shown.get(node_id) != value:
                # An instant may be none for good.
                is_awaited = value.Value is None and member.data_type != base(T.DateTime)
                await write_value(self._aspace, node_id, value, _NOTHING_YET if is_awaited else ua.StatusCodes.Good)
                self._shown[node_id] = value
        self._parts[path] = part


def _types(members: Sequence[VariableSpec]) -> Iterator[ua.AddNodesItem]:
    yield from object_type(EQUIPMENT_TYPE, members)
    yield from method_items(_RELEASE_OF_TYPE, EQUIPMENT_TYPE, _RELEASE, _RELEASE_ARGUMENTS, RETURN_STATUS)
    yield from object_type(GATEWAY_TYPE, GATEWAY)
    folder = type_node("GatewayType", "Equipment")
    yield object_item(folder, GATEWAY_TYPE, HAS_COMPONENT, _FOLDER_TYPE)
    yield object_item(type_node("GatewayType", "Equipment", "<Name>"), folder, HAS_COMPONENT, EQUIPMENT_TYPE)


def _rules(members: Sequence[VariableSpec]) -> Iterator[tuple[ua.NodeId, ua.NodeId]]:
    yield from member_rules(EQUIPMENT_TYPE, members)
    yield from member_rules(GATEWAY_TYPE, GATEWAY)
    yield _RELEASE_OF_TYPE, MANDATORY
    yield type_node("GatewayType", "Equipment"), MANDATORY
    yield type_node("GatewayType", "Equipment", "<Name>"), PLACEHOLDER


def _instances(equipment: Sequence[str], members: Sequence[VariableSpec]) -> Iterator[ua.AddNodesItem]:
    gateway, folder = _node("Gateway"), _node("Gateway", "Equipment")
    yield object_item(gateway, _OBJECTS, _ORGANIZES, GATEWAY_TYPE)
    yield from _variables(gateway, GATEWAY)
    yield object_item(folder, gateway, HAS_COMPONENT, _FOLDER_TYPE)
    for name in equipment:
        place = _node("Gateway", "Equipment", name)
        found = object_item(place, folder, HAS_COMPONENT, EQUIPMENT_TYPE)
        found.BrowseName = ua.QualifiedName(name, Namespace.APPLICATION)
        yield found
        yield from _variables(place, members)
        method = _node(place.Identifier, RELEASE_METHOD)
        yield from method_items(method, place, _RELEASE, _RELEASE_ARGUMENTS, RETURN_STATUS)


def _variables(owner: ua.NodeId, members: Sequence[VariableSpec]) -> Iterator[ua.AddNodesItem]:
    for variable_spec in members:
        node_id = _node(owner.Identifier, variable_spec.name)
        asked = variable_item(node_id, owner, variable_spec)
        asked.NodeAttributes.Value = ua.Variant()
        yield asked
        yield from unit_items(node_id, variable_spec)


def _target(name: str) -> Target:
    own = _node("Gateway", "Equipment", name, RELEASE_METHOD)
    return Target("", {own: RELEASE_METHOD, _RELEASE_OF_TYPE: RELEASE_METHOD}, equipment=name)


def _node(*path: str) -> ua.NodeId:
    return ua.NodeId("/".join(path), Namespace.APPLICATION)
