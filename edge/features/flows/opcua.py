"""Publishes the flows of the store, with Start and Stop.

    Objects / Gateway / Flows / <id> / State, Reason, LastCycle, LastCycleState, LastCycleAt, LastCycleDuration,
                                       NextCycle, CyclesCompleted, CyclesFailed, CyclesTerminated, CyclesMissed,
                                       Start(), Stop()

The nodes of a flow exist while it is registered. A value is computed on a read or for a notification of subscribers: a
cycle that no client reads costs one reference.
"""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import structlog
from asyncua import ua
from asyncua.server.internal_server import InternalServer
from msgspec import Struct

from edge.app.parts import GatewayParts
from edge.features.flows.flow_view import FlowMethods, FlowView
from edge.foundation.text import Text
from edge.opcua.access import CALLER
from edge.sfc.identifiers import quote
from edge.uaserver.chart_types import RETURN_STATUS
from edge.uaserver.enumerations import Enumeration, add_enumeration
from edge.uaserver.intervention_methods import read_text
from edge.uaserver.live_list import BUNDLE_S, notify_all
from edge.uaserver.methods import PartMethod, Target
from edge.uaserver.namespaces import Namespace
from edge.uaserver.node_parts import HAS_COMPONENT
from edge.uaserver.own_types import (
    DURATION,
    MANDATORY,
    MILLISECOND,
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
from edge.uaserver.parts import NewServer, ServerPart

logger = structlog.get_logger(__name__)

MOST_FLOWS = 200
"""A flow takes 130 KB here; further ones are not shown."""

FLOW_TYPE = type_node("FlowType")
_METHODS = {name: type_node("FlowType", name) for name in ("Start", "Stop")}
_FOLDER_OF_TYPE = type_node("GatewayType", "Flows")
_GATEWAY = ua.NodeId("Gateway", Namespace.APPLICATION)
_FOLDER = ua.NodeId("Gateway/Flows", Namespace.APPLICATION)
_FOLDER_TYPE = ua.NodeId(ua.ObjectIds.FolderType)
_OPTIONAL = ua.NodeId(ua.ObjectIds.ModellingRule_Optional)
_START = "Start the flow: its cycles run from now on."
_STOP = "Stop the flow: its running cycle ends by itself, no further one begins."
_STOP_ARGUMENTS = (argument("Reason", base(T.String), "Why; it is shown with the flow and kept in the audit trail."),)


def _count(value: int) -> ua.Variant:
    return ua.Variant(value, T.UInt64)


def _duration(milliseconds: int | None) -> ua.Variant:
    return ua.Variant(0.0 if milliseconds is None else float(milliseconds), T.Double)


FLOW_STATE = Enumeration("FlowState", "The state of a flow.", ("registered", "running", "stopped", "completed"))
CYCLE_STATE = Enumeration(
    "CycleState", "The state of a cycle of a flow.", ("none", "running", "completed", "failed", "terminated")
)
FLOW = (
    VariableSpec(
        "State", FLOW_STATE.data_type, "Whether it runs, and how it ended.", lambda f: FLOW_STATE.variant(f.state)
    ),
    VariableSpec("Reason", base(T.String), "Why it was stopped.", lambda f: text(f.reason)),
    VariableSpec(
        "LastCycle",
        base(T.Int64),
        "The number of the last cycle that began; -1 before the first.",
        lambda f: ua.Variant(f.last_cycle, T.Int64),
    ),
    VariableSpec(
        "LastCycleState",
        CYCLE_STATE.data_type,
        "Its state; none before the first cycle.",
        lambda f: CYCLE_STATE.variant(f.cycle_state or "none"),
    ),
    VariableSpec("LastCycleAt", base(T.DateTime), "When it was due.", lambda f: instant(f.cycle_at)),
    VariableSpec(
        "LastCycleDuration",
        DURATION,
        "How long the last cycle took that has ended; 0 before the first.",
        lambda f: _duration(f.duration_ms),
        unit=MILLISECOND,
    ),
    VariableSpec("NextCycle", base(T.DateTime), "When the next cycle is due.", lambda f: instant(f.next_at)),
    VariableSpec("CyclesCompleted", base(T.UInt64), "Cycles without a failed node.", lambda f: _count(f.completed)),
    VariableSpec("CyclesFailed", base(T.UInt64), "Cycles with a failed node.", lambda f: _count(f.failed)),
    VariableSpec("CyclesTerminated", base(T.UInt64), "Cycles that were ended by hand.", lambda f: _count(f.terminated)),
    VariableSpec("CyclesMissed", base(T.UInt64), "Instants at which no cycle ran.", lambda f: _count(f.missed)),
)


class _Shown(Struct):
    """A flow in the address space: its view with its instant, and the view of the last notification."""

    view: FlowView
    at: datetime
    notified: FlowView


class FlowNodes:
    """The objects of flows, with their methods."""

    def __init__(self, iserver: InternalServer, methods: FlowMethods) -> None:
        self._iserver = iserver
        self._methods = methods
        self._aspace = iserver.aspace
        self._flows: dict[str, _Shown] = {}
        self._targets: dict[ua.NodeId, Target] = {}
        self._gone: list[dict[int, object]] = []
        self._changed = asyncio.Event()
        self._is_open = False
        self._is_full = False

    def target_of(self, node_id: ua.NodeId) -> Target | None:
        """Return the method target of a flow; None for every other node."""
        return self._targets.get(node_id)

    def show(self, flow_id: str, view: FlowView) -> None:
        """Add a flow, or update it."""
        shown = self._flows.get(flow_id)
        if shown is None:
            self._add(flow_id, view)
        elif shown.view != view:
            shown.view, shown.at = view, datetime.now(UTC)
            self._changed.set()

    def hide(self, flow_id: str) -> None:
        """Remove a flow that was deleted; notify its subscribers with BadNodeIdUnknown."""
        if self._flows.pop(flow_id, None) is None:
            return
        self._is_full = False
        place = _place(flow_id)
        del self._targets[place]
        for asked in _items(flow_id):
            node = self._aspace[asked.RequestedNewNodeId]
            if held := node.attributes.get(ua.AttributeIds.Value):
                self._gone.append(held.datachange_callbacks)
            del self._aspace[asked.RequestedNewNodeId]
        folder = self._aspace[_FOLDER]
        folder.references = [reference for reference in folder.references if reference.NodeId != place]
        self._changed.set()

    async def notify_subscribers(self) -> None:
        """Publish each change at most BUNDLE_S later, until cancelled."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(BUNDLE_S)
            self._changed.clear()
            for flow_id, shown in tuple(self._flows.items()):
                if shown.notified is not shown.view:
                    await self._notify(flow_id, shown)
            gone, self._gone = self._gone, []
            for subscribers in gone:
                await notify_all(subscribers, ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadNodeIdUnknown)))

    async def _notify(self, flow_id: str, shown: _Shown) -> None:
        before, shown.notified = shown.notified, shown.view
        for variable_spec in FLOW:
            value = variable_spec.value(shown.notified)
            if value != variable_spec.value(before) and (
                node := self._aspace.get(_member(flow_id, variable_spec.name))
            ):
                subscribers = node.attributes[ua.AttributeIds.Value].datachange_callbacks
                await notify_all(subscribers, _data_value(value, shown.at))

    def _add(self, flow_id: str, view: FlowView) -> None:
        if len(self._flows) >= MOST_FLOWS:
            if not self._is_full:
                logger.warning("flow not shown over OPC UA, too many", flow=flow_id, most=MOST_FLOWS)
            self._is_full = True
            return
        if not self._is_open:
            self._is_open = True
            add_nodes(self._iserver, [object_item(_FOLDER, _GATEWAY, HAS_COMPONENT, _FOLDER_TYPE)])
        shown = self._flows[flow_id] = _Shown(view, datetime.now(UTC), view)
        add_nodes(self._iserver, _items(flow_id))
        for spec in FLOW:
            read = partial(_read, shown, spec)
            self._aspace.set_attribute_value_callback(_member(flow_id, spec.name), ua.AttributeIds.Value, read)
        place = _place(flow_id)
        own = {_member(flow_id, name): name for name in _METHODS}
        of_type = {node_id: name for name, node_id in _METHODS.items()}
        methods = {
            "Start": PartMethod((), partial(self._methods.start, flow_id)),
            "Stop": PartMethod((read_text,), partial(self._stop, flow_id)),
        }
        self._targets[place] = Target("", own | of_type, part_methods=methods)

    async def _stop(self, flow_id: str, reason: str) -> None:
        by = Text.of("by {person} over OPC UA", person=CALLER.get().name or Text.of("anonymous"))
        await self._methods.stop(flow_id, reason or by)


async def add_flows(core: GatewayParts, new: NewServer) -> ServerPart:
    """Add the types of flows and the flows of the store to a server."""
    feed = core.ports["flows"].feed
    add_flow_types(new.core)
    nodes = FlowNodes(new.core, feed)

    async def run(_server: object) -> None:
        await feed.run(nodes)

    return ServerPart(nodes.target_of, {"OPC UA flows": run})


async def add_types(_core: GatewayParts, new: NewServer) -> None:
    """Add the types of flows to a server where flows are off."""
    add_flow_types(new.core)


def add_flow_types(iserver: InternalServer) -> None:
    """Add the types of flows."""
    for enumeration in (FLOW_STATE, CYCLE_STATE):
        add_enumeration(iserver.aspace, enumeration)
    add_nodes(iserver, _types())
    add_modelling_rules(iserver, _rules())


def _read(shown: _Shown, spec: VariableSpec, _node_id: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
    return _data_value(spec.value(shown.view), shown.at)


def _data_value(value: ua.Variant, at: datetime) -> ua.DataValue:
    return ua.DataValue(value, SourceTimestamp=at, ServerTimestamp=datetime.now(UTC))


def _place(flow_id: str) -> ua.NodeId:
    return ua.NodeId(f"{_FOLDER.Identifier}/{quote(flow_id)}", Namespace.APPLICATION)


def _member(flow_id: str, name: str) -> ua.NodeId:
    return ua.NodeId(f"{_place(flow_id).Identifier}/{name}", Namespace.APPLICATION)


def _types() -> Iterator[ua.AddNodesItem]:
    yield from object_type(FLOW_TYPE, FLOW)
    yield from method_items(_METHODS["Start"], FLOW_TYPE, _START, (), RETURN_STATUS)
    yield from method_items(_METHODS["Stop"], FLOW_TYPE, _STOP, _STOP_ARGUMENTS, RETURN_STATUS)
    yield object_item(_FOLDER_OF_TYPE, type_node("GatewayType"), HAS_COMPONENT, _FOLDER_TYPE)
    yield object_item(type_node("GatewayType", "Flows", "<Flow>"), _FOLDER_OF_TYPE, HAS_COMPONENT, FLOW_TYPE)


def _rules() -> Iterator[tuple[ua.NodeId, ua.NodeId]]:
    yield from member_rules(FLOW_TYPE, FLOW)
    yield from ((node_id, MANDATORY) for node_id in _METHODS.values())
    yield _FOLDER_OF_TYPE, _OPTIONAL
    yield type_node("GatewayType", "Flows", "<Flow>"), PLACEHOLDER


def _items(flow_id: str) -> Iterator[ua.AddNodesItem]:
    place = _place(flow_id)
    found = object_item(place, _FOLDER, HAS_COMPONENT, FLOW_TYPE)
    found.BrowseName = ua.QualifiedName(flow_id, Namespace.APPLICATION)
    found.NodeAttributes.DisplayName = ua.LocalizedText(flow_id)
    found.NodeAttributes.Description = ua.LocalizedText("A flow.", "en")
    yield found
    for element in FLOW:
        asked = variable_item(_member(flow_id, element.name), place, element)
        asked.NodeAttributes.Value = ua.Variant()
        yield asked
        yield from unit_items(asked.RequestedNewNodeId, element)
    yield from method_items(_member(flow_id, "Start"), place, _START, (), RETURN_STATUS)
    yield from method_items(_member(flow_id, "Stop"), place, _STOP, _STOP_ARGUMENTS, RETURN_STATUS)
